"""The data that clients hold: sites with training, validation and test images, as tensors."""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from fednb import from_datasets
from fednb.errors import DataError, composed, nearest, printable

SPLITS = ("train", "validation", "test")
UNITS = {"classification": "image", "segmentation": "pixel"}  # of a task: what has a class
AVERAGE = "average"  # what tables call the mean of all sites
IGNORED = 255  # the target of a pixel of which nothing is known


@dataclass(frozen=True)
class Split:
    """Images, uint8 ``[n, channels, height, width]``, and their targets: int64 ``[n]``, the class of each image, or
    uint8 ``[n, height, width]``, the class of each pixel, 255 where it is ignored.

    volumes: int64 ``[n]``, where images are slices: the number of each one's volume within the site."""

    images: Tensor
    targets: Tensor
    volumes: Tensor | None = None

    def __post_init__(self):
        shape = tuple(self.images.shape)
        forms = {torch.int64: shape[:1], torch.uint8: shape[:1] + shape[2:]}
        of_images = self.images.dtype == torch.uint8 and len(shape) == 4
        if not of_images or forms.get(self.targets.dtype) != tuple(self.targets.shape):
            found = f"images are {self.images.dtype} {[*shape]}, targets {self.targets.dtype} {[*self.targets.shape]}"
            raise DataError(
                f"{found}; expected uint8 [n, channels, height, width], and int64 [n], one class number per image, or "
                "uint8 [n, height, width], one per pixel. Convert them."
            )

    def __len__(self) -> int:
        return len(self.images)

    def select(self, indices) -> "Split":
        """Those at these positions, in this order."""
        indices = torch.as_tensor(indices, dtype=torch.int64, device=self.images.device)
        return Split(*(part if part is None else part.index_select(0, indices) for part in self.parts))

    def to(self, device) -> "Split":
        return Split(*(part if part is None else part.to(device) for part in self.parts))

    @property
    def parts(self) -> tuple[Tensor | None, ...]:
        return self.images, self.targets, self.volumes

    def __reduce__(self):
        """Goes to another process as plain arrays: torch would lend it a file descriptor for each tensor."""
        return _of_arrays, tuple(part if part is None else part.cpu().numpy() for part in self.parts)


def _of_arrays(*parts) -> Split:
    return Split(*(part if part is None else torch.from_numpy(part) for part in parts))


@dataclass(frozen=True)
class Site:
    """One institution's data. spare: images on which none trains."""

    name: str
    train: Split
    validation: Split
    test: Split
    spare: Split | None = None

    def to(self, device) -> "Site":
        return Site(self.name, *(part if part is None else part.to(device) for part in self.parts))

    @property
    def parts(self) -> tuple[Split | None, ...]:
        return self.train, self.validation, self.test, self.spare


@dataclass(frozen=True)
class Outline:
    """A federation without its images, on which server and clients agree before the first message."""

    name: str
    classes: tuple[str, ...]
    image_shape: tuple[int, int, int]
    task: str


@dataclass(frozen=True)
class Federation:
    """All sites, the class names, notes that a reader of results must see, and the task.

    task: "classification", a class for each image, or "segmentation", one for each pixel; the first class of a
    segmentation is the background.

    DataError for a name that ``refuse_names`` refuses, a site without training images, images of different shapes,
    targets that are not the task's, a label out of range, and an image of which all pixels are ignored. A class that a
    site lacks in training is a line of ``notes``; of more than four such sites one line gives the number."""

    name: str
    sites: tuple[Site, ...]
    classes: tuple[str, ...]
    notes: tuple[str, ...] = ()
    task: str = "classification"

    def __post_init__(self):
        object.__setattr__(self, "sites", tuple(self.sites))
        object.__setattr__(self, "classes", tuple(self.classes))
        names = [site.name for site in self.sites]
        if self.task not in UNITS:
            raise DataError(f'federation {self.name} has the task "{self.task}"; {nearest(self.task, UNITS)}')
        if not names or len({*names}) < len(names):
            raise DataError(f"federation {self.name} has the sites {names}; expected one at least, of different names.")
        refuse_names(self.name, names, self.classes)
        lacking = []
        for site in self.sites:
            for split, part in zip((*SPLITS, "spare"), site.parts, strict=True):
                if part is not None:
                    self._check(f"{site.name} / {split}", part)
            if not len(site.train):
                raise DataError(f"site {site.name} of {self.name} has no training images. Add some or leave it out.")
            absent = [name for number, name in enumerate(self.classes) if not (site.train.targets == number).any()]
            named = ", ".join(absent[:10]) + f" and {len(absent) - 10} more classes" * (len(absent) > 10)
            lacking += [f"{site.name} has no training {UNITS[self.task]} of {named}."] if absent else []
        if len(lacking) > 4:
            lacking = [f"{len(lacking)} of {len(self.sites)} sites have no training {UNITS[self.task]} of some class."]
        object.__setattr__(self, "notes", tuple(dict.fromkeys(map(printable, (*self.notes, *lacking)))))

    @classmethod
    def from_datasets(cls, sites: dict, name: str = "mine", classes=None, columns=None) -> "Federation":
        """A federation of other libraries' data sets, for ``Study(recipes, federation=...)``; images are kept as uint8.

        Args:
            sites: ``{"site": (train, validation, test), ...}``, data sets as torchvision's, Hugging Face's and
                ``flwr-datasets``' partitions are (see ``fednb/from_datasets.py``); None is one without images.
            classes: their names; those that the data sets know, else numbers, unless given. A label is read by its own
                data set's class names (``classes`` or ``features``, also inside torch's ``Subset`` and
                ``ConcatDataset``); where there are none ``notes`` says so.
            columns: of dictionaries the names of image and label, such as ``("image", "label")``."""
        read, classes, notes = from_datasets.read(sites, name, SPLITS, classes, columns)
        made = tuple(Site(site, *(Split(*part) for part in parts)) for site, parts in read)
        return cls(name, made, classes, (*notes, *twice(made)))

    def _check(self, place: str, split: Split):
        shape, targets, dense = tuple(split.images.shape[1:]), split.targets, split.targets.ndim > 1
        if shape != self.image_shape or dense != (self.task == "segmentation"):
            found = f"images of {place} are {list(shape)} with a class per {'pixel' if dense else 'image'}"
            expected = f"{list(self.image_shape)} as those of {self.sites[0].name}, and a class per {UNITS[self.task]}"
            raise DataError(f"{self.name}: {found}; expected {expected}, as the task is {self.task}.")
        if dense:
            known = targets != IGNORED
            if not (seen := known.flatten(1).any(1)).all():
                image = f"image {seen.tolist().index(False)}. Leave the image out, or say of some pixels what they are"
                raise DataError(f"{self.name}: labels of {place} are {IGNORED} (ignored) in every pixel of {image}.")
            targets = targets[known]
        if len(targets) and not 0 <= int(targets.min()) <= int(targets.max()) < len(self.classes):
            expected = f"0..{len(self.classes) - 1} ({len(self.classes)} classes){f', or {IGNORED} (ignored)' * dense}"
            found = f"labels of {place} run from {int(targets.min())} to {int(targets.max())}"
            raise DataError(f"{self.name}: {found}; expected {expected}.")

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(channels, height, width) of every image."""
        _, channels, height, width = self.sites[0].train.images.shape
        return channels, height, width

    @property
    def outline(self) -> Outline:
        return Outline(self.name, self.classes, self.image_shape, self.task)

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits over names of sites and classes, pixels, labels and volumes, in order."""
        digest = hashlib.sha256("\n".join((*(site.name for site in self.sites), *self.classes)).encode())
        for site in self.sites:
            for split in (split for split in site.parts if split is not None):
                if not len(split):
                    digest.update(b"no images")  # else these validation images and those test images were one
                for part in (part for part in split.parts if part is not None):
                    digest.update(part.cpu().contiguous().numpy().data)
        return digest.hexdigest()[:16]

    def site(self, name: str) -> Site:
        """The site of this name; DataError if there is none."""
        (found,) = chosen_sites(self.name, [site.name for site in self.sites], name)
        return next(site for site in self.sites if site.name == found)

    def only(self, name: str) -> "Federation":
        """The same federation with this site alone; DataError if there is none of this name."""
        return replace(self, sites=(self.site(name),))

    def counts(self):
        """A data frame, sites by splits, of image counts."""
        import pandas

        rows = [[len(getattr(site, split)) for split in SPLITS] for site in self.sites]
        return pandas.DataFrame(rows, [site.name for site in self.sites], SPLITS)

    def to(self, device) -> "Federation":
        """The same federation with its images on a device."""
        return replace(self, sites=tuple(site.to(device) for site in self.sites))


def refuse_names(federation: str, sites: Iterable[str], classes: Iterable[str]) -> None:
    """DataError for a name that is not UTF-8, and for a site without one or called ``AVERAGE``."""
    named = [("federation", federation), *(("site", name) for name in sites), *(("class", name) for name in classes)]
    for kind, name in named:
        if name != printable(name) or (kind == "site" and name in ("", AVERAGE)):
            others = f'of sites other ones than "" and "{AVERAGE}", which tables call the mean of all'
            raise DataError(f'{federation} has a {kind} "{name}"; expected names in UTF-8, and {others}. Rename it.')


def chosen_sites(federation: str, names: Collection[str], site: str | None) -> list[str]:
    """The one of these names that is asked for, or all of them for None; DataError if there is none of this name."""
    chosen = [name for name in names if site is None or composed(name) == composed(site)]
    if not chosen:
        raise DataError(f'federation {federation} has no site "{site}"; {nearest(site, names)}')
    return chosen


def twice(sites: Iterable[Site]) -> list[str]:
    """A note, or none, on images that are in two splits, of one site or two: they count twice."""
    places: dict[bytes, str] = {}
    again = []
    for site in sites:
        for split in SPLITS:
            here = f"{site.name} / {split}"
            for image in getattr(site, split).images.numpy():
                there = places.setdefault(hashlib.blake2b(image.tobytes(), digest_size=16).digest(), here)
                again += [f"{there} and {here}"] if there != here else []
    return [f"{len(again)} images are there twice, the first in {again[0]}."] if again else []


def made(clients: int, images: int, image_shape: tuple[int, int, int], classes: int = 10) -> Federation:
    """A federation of noise, to count bytes or seconds on: ``client 1``, ..., each with the same images."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (images, *image_shape), generator=generator, dtype=torch.uint8)
    split = Split(pixels, torch.arange(images) % classes)
    sites = tuple(Site(f"client {number + 1}", split, split, split, split) for number in range(clients))
    return Federation("made", sites, tuple(map(str, range(classes))))
