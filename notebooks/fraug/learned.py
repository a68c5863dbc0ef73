"""What clients learn: the loss on their own training images next to the test accuracy."""

from fednb import report
from fednb.report import labels


def learned(results):
    """By run: average test accuracy (%) and the clients' mean training loss, in the middle and in the last round."""
    tested = results.frame[results.frame["split"] == "test"]
    last = tested["round"].max()
    ends = tested[tested["round"].isin([last // 2, last])]
    at = ends.groupby(["run", "key", "round"])["accuracy"].mean().reset_index()
    at = at.join(report.losses(results), on=["key", "round"])
    table = at.pivot_table(["accuracy", "loss"], "run", "round", sort=False)
    table = table.rename(labels.pretty).rename_axis(None).rename_axis([None, "round"], axis="columns")
    return table.round({column: 1 if "accuracy" in column else 2 for column in table})
