"""EMNIST by writers: handwritten digits and letters, where a client is a writer."""

import json
from pathlib import Path

import numpy as np
import torch

from fednb.datasets import _images as images
from fednb.datasets._cache import Arrays, cached, key
from fednb.datasets._files import reading
from fednb.datasets._listed import lacking
from fednb.datasets._partition import check_whole, cut
from fednb.errors import DataError
from fednb.federation import Federation, Site, Split
from fednb.randomness import random_state

NEEDS = (
    "EMNIST with its writers (NIST Special Database 19, prepared by LEAF, Caldas et al. 2018). Layout: "
    "emnist/all_data_0.json, all_data_1.json, ..., which LEAF's data/femnist/preprocess.sh writes to data/all_data/; "
    "torchvision's EMNIST does not say who wrote an image. From github.com/TalwalkarLab/leaf, whose script fetches "
    "two archives of www.nist.gov/srd/nist-special-database-19; sizes not stated. Licence: public domain."
)
CLASSES = tuple("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
SIDE = 28
SHARES = (0.81, 0.09, 0.1)  # training, validation and test images of a writer
LEAST = 10  # images of a writer: with fewer one of the shares may be empty


def load(root: Path, *, clients: int = 200, size: int = 28, seed: int = 0) -> Federation:
    """Sites client_0, client_1, ..., each with the images of one writer; grey, upright, dark on white, 62 classes:
    digits, capital and small letters. A tenth of each writer's images is for testing (LEAF's own share), a tenth of the
    others is validation, with all classes in proportion.

    FedFA prints two settings. Taken is that of Sec. 4.1, which describes the partition "w.r.t. writers": 200 clients of
    which 10 train in a round on batches of 10. Table 9 has 100 clients, a participation of 0.1 and batches of 64.

    Args:
        clients: how many writers, drawn among those with 10 images or more; a smaller number takes the first of them.
        size: the files have 28.
        seed: of all draws.

    Reference: FedFA, Sec. 4.1 and App. E.1; Cohen et al., *EMNIST*, IJCNN 2017; Caldas et al., *LEAF*, 2018. FedFA's
    code for EMNIST is not released; which writers it takes, and how it divides their images, is not printed.
    """
    check_whole(clients=clients)
    writers = _writers(root)
    fitting = sorted(name for name, (_, targets) in writers.items() if len(targets) >= LEAST)
    if clients > len(fitting):
        held = f"{len(fitting)} of the {len(writers)} writers on disk have at least {LEAST} images"
        raise DataError(f"{clients} clients are asked for; {held}. Take at most {len(fitting)} clients.")
    drawn = random_state("emnist", "writers", seed).permutation(len(fitting))[:clients]
    sites = []
    for number, name in enumerate(fitting[position] for position in drawn):
        pixels, targets = writers[name]
        whole = Split(torch.from_numpy(images.resized(pixels, size)), torch.from_numpy(targets))
        sites.append(Site(f"client_{number}", *cut(whole, SHARES, "emnist", name, seed)))
    note = f"{clients} of the {len(fitting)} writers on disk with at least {LEAST} images take part."
    return Federation("emnist", sites, CLASSES, [note])


def _files(root: Path, **options) -> list[Path]:
    if files := sorted((root / "emnist").glob("all_data_*.json")):
        return files
    raise DataError(f"There is no {root / 'emnist'}/all_data_*.json.")


missing = lacking(_files)


def _writers(root: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Images uint8 ``[n, 1, 28, 28]`` and targets int64 ``[n]`` by writer."""
    files, writers = _files(root), {}
    for file, digest in zip(files, images.digests(files), strict=True):
        held = cached(root, f"emnist_{key([digest])}", lambda file=file: reading(file, _parsed))
        ends = np.cumsum(held["counts"])
        for name, start, end in zip(held["names"].tolist(), ends - held["counts"], ends, strict=True):
            if name in writers:
                raise DataError(f"{file} has the writer {name} a second time; expected each once. Remove one file.")
            writers[name] = held["pixels"][start:end, None], held["targets"][start:end]
    return writers


def _parsed(file: Path) -> Arrays:
    """LEAF's format: "users", names; "num_samples", their counts; "user_data", for each name "x", images as 784 numbers
    from 0 to 1, row after row, and "y", their classes."""
    content = json.loads(file.read_bytes())
    pixels, targets = [], []
    for name, count in zip(content["users"], content["num_samples"], strict=True):
        entry = content["user_data"].pop(name)
        x, y = np.array(entry["x"], np.float32), np.array(entry["y"])
        if x.shape != (count, SIDE * SIDE) or y.shape != (count,) or y.dtype.kind != "i":
            raise ValueError(f"{name} has images {[*x.shape]} and classes {y.dtype} {[*y.shape]}, not {count} of 784")
        if count and not (0 <= x.min() <= x.max() <= 1 and 0 <= y.min() <= y.max() < len(CLASSES)):
            raise ValueError(f"{name} has pixels from {x.min()} to {x.max()}, classes from {y.min()} to {y.max()}")
        pixels.append(np.rint(x * 255).astype(np.uint8).reshape(-1, SIDE, SIDE))
        targets.append(y.astype(np.int64))
    names, counts = np.array(content["users"]), np.array(content["num_samples"], np.int64)
    return {"names": names, "counts": counts, "pixels": np.concatenate(pixels), "targets": np.concatenate(targets)}
