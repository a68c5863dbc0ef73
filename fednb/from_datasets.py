"""Reads other libraries' data sets as tensors, by their form alone: torchvision's, Hugging Face's, ``flwr-datasets``'.

A data set has a length and gives, for each position, a pair (image, label) or a dictionary that has them. An image is
a PIL picture, an array ``[height, width]`` or ``[height, width, channels]`` in uint8, or a tensor ``[height, width]``
or ``[channels, height, width]`` in uint8 or as floats in [0, 1], which become uint8. Channels are 1, 3 or
4; other numbers of them are taken where no other axis is so long. A label is a class number, also in an array of one.
"""

from collections.abc import Mapping, Sequence
from numbers import Integral

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from fednb.errors import DataError

Columns = tuple[str, str]
CHANNELS = (1, 3, 4)  # that an image may have where another axis could be meant


def read(
    sites: Mapping, name: str, splits: Sequence[str], classes=None, columns: Columns | None = None
) -> tuple[list[tuple[str, list[tuple[Tensor, Tensor]]]], tuple[str, ...]]:
    """Each site's name with images, uint8 ``[n, channels, height, width]``, and labels, int64 ``[n]``, of its splits
    "train", "validation" and "test"; and the names of the classes. All as ``Federation.from_datasets`` says."""
    if not isinstance(sites, Mapping):
        raise DataError(f'sites are a {type(sites).__name__}; expected {{"site": (train, validation, test), ...}}.')
    made, named, shape = [], {}, None
    for site, parts in sites.items():
        if not isinstance(parts, tuple | list) or len(parts) != len(splits):
            raise DataError(
                f"site {site} of {name} is a {type(parts).__name__}; expected three data sets (train, validation, "
                "test). None stands for one without images."
            )
        images, targets = {}, {}
        for split, given in zip(splits, parts, strict=True):
            place = f"{name}: {site} / {split}"
            images[split], targets[split] = _read(given, columns, place)
            if words := _class_names(given, columns):
                named.setdefault(tuple(words), place)
            for number, image in enumerate(images[split]):
                shape = shape or image.shape
                if image.shape != shape:
                    raise DataError(
                        f"{place}: image {number} is {list(image.shape)} [channels, height, width], the first of all "
                        f"{list(shape)}; all need one size. Give the data set a transform that resizes and converts."
                    )
        if not images["train"]:
            raise DataError(f"site {site} of {name} has no training images; add some or leave the site out.")
        made.append((str(site), images, targets))
    if not made:
        raise DataError(f"{name} has no sites; expected at least one.")
    if classes is None and len(named) > 1:
        told = "; ".join(f"{place} has {', '.join(words)}" for words, place in named.items())
        raise DataError(f"the sites of {name} name other classes: {told}. Give classes= to say which number is which.")
    if classes is None:
        highest = max(max(labels, default=0) for _, _, targets in made for labels in targets.values())
        classes = next(iter(named), None) or tuple(map(str, range(highest + 1)))
    empty = torch.zeros((0, *shape), dtype=torch.uint8)

    def tensors(images: list[Tensor], labels: list[int]) -> tuple[Tensor, Tensor]:
        return torch.stack(images) if images else empty, torch.tensor(labels, dtype=torch.int64)

    read = [(site, [tensors(images[split], targets[split]) for split in splits]) for site, images, targets in made]
    return read, tuple(map(str, classes))


def _read(given, columns: Columns | None, place: str) -> tuple[list[Tensor], list[int]]:
    """The images, uint8 ``[channels, height, width]``, and the labels of one data set."""
    if given is None:
        return [], []
    if not (hasattr(given, "__len__") and hasattr(given, "__getitem__")):
        raise DataError(f"{place} is a {type(given).__name__} without length or positions; make it a data set of such.")
    images, labels = [], []
    for number in range(len(given)):
        try:
            example = given[number]
        except Exception as error:  # it is anybody's data set
            raise DataError(f"{place}: image {number} cannot be read: {type(error).__name__}: {error}.") from error
        image, label = _pair(example, columns, f"{place}: example {number}")
        images.append(_pixels(image, f"{place}: image {number}"))
        labels.append(_label(label, f"{place}: label {number}"))
    return images, labels


def _pair(example, columns: Columns | None, place: str) -> tuple:
    if isinstance(example, Mapping):
        image, label = columns or _columns(example, place)
        for column in (image, label):
            if column not in example:
                raise DataError(f'{place} has no column "{column}"; it has {", ".join(map(str, example))}.')
        return example[image], example[label]
    if not isinstance(example, tuple | list) or len(example) != 2:
        raise DataError(f"{place} is a {type(example).__name__}; expected (image, label), or a dictionary with both.")
    return tuple(example)


def _columns(example: Mapping, place: str) -> Columns:
    """The one column with an image and the one with a whole number."""
    images = [name for name, value in example.items() if _is_image(value)]
    labels = [name for name, value in example.items() if _is_number(value)]
    if len(images) != 1 or len(labels) != 1:
        raise DataError(
            f"{place} has images in {', '.join(images) or 'no column'} and whole numbers in "
            f'{", ".join(labels) or "no column"}; expected one of each. Say which with columns=("image", "label").'
        )
    return images[0], labels[0]


def _is_image(value) -> bool:
    return isinstance(value, Image.Image) or (isinstance(value, Tensor | np.ndarray) and value.ndim in (2, 3))


def _is_number(value) -> bool:
    if isinstance(value, np.ndarray):
        return value.shape in ((), (1,)) and value.dtype.kind in "iu"
    if isinstance(value, Tensor):
        return value.shape in ((), (1,)) and not value.is_floating_point() and value.dtype != torch.bool
    return isinstance(value, Integral) and not isinstance(value, bool)


def _label(value, place: str) -> int:
    if not _is_number(value):
        raise DataError(f"{place} is {value!r:.60}; expected a class number such as 0.")
    return int(value if isinstance(value, Integral) else value.item())


def _pixels(value, place: str) -> Tensor:
    """uint8 ``[channels, height, width]``."""
    if not _is_image(value):
        raise DataError(f"{place} is a {type(value).__name__}; expected a PIL picture, an array or a tensor.")
    if isinstance(value, Image.Image):
        if value.mode[0] in "IF":
            raise DataError(f"{place} has mode {value.mode}, more than 8 bits a pixel; convert it to L or RGB.")
        value = np.array(value if value.mode in ("L", "RGB") else value.convert("L" if value.mode == "1" else "RGB"))
    if isinstance(value, Tensor | np.ndarray) and value.ndim == 3:
        _refuse_other_axes(value, place)
    if isinstance(value, np.ndarray):
        value = torch.from_numpy(np.ascontiguousarray(value))
        value = value.movedim(-1, 0) if value.ndim == 3 else value
    pixels = (value if value.ndim == 3 else value[None]).detach().cpu()
    if pixels.is_floating_point():
        if not (pixels.isfinite().all() and 0 <= pixels.min() and pixels.max() <= 1):
            raise DataError(
                f"{place} has values from {float(pixels.min()):.3g} to {float(pixels.max()):.3g}; expected floats in "
                "[0, 1], or uint8. Leave normalisation to the methods, such as normalise or fedrdn."
            )
        return (pixels * 255).round().to(torch.uint8)
    if pixels.dtype != torch.uint8:
        raise DataError(f"{place} is {pixels.dtype}; expected uint8, or floats in [0, 1].")
    return pixels.contiguous()


def _refuse_other_axes(value: Tensor | np.ndarray, place: str) -> None:
    """DataError where the axis of the channels is as long as none, and another is."""
    tensor = isinstance(value, Tensor)
    own, shape = 0 if tensor else 2, list(value.shape)
    other = next((axis for axis in (2 - own, 1) if shape[axis] in CHANNELS), own)
    if shape[own] not in CHANNELS and other != own:
        kind, order = ("a tensor", "[channels, height, width]") if tensor else ("an array", "[height, width, channels]")
        raise DataError(
            f"{place} is {kind} {shape}, read as {order}: axis {own} would be {shape[own]} channels, and axis {other} "
            f"has {shape[other]}. Move it there, such as by {'movedim' if tensor else 'numpy.moveaxis'}."
        )


def _class_names(given, columns: Columns | None) -> list[str] | None:
    """The names of the classes, where the data set knows them."""
    features = getattr(given, "features", None)
    if isinstance(features, Mapping):  # of Hugging Face
        named = {name: each.names for name, each in features.items() if getattr(each, "names", None)}
        chosen = named if columns is None else {columns[1]: named.get(columns[1])}
        return next(iter(chosen.values())) if len(chosen) == 1 else None
    if hasattr(given, "dataset") and not hasattr(given, "classes"):  # a torch Subset
        return _class_names(given.dataset, columns)
    names = getattr(given, "classes", None)
    return list(map(str, names)) if isinstance(names, list | tuple) else None
