"""The same for a federation whose sites have masks."""

from fednb.data._in_memory import NEEDS, describe, load, missing

__all__ = ["NEEDS", "TASK", "describe", "load", "missing"]
TASK = "segmentation"
