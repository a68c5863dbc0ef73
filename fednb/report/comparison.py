"""Ours next to the paper's: tables of recorded runs and printed numbers.

``results`` is a ``fednb.study.Results``, of which ``frame`` (one row per run, round, client and split) and ``records``
are read.
"""

import pandas

from fednb.errors import RecipeError
from fednb.papers import protocol
from fednb.report import labels, wording
from fednb.report.deviations import deviations, of_unseen
from fednb.report.intervals import alike, of_settings
from fednb.report.selection import selected
from fednb.report.tables import Table, runs_table
from fednb.report.wording import STAND_IN, number, signed

UNSEEN_SITES = (
    "A site's number is of runs in which it was unseen, in a round chosen without it; intervals say nothing of other "
    "sites than these."
)


def table(results, printed, rule: str | None = None, caption: str = "") -> Table:
    """Paper and ours with its interval side by side, on average, with their difference, and for each site.

    printed: rows of ``fednb.papers.printed`` for one federation; rows are in their order, other runs below.
    rule: see ``fednb.report.selection``, the protocol's unless given.
    caption: the paper's own, quoted where the caption unfolds.

    Runs that differ in seed only are one row, next to the printed row of its methods, with its options where the paper
    prints such a row (``fednb.report.labels.printed_for``). Where the printed rows stand under settings (DisTrans'
    heterogeneity), columns are settings, each with the average of the runs on it. A run with unseen sites has no row;
    where the printed numbers are of unseen sites (FedFA's Table 4), a row is the runs that left out one site each.
    Where the printed rows name a ``source`` (FedRDN's Table 3), ours are those of ``cross_site``.

    A stand-in and averages over other sites have no difference; of results on other data, a real federation that the
    paper does not print, this is ``runs_table``. RecipeError if ``printed`` has several federations, or a ``source``
    and a rule other than "last".
    """
    marked = wording.mark(wording.frame_of(results))
    if marked == wording.OTHER_DATA:
        return runs_table(results, rule)
    frame = comparison(results, printed, rule)
    rows = list(dict.fromkeys(frame["row"]))
    shown, averages = {}, {"average", *printed["setting"]}
    for site in sorted(dict.fromkeys(frame["site"]), key=lambda name: name != "average"):
        here = frame[frame["site"] == site].set_index("row").reindex(rows)
        ours = here["ours"].map(number) + here["outside"].eq(True).map({True: "!", False: ""})
        if site in averages:
            span = wording.bounds(here, number)
            ours += (" (" + span + ")").where((span != "") & (ours != ""), "")
        paper = here["paper"].map(number) + here["star"].fillna("")
        pair = ours.where(ours != "", "-") + " | " + paper.where(paper != "", "-")
        count = "/".join(f"{n:.0f}" for n in sorted(here["images"].dropna().unique()))
        head = labels.site(site) + (f" ({count})" if count else "")
        head += f" {STAND_IN}" if count and here["stand_in"].eq(True).any() else ""
        shown[head] = pair.where(pair != "- | -", "")
        if site == "average" and here["difference"].notna().any():
            shown["difference"] = here["difference"].map(signed)
    about, made = _caption(results, frame, printed, rule)
    quoted = (f'The paper\'s caption: "{caption}"',) if caption else ()
    frame = frame.drop(columns=["star", "sites", "clients", "elsewhere"])
    return Table(frame, about, pandas.DataFrame(shown, index=rows).fillna(""), (*quoted, *made), mark=marked)


def comparison(results, printed, rule: str | None = None):
    """The numbers behind ``table``, long: one row per method and site, in per cent and points; NaN where there is none.

    Columns: row (its name), run (its label, of what was not run the printed one), the options that labels name, such as
    ``fedfa.stages``, site (or setting), paper, remark and star (what is wrong with the printed number), sites and
    clients (what the printed average and ours are over), ours, low, high (its 95 % interval), images, seeds (how many),
    stand_in, difference (ours - paper), outside (whether the difference is more than the spread of runs explains, ours
    and the printed ones; never with one seed, nor of older code).
    """
    [federation, *others] = printed["federation"].unique()
    if others:
        advice = "Give it to fednb.papers.printed(paper, table, federation)"
        raise RecipeError(f"printed has the federations {', '.join([federation, *others])}; expected one. {advice}.")
    across, unseen = printed["source"].any(), of_unseen(printed)
    if across and rule not in (None, "last"):
        raise RecipeError(f'the rule is "{rule}"; local models are tested in the last round: take "last".')
    rule = rule or protocol.rules()["selection"]
    printed = printed.assign(setting="") if unseen else printed
    chosen = cross_site(results) if across else selected(wording.frame_of(results), rule, unseen).assign(source="")
    chosen = chosen if unseen else wording.all_took_part(chosen, results)
    known = None if across else alike(results, rule, unseen)[1]
    ours = _ours(_by_setting(chosen, results, printed), federation, results, known)
    theirs, rows = {}, []  # of each printed row, (label, source): {site or setting: numbers}
    for cell in printed.itertuples():
        label = "+".join(filter(None, (cell.algorithm, cell.augmentation)))
        numbers = {"paper": cell.value, "runs": cell.runs, "remark": cell.remark, "sites": cell.sites}
        theirs.setdefault((label, cell.source), {})[cell.setting or cell.site] = numbers
    beside = {run: labels.printed_for(run, [label for label, _ in theirs]) for run, _, _ in ours}
    for (label, source), cells in theirs.items():
        same = [(run, found) for run, of, found in ours if (beside[run], of) == (label, source)]
        for run, found in same or [(label, {})]:
            rows += _side_by_side(run, source, cells, found)
    for run, source, found in ours:
        if (beside[run], source) not in theirs:
            rows += _side_by_side(run, source, {}, found)
    columns = "row run site paper remark sites ours low high outside elsewhere images seeds stand_in clients".split()
    frame = pandas.DataFrame(rows, columns=columns)
    if "average" not in set(printed["site"]):
        frame = frame[frame["site"] != "average"].reset_index(drop=True)
    frame = frame.join(pandas.DataFrame(map(labels.option_values, frame["run"]), index=frame.index))
    for column in ("remark", "sites", "clients"):
        frame[column] = frame[column].astype(object).where(frame[column].notna(), "")
    seeds = frame.groupby("row")["seeds"].transform("max")
    if seeds.nunique() > 1:
        frame["row"] = frame["row"].where(seeds.isna(), list(map(wording.seeds_told, frame["row"], seeds)))
    frame["star"] = (frame["remark"] != "").map({True: "*", False: ""})
    frame["stand_in"] = frame["stand_in"].eq(True)
    frame["difference"] = (frame["ours"] - frame["paper"]).where(~frame["stand_in"] & ~_other_sites(frame))
    frame["outside"] = frame["difference"].notna() & frame["outside"].eq(True)
    return frame


def cross_site(results):
    """Each local model of the last round on every site's test images.

    From runs with ``evaluation=["cross_site"]``. Columns as in ``fednb.report.selection.selected``, and ``source``: the
    site that trained the model; ``client`` is the site whose test images it saw.
    """
    finals = selected(wording.frame_of(results), "last").assign(source="")
    parts = [finals.head(0)]
    for record in results.records:
        run = finals[finals["key"] == record.key]
        for source, counts in record.rounds[-1].get("cross_site", {}).items():
            correct = run["client"].map(dict(zip(record.clients, counts, strict=True)))
            parts.append(run.assign(source=source, correct=correct, accuracy=100 * correct / run["images"]))
    return pandas.concat(parts, ignore_index=True)


def on_federation(chosen, results, run_on: str):
    """The rows of runs on ``cifar10(classes_per_client=6)``, whatever else their federation has."""
    wanted = {option for _, option in labels.options(run_on)}
    made = {record.key: {f"{k}={v}" for k, v in record.recipe["federation"].items()} for record in results.records}
    same = chosen["key"].map(lambda key: wanted <= made[key]).astype(bool)
    return chosen[same & (chosen["federation"] == run_on.partition("(")[0])]


def tested(rows) -> str:
    return ", ".join(sorted(rows.loc[rows["images"] > 0, "client"].unique()))


def _by_setting(chosen, results, printed):
    """``chosen`` with a column ``column``: the printed setting that a run was made on, "" if none is printed.

    A run on none of the printed settings gets a column of its own, named by what its federation has instead, and
    one on a federation without such options (a stand-in) stays as it is.
    """
    if not printed["setting"].any():
        return chosen.assign(column="")
    made = dict(zip(printed["setting"], printed["run_on"], strict=True))
    options = {option.split("=")[0]: None for run_on in made.values() for _, option in labels.options(run_on)}
    columns = {}
    for record in results.records:
        own = record.recipe["federation"]
        texts = [f"{wording.spaced(name)} {wording.as_text(own[name])}" for name in options if name in own]
        columns[record.key] = ", ".join(texts)
    for setting, run_on in made.items():
        columns |= dict.fromkeys(on_federation(chosen, results, run_on)["key"], setting)
    varied = [column for name in options for column in (f"federation_{name}", name) if column in chosen]
    return chosen.assign(column=chosen["key"].map(columns)).drop(columns=varied)


def _ours(chosen, federation: str, results, known: dict | None) -> list[tuple]:
    """(run, source, {site or setting: numbers}) of each row that was run. known: see ``of_settings``."""
    differing = deviations(results.records, results.paper) if results.paper else {}
    parts = {
        (label, source, column): part
        for label, runs in wording.settings(chosen)
        for (source, column), part in runs.groupby(["source", "column"], sort=False)
    }
    rows = {}
    measured = of_settings(parts.values(), wording.scored(chosen, results), known)
    for ((label, source, column), part), found in zip(parts.items(), measured, strict=True):
        images = part.groupby("client", sort=False)["images"].first()
        about = {
            "row": label,
            "stand_in": bool(part["stand_in"].any() or (part["federation"] != federation).any()),
            "older": wording.older(part),
            "elsewhere": any(differing.get(key) for key in part["key"]),
        }
        numbers = {site: about | {"ours": own, "images": images.get(site, images.sum())} for site, own in found.items()}
        numbers["average"]["clients"] = tested(part)
        row = rows.setdefault((label, source), (part["run"].iloc[0], source, {}))
        row[-1].update({column: numbers["average"]} if column else numbers)
    return list(rows.values())


def _side_by_side(run: str, source: str, theirs: dict, ours: dict) -> list[dict]:
    """A row for each site, with whether the printed number is farther off than the chance of all runs explains."""
    label = next((numbers["row"] for numbers in ours.values()), labels.pretty(run))
    label = f"{label}, model of {labels.site(source)}" if source else label
    rows = []
    for site in dict.fromkeys((*theirs, *ours)):
        printed, found, difference = theirs.get(site, {}), ours.get(site, {}), None
        row = printed | found | {"row": label, "run": run, "site": site}
        if found:
            own = found["ours"]
            if printed and not found["older"] and not found["elsewhere"]:
                difference = own.against(printed["paper"], printed["runs"])
            row |= {"ours": own.value, "low": own.low, "high": own.high, "seeds": own.seeds}
            row["outside"] = difference is not None and not difference.low <= 0 <= difference.high
        rows.append(row)
    return rows


def _other_sites(frame):
    """Where ours and the paper's are averages over different sites."""
    return (frame["sites"] != "") & (frame["clients"] != "") & (frame["sites"] != frame["clients"])


def _caption(results, frame, printed, rule: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    runs, unseen = wording.frame_of(results), of_unseen(printed)
    rule = "last" if printed["source"].any() else rule or protocol.rules()["selection"]
    blank = frame["ours"].isna().groupby(frame["row"]).all()
    wrong = frame[frame["remark"] != ""].drop_duplicates("remark")
    outside = "!: farther from the paper's than chance in our runs and in its own explains."
    if frame["elsewhere"].eq(True).any():
        outside = (
            "At another setting than the paper's, levels are not compared: nothing is marked. What one run scores "
            "more than another is held against the paper on the scoreboard."
        )
    elif not (frame["seeds"] > 1).any():
        outside = "One seed: nothing is marked, as nothing is known of the spread of runs."
    caption = [wording.stand_in_line(results.frame, printed["federation"].iloc[0])] if frame["stand_in"].any() else []
    caption.append(f"Test {wording.measure(runs)} in per cent, {wording.rule_words(rule, runs)}.")
    caption += [wording.AVERAGE] if "average" in set(frame["site"]) else []
    caption += [UNSEEN_SITES] if unseen else []
    if printed["setting"].any() and not unseen:
        caption.append("Columns are the paper's settings, each with the mean over clients.")
    caption += [outside] if frame["difference"].notna().any() else []
    apart = frame[_other_sites(frame) & ~frame["stand_in"]].drop_duplicates(["sites", "clients"])
    for averages in apart[["sites", "clients"]].itertuples(index=False):
        theirs, ours = (", ".join(map(labels.site, listed.split(", "))) for listed in averages)
        caption.append(f"Averages not compared: the paper's are over {theirs}, ours over {ours}.")
    made = (
        "Ours | paper, averages with the 95 % interval of ours. Difference: ours - paper.",
        *wording.setting_lines(results),
        *wording.note_lines(results),
        *([f"Not run, left blank: {blank.sum()} of {len(blank)} rows."] if blank.any() else []),
        *(f"* {cell.row}, {labels.site(cell.site)}: {cell.remark}" for cell in wrong.itertuples()),
    )
    return tuple(caption), made
