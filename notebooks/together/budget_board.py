"""The board of one federation: tuned methods next to each other, over their defaults, and what each costs."""

from statistics import median

from pandas import DataFrame

from budget import LOCAL, METHODS
from fednb.papers import protocol
from fednb.report import labels, selected
from fednb.report.effects import Pair, columns, effects_of
from fednb.report.gates import activity
from fednb.report.intervals import by_seed, moderated, of_settings
from fednb.report.wording import frame_of, number, signed
from fednb.study import Results
from ranks import drawn, intervals

REFERENCES = ("fedbn", "fedavg+own_statistics")


def rows_of(results: Results, chosen: dict, unseen: bool = False) -> dict[str, DataFrame]:
    """Of each method the rows that the protocol's rule selects, without the learning rate, which is the method's own
    here: so that methods moderate each other's spreads and can be compared. unseen: rows of the site left out."""
    frame = frame_of(results).drop(columns=["learning_rate", "unseen"], errors="ignore")
    rows = selected(frame, protocol.rules()["selection"], unseen)
    names = {key(recipe): run for run, recipe in chosen.items()}
    own = rows["key"].map({recipe.key: names[key(recipe)] for recipe in results.found})
    return {run: rows[own == run] for run in chosen if (own == run).any()}


def key(recipe) -> str:
    """What a recipe has in common with its other seeds and unseen sites."""
    return recipe.with_(seed=0, unseen=()).key


def effects(pairs: list[tuple[str, str]], better: dict, worse: dict, results: Results) -> DataFrame:
    """What the first of each pair scores more than the second, average over sites: all pairs are tested together.

    better, worse: ``rows_of`` either side. Columns better, worse, direction and ``fednb.report.effects.EFFECT``."""
    sides = []
    for side in (better, worse):
        spreads = moderated([by_seed(rows)["average"] for rows in side.values()])
        sides.append(dict(zip(side, spreads, strict=True)))
    pairs = [(one, other) for one, other in pairs if one in better and other in worse]
    compared = [Pair(better[one], worse[other], "average", (sides[0][one], sides[1][other])) for one, other in pairs]
    found = effects_of(compared, results, {})
    rows = [
        {"better": one, "worse": other, "direction": effect.direction} | columns(effect)
        for (one, other), effect in zip(pairs, found, strict=True)
    ]
    return DataFrame(rows)


def against(references: tuple[str, ...], tuned: Results, chosen: dict) -> DataFrame:
    """Every tuned method but local training over each of the references."""
    rows = rows_of(tuned, chosen)
    pairs = [(run, other) for run in rows for other in references if run not in (other, LOCAL)]
    return effects(pairs, rows, rows, tuned)


def over_defaults(tuned: Results, defaults: Results, chosen: dict, default: dict) -> DataFrame:
    """Every tuned method over its default; not where that was chosen, and not local training."""
    better, worse = rows_of(tuned, chosen), rows_of(defaults, default)
    moved = [(run, run) for run in better if run != LOCAL and key(chosen[run]) != key(default[run])]
    return effects(moved, better, worse, Results(tuned.found | defaults.found))


def drawn_ranks(tuned: Results, chosen: dict, seeds: bool = True) -> DataFrame:
    """``ranks.drawn`` of all methods but local training."""
    return drawn({run: rows for run, rows in rows_of(tuned, chosen).items() if run != LOCAL}, tuned, seeds)


def board(tuned: Results, unseen: Results, chosen: dict) -> DataFrame:
    """A row for each tuned method, the highest mean first.

    mean, low, high: accuracy in per cent, over sites and seeds, with its 95 % interval. worst, worst_site: of the site
    with the lowest. unseen: of sites left out of training in turn; NaN of a method that has no model for them. rank,
    rank_low, rank_high: see ``ranks``; NaN of local training. kilobytes: a client's, up and down, in the last round.
    seconds: of a round, median of runs. idle: whether one of its methods is not active. learns: what the server learns
    of images, next to the model."""
    rows, active = rows_of(tuned, chosen), protocol.rules()["active"]
    away = rows_of(unseen, chosen, unseen=True) if unseen.records else {}
    found = intervals(drawn_ranks(tuned, chosen)).reindex([*rows])
    for run, measured in zip(rows, of_settings([*rows.values()]), strict=True):
        sites = {site: own.value for site, own in measured.items() if site != "average"}
        worst = min(sites, key=sites.get)
        records = [record for recipe, record in tuned.found.items() if record and key(recipe) == key(chosen[run])]
        last = records[0].rounds[-1]
        found.loc[run, ["mean", "low", "high"]] = measured["average"][:3]
        found.loc[run, ["worst", "worst_site"]] = sites[worst], labels.site(worst)
        found.loc[run, "unseen"] = by_seed(away[run])["average"].mean() if run in away else float("nan")
        found.loc[run, "kilobytes"] = sum(sum(last[way].values()) for way in ("up", "down")) / 1e3 / len(sites)
        found.loc[run, "seconds"] = median(record.origin["seconds"] / len(record.rounds) for record in records)
        found.loc[run, "idle"] = any(activity(name, records) < active for name, _ in labels.parts(run))
        found.loc[run, "learns"] = METHODS[run][1] if run in METHODS else "see its file"
    return found.sort_values("mean", ascending=False, kind="stable")


def cells(board: DataFrame, chosen: dict, gains: DataFrame) -> DataFrame:
    """The board as a reader sees it: texts, with what was chosen and what that gained over the default."""
    gained = dict(zip(gains["better"], gains.to_dict("records"), strict=True)) if len(gains) else {}
    table = DataFrame(index=[labels.short(run) + " (not active)" * idle for run, idle in board["idle"].items()])
    bounds = zip(board["mean"], board["low"], board["high"], strict=True)
    table["accuracy (95 %)"] = [f"{number(v)} ({number(low)} to {number(high)})" for v, low, high in bounds]
    places = [f"{own.rank:.0f} ({own.rank_low:.0f} to {own.rank_high:.0f})" for own in board.itertuples()]
    table["rank (95 %)"] = ["" if run == LOCAL else own for run, own in zip(board.index, places, strict=True)]
    table["worst site"] = [f"{number(row.worst)} ({row.worst_site})" for row in board.itertuples()]
    if board["unseen"].notna().any():
        table["unseen site"] = [number(value) if value == value else "no model" for value in board["unseen"]]
    stayed = {run: "" if run == LOCAL else "default" for run in board.index}
    table["over its default"] = [signed(gained[run]["ours"]) if run in gained else stayed[run] for run in board.index]
    table["chosen"] = [settings(chosen[run]) for run in board.index]
    table["KB a round"] = [f"{value:.0f}" for value in board["kilobytes"]]
    table["s a round"] = [f"{value:.2f}" for value in board["seconds"]]
    table["server also learns"] = [*board["learns"]]
    return table


def settings(recipe) -> str:
    """The learning rate of a recipe and its methods' own options."""
    options = [option.replace("=", " ") for _, given in labels.parts(recipe.label) for option in given]
    return ", ".join([f"rate {recipe.learning_rate:g}", *options])
