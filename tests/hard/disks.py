"""Flips single bits in files, and trains on disks too small for something: nothing recorded may change or be lost.

    python tests/hard/disks.py --flips 200 --most 5000 --step 100 --seed 1

Flips: in records, artefacts, checkpoints and caches; none may be accepted with another content. Disks: each a tmpfs of
so many kB, in a mount namespace of its own, which needs root or `unshare -r`; on it lie the cache, the checkpoints and
the runs. A training ends with its record whole and readable or with a StoreError; an earlier record stays as it is, and
no part is left. Prints counts; the exit status is 1 where one of these does not hold.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from small_runs import SMALL, record, use_toy

from fednb.datasets import _cache
from fednb.errors import StoreError
from fednb.records import columns, training
from fednb.records.store import Store


def files(folder: Path) -> dict:
    """Kind -> a file, and a function of what is read of it: None where the file is damaged."""
    store, packed = Store(folder / "runs"), SMALL.with_(seed=1)
    labels = np.arange(50, dtype=np.uint8)
    examples = {name: np.arange(100, dtype=np.uint8) for name in ("images", "targets", "predictions")}
    path = store.write(SMALL, record(SMALL), {"features": {"labels": labels}, "examples": examples})
    columns.LONG = 0
    in_columns = store.write(packed, record(packed))
    store.save_checkpoint(SMALL, {"weights": torch.rand(500), "rounds": [{"round": 1, "test": [1, 2]}]})
    _cache.cached(folder, "images", lambda: {"labels": labels})
    cache = folder / ".fednb_cache" / "images.npz"

    def plain(arrays):
        return arrays and {name: value.tolist() for name, value in arrays.items()}

    def recorded():
        found = store.find(SMALL)
        artefacts = found and [plain(found.artefact(name)) for name in ("features", "examples")]
        return found and (asdict(found) | {"path": None, "checksums": None}, artefacts)

    def resumed():
        state = store.load_checkpoint(SMALL, "cpu")
        return state and (state["weights"].tolist(), state["rounds"])

    return {
        "record": (path, recorded),
        "artefact": (path.with_suffix(".features.npz"), recorded),
        "shared artefact": (*(folder / "runs").rglob("shared/*.npz"), recorded),
        "packed record": (in_columns, lambda: store.find(packed)),
        "checkpoint": (store.checkpoints / f"{SMALL.key}.pt", resumed),
        "cache": (cache, lambda: plain(_cache._read(cache))),
    }


def flips(trials: int, draw: random.Random) -> bool:
    """Whether no flip was accepted."""
    accepted = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind, (path, content) in files(Path(folder)).items():
            counts, whole, expected = Counter(), path.read_bytes(), content()
            assert expected
            for _ in range(trials):
                bit = draw.randrange(8 * len(whole))
                flipped = bytearray(whole)
                flipped[bit // 8] ^= 1 << bit % 8
                path.write_bytes(flipped)
                found = content()
                counts["noticed" if found is None else "same" if found == expected else "accepted"] += 1
            path.write_bytes(whole)
            print(kind, dict(counts), flush=True)
            accepted += counts["accepted"]
    return not accepted


def on_disk(folder: Path, draw: random.Random) -> str:
    """Trains on one disk; returns what came of it."""
    store, earlier, before = Store(folder / "runs"), SMALL.with_(seed=9), None
    with suppress(StoreError):
        before = store.write(earlier, record(earlier)).read_bytes()
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
    lost = before and ((again.folder / earlier.filename).read_bytes() != before or again.find(earlier) is None)
    if left or lost or again.notes or (ended == "recorded") != (again.find(recipe) is not None):
        return f"wrong: {left} {lost} {again.notes}"
    return ended


def disks(most: int, step: int, draw: random.Random) -> bool:
    """Whether nothing was lost on a disk of any size."""
    counts = Counter()
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        use_toy(patch)
        patch.setattr(training, "CHECKPOINT_SECONDS", 0.0)
        patch.setenv("XDG_CACHE_HOME", f"{folder}/user")
        for kilobytes in (4, 8, 16, 32, 64, *range(step, most + 1, step)):
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", folder], check=True)
            ended = on_disk(Path(folder), draw)
            counts[ended.partition(":")[0]] += 1
            if ended.startswith("wrong"):
                print(f"{kilobytes} kB: {ended}", flush=True)
            subprocess.run(["umount", folder], check=True)
    print("disks", dict(counts))
    return "wrong" not in counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flips", type=int, default=200, help="of each kind of file")
    parser.add_argument("--most", type=int, default=5000, help="kB")
    parser.add_argument("--step", type=int, default=100, help="kB")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        words = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]
        os.execvp("unshare", [*words, sys.executable, *sys.argv, "--inside"])
    torch.set_num_threads(1)
    draw = random.Random(options.seed)
    held = [disks(options.most, options.step, draw), flips(options.flips, draw)]
    return int(not all(held))


if __name__ == "__main__":
    sys.exit(main())
