"""Reads other libraries' data sets as tensors, by their form alone: torchvision's, Hugging Face's, ``flwr-datasets``'.

A data set has a length and gives, for each position, a pair (image, label), or a dictionary in which ``columns`` name
both. An image is a PIL picture, read as a file in one's own folders is; an array or a tensor as ``FORMS`` says, or
without channels; floats become uint8. Where some images are grey and others have three channels, grey ones get three.
A label is a class number, also in an array of one.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import ConcatDataset, Subset

from fednb.errors import DataError, composed
from fednb.pixels import notes, plain, refuse

Names = tuple[str, ...]
Example = tuple[Tensor, int, Names | None]  # an image, its label, and the class names in whose order that counts
Parts = list[tuple[Tensor, Tensor]]
FORMS = (
    "a PIL picture, an array [height, width, channels] or a tensor [channels, height, width], of 1 to 4 channels, in "
    "uint8 or as floats in [0, 1]. Leave normalisation to the methods, such as normalise or fedrdn."
)


def read(
    sites: Mapping, name: str, splits: Sequence[str], classes: Iterable | None, columns: tuple[str, str] | None
) -> tuple[list[tuple[str, Parts]], Names, list[str]]:
    """Each site's name with images, uint8 ``[n, channels, height, width]``, and labels, int64 ``[n]``, of its splits;
    the names of the classes; and notes. All as ``Federation.from_datasets`` says."""
    given = list(sites.values()) if isinstance(sites, Mapping) else [None]
    if not given or not all(isinstance(each, tuple | list) and len(each) == len(splits) for each in given):
        expected = '{"site": (train, validation, test), ...}, of data sets, or None for one without images'
        raise DataError(f"{name} is made of {sites!r:.60}; expected {expected}.")
    held, said = {}, []
    for site, parts in sites.items():
        for split, data in zip(splits, parts, strict=True):
            place = f"{site} / {split}"
            held[place], unusual = _examples(data, columns, place)
            said += notes([f"{place} / {number}" for number in range(len(unusual))], unusual)
    images, (labels, names, more) = _of_one_size(held), _numbered(held, classes, len(sites))
    tensors = {place: (images[place], labels[place]) for place in held}
    read = [(composed(str(site)), [tensors[f"{site} / {split}"] for split in splits]) for site in sites]
    return read, names, [*said, *more]


def _examples(data, columns: tuple[str, str] | None, place: str) -> tuple[list[Example], list[set[str]]]:
    """All of a data set, with names if they are known for all; what is unusual of each image."""
    held, unusual = [], []
    for number in range(0 if data is None else len(data)):
        example = data[number]
        if isinstance(example, Mapping) and columns:
            example = [example.get(column) for column in columns]
        if not isinstance(example, tuple | list) or len(example) != 2:
            expected = 'expected (image, label), or a dictionary and columns=("image", "label") with its names'
            raise DataError(f"{place}: example {number} is no pair ({example!r:.60}); {expected}.")
        pixels, kinds = _pixels(example[0], f"{place}: image {number}")
        label = _label(example[1], f"{place}: label {number}")
        held.append((pixels, label, _names(data, number, columns)))
        unusual.append(kinds)
    known = all(names for _, _, names in held)
    return [(pixels, label, names if known else None) for pixels, label, names in held], unusual


def _label(value, place: str) -> int:
    if isinstance(value, Tensor | np.ndarray) and tuple(value.shape) in ((), (1,)):
        value = value.item()
    if not isinstance(value, Integral) or isinstance(value, bool):
        masks = 'Masks are read from folders, or given as targets of Split to Federation(..., task="segmentation")'
        raise DataError(f"{place} is {value!r:.60}; expected a class number such as 0. {masks}.")
    return int(value)


def _pixels(value, place: str) -> tuple[Tensor, set[str]]:
    """uint8 ``[channels, height, width]``, and what is unusual of a picture."""
    unusual: set[str] = set()
    if isinstance(value, Image.Image):
        refuse(value, place)
        grey = value.mode in ("1", "L") and not value.has_transparency_data
        value, unusual = plain(value, upright=True)
        value = np.array(value.convert("L") if grey else value)
    if isinstance(value, np.ndarray):
        value = torch.from_numpy(np.ascontiguousarray(value))
        value = value.movedim(-1, 0) if value.ndim == 3 else value
    if not isinstance(value, Tensor):
        raise DataError(f"{place} is a {type(value).__name__}; expected {FORMS}")
    pixels = (value[None] if value.ndim == 2 else value).detach().cpu()
    in_range = pixels.is_floating_point() and pixels.numel() and bool(((pixels >= 0) & (pixels <= 1)).all())
    if pixels.ndim != 3 or len(pixels) > 4 or not (in_range or pixels.dtype == torch.uint8):
        values = f"with values from {pixels.min():.3g} to {pixels.max():.3g}" if pixels.numel() else ""
        raise DataError(f"{place} is {pixels.dtype} {list(pixels.shape)} {values}; expected {FORMS}")
    return (pixels * 255).round().to(torch.uint8) if in_range else pixels.contiguous(), unusual


def _of_one_size(held: dict[str, list[Example]]) -> dict[str, Tensor]:
    """The images of each split, uint8 ``[n, channels, height, width]``."""
    images = {place: [pixels for pixels, _, _ in own] for place, own in held.items()}
    if {len(image) for own in images.values() for image in own} == {1, 3}:
        images = {place: [image.expand(3, -1, -1) for image in own] for place, own in images.items()}
    shape = next((image.shape for own in images.values() for image in own), (3, 1, 1))
    for place, own in images.items():
        for number, image in enumerate(own):
            if image.shape != shape:
                found = f"image {number} is {[*image.shape]} [channels, height, width], the first of all {[*shape]}"
                raise DataError(f"{place}: {found}; all need one size. Give the data set a transform that resizes.")
    empty = torch.zeros((0, *shape), dtype=torch.uint8)
    return {place: torch.stack(own) if own else empty for place, own in images.items()}


def _numbered(
    held: dict[str, list[Example]], classes: Iterable | None, sites: int
) -> tuple[dict[str, Tensor], Names, list[str]]:
    """The labels of each split, int64 ``[n]``; the classes; and a note where they could not be compared."""
    known = {names: place for place, own in held.items() for _, _, names in own if names}
    if classes is None and len(known) > 1:
        different = "; ".join(f"{place} has {', '.join(names)}" for names, place in known.items())
        advice = "Give all names in one order with classes="
        raise DataError(f"the data sets have different classes: {different}. {advice}.")
    numbers = range(1 + max((label for own in held.values() for _, label, _ in own), default=0))
    names = tuple(composed(str(each)) for each in (next(iter(known), numbers) if classes is None else classes))
    for own, place in known.items():
        if more := [each for each in own if each not in names]:
            raise DataError(f"{place} has the classes {', '.join(more)}; expected those of {', '.join(names)}.")
    targets = {place: [] for place in held}
    for place, examples in held.items():
        for _, label, own in examples:
            if own and not 0 <= label < len(own):
                raise DataError(f"{place} has the label {label} and the {len(own)} classes {', '.join(own)}.")
            targets[place].append(names.index(own[label]) if own else label)
    unknown = [place for place, own in held.items() if any(names is None for _, _, names in own)]
    note = f"{', '.join(unknown)}: no class names, so whether a label means the same class there could not be compared."
    tensors = {place: torch.tensor(own, dtype=torch.int64) for place, own in targets.items()}
    return tensors, names, [note] * bool(unknown and (known or sites > 1))


def _names(data, position: int, columns: tuple[str, str] | None) -> Names | None:
    """The class names in whose order the label at a position counts."""
    while type(data) in (Subset, ConcatDataset):
        if type(data) is Subset:
            data, position = data.dataset, data.indices[position]
        else:
            number = bisect_right(data.cumulative_sizes, position)
            data, position = data.datasets[number], position - (0, *data.cumulative_sizes)[number]
    names, features = getattr(data, "classes", None), getattr(data, "features", None)
    if isinstance(features, Mapping):  # of Hugging Face
        names = getattr(features.get(columns[1]), "names", None) if columns else None
    if not isinstance(names, list | tuple) or getattr(data, "target_transform", None) is not None:
        return None
    return tuple(composed(str(each)) for each in names)
