"""Tables of the recorded bench (``fednb.report.speed``)."""

import pandas

from fednb.report.speed import recorded


def methods_table() -> pandas.DataFrame:
    """One row for each method: its round in FedAvg's, the lowest and highest of the pairs of rounds, KB that a client
    sends and receives in it; the dearest first."""
    columns = ["times", "least", "most", "bytes"]
    frame = pandas.DataFrame.from_dict(recorded()["methods"], orient="index", columns=columns)
    frame["bytes"] /= 1e3
    frame.columns = ["times FedAvg's round", "lowest", "highest", "KB a client"]
    return frame.sort_values("times FedAvg's round", ascending=False, kind="stable")


def clients_table() -> pandas.DataFrame:
    """One row for each number of clients: seconds a round of each way to run, MB of images, of one process at most."""
    frame = pandas.DataFrame(recorded()["clients"], columns=["clients", "way", "seconds", "data", "memory"])
    seconds = frame.pivot_table(index="clients", columns="way", values="seconds", sort=False)
    one = frame[frame["way"] == frame["way"].iloc[0]] if len(frame) else frame
    return seconds.add_suffix(": s a round").join(one.set_index("clients")[["data", "memory"]].add_suffix(" MB"))


def curves(ending: str) -> dict:
    """For ``plots.lines``: the columns of ``clients_table`` with this ending, over the clients."""
    table = clients_table()
    return {name.removesuffix(ending): (table.index, table[name]) for name in table if name.endswith(ending)}
