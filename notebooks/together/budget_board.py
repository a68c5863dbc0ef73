"""The board of one federation: tuned methods next to each other, over their defaults, and what each costs."""

from statistics import median
from typing import NamedTuple

from pandas import DataFrame

from budget import LOCAL, METHODS
from draws import interval, means, ranks
from fednb.papers import protocol
from fednb.report import labels, selected
from fednb.report.effects import EFFECT, Pair, columns, effects_of
from fednb.report.gates import activity, trivial
from fednb.report.intervals import by_seed, moderated, of_settings
from fednb.report.tables import Table
from fednb.report.wording import frame_of, number, signed
from fednb.study import Results

REFERENCES = ("fedbn", "fedavg+own_statistics")


class Gains(NamedTuple):
    """What tuning gained: of each method that left its default, as ``effects``; and the mean over these methods with
    its 95 % interval, from seeds and test images drawn again, the same for all."""

    each: DataFrame
    mean: float
    low: float
    high: float


def rows_of(results: Results, chosen: dict, unseen: bool = False) -> dict[str, DataFrame]:
    """Of each method whose runs are all recorded the rows that the protocol's rule selects, without the learning rate,
    which is the method's own here: so that methods moderate each other's spreads and can be compared. unseen: rows of
    the site left out."""
    if not results.records:
        return {}
    frame = frame_of(results).drop(columns=["learning_rate", "unseen"], errors="ignore")
    rows = selected(frame, protocol.rules()["selection"], unseen)
    names = {key(recipe): run for run, recipe in chosen.items()}
    own = rows["key"].map({recipe.key: names[key(recipe)] for recipe in results.found})
    lacking = {names[key(recipe)] for recipe in results.missing}
    return {run: rows[own == run] for run in chosen if run not in lacking and (own == run).any()}


def key(recipe) -> str:
    """What a recipe has in common with its other seeds and unseen sites."""
    return recipe.with_(seed=0, unseen=()).key


def ranked(rows: dict[str, DataFrame]) -> dict[str, DataFrame]:
    """All methods but local training."""
    return {run: own for run, own in rows.items() if run != LOCAL}


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
    return DataFrame(rows, columns=["better", "worse", "direction", *EFFECT])


def against(references: tuple[str, ...], rows: dict[str, DataFrame], tuned: Results) -> DataFrame:
    """Every tuned method over each of the references; local training is in no test but the one over itself."""
    others = ranked(rows)
    pairs = [(run, other) for run in others for other in references if run != other]
    own = rows if LOCAL in references else others
    return effects(pairs, own, own, tuned)


def over_defaults(rows: dict, tuned: Results, defaults: Results, chosen: dict, default: dict) -> Gains:
    """Every tuned method over its default, but local training: see ``Gains``."""
    known = ranked(rows_of(defaults, default))
    moved = [run for run in ranked(rows) if run in known and key(chosen[run]) != key(default[run])]
    every = Results(tuned.found | defaults.found)
    each = effects([(run, run) for run in moved], ranked(rows), known, every)
    sides = [means({run: side[run] for run in moved}, every) for side in (rows, known)] if moved else []
    mean = interval((sides[0] - sides[1]).mean(axis=1).to_frame()).iloc[0].to_list() if moved else [float("nan")] * 3
    return Gains(each, *mean)


def board(rows: dict[str, DataFrame], tuned: Results, unseen: Results, chosen: dict) -> DataFrame:
    """A row for each tuned method, the highest mean first.

    mean, low, high: accuracy in per cent, over sites and seeds, with its 95 % interval. worst, worst_site: of the site
    with the lowest. unseen: of sites left out of training in turn, NaN where runs are missing. no_model: whether the
    method has none for such a site. rank, rank_low, rank_high: of ``draws.ranks``, NaN of local training. kilobytes: a
    client's, up and down, in the last round. seconds: of a round, median of runs. idle: whether one of its methods is
    not active. learns: what the server learns of images, next to the model."""
    active, away = protocol.rules()["active"], rows_of(unseen, chosen, unseen=True)
    asked = {key(recipe) for recipe in unseen.found}
    found = (
        interval(ranks(means(ranked(rows), tuned))).set_axis(["rank", "rank_low", "rank_high"], axis=1).reindex([*rows])
    )
    for run, measured in zip(rows, of_settings([*rows.values()]), strict=True):
        sites = {site: own.value for site, own in measured.items() if site != "average"}
        worst = min(sites, key=sites.get)
        records = [record for recipe, record in tuned.found.items() if record and key(recipe) == key(chosen[run])]
        last = records[0].rounds[-1]
        found.loc[run, ["mean", "low", "high"]] = measured["average"][:3]
        found.loc[run, ["worst", "worst_site"]] = sites[worst], labels.site(worst)
        found.loc[run, "unseen"] = by_seed(away[run])["average"].mean() if run in away else float("nan")
        found.loc[run, "no_model"] = bool(asked) and key(chosen[run]) not in asked
        found.loc[run, "kilobytes"] = sum(sum(last[way].values()) for way in ("up", "down")) / 1e3 / len(sites)
        found.loc[run, "seconds"] = median(record.origin["seconds"] / len(record.rounds) for record in records)
        found.loc[run, "idle"] = any(activity(name, records) < active for name, _ in labels.parts(run))
        found.loc[run, "learns"] = METHODS[run][1] if run in METHODS else "see its file"
    return found.sort_values("mean", ascending=False, kind="stable")


def table(name: str, board: DataFrame, chosen: dict, gains: Gains, tuned: Results) -> Table:
    """The board as a reader sees it: texts, with what was chosen and what that gained over the default."""
    gained = dict(zip(gains.each["better"], gains.each["ours"], strict=True))
    notes = [" (local training)" * (row.Index == LOCAL) + " (not active)" * row.idle for row in board.itertuples()]
    shown = DataFrame(index=[labels.short(run) + note for run, note in zip(board.index, notes, strict=True)])
    bounds = zip(board["mean"], board["low"], board["high"], strict=True)
    shown["accuracy (95 %)"] = [f"{number(v)} ({number(low)} to {number(high)})" for v, low, high in bounds]
    places = [f"{own.rank:.0f} ({own.rank_low:.0f} to {own.rank_high:.0f})" for own in board.itertuples()]
    shown["rank (95 %)"] = ["" if run == LOCAL else own for run, own in zip(board.index, places, strict=True)]
    shown["worst site"] = [f"{number(row.worst)} ({row.worst_site})" for row in board.itertuples()]
    if board["unseen"].notna().any():
        absent = board["no_model"].map({True: "no model", False: "not recorded"})
        shown["unseen site"] = [number(v) if v == v else absent[run] for run, v in board["unseen"].items()]
    stayed = {run: "" if run == LOCAL else "default" for run in board.index}
    shown["over its default"] = [signed(gained[run]) if run in gained else stayed[run] for run in board.index]
    shown["chosen"] = [settings(chosen[run]) for run in board.index]
    shown["KB a round"] = [f"{value:.0f}" for value in board["kilobytes"]]
    shown["s a round"] = [f"{value:.2f}" for value in board["seconds"]]
    shown["server also learns"] = [*board["learns"]]
    constant = trivial(tuned.records[0])
    caption = f"{name}: accuracy in per cent, mean over sites"
    caption += "" if constant is None else f"; a constant answer has {number(constant)}"
    return Table(board, (caption,), shown)


def settings(recipe) -> str:
    """The learning rate of a recipe and its methods' own options."""
    options = [option.replace("=", " ") for _, given in labels.parts(recipe.label) for option in given]
    return ", ".join([f"rate {recipe.learning_rate:g}", *options])
