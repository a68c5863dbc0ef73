"""Which rounds of a run are reported: four rules, each from a frame of records to the rounds of each run, by key."""

from fednb.errors import DataError, RecipeError, nearest
from fednb.records.scores import TIE

WINDOW = 10  # rounds at the end, of 100 and more; of fewer a tenth


def last(frame) -> dict[str, tuple[int, ...]]:
    """The last recorded round."""
    return {key: rounds[-1:] for key, rounds in _rounds(frame).items()}


def best_validation(frame) -> dict[str, tuple[int, ...]]:
    """The round with the best validation accuracy or Dice, an unweighted mean over clients; the earliest on ties."""
    return _best(frame, "validation")


def best_test(frame) -> dict[str, tuple[int, ...]]:
    """The same of test images, as some released code does (FedRDN's): not a fair estimate, shown to compare."""
    return _best(frame, "test")


def mean_of_last(frame) -> dict[str, tuple[int, ...]]:
    """The last ten rounds, or a tenth of all (rounded up) where there are fewer than 100: their mean is taken."""
    return {key: rounds[-min(WINDOW, -(-len(rounds) // WINDOW)) :] for key, rounds in _rounds(frame).items()}


RULES = {"last": last, "best_validation": best_validation, "best_test": best_test, "mean_of_last": mean_of_last}


def selected(frame, rule: str = "last", unseen: bool = False):
    """The test rows of each run's chosen rounds, one per run and client that took part.

    frame: one row per (run, round, client, split), columns ``key`` (of a run, which has one seed), ``round``,
        ``split``, ``took_part``, ``accuracy``, ...
    unseen: the rows of the sites that were in no round instead; rules do not look at them.
    ``correct`` and ``accuracy`` are means over the chosen rounds, other columns those of the last of them; added are
    ``rule`` and ``rounds_taken``. RecipeError for an unknown rule, DataError where a run has no images that it looks
    at.
    """
    if rule not in RULES:
        raise RecipeError(f'selection rule "{rule}" is not known; {nearest(rule, RULES)}')
    took_part = frame["took_part"].astype(bool)
    tested = frame[(frame["split"] == "test") & (took_part != unseen)]
    taken = RULES[rule](frame[took_part])
    chosen = tested.loc[[number in taken[key] for key, number in zip(tested["key"], tested["round"], strict=True)]]
    if any(len(rounds) > 1 for rounds in taken.values()):
        means = chosen.groupby(["key", "client"], sort=False)[["correct", "accuracy"]].transform("mean")
        chosen = chosen.assign(**means).drop_duplicates(["key", "client"], keep="last")
    return chosen.assign(rule=rule, rounds_taken=chosen["key"].map(taken)).reset_index(drop=True)


def _rounds(frame) -> dict[str, tuple[int, ...]]:
    numbers = frame[["key", "round"]].drop_duplicates().sort_values("round").groupby("key", sort=False)["round"]
    return {key: tuple(map(int, rounds)) for key, rounds in numbers}


def _best(frame, split: str) -> dict[str, tuple[int, ...]]:
    scored = frame[(frame["split"] == split) & (frame["images"] > 0)]
    if lacking := ", ".join(frame.loc[~frame["key"].isin(scored["key"]), "run"].unique()):
        raise DataError(
            f"no {split} accuracy is recorded for {lacking}; expected {split} images at some site. "
            'Choose another rule, for example "last".'
        )
    means = scored.groupby(["key", "round"])["accuracy"].mean()
    best = means[means >= means.groupby("key").transform("max") - 100 * TIE].reset_index()
    return {key: (int(number),) for key, number in best.groupby("key")["round"].min().items()}
