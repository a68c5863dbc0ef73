"""Masks beside images: the mask of each image, decoded and resized, and what its values mean."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from fednb.datasets import _images as images
from fednb.datasets._cache import cached, key
from fednb.errors import DataError
from fednb.federation import IGNORED

KINDS = ("images", "masks")  # the folders


def paired(folder: Path) -> tuple[list[Path], list[Path]]:
    """The files in ``folder/images``, sorted by name, and those of the same names in ``folder/masks``; suffixes may
    differ.

    Raises DataError when there are none, an image or a mask is alone, or two have one name.
    """
    found = {}
    for kind in KINDS:
        place = folder / kind
        listed = images.files(place) if place.is_dir() else []
        if not listed:
            inside = f"Put the folders that are in {kind} above it" if images.subfolders(place) else ""
            raise DataError(
                f"{place} has no images ({images.held(place)}); expected {folder}/images/<file> and "
                f"{folder}/masks/<file>. {inside or 'Convert what is in another format, for example to PNG'}."
            )
        found[kind] = {path.stem: path for path in listed}
        if len(found[kind]) < len(listed):
            double = next(path for path in listed if found[kind][path.stem] != path)
            raise DataError(
                f"{double} has the name of {found[kind][double.stem].name}; expected one file of a name, as images and "
                "masks find each other by it. Rename or remove one."
            )
    for kind, other in (KINDS, KINDS[::-1]):
        alone = [path for name, path in found[kind].items() if name not in found[other]]
        if alone:
            raise DataError(
                f"There is no {folder / other / alone[0].stem}.* for {alone[0]} ({len(alone)} such {kind}). Add it, or "
                f"remove the one of {kind}."
            )
    return list(found["images"].values()), [found["masks"][name] for name in found["images"]]


def refuse_other_size(path: Path, own: tuple[int, int], mask: Path, theirs: tuple[int, int]) -> None:
    """DataError where an image and its mask differ in width or height."""
    if own != theirs:
        raise DataError(
            f"{mask} is {theirs[0]} x {theirs[1]} pixels and its image {own[0]} x {own[1]}; expected the "
            "same size, a mask lies on its image pixel by pixel. Put the one that belongs to the image there."
        )


def read(
    root: Path, name: str, paths: Sequence[Path], masks: Sequence[Path], size: int
) -> tuple[np.ndarray, np.ndarray]:
    """The masks of these images, uint8 ``[n, size, size]``, and which values each had in its file, bool ``[n, 256]``;
    from the cache of ``root`` if they have been decoded before.

    A resized pixel has the value that covers most of it; of equals the lowest.
    Raises DataError naming a mask that cannot be decoded or has another size than its image.
    """

    def make() -> dict[str, np.ndarray]:
        made = {"masks": np.empty((len(masks), size, size), np.uint8), "values": np.zeros((len(masks), 256), bool)}

        def put(position: int):
            mask = images.decode_mask(masks[position])
            own = images.dimensions(paths[position], upright=True)
            refuse_other_size(paths[position], own, masks[position], mask.shape[::-1])
            present = np.unique(mask)
            made["values"][position, present] = True
            made["masks"][position] = _resized(mask, present, size)

        images.for_all(masks, put)
        return made

    def fits(held: dict[str, np.ndarray]) -> bool:
        shapes = held["masks"].shape == (len(masks), size, size) and held["values"].shape == (len(masks), 256)
        return shapes and held["masks"].dtype == np.uint8 and held["values"].dtype == bool

    held = cached(root, f"{name}_masks_{size}_{key(images.digests([*paths, *masks]))}", make, fits)
    return held["masks"], held["values"]


def _resized(mask: np.ndarray, present: np.ndarray, size: int) -> np.ndarray:
    if mask.shape == (size, size):
        return mask
    most, resized = np.zeros((size, size), np.uint8), np.full((size, size), present[0])
    for value in present:
        whole = Image.fromarray(np.uint8(255) * (mask == value))
        covered = np.asarray(whole.resize((size, size), Image.Resampling.BILINEAR))
        resized[covered > most] = value
        most = np.maximum(most, covered)
    return resized


def as_classes(
    site: str, files: Sequence[Path], masks: np.ndarray, values: np.ndarray, classes: int
) -> tuple[np.ndarray, list[str]]:
    """The masks of a site with their values as classes, 255 where a pixel is ignored; and notes.

    A value is the number of its class, but 255, which is ignored. With two classes and no other value than 0 and 255 in
    all masks of the site they are black and white: then 255 is the second class. ``notes`` counts the masks that are
    background alone, which may be meant, or not be finished.

    Raises DataError naming a mask that has other values, or no pixel that is not ignored.
    """
    notes = []
    for path, own in zip(files, values, strict=True):
        if strange := [str(value) for value in np.flatnonzero(own[:IGNORED]) if value >= classes]:
            raise DataError(
                f"{path} has the values {', '.join(strange[:5])}{', ...' * (len(strange) > 5)}; expected 0 to "
                f"{classes - 1} ({classes} classes), or {IGNORED}. Name all classes, or write the values that are "
                "meant, in a format without loss such as PNG."
            )
    if classes == 2 and not values[:, 1].any():
        masks = np.where(masks == IGNORED, np.uint8(1), masks)
        values = values[:, [0, IGNORED]]
    else:
        empty = ~values[:, :IGNORED].any(1)
        if empty.any():
            raise DataError(
                f"{files[int(empty.argmax())]} is {IGNORED} (ignored) in every pixel; expected classes, from 0. Remove "
                "it and its image, or say of some pixels what they are."
            )
        ignoring = values[:, IGNORED].sum()
        if classes == 2 and ignoring:
            notes.append(f"{site}: 255 is ignored in {ignoring} of {len(values)} masks, as 1 is the second class.")
        values = values[:, :classes]
    bare = ~values[:, 1:].any(1)
    if bare.any():
        first = "/".join(files[int(bare.argmax())].parts[-3:])
        notes.append(f"{site}: {bare.sum()} of {len(values)} masks are background alone, first {first}.")
    return masks, notes
