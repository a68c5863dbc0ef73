"""Which round of a run is reported: three small rules over what was recorded."""

from fednb.errors import DataError, RecipeError, nearest


def last(frame) -> int:
    """The last recorded round of one run."""
    return int(frame["round"].max())


def best_validation(frame) -> int:
    """The round with the best validation accuracy or Dice, an unweighted mean over clients; the earliest on ties."""
    return _best(frame, "validation")


def best_test(frame) -> int:
    """The round with the best test accuracy or Dice, an unweighted mean over clients; the earliest on ties.

    It looks at the test images, as some released code does (FedRDN's): not a fair estimate, shown to compare.
    """
    return _best(frame, "test")


RULES = {"last": last, "best_validation": best_validation, "best_test": best_test}


def selected(frame, rule: str = "last"):
    """The test rows of each run's chosen round, with the rule's name in a column ``rule``.

    frame: one row per (run, round, client, split), columns ``key``, ``round``, ``split``, ``accuracy``,
        ...; runs are told apart by ``key``, which differs from seed to seed.
    Returns one row per (run, client), other columns unchanged. RecipeError for an unknown rule.
    """
    if rule not in RULES:
        raise RecipeError(f'selection rule "{rule}" is not known; {nearest(rule, RULES)}')
    tested = frame[frame["split"] == "test"]
    rounds = {key: RULES[rule](run) for key, run in frame.groupby("key", sort=False)}
    chosen = tested[tested["round"] == tested["key"].map(rounds)]
    return chosen.assign(rule=rule).reset_index(drop=True)


def _best(frame, split: str) -> int:
    scored = frame[(frame["split"] == split) & (frame["images"] > 0)]
    if scored.empty:
        raise DataError(
            f"no {split} accuracy is recorded for {', '.join(frame['run'].unique())}; "
            f'expected {split} images at some site. Choose another rule, for example "last".'
        )
    means = scored.groupby("round")["accuracy"].mean()  # sorted by round; idxmax takes the first maximum
    return int(means.idxmax())
