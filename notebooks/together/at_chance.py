"""Whether anything was learned on data of your own."""

from statistics import mean

from fednb.report.gates import measured
from fednb.report.wording import number


def at_chance(table, federation) -> str:
    """Which averages of a ``runs_table`` are not distinguished from a constant answer on this federation."""
    constant = measured(federation)
    bound = max(constant["chance"], mean(constant["clients"].values()) if constant["clients"] else 0)
    average = table.frame[table.frame["client"] == "average"]
    low = average.loc[average["low"] <= bound, "row"].tolist()
    which = "Every row" if len(low) == len(average) else "; ".join(low) or "No row"
    learned = " Nothing was learned: train longer, or look at images and labels." if which == "Every row" else ""
    return f"At the level of a constant answer ({number(bound)} %) by its interval: {which}.{learned}"
