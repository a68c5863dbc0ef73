"""Which rounds of a run are reported: four rules over what was recorded."""

from fednb.errors import DataError, RecipeError, nearest
from fednb.records.scores import TIE

WINDOW = 10  # rounds at the end, of 100 and more; of fewer a tenth
RULES = ("last", "best_validation", "best_test", "mean_of_last")


def rounds_taken(frame, rule: str) -> dict[str, tuple[int, ...]]:
    """The rounds of each run, by key.

    last: the last recorded one. best_validation, best_test: with the best accuracy or Dice, an unweighted mean over
    clients; the earliest on ties. The latter looks at the test images, as some released code does (FedRDN's): not a
    fair estimate, shown to compare. mean_of_last: the last ten, or a tenth of all (rounded up) of fewer than 100.
    RecipeError for an unknown rule, DataError where a run has no images that it looks at.
    """
    if rule not in RULES:
        raise RecipeError(f'selection rule "{rule}" is not known; {nearest(rule, RULES)}')
    if rule.startswith("best_"):
        return _best(frame, rule.removeprefix("best_"))
    numbers = frame[["key", "round"]].drop_duplicates().sort_values("round").groupby("key", sort=False)["round"]
    every = {key: tuple(map(int, rounds)) for key, rounds in numbers}
    if rule == "last":
        return {key: rounds[-1:] for key, rounds in every.items()}
    return {key: rounds[-min(WINDOW, -(-len(rounds) // WINDOW)) :] for key, rounds in every.items()}


def _best(frame, split: str) -> dict[str, tuple[int, ...]]:
    scored = frame[(frame["split"] == split) & (frame["images"] > 0)]
    if lacking := ", ".join(frame.loc[~frame["key"].isin(scored["key"]), "run"].unique()):
        why = f'expected {split} images at some site. Choose another rule, for example "last"'
        raise DataError(f"no {split} accuracy is recorded for {lacking}; {why}.")
    means = scored.groupby(["key", "round"])["accuracy"].mean()
    best = means[means >= means.groupby("key").transform("max") - 100 * TIE].reset_index()
    return {key: (int(number),) for key, number in best.groupby("key")["round"].min().items()}


def selected(frame, rule: str = "last", unseen: bool = False):
    """The test rows of each run's chosen rounds, one per run and client that took part; see ``rounds_taken``.

    frame: one row per (run, round, client, split), columns ``key`` (of a run, which has one seed), ``round``,
    ``split``, ``took_part``, ``accuracy``, ... unseen: the rows of the sites that were in no round instead; rules do
    not look at them. ``correct`` and ``accuracy`` are means over the chosen rounds, other columns those of the last of
    them; added are ``rule`` and ``rounds_taken``.
    """
    took_part = frame["took_part"].astype(bool)
    tested = frame[(frame["split"] == "test") & (took_part != unseen)]
    taken = rounds_taken(frame[took_part], rule)
    chosen = tested.loc[[number in taken[key] for key, number in zip(tested["key"], tested["round"], strict=True)]]
    if any(len(rounds) > 1 for rounds in taken.values()):
        means = chosen.groupby(["key", "client"], sort=False)[["correct", "accuracy"]].transform("mean")
        chosen = chosen.assign(**means).drop_duplicates(["key", "client"], keep="last")
    return chosen.assign(rule=rule, rounds_taken=chosen["key"].map(taken)).reset_index(drop=True)
