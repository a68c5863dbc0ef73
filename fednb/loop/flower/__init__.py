"""A federation whose clients are elsewhere: what is believed of them, both sides; Flower carries the messages."""
