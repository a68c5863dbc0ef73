"""Federated algorithms, one file each; a run has one."""
