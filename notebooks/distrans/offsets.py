"""How far DisTrans' offsets have moved, from what the server holds at the end of a recorded run.

    python notebooks/distrans/offsets.py RECORD.json ...

writes results/offset_moves.csv, for runs whose weights at the server are too large to keep beside them.
"""

import sys
from pathlib import Path

import numpy
import pandas

from fednb import report
from fednb.errors import RunError
from fednb.methods import part
from fednb.methods.augmentations.distrans import first_offset
from fednb.randomness import generator
from fednb.records.record import read
from fednb.records.store import Record

MOVES = Path(__file__).parents[2] / "results" / "offset_moves.csv"
HEAD = "# How far DisTrans' offsets moved, written by notebooks/distrans/offsets.py.\n"


def moved(record: Record) -> dict[str, float]:
    """Root mean squares over all clients and pixels, in units of the images (0 to 1).

    ``moved``: of the offsets' change since they were drawn; ``spread``: of the drawn values around their mean, an
    offset at a time; ``network``: of what the aggregation network's last call changed of the offsets that it was given,
    as a share of the latter; NaN where there is none.

    Raises RunError unless the record is one of DisTrans with offsets, variant "paper" (the released network replaces
    what was drawn), and StoreError where the recipe has no evaluation "server".
    """
    held = record.artefact("server")
    offsets = part(held, "distrans/offset")
    variants = [given["variant"] for given in record.recipe["augmentations"] if given["name"] == "distrans"]
    if variants != ["paper"] or not offsets:
        raise RunError(f'{record.path} is no run of distrans with offsets and variant "paper"; give one that is.')
    seed = record.recipe["seed"]
    draws = {client: generator(seed, 0, "server", f"distrans {client}") for client in offsets}
    first = numpy.stack([first_offset(now.shape, draws[client]).numpy() for client, now in offsets.items()])
    last = numpy.stack(list(offsets.values()))
    given = part(held, "distrans/seen")
    entered = numpy.stack([given[client] for client in offsets]) if given else numpy.full_like(last, numpy.nan)
    return {
        "moved": _size(last - first),
        "spread": _size(first - first.mean((1, 2, 3), keepdims=True)),
        "network": _size(last - entered) / _size(entered),
    }


def table(results):
    """``moved`` of each recorded run by its rate, and the mean accuracy of its last rounds: a data frame. Runs of
    MOVES are read there."""
    known = pandas.read_csv(MOVES, comment="#", dtype={"key": str}, index_col="key").T
    accuracy = report.selected(results.frame, "mean_of_last").groupby("key")["accuracy"].mean()
    runs = {record.recipe["augmentations"][0]["offset_rate"]: record for record in results.records}
    rows = {}
    for rate, record in runs.items():
        found = dict(known[record.key]) if record.key in known else moved(record)
        rows[rate] = found | {"accuracy": accuracy[record.key]}
    return pandas.DataFrame(rows).T.rename_axis("rate")


def write(paths: list[str]) -> None:
    rows = {record.key: moved(record) for record in map(read, map(Path, paths))}
    table = pandas.DataFrame(rows).T.rename_axis("key")
    MOVES.write_text(HEAD + table.to_csv(float_format="%.9g"), encoding="utf-8")


def _size(values) -> float:
    return float(numpy.sqrt(numpy.square(values, dtype=numpy.float64).mean()))


def averaging(differences, better: str) -> str:
    """Whether the mean of offsets is above none at the first heterogeneity, against the paper's sentence. differences:
    of ``fednb.report.effects``."""
    [at_0, *_] = differences.frame[differences.frame["better"] == better].itertuples()
    said = "above" if at_0.direction == "above" else "not above"
    return (
        f"At DH 0 % averaging is {said} not aggregating ({at_0.ours:+.1f} points).\n"
        "The paper's sentence has averaging below it at every heterogeneity; its table has it above at DH 0 %."
    )


if __name__ == "__main__":
    write(sys.argv[1:])
