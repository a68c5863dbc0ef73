"""Flips single bits in records, artefacts, checkpoints and caches: none may be accepted with another content.

    python tests/hard/bit_flips.py --trials 200 --seed 1

Prints, for each kind of file, how many flips were noticed, how many changed nothing that is read, and how many were
accepted with another content; the exit status is 1 where there are any of the last.
"""

import argparse
import random
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from small_runs import SMALL, record

from fednb.datasets import _cache
from fednb.records import columns
from fednb.records.store import Store


def files(folder: Path) -> dict:
    """Kind -> a file and what is read of it, None where the file is not believed."""
    store = Store(folder / "runs")
    made = {"features": np.random.default_rng(0).random((50, 8)), "labels": np.arange(50)}
    shown = {name: np.arange(100, dtype=np.uint8) for name in ("images", "targets", "predictions")}
    path = store.write(SMALL, record(SMALL), {"features": made, "examples": shown})
    columns.LONG, packed = 0, SMALL.with_(seed=1)
    in_columns = store.write(packed, record(packed))
    store.save_checkpoint(SMALL, {"weights": torch.rand(500), "rounds": [{"round": 1, "test": [1, 2]}]})
    _cache.cached(folder, "images", lambda: {"pixels": made["labels"].astype(np.uint8), "labels": made["labels"]})

    def plain(arrays):
        return arrays and {name: value.tolist() for name, value in arrays.items()}

    def recorded():
        found = store.find(SMALL)
        artefacts = found and [plain(found.artefact(name)) for name in ("features", "examples")]
        return found and (asdict(found) | {"path": None, "checksums": None}, artefacts)

    def resumed():
        state = store.load_checkpoint(SMALL, "cpu")
        return state and (state["weights"].tolist(), state["rounds"])

    cache = folder / ".fednb_cache" / "images.npz"
    return {
        "record": (path, recorded),
        "artefact": (path.with_suffix(".features.npz"), recorded),
        "shared artefact": (*(folder / "runs").rglob("shared/*.npz"), recorded),
        "packed record": (in_columns, lambda: store.find(packed)),
        "checkpoint": (store.checkpoints / f"{SMALL.key}.pt", resumed),
        "cache": (cache, lambda: plain(_cache._read(cache, bool))),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=200, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    counts = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for kind, (path, content) in files(Path(folder)).items():
            whole, expected = path.read_bytes(), content()
            assert expected
            for _ in range(options.trials):
                bit = draw.randrange(8 * len(whole))
                flipped = bytearray(whole)
                flipped[bit // 8] ^= 1 << bit % 8
                path.write_bytes(flipped)
                found = content()
                counts[kind, "noticed" if found is None else "same" if found == expected else "accepted"] += 1
            path.write_bytes(whole)
            print(kind, {word: counts[kind, word] for word in ("noticed", "same", "accepted")}, flush=True)
    return int(any(word == "accepted" for _, word in counts))


if __name__ == "__main__":
    sys.exit(main())
