"""Recorded runs: training one recipe or many, the store of records and checkpoints, where numbers come from."""
