"""What rows, captions and cells say: names of runs and settings, and numbers as texts."""

from decimal import ROUND_HALF_UP, Decimal
from math import isfinite

from fednb.methods import TASKS
from fednb.registry import OF_THE_RUN, file
from fednb.registry import names as files_in
from fednb.report import labels

STAND_IN, OTHER_DATA = "STAND-IN", "OTHER DATA"
RULES_IN_WORDS = {
    "last": "last round",
    "best_validation": "round of the best average validation {measure}",
    "best_test": "round of the best average test {measure} (it looks at the test images)",
    "mean_of_last": "mean of the last rounds (ten, or a tenth of fewer than 100)",
}
AVERAGE = "The average is the mean of the sites, each counted alike."
ALWAYS = set(
    "run label algorithm augmentation federation task seed key stand_in stale round dealt_by_seed client took_part "
    "split correct images accuracy source rule rounds_taken column".split()
)  # columns of every frame; those with a dot are options of methods, which a run's label names
MOST_NOTES, MOST_FEDERATIONS, UNSAID = 6, 12, (("normalisation", True), ("groups", 0))
METHODS_AND_SEEDS = {"algorithm", "augmentations", "seed", "evaluation"}
DOWNWARDS = ("classes_per_client",)  # settings that fall where DisTrans' heterogeneity, which it prints, grows


def frame_of(results):
    """The frame of the results, with its columns even where nothing is recorded."""
    import pandas

    return results.frame if len(results.frame) else pandas.DataFrame(columns=sorted(ALWAYS))


def measure(frame) -> str:
    """What the scores in a frame are called, by the tasks of its federations: "accuracy" or "Dice"."""
    return " / ".join(TASKS[name].measure for name in frame["task"].unique()) or TASKS["classification"].measure


def scored(frame, results) -> dict | None:
    """The records by key, where intervals need the scores of the images: Wilson's is made for right and wrong answers,
    and too wide for others, such as Dice."""
    if measure(frame) == TASKS["classification"].measure:
        return None
    return {record.key: record for record in results.records}


def rule_words(rule: str, frame) -> str:
    """Which round a selection rule takes."""
    return RULES_IN_WORDS[rule].format(measure=measure(frame))


def all_took_part(frame, results):
    """The rows of runs in which no site was unseen: a printed row is of all its sites."""
    some_unseen = {record.key for record in results.records if record.recipe.get("unseen")}
    return frame[~frame["key"].isin(some_unseen)]


def settings(chosen):
    """(label, rows) of all runs that differ in seed only: the methods with their options, and what else varies.

    Runs whose methods, network or data behave otherwise today are labelled as of older code.
    """
    others = [name for name in chosen.columns if name not in ALWAYS and "." not in name]
    varied = [name for name in ("federation", *others) if chosen[name].astype(str).nunique() > 1]
    for _, rows in chosen.groupby([chosen[name].astype(str) for name in ("run", *varied)], sort=False):
        values = rows.iloc[0]
        texts = [labels.pretty(values["run"])]
        for name in varied:
            text = f"{spaced(name)} {as_text(values[name], name)}"
            texts.append(labels.federation(values[name]) if name == "federation" else text)
        yield ", ".join(texts + ["older code"] * older(rows)), rows


def with_seeds(chosen) -> dict:
    """``settings`` as a dictionary, with the number of seeds in the labels where it is not the same for all."""
    parts = dict(settings(chosen))
    counts = {label: rows["seed"].nunique() for label, rows in parts.items()}
    if len(set(counts.values())) < 2:
        return parts
    return {seeds_told(label, count): parts[label] for label, count in counts.items()}


def seeds_told(label: str, count: int) -> str:
    return f"{label}, {count:.0f} seed{'s' * (count > 1)}"


def setting_of(rows) -> tuple:
    """What runs have in common whose spreads moderate each other: all but methods and seeds (the column of a table,
    too, where columns are printed settings); and whether they are older."""
    left_out = (ALWAYS - {"column"}) | METHODS_AND_SEEDS
    others = [name for name in rows.columns if name not in left_out and "." not in name]
    return rows["federation"].iloc[0], older(rows), *(f"{name} {rows[name].iloc[0]}" for name in others)


def dealt_by_seed(rows) -> bool:
    """Whether each seed has a partition of its own: the federation's seed is "run"."""
    return bool(rows["dealt_by_seed"].any()) if "dealt_by_seed" in rows else False


def older(rows) -> bool:
    """Whether some of the runs were made by code that behaves otherwise today."""
    return bool(rows["stale"].any()) if "stale" in rows else False


def setting(results) -> str:
    """What decided the recorded runs, in words; methods and seeds are left out, and unseen sites where none is."""
    told = {}
    for record in results.records:
        for name, value in record.recipe.items():
            if name not in METHODS_AND_SEEDS:
                value = switched_on(value) if name in ("federation", "model") else value
                told.setdefault(name, {})[as_text(value, name)] = value
    if list(told.get("unseen", ())) == ["none"]:
        del told["unseen"]
    if len(every := list(told.get("federation", {}).values())) > MOST_FEDERATIONS:
        values = {option: dict.fromkeys(as_text(own.get(option), option) for own in every) for option in every[0]}
        told["federation"] = [as_text({option: " / ".join(found) for option, found in values.items()})]
    return ", ".join(f"{spaced(name)} {' / '.join(values)}" for name, values in told.items())


def switched_on(options: dict) -> dict:
    """Without options that are off, or as a network has them where it says nothing: records from before lack them."""
    return {o: v for o, v in options.items() if (o, v) not in UNSAID and (v is not False or o == "normalisation")}


def setting_lines(results) -> list[str]:
    """How the numbers were made; with what their intervals hold, where they have some."""
    if not results.records:
        return ["Nothing is recorded."]
    seeds, how = sorted(int(seed) for seed in results.frame["seed"].unique()), "; 95 % intervals from the test images"
    if len(seeds) == 1:
        how += " alone: one seed says nothing of others"
    else:
        how += " and the spread of seeds, moderated by all recorded methods of the setting"
        single = any(rows["seed"].nunique() == 1 for _, rows in settings(results.frame))
        how += "; of a row with one seed from the images alone" if single else ""
    dealt = {record.recipe["federation"].get("seed") for record in results.records} - {None}
    partitions = {
        "; partition of each seed its own" if seed == OF_THE_RUN else "; one partition for all seeds" for seed in dealt
    }
    partition = "".join(sorted(partitions)) if len(seeds) > 1 else ""
    origins = {n: {str(record.origin[n]) for record in results.records} for n in ("code", "torch", "device")}
    made = [f"{name} {' / '.join(sorted(values))}" for name, values in origins.items()]
    return [
        f"Setting: {setting(results)}.",
        f"Seeds: {', '.join(map(str, seeds))}{partition}{how}.",
        f"Made by {', '.join(made)}.",
        *(note for note in results.alike.notes if note not in results.notes),
    ]


def note_lines(results) -> list[str]:
    """What the records say that their reader must know, each once: such as images that are JPEG copies."""
    notes = list(dict.fromkeys(note for record in results.records for note in record.notes))
    more = [f"Note: and {len(notes) - MOST_NOTES} more, in the records."] if len(notes) > MOST_NOTES else []
    return [f"Note: {note}" for note in notes[:MOST_NOTES]] + more


def effect_lines(frame) -> list[str]:
    """How intervals of effects were made, and what they leave open."""
    lines, bases = [], set(rests_on(frame))
    if frame["p"].notna().any():
        lines.append(
            "Intervals (95 %): each image's difference and each seed's, with the spread of each method's runs, "
            "moderated by all recorded methods of its setting. Simultaneous: the same, as wide as all that are tested "
            "together need; it decides. Images fixed: runs alone, as if no other test images were thought of. "
            "Detectable: the smallest true effect that would be significant in 80 of 100 cases."
        )
    if "with_spare" in frame and frame["with_spare"].notna().any():
        lines.append(
            "With spare images: the effect and its 95 % interval from each site's test images and its spare ones, on "
            "which no round trains, as one set. The verdict stays with the printed test images."
        )
    if "gap_low" in frame and frame["gap_low"].notna().any():
        lines.append(
            "Ours - paper: the 95 % interval of that difference, from the spread of our runs and of as many as the "
            "paper prints a mean of; where it leaves zero out, an effect is larger or smaller than printed."
        )
    if "images" in bases:
        lines.append("Images only: one seed gives a number and no verdict.")
    if "counts" in bases:
        lines.append(
            "Counts only: as if the two had seen images of their own, without the spread of seeds; no verdict."
        )
    return lines


def told_bounds(frame):
    """The interval of each row of effects, marked where it does not know all."""
    return bounds(frame, signed) + rests_on(frame).map({"images": " (images only)", "counts": " (counts only)", "": ""})


def rests_on(frame):
    """What the interval of an effect rests on that is not tested: "images" alone, or "counts"; "" of those tested."""
    word = frame["verdict" if "verdict" in frame else "direction"].map({"one seed": "images"}).fillna("counts")
    return word.where(frame["ours"].notna() & frame["p"].isna(), "")


def minus(better: str, worse: str) -> str:
    """How a difference is written: ``"FedRDN - FedAvg"``, ``"FedFA - (FedAvg + mixup)"``."""
    better = f"({better})" if labels.AS_RELEASED in better else better
    return f"{better} - ({worse})" if " + " in worse or labels.AS_RELEASED in worse else f"{better} - {worse}"


def mark(frame) -> str:
    """What runs on other data than the paper's are marked as: OTHER_DATA where all of these are real, STAND_IN where
    some are embedded; "" where there are none."""
    used = frame.loc[frame["stand_in"].astype(bool), "federation"].unique()
    real = [name in files_in("datasets") and file("datasets", name).NEEDS is not None for name in used]
    return (OTHER_DATA if all(real) else STAND_IN) if real else ""


def stand_in_line(frame, federation: str = "the paper's images") -> str:
    """What a caption begins with where runs are on other data than the paper's."""
    flagged = frame[frame["stand_in"].astype(bool)]
    every = (flagged if len(flagged) else frame)["federation"].unique()
    used = ", ".join(labels.federation(name) for name in every if name != federation)
    place = labels.federation(federation)
    return f"{mark(frame) or STAND_IN}: trained on {used} in the place of {place}. It says nothing about the paper."


def spaced(name: str) -> str:
    return name.replace("_", " ")


def as_text(value, option: str = "") -> str:
    """A value of a recipe in words; None is "all" of an option such as ``train_images``."""
    if value is None:
        return "all" if option.endswith("images") else "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        texts = []
        for name, own in value.items():
            if name == "pretrained":
                texts.append(f"ImageNet weights: {'used' if own else 'not used'}")
            elif name != "name":
                texts.append(f"{spaced(name)} {as_text(own, name)}")
        return labels.federation(value["name"]) + (f" ({', '.join(texts)})" if texts else "")
    if isinstance(value, list | tuple):
        return " + ".join(map(as_text, value)) or "none"
    return str(value)


def number(value: float, form: str = ".1f") -> str:
    """With one decimal, halves away from zero: a printed 43.55 is 43.6, where its float alone would be 43.5.

    From six: a difference of printed numbers has its floats' own digits after these. Bounds can be infinite.
    """
    if isfinite(value):
        value = Decimal(f"{value:.6f}").quantize(Decimal("0.1"), ROUND_HALF_UP)
    return "" if value != value else f"{value:{form}}"


def signed(value: float) -> str:
    """The same with a sign."""
    return number(value, "+.1f")


def bounds(frame, text):
    """The intervals of a frame's rows: "67.0 to 75.5"."""
    low, high = (frame[name].astype(object).map(text) for name in ("low", "high"))  # texts, also of no rows
    return (low + " to " + high).where(frame["ours"].notna(), "")
