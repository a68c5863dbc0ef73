"""Runs side by side where there is no printed table: accuracy with its interval, per client and on average."""

from fednb import report
from fednb.intervals import of_clients
from fednb.select import selected
from fednb.tables import Table


def runs_table(results, rule: str = "last") -> Table:
    """One row per setting, one column per client and one for their unweighted mean: ``92.3 [88.1, 95.0]``.

    results: of a study. rule: see ``fednb.select``. Runs that differ in seed only are one row. Its frame holds
    row, client, value, low and high (95 %, see ``fednb.intervals``), in per cent, and seeds.
    """
    import pandas

    chosen = selected(results.frame, rule)
    numbers = [
        {"row": label, "client": client, **interval._asdict(), "seeds": rows["seed"].nunique()}
        for label, rows in report.settings(chosen)
        for client, interval in of_clients(rows).items()
    ]
    numbers = pandas.DataFrame(numbers)
    texts = numbers.assign(text=[f"{n.value:.1f} [{n.low:.1f}, {n.high:.1f}]" for n in numbers.itertuples()])
    cells = texts.pivot(index="row", columns="client", values="text")
    cells = cells.loc[numbers["row"].unique(), numbers["client"].unique()].fillna("")
    images = chosen.drop_duplicates("client").set_index("client")["images"]
    cells = cells.rename(columns={client: f"{client} ({count} images)" for client, count in images.items()})
    cells = cells.rename_axis(index=None, columns=None)
    seeds = "/".join(map(str, sorted(numbers["seeds"].unique())))
    caption = (
        f"Test accuracy in per cent with its 95 % interval, {report.RULE_WORDS[rule]}, seeds per row: {seeds}.",
        f"Setting: {report.setting(results)}.",
    )
    if results.stand_in:
        caption = (f"{report.STAND_IN}: not the paper's images. This proves nothing about the paper.", *caption)
    return Table(numbers, caption, cells, loud=results.stand_in)
