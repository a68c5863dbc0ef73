"""Runs side by side where there is no printed table: scores with their intervals, per client and on average."""

from fednb.report import labels
from fednb.report.intervals import alike, of_settings
from fednb.report.selection import RULES, late_rise, selected
from fednb.report.tables import Table, keys_of
from fednb.report.wording import (
    AVERAGE,
    counted,
    frame_of,
    grid,
    mark,
    measure,
    note_lines,
    number,
    rule_words,
    setting,
    setting_lines,
    settings,
    signed,
    spaced,
    stand_in_line,
    told_seeds,
)

MOST_CLIENTS = 20  # with a column each
RISE = (
    "late rise: points by which the mean of the last quarter of the rounds is above that of the quarter before; where "
    "it is large, the rounds do not show where the curve ends."
)
SPREAD = (
    "spread of seeds: standard deviation of the last round, in points, over the row's own seeds; verdicts moderate it "
    "by that of the setting's other methods."
)


def runs_table(results, rule: str = "last") -> Table:
    """One row per setting, one column for the unweighted mean and one per client: ``92.3 (88.1 to 95.0)``.

    Of more than 20 clients it holds and shows the mean alone.

    results: of a study. rule: see ``fednb.report.selection``. Runs that differ in seed only are one row. Its frame
    holds row, client, value, low and high (95 %, see ``fednb.report.intervals``), in per cent, and seeds.
    """
    import pandas

    chosen = selected(results.frame, rule)
    parts = told_seeds(dict(settings(chosen)))
    scores = None if counted(chosen) else {record.key: record for record in results.records}
    found = of_settings(parts.values(), scores, alike(results, rule)[1])
    numbers = [
        {"row": label, "client": client, "value": own.value, "low": own.low, "high": own.high, "seeds": own.seeds}
        for label, each in zip(parts, found, strict=True)
        for client, own in each.items()
    ]
    numbers = pandas.DataFrame(numbers)
    if numbers["client"].nunique() > 1 + MOST_CLIENTS:
        numbers = numbers[numbers["client"] == "average"]
    shown = numbers[["value", "low", "high"]].map(number)
    texts = numbers.assign(text=[f"{value} ({low} to {high})" for value, low, high in shown.itertuples(index=False)])
    cells = texts.pivot(index="row", columns="client", values="text")
    clients = sorted(numbers["client"].unique(), key=lambda name: name != "average")
    cells = cells.loc[numbers["row"].unique(), clients].fillna("")
    images = chosen.groupby("client")["images"].unique()
    counts = {client: "/".join(map(str, sorted(each))) for client, each in images.items()}
    cells = cells.rename(
        columns={client: f"{labels.site(client)} ({count} images)" for client, count in counts.items()}
    )
    cells = cells.rename_axis(index=None, columns=None)
    seeds = " or ".join(map(str, sorted(numbers["seeds"].unique())))
    alone = " of the test images (one seed)" if (numbers["seeds"] == 1).all() else ""
    what = f"Test {measure(chosen)} in per cent with its 95 % interval{alone}"
    caption = (
        f"{what}, {rule_words(rule, chosen)}, seeds per row: {seeds}.",
        AVERAGE,
    )
    made = (f"Setting: {setting(results)}.", *note_lines(results))
    marked = mark(results.frame)
    if marked:
        caption = (stand_in_line(results.frame, "the paper's images"), *caption)
    wide = cells.map(lambda text: text.replace(" (", "\n").rstrip(")"))
    return Table(numbers, caption, cells, made, wide, mark=marked, records=keys_of(parts))


def rules_table(results, title: str = "") -> Table:
    """How firm the average test accuracy (or Dice) is: under each selection rule, at the end of its curve, over seeds.

    For the runs where the rules differ. Rounds of the runs in the order of their seeds; once where all take the same.
    Its frame holds row, rule, ours (per cent), rounds and, of the row, rise and spread in points, as ``RISE`` and
    ``SPREAD`` say; NaN where there are too few rounds or seeds.
    """
    import pandas

    frame = frame_of(results)
    images = frame["images"].where(frame["split"] == "validation", 0)
    validated = images.groupby(frame["key"]).sum().gt(0).all()
    rules = [rule for rule in RULES if validated or rule != "best_validation"]
    numbers = []
    for rule in rules:
        for label, rows in told_seeds(dict(settings(selected(frame, rule)))).items():
            spans = list(map(_span, rows.groupby(["seed", "key"])["rounds_taken"].first()))
            rounds = "/".join(spans if len(set(spans)) > 1 else spans[:1])
            average = of_settings([rows])[0]["average"].value
            text = f"{number(average)} (round {rounds})"
            numbers.append({"row": label, "rule": rule, "ours": average, "rounds": rounds, "text": text})
    numbers = pandas.DataFrame(numbers, columns=["row", "rule", "ours", "rounds", "text"])
    rows = list(dict.fromkeys(numbers["row"]))
    differ = [row for row in rows if numbers.loc[numbers["row"] == row, "ours"].map(number).nunique() > 1]
    marked = mark(frame)
    shown = {}
    for rule in rules:
        texts = numbers[numbers["rule"] == rule].set_index("row")["text"]
        shown[f"{spaced(rule)} {marked}".strip()] = texts.reindex(differ)
    ends = told_seeds(dict(settings(selected(frame))))
    rise = {row: late_rise(frame[frame["key"].isin(end["key"])]).mean() for row, end in ends.items()}
    spread = {row: end.groupby("seed")["accuracy"].mean().std() for row, end in ends.items()}
    numbers = numbers.assign(rise=numbers["row"].map(rise), spread=numbers["row"].map(spread))
    firm = numbers.drop_duplicates("row").set_index("row").loc[differ]
    shown[f"late rise {marked}".strip()] = firm["rise"].map(signed)
    shown[f"spread of seeds {marked}".strip()] = firm["spread"].map(number)
    alike = len(rows) - len(differ)
    caption = (
        *([stand_in_line(frame, "the paper's images")] if marked else []),
        *([f"{title.rstrip('.')}."] if title else []),
        f"Average test {measure(frame)} in per cent under each selection rule. {AVERAGE}",
        *([f"The rules agree in {alike} of {len(rows)} rows, which are left out."] if alike else []),
    )
    made = (
        *(f"{spaced(rule)}: {rule_words(rule, frame)}." for rule in rules),
        RISE,
        SPREAD,
        *([] if validated else ["best validation is not shown: some runs have no validation images."]),
        *setting_lines(results, intervals=False),
    )
    records = keys_of({row: ends[row] for row in differ})
    return Table(numbers.drop(columns="text"), caption, grid(shown, differ), made, mark=marked, records=records)


def _span(rounds: tuple[int, ...]) -> str:
    return str(rounds[-1]) if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]}"
