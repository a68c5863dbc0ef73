"""Masks beside images: the mask of each image, decoded and resized, and what its values mean."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from fednb.datasets import _images as images
from fednb.datasets._cache import cached, key, of_forms
from fednb.errors import DataError
from fednb.federation import IGNORED

END = re.compile("_(mask|masks|segmentation|seg|label|labels|gt)$", re.IGNORECASE)  # of a mask's name


def image_of(mask: str, known: Collection[str]) -> str:
    """The name of the image that a mask belongs to, by its own: the same, or without its ``END``."""
    return mask if mask in known or END.sub("", mask) not in known else END.sub("", mask)


def refuse_beside(files: Sequence[Path]) -> None:
    """DataError where one file of a folder is another's mask by its name."""
    names = {path.stem: path for path in files}
    for path in files:
        if END.search(path.stem) and (image := names.get(END.sub("", path.stem))):
            raise DataError(
                f"{path} is the mask of {image.name} by its name, in the place of an image. Remove such masks or, to "
                "learn them, put images and masks in folders images and masks of the site."
            )


def paired(image_folder: Path, mask_folder: Path) -> tuple[list[Path], list[Path]]:
    """The image files of a folder, sorted by name, and of each its mask: of the same name, or with an ``END``;
    suffixes may differ.

    Raises DataError when an image or a mask is alone, or two have one name.
    """
    held = {path.stem: path for path in images.files(image_folder)}
    masks = {image_of(path.stem, held): path for path in images.files(mask_folder)}
    for folder, named in ((image_folder, held), (mask_folder, masks)):
        double = set(images.files(folder)) - set(named.values())
        if double:
            raise DataError(
                f"{min(double)} has the name of another file there; expected one file of a name, as images and masks "
                "find each other by it. Rename or remove one."
            )
    for own, there, others in ((held, mask_folder, masks), (masks, image_folder, held)):
        if alone := sorted(own.keys() - others.keys()):
            raise DataError(
                f"There is no {there / alone[0]}.* for {own[alone[0]]} ({len(alone)} such files). Add it, or remove "
                "the one that is there."
            )
    return list(held.values()), [masks[name] for name in held]


def refuse_other_size(path: object, own: tuple[int, int], mask: object, theirs: tuple[int, int]) -> None:
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

    Raises DataError naming a mask that cannot be decoded, has another size than its image, or may be turned otherwise.
    """
    forms = {"masks": ((len(masks), size, size), np.uint8), "values": ((len(masks), 256), np.bool_)}

    def make() -> dict[str, np.ndarray]:
        made = {name: np.zeros(*form) for name, form in forms.items()}

        def put(position: int):
            mask, own = images.decode_mask(masks[position]), images.dimensions(paths[position], upright=True)
            refuse_other_size(paths[position], own, masks[position], mask.shape[::-1])
            _refuse_other_turn(paths[position], masks[position], own)
            made["values"][position, np.unique(mask)] = True
            made["masks"][position] = _resized(mask, size)

        images.for_all(masks, put)
        return made

    held = cached(root, f"{name}_masks_{size}_{key(images.digests([*paths, *masks]))}", make, of_forms(forms))
    return held["masks"], held["values"]


def _refuse_other_turn(path: Path, mask: Path, size: tuple[int, int]) -> None:
    """DataError where an image and its mask have different EXIF orientations, and their upright size does not say that
    they fit."""
    tags = images.stored_turned(path), images.stored_turned(mask)
    seen_by_size = size[0] != size[1] and (tags[0] in images.LYING) != (tags[1] in images.LYING)
    if tags[0] != tags[1] and not seen_by_size:
        raise DataError(
            f"{path} has the EXIF orientation {tags[0]} and {mask} {tags[1]} (1: upright); expected the same, as "
            "whether the mask was drawn on the turned image cannot be known. Save both upright, without the tag."
        )


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
    """The masks of a site with their values as classes, 255 where a pixel is ignored; and notes.

    A value is the number of its class, but 255, which is ignored. With two classes and no other value than 0 and 255 in
    all masks of the site they are black and white: then 255 is the second class. ``notes`` counts the masks that are
    background alone, which may be meant, or not be finished.

    Raises DataError naming a mask that has other values, or no pixel that is not ignored; and where more classes are
    named and the site's masks are black and white.
    """
    notes = []
    for path, own in zip(files, values, strict=True):
        if strange := [str(value) for value in np.flatnonzero(own[:IGNORED]) if value >= classes]:
            raise DataError(
                f"{path} has the values {', '.join(strange[:5])}{', ...' * (len(strange) > 5)}; expected 0 to "
                f"{classes - 1} ({classes} classes), or {IGNORED}. Name all classes, or write the values that are "
                "meant, in a format without loss such as PNG."
            )
    ignoring, drawn = values[:, IGNORED].sum(), values[:, 1:IGNORED].any()
    if classes == 2 and not drawn:
        masks = np.where(masks == IGNORED, np.uint8(1), masks)
        values = values[:, [0, IGNORED]]
    elif ignoring and not drawn:
        raise DataError(
            f"{site} has masks of 0 and {IGNORED} alone ({files[0].parent}) for {classes} classes; {IGNORED} is "
            f"ignored, and no object would be left. Write the numbers of the classes, 1 to {classes - 1}."
        )
    else:
        empty = ~values[:, :IGNORED].any(1)
        if empty.any():
            raise DataError(
                f"{files[int(empty.argmax())]} is {IGNORED} (ignored) in every pixel; expected classes, from 0. Remove "
                "it and its image, or say of some pixels what they are."
            )
        if classes == 2 and ignoring:
            notes.append(f"{site}: 255 is ignored in {ignoring} of {len(values)} masks, as 1 is the second class.")
        values = values[:, :classes]
    bare = ~values[:, 1:].any(1)
    if bare.any():
        first = "/".join(files[int(bare.argmax())].parts[-3:])
        notes.append(f"{site}: {bare.sum()} of {len(values)} masks are background alone, first {first}.")
    return masks, notes
