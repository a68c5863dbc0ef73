"""What clients learn: the loss on their own training images next to the test accuracy."""

import pandas

from fednb.report import labels


def learned(results):
    """By run: average test accuracy (%) and the clients' mean training loss, in the middle and in the last round."""
    tested = results.frame[results.frame["split"] == "test"]
    last = tested["round"].max()
    ends = tested[tested["round"].isin([last // 2, last])]
    at = ends.groupby(["run", "key", "round"])["accuracy"].mean().reset_index()
    at = at.join(losses(results), on=["key", "round"])
    table = at.pivot_table(["accuracy", "loss"], "run", "round", sort=False)
    table = table.rename(labels.pretty).rename_axis(None).rename_axis([None, "round"], axis="columns")
    return table.round({column: 1 if "accuracy" in column else 2 for column in table})


def losses(results):
    """The mean over clients of what they minimise, on their own training images: a Series "loss" by key and round."""
    found = [(run.key, each["round"], each["loss"].values()) for run in results.records for each in run.rounds]
    places = pandas.MultiIndex.from_tuples([place for *place, _ in found], names=["key", "round"])
    return pandas.Series([sum(own) / len(own) for *_, own in found], index=places, name="loss", dtype=float)
