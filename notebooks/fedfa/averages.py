"""The averages of a table's methods at the paper's setting, and shares of the training images as fractions."""

from dataclasses import replace
from fractions import Fraction

from fednb import report
from fednb.report import labels


def ran(results, printed) -> str:
    """Which printed methods were run at the paper's setting, with their averages, the highest first: a line."""
    if not results.records:
        return "at the paper's setting nothing was run"
    rows = report.comparison(results, printed)
    average = rows[rows["site"] == "average"].set_index("run")["ours"].sort_values(ascending=False)
    have, lacking = average.dropna(), average[average.isna()]
    means = ", ".join(f"{labels.short(run)} {mean:.1f} %" for run, mean in have.items())
    others = ", ".join(map(labels.short, lacking.index))
    line = f"at the paper's setting {len(have)} of {len(average)} methods were run: {means}"
    return f"{line}; not {others}" if others else line


def as_fractions(results, option: str | None):
    """The same results, whose frame has this option as a fraction, "1/6" for 0.167; as they are without an option."""
    if option is None:
        return results
    named = replace(results)
    shares = results.frame[option].map(lambda share: Fraction(float(share)).limit_denominator(6))
    named.__dict__["frame"] = results.frame.assign(**{option: shares})
    return named
