"""Figures in one style, in which a method looks the same everywhere (``fednb.report.style``).

All functions take data frames or arrays, never a trainer, and return a closed matplotlib Figure: a notebook
shows it once, as the value of a cell.
"""

from fednb.report.plots.curves import convergence, lines
from fednb.report.plots.rows import claims, effects, scores
