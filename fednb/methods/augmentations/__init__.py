"""Augmentations, one file each; a run has any number of them, in the order given."""
