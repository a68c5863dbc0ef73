"""What recorded runs say: tables beside the paper's, claims with verdicts, intervals, figures.

``from fednb import report`` is all that a notebook needs for tables; figures are in ``fednb.report.plots``.
"""

from fednb.report.claims import scoreboard, verdict
from fednb.report.comparison import comparison, cross_site, table
from fednb.report.effects import effects
from fednb.report.overview import rules_table, runs_table
from fednb.report.readings import readings
from fednb.report.selection import RULES, selected
from fednb.report.tables import Table
from fednb.report.words import STAND_IN, setting, settings

__all__ = [
    "RULES",
    "STAND_IN",
    "Table",
    "comparison",
    "cross_site",
    "effects",
    "readings",
    "rules_table",
    "runs_table",
    "scoreboard",
    "selected",
    "setting",
    "settings",
    "table",
    "verdict",
]
