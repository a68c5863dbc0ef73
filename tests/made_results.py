"""Small hand-made results for the tests of tables and figures: no training, no store."""

from types import SimpleNamespace

import pandas

IMAGES = {"amazon": 192, "caltech": 225, "dslr": 32, "webcam": 59}
SETTINGS = {
    "federation": {"name": "office_caltech10", "split": "fedbn", "size": 128},
    "algorithm": {"name": "fedavg"},
    "rounds": 2,
    "precision": "bf16",
    "seed": 0,
}


def run(label, tests, validations=None, seed=0, images=IMAGES, federation="office_caltech10", **other):
    """Rows of one run. tests: per round, images right at each client; validations likewise, of 50 each."""
    names = label.split("+")
    head = {"run": label, "algorithm": names[0].split("(")[0], "augmentation": "+".join(names[1:])}
    head |= {
        "federation": federation,
        "seed": seed,
        "key": f"{label} {seed} {other}",
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
                rows[-1] |= {"images": total, "accuracy": accuracy}
    return pandas.DataFrame(rows)


def mean_accuracy(right):
    """Per cent, over the four clients alike."""
    return sum(100 * k / n for k, n in zip(right, IMAGES.values(), strict=True)) / 4


def results(*frames, **extra_round):
    """What a study returns, as far as reports read it; ``extra_round`` is added to every last round."""
    frame = pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()
    origin = {"code": "abc", "torch": "2", "device": "cpu", "seconds": 1.0}
    records = [
        SimpleNamespace(
            recipe=SETTINGS | {"rounds": int(rows["round"].max())},
            origin=origin,
            key=key,
            clients=list(dict.fromkeys(rows["client"])),
            rounds=[extra_round],
        )
        for key, rows in (frame.groupby("key") if len(frame) else [])
    ]
    return SimpleNamespace(frame=frame, records=records, missing=[])
