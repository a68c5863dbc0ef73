"""Masks next to images: the mask of each image, decoded and resized, and what its values mean."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from fednb.datasets import _images as images
from fednb.datasets._cache import cached, key
from fednb.errors import DataError
from fednb.federation import IGNORED

END = re.compile("_(mask|masks|segmentation|seg|label|labels|gt)$", re.IGNORECASE)  # of a mask's name


def refuse_beside(files: Sequence[Path]) -> None:
    """DataError where one file of a folder is another's mask by its name."""
    names = {path.stem: path for path in files}
    for path in files:
        if END.search(path.stem) and (image := names.get(END.sub("", path.stem))):
            advice = "Remove such masks or, to learn them, put images and masks in folders images and masks of the site"
            raise DataError(f"{path} is the mask of {image.name} by its name, in the place of an image. {advice}.")


def paired(image_folder: Path, mask_folder: Path) -> tuple[list[Path], list[Path]]:
    """The image files of a folder, sorted by name, and the mask of each, of the same name or with an ``END``, whatever
    the suffix. DataError for an image or a mask that is alone, or not the only one of its name."""
    paths, masks = images.files(image_folder), images.files(mask_folder)
    stems = [path.stem for path in paths]
    known = {*stems}
    owners = [mask.stem if mask.stem in known else END.sub("", mask.stem) for mask in masks]
    for own, names, there, others in ((paths, stems, mask_folder, owners), (masks, owners, image_folder, stems)):
        counts, known = Counter(names), {*others}
        for path, name in zip(own, names, strict=True):
            if counts[name] > 1:
                raise DataError(f"{path} has the name of another file there; expected one of a name. Rename one.")
            if name not in known:
                number = len({*names} - known)
                raise DataError(f"There is no {there / name}.* for {path} ({number} such files). Add or remove it.")
    mask_of = dict(zip(owners, masks, strict=True))
    return paths, [mask_of[stem] for stem in stems]


def refuse_other_size(path: Path, mask: Path) -> None:
    """DataError where an image and its mask differ in width, height or how they are turned."""
    (own, turned), (theirs, other) = images.stored(path), images.stored(mask)
    if turned != other or own != theirs:
        raise DataError(
            f"{mask} is {theirs[0]} x {theirs[1]} pixels and its image {own[0]} x {own[1]}, with the EXIF orientations "
            f"{other} and {turned} (1: upright); expected the same. Put the image's mask there, or save both upright."
        )


def read(
    root: Path, name: str, paths: Sequence[Path], masks: Sequence[Path], size: int
) -> tuple[np.ndarray, np.ndarray]:
    """The masks of these images, uint8 ``[n, size, size]``, and which values each had in its file, bool ``[n, 256]``;
    from the cache of ``root`` if they are there. Raises DataError as ``decode_mask`` and ``refuse_other_size``."""

    def make() -> dict[str, np.ndarray]:
        made = {"masks": np.zeros((len(masks), size, size), np.uint8), "values": np.zeros((len(masks), 256), bool)}
        for position, (path, mask) in enumerate(zip(paths, images.for_all(masks, images.decode_mask), strict=True)):
            refuse_other_size(path, masks[position])
            made["values"][position, np.unique(mask)] = True
            made["masks"][position] = _resized(mask, size)
        return made

    held = cached(root, f"{name}_masks_{size}_{key(images.digests([*paths, *masks]))}", make)
    return held["masks"], held["values"]


def _resized(mask: np.ndarray, size: int) -> np.ndarray:
    """uint8 ``[size, size]``: a pixel has the value that covers most of it; of equals the lowest."""
    if mask.shape == (size, size):
        return mask
    most, made = np.zeros((size, size), np.uint8), np.full((size, size), mask.min())
    for value in np.unique(mask):
        whole = Image.fromarray(np.uint8(255) * (mask == value))
        covered = np.asarray(whole.resize((size, size), Image.Resampling.BILINEAR))
        made[covered > most] = value
        most = np.maximum(most, covered)
    return made


def as_classes(
    site: str, files: Sequence[Path], masks: np.ndarray, values: np.ndarray, classes: int
) -> tuple[np.ndarray, list[str]]:
    """The masks of a site with their values as classes, as ``folders.load`` says; and a note on masks that are
    background alone. DataError naming a mask with other values, or all ignored; and where more than two classes are
    named and the site's masks are black and white."""
    drawn = values[:, 1:IGNORED].any()
    if classes == 2 and not drawn:
        masks = np.where(masks == IGNORED, np.uint8(1), masks)
        values = values[:, [0, IGNORED]]
    elif not drawn and values[:, IGNORED].any():
        found = f"{site} has masks of 0 and {IGNORED} alone ({files[0].parent}) for {classes} classes"
        raise DataError(f"{found}; {IGNORED} is ignored. Write the numbers of the classes, 1 to {classes - 1}.")
    else:
        for path, own in zip(files, values, strict=True):
            found = np.flatnonzero(own)
            if found[0] == IGNORED or found[found < IGNORED][-1] >= classes:
                raise DataError(
                    f"{path} has the values {', '.join(map(str, found))[:60]}; expected 0 to {classes - 1} ({classes} "
                    f"classes), or {IGNORED} where a pixel is ignored, but not all. Write them in a format such as PNG."
                )
    bare = np.flatnonzero(~values[:, 1:IGNORED].any(1))
    firsts = ["/".join(files[number].parts[-3:]) for number in bare[:1]]
    said = f"{site}: {len(bare)} of {len(values)} masks are background alone, first "
    return masks, [f"{said}{first}." for first in firsts]
