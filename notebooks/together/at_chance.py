"""Whether anything was learned on data of your own, and whether its sites differ."""

from statistics import mean

from fednb import report
from fednb.report.gates import measured
from fednb.report.wording import number


def at_chance(table, federation) -> str:
    """Which averages of a ``runs_table`` are not distinguished from a constant answer on this federation."""
    constant = measured(federation)
    bound = max(constant["chance"], mean(constant["clients"].values()) if constant["clients"] else 0)
    average = table.frame[table.frame["client"] == "average"]
    low = average.loc[average["low"] <= bound, "row"].tolist()
    level = f"down at a constant answer's level ({number(bound)} %)"
    if len(low) == len(average):
        return f"Every method is {level}. Nothing was learned: train longer, or look at images and labels."
    return f"{level.capitalize()}: {'; '.join(low)}." if low else f"No method is {level}."


def at_home(results, run: str = "fedavg") -> list[str]:
    """How local models of a run with ``evaluation=["cross_site"]`` do on their own site and on the others, in lines."""
    local = report.cross_site(results).query("run == @run")
    home = local["source"] == local["client"]
    own, others = (local[where].groupby("source")["accuracy"].mean() for where in (home, ~home))
    worse = [f"{site} {number(others[site] - own[site])}" for site in own.index if others[site] > own[site]]
    return [
        f"a local model has {number(own.mean())} % on its own site, {number(others.mean())} % on the others",
        *([f"local models worse at home than elsewhere, in points: {', '.join(worse)}"] if worse else []),
    ]
