"""Kills small trainings at random moments and resumes them until they are done: each must end as an undisturbed one.

``python tests/hard/kills.py --trials 100 --seed 1``: the exit status is 1 where a trial differs or leaves something
behind. Each training is a fork of this process, which has imported everything, so a trial takes a second or two.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

import torch

from fednb.records import training
from fednb.records.store import Store

sys.path.insert(0, str(Path(__file__).parents[1]))
from small_runs import FULL

RECIPE = FULL.with_(local_steps=2)
KILLS = 4  # of one training; the start after the last of them is left alone


def trained(folder: Path, seconds: float | None = None) -> bool:
    """Starts the training, or goes on with it, and kills it after so many seconds. Whether it came to its end."""
    process = os.fork()
    if process == 0:
        try:
            training.train_one(RECIPE, Store(folder / "runs"))
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(1)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)
    status = os.waitpid(process, 0)[1]
    assert status in (0, signal.SIGKILL), f"{folder} failed by itself"
    return status == 0


def made(folder: Path) -> dict[str, object]:
    """What a reader finds: the rounds and every array, bit for bit."""
    record = Store(folder / "runs").find(RECIPE)
    arrays = {name: record.artefact(name) for name in ("features", "scores")}
    plain = {f"{name}/{entry}": (a.dtype, a.tobytes()) for name in arrays for entry, a in arrays[name].items()}
    return plain | {"rounds": record.rounds, "images": record.images, "fingerprint": record.fingerprint}


def left_behind(folder: Path) -> list[str]:
    """All files but the record, its artefacts and the lock."""
    record = Path(RECIPE.filename)
    own = {record.name, f"{record.stem}.features.npz", f"{record.stem}.scores.npz", f"{RECIPE.key}.lock"}
    return [path.name for path in folder.rglob("*") if path.is_file() and path.name not in own]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    moments = random.Random(options.seed)
    torch.set_num_threads(1)
    training.CHECKPOINT_SECONDS = 0.0
    equal = kills = 0
    with tempfile.TemporaryDirectory() as place:
        undisturbed, timed = Path(place) / "undisturbed", Path(place) / "timed"
        training.train_one(RECIPE, Store(undisturbed / "runs"))
        begun = time.monotonic()
        trained(timed)
        whole, expected = time.monotonic() - begun, made(undisturbed)
        for trial in range(1, options.trials + 1):
            folder = Path(place) / str(trial)
            for _ in range(KILLS):
                if trained(folder, moments.uniform(0, whole)):
                    break
                kills += 1
            else:
                trained(folder)
            wrong = left_behind(folder) or [name for name, value in made(folder).items() if value != expected[name]]
            equal += not wrong
            if wrong:
                print(f"trial {trial}: {', '.join(wrong)}", flush=True)
    print(f"{equal} of {options.trials} trainings, killed {kills} times, ended bit-equal and left nothing behind")
    return int(equal < options.trials)


if __name__ == "__main__":
    sys.exit(main())
