"""Small hand-made results for the tests of tables and figures: no training, no store."""

from functools import partial
from types import SimpleNamespace

import numpy
import pandas

from fednb import papers
from fednb.registry import task
from fednb.report import board
from fednb.report.claims import judged

IMAGES = {"amazon": 192, "caltech": 225, "dslr": 32, "webcam": 59}
SETTINGS = {
    "federation": {
        "name": "office_caltech10",
        "split": "fedbn",
        "size": 128,
        "drop_duplicates": False,
        "train_images": None,
    },
    "algorithm": {"name": "fedavg"},
    "rounds": 2,
    "precision": "bf16",
    "seed": 0,
}


def run(label, tests, validations=None, seed=0, images=IMAGES, federation="office_caltech10", unseen=(), **other):
    """Rows of one run. tests: per round, images right at each client; validations likewise, of 50 each.

    unseen: sites that took no part.
    """
    names = label.split("+")
    head = {"run": label, "algorithm": names[0].split("(")[0], "augmentation": "+".join(names[1:])}
    head |= {
        "federation": federation,
        "task": task(federation),
        "seed": seed,
        "key": " ".join((f"{label} {seed} {other}", *unseen)),
        "stand_in": False,
        "stale": False,
        **other,
    }
    rows = []
    for number, right in enumerate(tests, start=1):
        scores = {"test": (right, images.values())}
        if validations:
            scores["validation"] = (validations[number - 1], [50] * len(images))
        for split, (counts, totals) in scores.items():
            for client, correct, total in zip(images, counts, totals, strict=True):
                accuracy = 100 * correct / total
                rows.append({**head, "round": number, "client": client, "split": split, "correct": correct})
                rows[-1] |= {"images": total, "accuracy": accuracy, "took_part": client not in unseen}
    return pandas.DataFrame(rows)


def seeds_of(label, right, shifts=(0, 1, -1), **other):
    """A run of each seed, with so many images more or fewer at each site."""
    rounds = [[tuple(count + shift for count in right)] for shift in shifts]
    return [run(label, tests, seed=seed, **other) for seed, tests in enumerate(rounds)]


def mean_accuracy(right):
    """Per cent, over the four clients alike."""
    return sum(100 * k / n for k, n in zip(right, IMAGES.values(), strict=True)) / 4


def of_images(rows):
    """By round the scores of a run's test images, as a record gives them: of each client the first ones are right."""
    tested = rows[rows["split"] == "test"].groupby("round")
    counts = {number: zip(part["correct"], part["images"], strict=True) for number, part in tested}
    return {number: [1.0 * (numpy.arange(n) < right) for right, n in own] for number, own in counts.items()}


def claims(verdicts, **columns):
    """Judged claims with these verdicts."""
    ran = [word not in ("not run", "other sites") for word in verdicts]
    frame = pandas.DataFrame({"verdict": verdicts, "low": numpy.where(ran, 1.0, numpy.nan)})
    numbers = {"ours": 2, "high": 3, "together_low": -1, "together_high": 5, "smallest": 4}
    frame = frame.assign(**{name: times * frame["low"] for name, times in numbers.items()})
    about = {"of": "fedrdn", "effect": "A - B", "table": "table1", "claim": "A is above B."}
    about |= {"federation": "office_caltech10", "paper": 2.5, "setting": numpy.where(ran, "small", "")}
    about |= {"p": 0.01, "seeds": 3, "other_rules": "", "why": "", "deviations": ""}
    about |= {"marks": "", "activity": numpy.nan}
    return frame.assign(**about).assign(**columns)


def results(*frames, scores=of_images, **extra_round):
    """What a study returns, as far as reports read it; ``extra_round`` is added to every last round.

    scores: the images' scores of a run, from its rows; none are recorded where it gives {}.
    """
    frame = pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()
    origin = {"code": "abc", "torch": "2", "device": "cpu", "seconds": 1.0}
    records = [
        SimpleNamespace(
            recipe=SETTINGS | {"rounds": int(rows["round"].max()), "unseen": _unseen(rows)},
            origin=origin,
            key=key,
            clients=list(dict.fromkeys(rows["client"])),
            images={"test": rows[rows["split"] == "test"].groupby("client", sort=False)["images"].first().tolist()},
            rounds=[extra_round],
            fingerprint="0" * 16,
            notes=[],
            scores=partial(scores, rows),
            checksums={},
            activity={},
        )
        for key, rows in (frame.groupby("key") if len(frame) else [])
    ]
    stand_in = bool(len(frame)) and bool(frame["stand_in"].any())
    made = SimpleNamespace(frame=frame, records=records, missing=[], stand_in=stand_in)
    made.alike = made
    made.paper = None
    made.notes = ()
    return made


def _unseen(rows) -> list[str]:
    return sorted(rows.loc[~rows["took_part"], "client"].unique())


def scoreboard(made, paper, table=None):
    """The paper's claims of a table, or of all, as they are judged by these results."""
    claims = [claim for claim in papers.claims(paper) if table in (None, *claim["tables"])]
    return board(judged(made, paper, claims))
