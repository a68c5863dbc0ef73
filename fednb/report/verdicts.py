"""The words of verdicts, each with all that shows it; colour never says a verdict alone."""

from typing import NamedTuple


class Verdict(NamedTuple):
    """phrase: what two runs are to each other, the second at ``{}``. color, marker, hollow: of a dot."""

    heading: str
    phrase: str = ""
    color: str = ""
    marker: str = ""
    hollow: bool = False

    @property
    def look(self) -> dict:
        """Arguments of a matplotlib line."""
        return {"color": self.color, "marker": self.marker} | ({"markerfacecolor": "white"} if self.hollow else {})


GREEN, BLUE, ORANGE, RED, GREY = "#009E73", "#0072B2", "#E69F00", "#D55E00", "0.45"
NOT_PAIRED = "without scores of the same images in the same seeds"
NONE, UNSURE = "against {}, no effect as printed", "cannot be distinguished from {}"
VERDICTS = {
    "reproduced": Verdict("Reproduced", "", GREEN, "o"),
    "larger": Verdict("Larger than printed", "", BLUE, "^"),
    "smaller": Verdict("Smaller than printed", "", ORANGE, "v"),
    "opposite": Verdict("The opposite", "", RED, "X"),
    "above": Verdict("Above, at another setting", "is above {}", BLUE, ">", hollow=True),
    "below": Verdict("Below, at another setting", "is below {}", RED, "<", hollow=True),
    "no effect as printed": Verdict("No effect as printed", NONE, GREY, "s"),
    "inconclusive": Verdict("Inconclusive", UNSURE, GREY, "p", hollow=True),
    "as in print": Verdict("As in print"),
    "otherwise than in print": Verdict("Otherwise than in print"),
    "not testable": Verdict("Not testable here", "against {}, not testable"),
    "one seed": Verdict("One seed, no verdict", "against {}, one seed and no verdict"),
    "older code": Verdict("By older code, no verdict", "against {}, by older code and without a verdict"),
    "not paired": Verdict(
        f"{NOT_PAIRED.capitalize()}, no verdict", f"against {{}}, {NOT_PAIRED} and without a verdict"
    ),
    "other sites": Verdict("Over other sites than the paper's"),
    "not run": Verdict("Not run"),
}
# The first four are on the board of the paper's own setting alone
TESTED = ("reproduced", "larger", "smaller", "opposite", "above", "below", "no effect as printed", "inconclusive")
PRINTED, SMALL = "paper", "small"  # the boards: the paper's claim at its setting, the effect at ours
AT = {PRINTED: "at the paper's setting", SMALL: "at a smaller setting", "": ""}
CLAIM = ("table", "federation", "claim")  # which a row of the board is of; one that ran on both boards has two
