"""Tables and a figure of the recorded bench (``fednb.report.speed``)."""

import pandas

from fednb.report import labels
from fednb.report.plots._axes import as_written, decorate, new_figure
from fednb.report.speed import recorded
from fednb.report.style import style

FOUR = ("fedrdn", "fedfa", "fraug", "distrans")


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


def prices() -> list[str]:
    """What the dearest methods cost, which cost the least, and what many clients do, in lines."""
    times = methods_table().iloc[:, 0].round(2)  # as the notebook's table has it
    said = {name: f"{labels.printed(name)} {own:.2f}" for name, own in times.items()}
    if not said:
        return [origin()]
    return [
        f"times FedAvg's round, dearest first: {', '.join(list(said.values())[:4])}",
        f"of the four papers' methods: {', '.join(said[name] for name in FOUR)}",
        memory(),
    ]


def origin() -> str:
    """On what it was measured, in a line."""
    machine = recorded()["origin"]
    return "Measured on {machine}, {threads} threads, {device}, torch {torch}, code {code}.".format(**machine)


def memory() -> str:
    """How much one process's peak memory grows from the fewest clients to the most, next to the images: a sentence."""
    rows = recorded()["clients"]
    first, *_, last = (row for row in rows if row["way"] == rows[0]["way"])
    data, peak = (last[name] - first[name] for name in ("data", "memory"))
    grown = f"the images grow by {data:.0f} MB, the peak memory of a process by {peak:.0f} MB"
    return f"From {first['clients']} clients to {last['clients']} {grown}."


def figure():
    """Each method's round in FedAvg's, with the lowest and the highest of the pairs of rounds."""
    table = methods_table().iloc[::-1]
    figure, (axes,) = new_figure(1, width=8, height=1 + 0.2 * len(table))
    for place, row in enumerate(table.itertuples(name=None)):
        color = style(row[0])["color"] if row[0] in FOUR else "0.45"
        axes.plot(row[2:4], [place] * 2, color=color, linewidth=2)
        axes.plot(row[1], place, "o", color=color, markersize=6 if row[0] in FOUR else 4)
    axes.axvline(1, color="0.4", linewidth=1, zorder=1)
    decorate(
        axes,
        "a round in FedAvg's (the line: lowest to highest pair of rounds)",
        "",
        "digits_cnn, 32 pixels",
        grid="both",
    )
    axes.set(xscale="log", xticks=(ticks := [1, 2, 4, 8, 16]), ylim=(-0.7, len(table) - 0.3))
    axes.set_xticks(ticks, map(str, ticks))
    axes.set_yticks(range(len(table)), [labels.printed(name) for name in table.index], fontsize=8)
    axes.minorticks_off()
    return as_written(figure)
