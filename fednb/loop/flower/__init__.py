"""A federation whose clients are elsewhere: who takes part, what is believed of replies, both sides.

Flower carries the messages; ``fednb.records.federate`` gives it the two apps.
"""
