"""Trains on disks of many sizes, each too small for something: nothing recorded may be lost.

    python tests/hard/disk_sizes.py --most 5000 --step 100 --seed 1

A disk is a tmpfs of so many kB, in a mount namespace of its own, which needs root or `unshare -r`. On it lie the cache,
the checkpoints and the runs. Each ends with its record whole and readable or with a StoreError; an earlier record stays
as it is, no part is left, and where the record fits beside the earlier one it is there. Prints the counts; the exit
status is 1 where one of these does not hold.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from small_runs import SMALL, record, use_toy

from fednb.datasets import _cache
from fednb.errors import StoreError
from fednb.records import training
from fednb.records.store import Store

RECORD = 40  # kB that a record, its artefacts, their folders and the lock take at most


def trial(folder: Path, kilobytes: int, draw: random.Random) -> str:
    """One disk; returns what came of it."""
    store, earlier = Store(folder / "runs"), SMALL.with_(seed=9)
    before = None
    try:
        before = store.write(earlier, record(earlier)).read_bytes()
    except StoreError:
        pass
    size = draw.randrange(1, 3000)  # kB of decoded images
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _cache.cached(folder, "images", lambda: {"pixels": np.zeros((size, 1000), np.uint8)})
    recipe = SMALL.with_(rounds=3, model={"name": "digits_cnn", "channels": draw.randrange(2, 17), "width": 64})
    try:
        training.train_one(recipe, store, root=folder)
        ended = "recorded"
    except StoreError:
        ended = "refused"
    left = [path for path in folder.rglob("*.part")]
    again = Store(folder / "runs")
    lost = before and (again.folder / earlier.filename).read_bytes() != before
    lost = lost or (before and again.find(earlier) is None)
    if left or lost or again.notes or (ended == "recorded") != (again.find(recipe) is not None):
        return f"wrong: {left} {lost} {again.notes}"
    if ended == "refused" and kilobytes > 2 * RECORD:
        return "wrong: there was room for the record"
    return ended


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=5000, help="kB")
    parser.add_argument("--step", type=int, default=100, help="kB")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        words = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]
        os.execvp("unshare", [*words, sys.executable, *sys.argv, "--inside"])
    torch.set_num_threads(1)
    draw, counts = random.Random(options.seed), Counter()
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        use_toy(patch)
        patch.setattr(training, "CHECKPOINT_SECONDS", 0.0)
        patch.setenv("XDG_CACHE_HOME", f"{folder}/user")
        for kilobytes in (4, 8, 16, 32, 64, *range(options.step, options.most + 1, options.step)):
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", folder], check=True)
            ended = trial(Path(folder), kilobytes, draw)
            counts[ended.partition(":")[0]] += 1
            if ended.startswith("wrong"):
                print(f"{kilobytes} kB: {ended}", flush=True)
            subprocess.run(["umount", folder], check=True)
    print(dict(counts))
    return int("wrong" in counts)


if __name__ == "__main__":
    sys.exit(main())
