"""What a site gains by taking part: its score where it trained with the others, and where it was left out."""

import pandas

from fednb.papers import protocol
from fednb.report import labels, wording
from fednb.report.comparison import UNSEEN_SITES
from fednb.report.effects import EFFECT, Pair, columns, effects_of
from fednb.report.intervals import alike, by_seed, moderated, of_settings, unmoderated
from fednb.report.selection import selected
from fednb.report.tables import Table


def participation(results, rule: str | None = None) -> Table:
    """Each setting's score at the sites that were left out in turn, and at the same sites in the runs that had them.

    results: of runs with unseen sites, such as one for each site; others are passed over. rule: see
    ``fednb.report.selection``, the protocol's unless given: it looks at the sites that took part, for both numbers.

    Its frame holds row, run, client (a site or ``"average"``), images, unseen and seen (in per cent) and, of the
    average, the *participation gap* seen - unseen (Yuan et al. 2022) as ours, low, high, p, seeds and direction. Each
    image is held against itself, as in ``fednb.report.effects``; of the runs of a seed that had the site the mean is
    taken.
    """
    rule = rule or protocol.rules()["selection"]
    frame = wording.frame_of(results)
    frame = frame[frame["key"].isin(frame.loc[frame["took_part"].eq(False), "key"])]
    pairs = _pairs(*(dict(wording.settings(selected(frame, rule, unseen))) for unseen in (False, True)))
    scores = wording.scored(frame, results)
    found = [
        of_settings([pair[side] for pair in pairs.values()], scores, alike(results, rule, bool(side))[1])
        for side in (0, 1)
    ]
    rows = []
    for label, seen, unseen, gap in zip(pairs, *found, effects_of(_with_runs(pairs), results, {}), strict=True):
        images = pairs[label].worse.groupby("client")["images"].first()
        for client in unseen:
            values = {"unseen": unseen[client].value, "seen": seen[client].value}
            told = columns(gap) | {"direction": gap.direction} if client == "average" else {}
            values |= {"row": label, "run": pairs[label].worse["run"].iloc[0], "client": client}
            rows.append({"images": images.get(client, images.sum()), **values, **told})
    about = ["row", "run", "client", "images", "unseen", "seen"]
    numbers = pandas.DataFrame(rows, columns=[*about, *EFFECT, "direction"])
    shown = {}
    for client in sorted(dict.fromkeys(numbers["client"]), key=lambda name: name != "average"):
        here = numbers[numbers["client"] == client].set_index("row")
        if client == "average":
            gap, bounds = here["ours"].map(wording.signed), wording.told_bounds(here)
            shown = {"verdict": here["direction"], "gap": gap, "95 %": bounds}
        count = "/".join(map(str, sorted(set(here["images"]))))
        unseen, seen = (here[name].map(wording.number) for name in ("unseen", "seen"))
        shown[f"{labels.site(client)} ({count})"] = unseen + " | " + seen
    average = numbers[numbers["client"] == "average"]
    marked = wording.mark(frame)
    caption = (
        *([wording.stand_in_line(frame, "the paper's images")] if marked else []),
        f"Test {wording.measure(frame)} in per cent, unseen | seen, and their gap in points. Selection: "
        f"{wording.rule_words(rule, frame)}.",
        wording.AVERAGE,
    )
    made = (UNSEEN_SITES, *wording.effect_lines(average), *wording.setting_lines(results))
    return Table(numbers, caption, pandas.DataFrame(shown, list(pairs)).fillna(""), made, mark=marked)


def _with_runs(pairs: dict[str, Pair]) -> list[Pair]:
    """With the spread of a run's own gap: the two sides are the same runs, or share some. It is not moderated where a
    partition moves the gaps of all methods of its seed."""
    values = [by_seed(pair.better)["average"] - by_seed(pair.worse)["average"] for pair in pairs.values()]
    own_partitions = any(wording.dealt_by_seed(pair.better) for pair in pairs.values())
    spreads = map(unmoderated, values) if own_partitions else moderated(values)
    return [pair._replace(runs=(own,)) for pair, own in zip(pairs.values(), spreads, strict=True)]


def _pairs(seen: dict, unseen: dict) -> dict[str, Pair]:
    """By label the rows of the sites that were both, where they took part and where they were left out."""
    pairs = {}
    for label in unseen:
        sides = seen[label], unseen[label]
        both = set(sides[0]["client"]) & set(sides[1]["client"])
        if both:
            pairs[label] = Pair(*(rows[rows["client"].isin(both)] for rows in sides))
    return pairs


def tested(claims: pandas.DataFrame) -> list[str]:
    """A line for each claim that was run: ours with its interval, the printed effect, the verdict."""
    signed = wording.signed
    return [
        f"{row.effect} {signed(row.ours)} points ({signed(row.low)} to {signed(row.high)}), printed "
        f"{signed(row.paper)}: {row.verdict}"
        for row in claims.dropna(subset="ours").itertuples()
    ]


def place(rows: pandas.DataFrame, run: str) -> str:
    """Which number a run is among these and the one that they are held against: ``"number 5 of 12"``."""
    [own] = rows.loc[rows["better"] == run, "ours"]
    every = [*rows["ours"], 0.0]
    return f"number {sum(points > own for points in every) + 1} of {len(every)}"


def places(above: dict, run: str, seeds: list[int]) -> str:
    """``place`` in each of ``{title: effects}``, in a line."""
    numbers = [f"{place(table.frame, run)} on {name.partition(',')[0]}" for name, table in above.items()]
    rests_on = "one seed, no verdict" if len(seeds) == 1 else "a count, no verdict"
    return f"{labels.short(run)} at unseen clients is {', '.join(numbers)}; {rests_on}"


def ranked(rows: pandas.DataFrame, run: str) -> str:
    """Runs and their points, the largest first: ``"FedRDN +13.7, FedBN +11.5"``. run: the column that has the runs."""
    rows = rows.sort_values("ours", ascending=False)
    return ", ".join(f"{labels.short(row[run])} {wording.signed(row['ours'])}" for row in rows.to_dict("records"))
