"""What recorded runs say: tables next to the paper's, claims with verdicts, intervals, figures.

``from fednb import report`` is all that a notebook needs for tables; figures are in ``fednb.report.plots``.
"""

from fednb.report.board import board, curve_board
from fednb.report.comparison import comparison, cross_site, table
from fednb.report.convergence import common_seeds, first_near, late_rise, late_steps
from fednb.report.curves import curves
from fednb.report.differences import effects
from fednb.report.judging import recorded_board
from fednb.report.readings import readings
from fednb.report.selection import selected
from fednb.report.sentences import sentences, summary
from fednb.report.tables import runs_table
from fednb.report.tuning import best, on_validation
from fednb.report.verdicts import TESTED
from fednb.report.wording import STAND_IN
