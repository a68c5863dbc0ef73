"""Hostile files by the dozen: each ends in a named error or is read, and memory is bounded.

Run by hand: ``python tests/hard/hostile_files.py --seed 1``. The exit status is 1 if an error had no name, or a family,
each in a process of its own, took more memory than a gigabyte beyond its imports.
"""

import argparse
import gzip
import io
import os
import resource
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

import loaders
import numpy as np
from PIL import Image

import fednb.datasets
from fednb.errors import FednbError


def digits(root: Path, random: Random):
    """Archives that unpack to much."""
    with zipfile.ZipFile(root / "usps.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x_train.npy", bytes(1500 * 2**20))
    yield lambda: fednb.datasets.load("digits", root, domains=["usps"])
    (root / "MNIST" / "raw").mkdir(parents=True)
    with gzip.open(root / "MNIST/raw/train-images-idx3-ubyte.gz", "wb") as file:
        for _ in range(1500):
            file.write(bytes(2**20))
    for name in ("train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        (root / f"MNIST/raw/{name}-ubyte.gz").write_bytes(b"")
    yield lambda: fednb.datasets.load("digits", root, domains=["mnist"])


def pictures(root: Path, random: Random):
    """Images with flipped bits, of many pixels, cut short; a pipe."""
    loaders.folders(root)
    place = root / "own" / "north" / "cat"
    honest = Image.fromarray(np.random.RandomState(0).randint(0, 256, (40, 40, 3), np.uint8))
    for suffix in ("png", "jpeg", "gif", "tiff", "webp", "bmp", "ppm"):
        stored = io.BytesIO()
        honest.save(stored, suffix.upper())
        for _ in range(20):
            (place / f"x.{suffix}").write_bytes(flipped(stored.getvalue(), random))
            yield lambda: fednb.datasets.load("folders", root, folder="own", size=8)
        (place / f"x.{suffix}").unlink()
    for side in (8193, 13_000, 60_000):
        stored = bytearray((place / "0.png").read_bytes())
        stored[16:24] = struct.pack(">II", side, side)
        stored[29:33] = struct.pack(">I", zlib.crc32(stored[12:29]))
        for number in range(4):
            (place / f"wide{number}.png").write_bytes(stored)
        yield lambda: fednb.datasets.load("folders", root, folder="own", size=8)
    os.mkfifo(place / "pipe.png")
    yield lambda: fednb.datasets.load("folders", root, folder="own", size=8)


FAMILIES = {family.__name__: family for family in (digits, pictures)}


def flipped(content: bytes, random: Random) -> bytes:
    """A copy with a few other bits, or cut short."""
    content = bytearray(content)
    for _ in range(random.randint(1, 8)):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    return bytes(content[: random.randint(1, len(content))] if random.random() < 0.2 else content)


def run(name: str, seed: int) -> int:
    """All trials of a family, here; 1 if one of them went wrong."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    counts = Counter()
    for attempt in FAMILIES[name](Path.cwd() / "data", Random(seed)):
        try:
            attempt()
            outcome = "read"
        except FednbError:
            outcome = "named"
        except BaseException as error:
            outcome = f"UNNAMED {type(error).__name__}: {error}"
        counts[outcome] += 1
    used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    print(f"{name}: {sum(counts.values())} trials, {dict(counts)}, {used} MB")
    return int(used > 1024 or any(outcome not in ("read", "named") for outcome in counts))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", choices=FAMILIES, help="this one alone, in the current folder")
    options = parser.parse_args()
    if options.family:
        return run(options.family, options.seed)
    wrong = 0
    for name in FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "data").mkdir()
            command = [sys.executable, str(Path(__file__).resolve()), "--family", name, "--seed", str(options.seed)]
            own = {"XDG_CACHE_HOME": folder, "PYTHONWARNINGS": "ignore"}
            wrong += subprocess.run(command, cwd=folder, env=os.environ | own, timeout=900).returncode != 0
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
