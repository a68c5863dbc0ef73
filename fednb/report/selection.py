"""Which rounds of a run are reported: four small rules over what was recorded."""

from fednb.errors import DataError, RecipeError, nearest
from fednb.papers import protocol
from fednb.records.scores import TIE

WINDOW = 10  # rounds at the end, of 100 and more; of fewer a tenth
NEAR = 2.0  # points below the end of a curve from which on it is near


def last(frame) -> list[int]:
    """The last recorded round of one run."""
    return _rounds(frame)[-1:]


def best_validation(frame) -> list[int]:
    """The round with the best validation accuracy or Dice, an unweighted mean over clients; the earliest on ties."""
    return [_best(frame, "validation")]


def best_test(frame) -> list[int]:
    """The round with the best test accuracy or Dice, an unweighted mean over clients; the earliest on ties.

    It looks at the test images, as some released code does (FedRDN's): not a fair estimate, shown to compare.
    """
    return [_best(frame, "test")]


def mean_of_last(frame) -> list[int]:
    """The last ten rounds, or a tenth of all (rounded up) where there are fewer than 100: their mean is taken."""
    rounds = _rounds(frame)
    return rounds[-min(WINDOW, -(-len(rounds) // WINDOW)) :]


RULES = {"last": last, "best_validation": best_validation, "best_test": best_test, "mean_of_last": mean_of_last}


def selected(frame, rule: str | None = None, unseen: bool = False):
    """The test rows of each run's chosen rounds, with the rule's name in a column ``rule``.

    Rules look at the clients that took part, and the rows are theirs.

    frame: one row per (run, round, client, split), columns ``key``, ``round``, ``split``, ``took_part``, ``accuracy``,
        ...; runs are told apart by ``key``, which differs from seed to seed.
    rule: of ``RULES``; the protocol's unless given, so that tables, figures and sentences tell one number.
    unseen: the rows of the sites that were in no round instead; rules do not look at them.
    Returns one row per (run, client). ``correct`` and ``accuracy`` are means over the chosen rounds, which a column
    ``rounds_taken`` lists; other columns are those of the last of them. RecipeError for an unknown rule, DataError
    where a run has no images that the rule looks at.
    """
    rule = rule or protocol.rules()["selection"]
    if rule not in RULES:
        raise RecipeError(f'selection rule "{rule}" is not known; {nearest(rule, RULES)}')
    took_part = frame["took_part"].astype(bool)
    tested = frame[(frame["split"] == "test") & (took_part != unseen)]
    taken = {key: tuple(RULES[rule](run)) for key, run in frame[took_part].groupby("key", sort=False)}
    chosen = tested.loc[[number in taken[key] for key, number in zip(tested["key"], tested["round"], strict=True)]]
    if any(len(rounds) > 1 for rounds in taken.values()):
        means = chosen.groupby(["key", "client"], sort=False)[["correct", "accuracy"]].transform("mean")
        chosen = chosen.assign(**means).drop_duplicates(["key", "client"], keep="last")
    return chosen.assign(rule=rule, rounds_taken=chosen["key"].map(taken)).reset_index(drop=True)


def late_rise(frame, rounds: int | None = None, by: str | list[str] = "run"):
    """Whether curves still rise: points by which the last rounds' mean test accuracy is above that of as many before.

    frame: as in ``selected``. rounds: how many, at the end of each run; a quarter of a run's own unless given. Returns
    a Series, one value for each of ``by``: a mean over sites, seeds and rounds, of the clients that took part; NaN
    where a run has no rounds before.
    """
    tested = frame[(frame["split"] == "test") & frame["took_part"].astype(bool)]
    end = tested.groupby("key")["round"].transform("max")
    span = (end // 4).clip(lower=1) if rounds is None else rounds
    late, before = (tested[(end - tested["round"]) // span == part] for part in (0, 1))
    return late.groupby(by)["accuracy"].mean() - before.groupby(by)["accuracy"].mean()


def late_steps(frame, by: str | list[str] = "run"):
    """How much curves move: the standard deviation of a curve's steps from round to round in its second half, points.

    Of each seed's own curve, the mean over its sites, then a mean over seeds: their mean curve would move less.

    frame, by and what is returned: as in ``late_rise``; NaN where the second half has fewer than three rounds.
    """
    tested = frame[(frame["split"] == "test") & frame["took_part"].astype(bool)]
    late = tested[tested["round"] > tested.groupby("key")["round"].transform("max") / 2]
    each = [by, "key"] if isinstance(by, str) else [*by, "key"]
    steps = late.groupby([*each, "round"])["accuracy"].mean().groupby(each).diff()
    return steps.groupby(each).std().groupby(by).mean()


def first_near(frame, end_of: str | None = None):
    """How fast curves are: the first round in which a mean over seeds and sites is near its end, or the end of a run.

    frame: as in ``selected``. end_of: the run, such as ``"fedavg"``. Near is from two points below the end
    on, which is the mean of the last ten rounds. Returns a Series by run; NaN where a curve never comes near.
    """
    tested = frame[(frame["split"] == "test") & frame["took_part"].astype(bool)]
    curves = tested.pivot_table("accuracy", "round", "run")
    ends = curves.tail(WINDOW).mean()
    near = curves >= (ends if end_of is None else ends[end_of]) - NEAR
    return near.idxmax().where(near.any())


def in_words(near):
    """What ``first_near`` found, as texts: "round 12" or "no round"."""
    return near.map("round {:.0f}".format, na_action="ignore").fillna("no round")


def losses(results):
    """The mean over clients of what they minimise, on their own training images: a Series "loss" by key and round.

    ``rows.join(losses(results), on=["key", "round"])`` puts it beside rows of the frame, or of ``selected``.
    """
    import pandas

    found = [(run.key, each["round"], each["loss"].values()) for run in results.records for each in run.rounds]
    places = pandas.MultiIndex.from_tuples([place for *place, _ in found], names=["key", "round"])
    return pandas.Series([sum(own) / len(own) for *_, own in found], index=places, name="loss", dtype=float)


def common_seeds(rows, by: str | list[str] = "run"):
    """The rows of the seeds that every value of ``by`` has: means over seeds that may be held against each other."""
    which = rows.groupby(by).ngroup()
    return rows[which.groupby(rows["seed"]).transform("nunique") == which.nunique()]


def over_seeds(rows) -> str:
    """How many seeds a sentence on these rows speaks of: never more than one seed says."""
    count = rows["seed"].nunique()
    return f"over {count} seeds" if count > 1 else "in one seed alone"


def image_scores(rows, records: dict, spare: bool = False) -> dict:
    """By client and seed the scores of each test image, with ``spare`` also of each spare one, float64 ``[n]`` in %.

    Means over the chosen rounds and, where sites were left out in turn, over the runs of a seed.

    rows: of ``selected``, of one setting. records: by key. Empty where a record has no scores of its images.
    """
    import numpy

    found, read = {}, {}
    for key in rows["key"].unique():
        read[key] = [records[key].scores(), *([records[key].scores("spare")] if spare else [])]
    for row in rows[rows["images"] > 0].itertuples():
        splits, taken = read[row.key], row.rounds_taken
        if any(number not in scores for scores in splits for number in taken):
            return {}
        place = records[row.key].clients.index(row.client)
        means = [sum(scores[number][place] for number in taken) / len(taken) for scores in splits]
        found.setdefault(row.client, {}).setdefault(row.seed, []).append(100 * numpy.concatenate(means))
    return {client: {seed: sum(runs) / len(runs) for seed, runs in seeds.items()} for client, seeds in found.items()}


def with_spare(rows, records: dict):
    """The rows of the runs whose spare images were scored in the chosen rounds; ``accuracy`` is that of test and spare
    images of a site as one set.

    rows: of ``selected``. records: by key.
    """
    import pandas

    kept = [rows[:0]]
    for key, own in rows[rows["images"] > 0].groupby("key", sort=False):
        asked = "spare" in records[key].recipe.get("evaluation", ())
        if scores := image_scores(own, records, spare=True) if asked else {}:
            means = [scores[row.client][row.seed].mean() for row in own.itertuples()]
            kept.append(own.assign(accuracy=means))
    return pandas.concat(kept) if len(kept) > 1 else kept[0]


def _rounds(frame) -> list[int]:
    return sorted(int(number) for number in frame["round"].unique())


def _best(frame, split: str) -> int:
    scored = frame[(frame["split"] == split) & (frame["images"] > 0)]
    if scored.empty:
        raise DataError(
            f"no {split} accuracy is recorded for {', '.join(frame['run'].unique())}; "
            f'expected {split} images at some site. Choose another rule, for example "last".'
        )
    means = scored.groupby("round")["accuracy"].mean()  # sorted by round
    return int(means.index[means >= means.max() - 100 * TIE][0])
