"""Reads other libraries' data sets as tensors, by their form alone: torchvision's, Hugging Face's, ``flwr-datasets``'.

A data set has a length and gives, for each position, a pair (image, label), or a dictionary in which ``columns`` name
both. An image is a PIL picture, read as a file in one's own folders is; an array ``[height, width]`` or ``[height,
width, channels]`` in uint8; or a tensor ``[height, width]`` or ``[channels, height, width]`` in uint8 or as floats in
[0, 1], which become uint8. Channels are 1 to 4. Where some images have one and others three, grey ones get three equal
ones. A label is a class number, also in an array of one.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import ConcatDataset, Subset

from fednb.errors import DataError, composed
from fednb.pixels import notes, plain, refuse

Names = tuple[str, ...]


def read(
    sites: Mapping, name: str, splits: Sequence[str], classes: Iterable | None, columns: tuple[str, str] | None
) -> tuple[list[tuple[str, list[tuple[Tensor, Tensor]]]], Names, list[str]]:
    """Each site's name with images, uint8 ``[n, channels, height, width]``, and labels, int64 ``[n]``, of its splits;
    the names of the classes; and notes. All as ``Federation.from_datasets`` says."""
    if not isinstance(sites, Mapping) or not sites:
        raise DataError(f'{name} has no sites ({sites!r:.60}); expected {{"site": (train, validation, test), ...}}.')
    images, labels, orders, said = {}, {}, {}, []
    for site, given in sites.items():
        if not isinstance(given, tuple | list) or len(given) != len(splits):
            raise DataError(
                f"site {site} of {name} is a {type(given).__name__}; expected three data sets (train, validation, "
                "test). None stands for one without images."
            )
        for split, data in zip(splits, given, strict=True):
            place = f"{site} / {split}"
            images[place], labels[place], unusual = _read(data, columns, place)
            orders[place] = _orders(data, labels[place], columns)
            said += notes([f"{place} / {number}" for number in range(len(unusual))], unusual)
        if not images[f"{site} / {splits[0]}"]:
            raise DataError(f"site {site} of {name} has no training images; add some or leave the site out.")
    tensors = _of_one_size(images)
    targets, classes, more = _numbered(labels, orders, classes, len(sites))
    read = [
        (composed(str(site)), [(tensors[f"{site} / {split}"], targets[f"{site} / {split}"]) for split in splits])
        for site in sites
    ]
    return read, classes, [*said, *more]


def _read(data, columns: tuple[str, str] | None, place: str) -> tuple[list[Tensor], list[int], list[set[str]]]:
    """The images, uint8 ``[channels, height, width]``, the labels and what is unusual of each image."""
    images, labels, unusual = [], [], []
    if data is not None and not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        raise DataError(f"{place} is a {type(data).__name__} without length or positions; make it a data set of such.")
    for number in range(len(data or ())):
        try:
            example = data[number]
        except Exception as error:  # it is anybody's data set
            raise DataError(f"{place}: image {number} cannot be read: {type(error).__name__}: {error}.") from error
        if isinstance(example, Mapping) and columns and set(columns) <= set(example):
            example = [example[column] for column in columns]
        if not isinstance(example, tuple | list) or len(example) != 2:
            has = f"has the columns {', '.join(example)}" if isinstance(example, Mapping) else type(example).__name__
            raise DataError(
                f"{place}: example {number} is no pair ({has}); expected (image, label), or a dictionary and "
                'columns=("image", "label") with the names that they have there.'
            )
        pixels, kinds = _pixels(example[0], f"{place}: image {number}")
        images.append(pixels)
        labels.append(_label(example[1], f"{place}: label {number}"))
        unusual.append(kinds)
    return images, labels, unusual


def _label(value, place: str) -> int:
    if isinstance(value, Tensor | np.ndarray) and tuple(value.shape) in ((), (1,)):
        value = value.item()
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise DataError(
            f"{place} is {value!r:.60}; expected a class number such as 0. Masks are read from folders, or given as "
            'the targets of Split to Federation(..., task="segmentation").'
        )
    return int(value)


def _pixels(value, place: str) -> tuple[Tensor, set[str]]:
    """uint8 ``[channels, height, width]``, and what is unusual of a picture."""
    unusual: set[str] = set()
    if isinstance(value, Image.Image):
        refuse(value, place)
        grey = value.mode in ("1", "L") and not value.has_transparency_data
        value, unusual = plain(value, upright=True)
        value = np.array(value.convert("L") if grey else value)
    if not isinstance(value, Tensor | np.ndarray) or value.ndim not in (2, 3):
        raise DataError(f"{place} is a {type(value).__name__}; expected a PIL picture, an array or a tensor.")
    pixels = value if isinstance(value, Tensor) else torch.from_numpy(np.ascontiguousarray(value))
    if value.ndim == 3 and not isinstance(value, Tensor):
        pixels = pixels.movedim(-1, 0)
    pixels = (pixels if pixels.ndim == 3 else pixels[None]).detach().cpu()
    if len(pixels) > 4:
        order = "[channels, height, width]" if isinstance(value, Tensor) else "[height, width, channels]"
        raise DataError(f"{place} is {list(value.shape)}, read as {order}; expected 1 to 4 channels there.")
    if pixels.is_floating_point():
        if not (pixels.isfinite().all() and 0 <= pixels.min() and pixels.max() <= 1):
            raise DataError(
                f"{place} has values from {float(pixels.min()):.3g} to {float(pixels.max()):.3g}; expected floats in "
                "[0, 1], or uint8. Leave normalisation to the methods, such as normalise or fedrdn."
            )
        return (pixels * 255).round().to(torch.uint8), unusual
    if pixels.dtype != torch.uint8:
        raise DataError(f"{place} is {pixels.dtype}; expected uint8, or floats in [0, 1].")
    return pixels.contiguous(), unusual


def _of_one_size(parts: dict[str, list[Tensor]]) -> dict[str, Tensor]:
    """The images of each split, uint8 ``[n, channels, height, width]``; DataError unless all have one size."""
    if {len(image) for images in parts.values() for image in images} == {1, 3}:
        parts = {place: [image.expand(3, -1, -1) for image in images] for place, images in parts.items()}
    first = next(image.shape for images in parts.values() for image in images)
    for place, images in parts.items():
        for number, image in enumerate(images):
            if image.shape != first:
                raise DataError(
                    f"{place}: image {number} is {list(image.shape)} [channels, height, width], the first of all "
                    f"{list(first)}; all need one size. Give the data set a transform that resizes and converts."
                )
    empty = torch.zeros((0, *first), dtype=torch.uint8)
    return {place: torch.stack(images) if images else empty for place, images in parts.items()}


def _numbered(
    labels: dict[str, list[int]], orders: dict[str, list[Names | None]], classes: Iterable | None, sites: int
) -> tuple[dict[str, Tensor], Names, list[str]]:
    """The labels of each split, int64 ``[n]``; the classes; and a note where they could not be compared."""
    known = {order: place for place, own in orders.items() for order in own if order}
    unknown = [place for place, own in orders.items() if None in own]
    if classes is None and len(known) > 1:
        different = "; ".join(f"{place} has {', '.join(order)}" for order, place in known.items())
        raise DataError(
            f"the data sets have different classes: {different}. Give all names in one order with classes=: a label is "
            "read by its own data set's names."
        )
    if classes is None:
        highest = max(max(own, default=0) for own in labels.values())
        classes = next(iter(known), range(highest + 1))
    names = tuple(composed(str(each)) for each in classes)
    renamed = len(known) == 1 and not unknown and len(names) == len(*known) and not set(names) & set(*known)
    for order, place in known.items():
        if not renamed and (more := [each for each in order if each not in names]):
            raise DataError(f"{place} has the classes {', '.join(more)}; expected those of {', '.join(names)}.")

    def number(label: int, order: Names | None, place: str) -> int:
        if order and not 0 <= label < len(order):
            raise DataError(f"{place} has the label {label} and the {len(order)} classes {', '.join(order)}.")
        return names.index(order[label]) if order and not renamed else label

    targets = {
        place: torch.tensor([number(*each, place) for each in zip(own, orders[place], strict=True)], dtype=torch.int64)
        for place, own in labels.items()
    }
    note = f"{', '.join(unknown)}: no class names, so whether a label means the same class there could not be compared."
    return targets, names, [note] * bool(unknown and (known or sites > 1))


def _orders(data, labels: Sequence[int], columns: tuple[str, str] | None) -> list[Names | None]:
    """For each label the class names in whose order it counts, if they are known for all of a data set."""
    found = [_names_at(data, position, label, columns) for position, label in enumerate(labels)]
    if not all(found):
        return [None] * len(found)
    return [tuple(composed(str(each)) for each in names) for names in found]


def _names_at(data, position: int, label: int, columns: tuple[str, str] | None) -> Sequence | None:
    data, position = _inner(data, position)
    features = getattr(data, "features", None)
    if isinstance(features, Mapping):  # of Hugging Face
        return getattr(features.get(columns[1]), "names", None) if columns else None
    if names := _declared(data):
        return names
    for inner in getattr(data, "__dict__", {}).values():  # of a wrapper, where it hands the labels on as they are
        if hasattr(inner, "__len__") and len(inner) == len(data):
            inner, there = _inner(inner, position)
            if (names := _declared(inner)) and hasattr(inner, "targets") and int(inner.targets[there]) == label:
                return names
    return None


def _inner(data, position: int) -> tuple[Any, int]:
    """The data set below torch's ``Subset`` and ``ConcatDataset``, and the position there."""
    while type(data) in (Subset, ConcatDataset):
        if type(data) is Subset:
            data, position = data.dataset, data.indices[position]
        else:
            number = bisect_right(data.cumulative_sizes, position)
            data, position = data.datasets[number], position - (0, *data.cumulative_sizes)[number]
    return data, position


def _declared(data) -> Sequence | None:
    """The names of a data set's classes, unless it changes their numbers."""
    names = getattr(data, "classes", None)
    changed = getattr(data, "target_transform", None) is not None
    return names if isinstance(names, list | tuple) and not changed else None
