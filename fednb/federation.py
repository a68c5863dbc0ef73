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
    """Images and their targets.

    images: uint8 ``[n, channels, height, width]``, 0..255.
    targets: int64 ``[n]``, the class of each image; or uint8 ``[n, height, width]``, the class of each pixel, 255 where
        it is ignored.
    volumes: int64 ``[n]``, where images are slices: the number of each one's volume, its own within the site.
    """

    images: Tensor
    targets: Tensor
    volumes: Tensor | None = None

    def __post_init__(self):
        if self.images.dtype != torch.uint8 or self.images.ndim != 4:
            raise DataError(
                f"images are {self.images.dtype} {list(self.images.shape)}; "
                "expected uint8 [n, channels, height, width]. Convert them before making a Split."
            )
        count, _, height, width = self.images.shape
        forms = {torch.int64: (count,), torch.uint8: (count, height, width)}
        if forms.get(self.targets.dtype) != tuple(self.targets.shape):
            raise DataError(
                f"targets are {self.targets.dtype} {list(self.targets.shape)} for {count} images; expected int64 "
                f"[{count}], one class number per image, or uint8 [{count}, {height}, {width}], one per pixel."
            )
        if self.volumes is not None and (self.volumes.dtype, self.volumes.shape) != (torch.int64, (count,)):
            raise DataError(
                f"volumes are {self.volumes.dtype} {list(self.volumes.shape)} for {count} images; expected int64 "
                f"[{count}], the number of each slice's volume."
            )

    def __len__(self) -> int:
        return len(self.images)

    def select(self, indices) -> "Split":
        """The images at these positions, in this order."""
        indices = torch.as_tensor(indices, dtype=torch.int64, device=self.images.device)
        return Split(*(part if part is None else part.index_select(0, indices) for part in self.parts))

    def to(self, device) -> "Split":
        return Split(*(part if part is None else part.to(device) for part in self.parts))

    @property
    def parts(self) -> tuple[Tensor | None, ...]:
        """Images, targets and volumes."""
        return self.images, self.targets, self.volumes

    def __reduce__(self):
        """Goes to another process as plain arrays: torch would lend it a file descriptor for each tensor."""
        return _of_arrays, tuple(part if part is None else part.cpu().numpy() for part in self.parts)


def _of_arrays(*parts) -> Split:
    return Split(*(part if part is None else torch.from_numpy(part) for part in parts))


@dataclass(frozen=True)
class Site:
    """One institution's data; a client is a site that takes part in a run.

    spare: images that a loader left out and was asked to hand over all the same; no round trains on them.
    """

    name: str
    train: Split
    validation: Split
    test: Split
    spare: Split | None = None

    def to(self, device) -> "Site":
        moved = (part if part is None else part.to(device) for part in self.parts)
        return Site(self.name, *moved)

    @property
    def parts(self) -> tuple[Split | None, ...]:
        """Training, validation, test and spare images."""
        return self.train, self.validation, self.test, self.spare


@dataclass(frozen=True)
class Outline:
    """What server and clients agree on before the first message: a federation without its images.

    image_shape: (channels, height, width) of every image.
    """

    name: str
    classes: tuple[str, ...]
    image_shape: tuple[int, int, int]
    task: str


@dataclass(frozen=True)
class Federation:
    """All sites, the class names, notes that a reader of results must see, and the task.

    task: "classification", a class for each image, or "segmentation", one for each pixel; the first class of a
    segmentation is the background. What a task means for training is in ``fednb.methods.task``.

    Raises DataError when a site or class has a name that none may have (``refuse_names``), when a site has no training
    images, when image shapes differ, when targets are not the task's, when a label is out of range, or when all pixels
    of an image are ignored: nothing could be learned or tested there. A class that a site lacks in training is allowed
    and becomes a line of ``notes``; of more than four such sites one line gives the number.
    """

    name: str
    sites: tuple[Site, ...]
    classes: tuple[str, ...]
    notes: tuple[str, ...] = ()
    task: str = "classification"

    def __post_init__(self):
        object.__setattr__(self, "sites", tuple(self.sites))
        object.__setattr__(self, "classes", tuple(self.classes))
        if self.task not in UNITS:
            raise DataError(f'federation {self.name} has the task "{self.task}"; {nearest(self.task, UNITS)}')
        if not self.sites:
            raise DataError(f"federation {self.name} has no sites; expected at least one.")
        names = [site.name for site in self.sites]
        if len(set(names)) != len(names):
            raise DataError(f"federation {self.name} has two sites of one name: {', '.join(names)}.")
        refuse_names(self.name, names, self.classes)
        lacking = []
        for site in self.sites:
            self._check(site)
            absent = [name for number, name in enumerate(self.classes) if not (site.train.targets == number).any()]
            if absent:
                named = ", ".join(absent[:10]) + f" and {len(absent) - 10} more classes" * (len(absent) > 10)
                lacking.append(f"{site.name} has no training {UNITS[self.task]} of {named}.")
        if len(lacking) > 4:
            lacking = [f"{len(lacking)} of {len(self.sites)} sites have no training {UNITS[self.task]} of some class."]
        object.__setattr__(self, "notes", tuple(dict.fromkeys(map(printable, (*self.notes, *lacking)))))

    @classmethod
    def from_datasets(cls, sites: dict, name: str = "mine", classes=None, columns=None) -> "Federation":
        """A federation of other libraries' data sets, for ``Study(recipes, federation=...)``.

        Args:
            sites: ``{"site": (train, validation, test), ...}``, data sets as torchvision's, Hugging Face's and
                ``flwr-datasets``' partitions are: pairs (image, class number), or dictionaries with both. None is one
                without images. What an image and a label may be is in ``fednb/from_datasets.py``.
            classes: their names; those that the data sets know, else numbers, unless given. A label is read by its own
                data set's class names where they can be found (``classes`` or ``features``, also inside torch's
                ``Subset`` and ``ConcatDataset``, and a wrapper that hands its labels on); else ``notes`` says so.
            columns: of dictionaries the names of image and label, such as ``("image", "label")``.

        All images are read once and kept as uint8. Raises DataError, naming site and image, for what cannot be read,
        images of different sizes, values outside [0, 1], labels that are no class, and a site without training images.
        Masks are read from folders, or given as the targets of ``Split`` to ``Federation(..., task="segmentation")``.
        """
        read, classes, notes = from_datasets.read(sites, name, SPLITS, classes, columns)
        made = tuple(Site(site, *(Split(*part) for part in parts)) for site, parts in read)
        return cls(name, made, classes, (*notes, *twice(made)))

    def _check(self, site: Site):
        if len(site.train) == 0:
            raise DataError(
                f"site {site.name} of {self.name} has no training images; every site needs at least one. "
                "Add images or leave the site out."
            )
        for split, part in zip((*SPLITS, "spare"), site.parts, strict=True):
            if part is None:
                continue
            if tuple(part.images.shape[1:]) != self.image_shape:
                raise DataError(
                    f"{self.name}: images of {site.name} / {split} are {list(part.images.shape[1:])}, those of "
                    f"{self.sites[0].name} {list(self.image_shape)}; all sites need one size."
                )
            dense = part.targets.ndim > 1
            if dense != (self.task == "segmentation"):
                raise DataError(
                    f"{self.name}: targets of {site.name} / {split} are one class number per "
                    f"{'pixel' if dense else 'image'}, and the task is {self.task}, which has one per "
                    f"{UNITS[self.task]}. Give the federation the task of its targets."
                )
            self._check_labels(f"{self.name}: labels of {site.name} / {split}", part.targets)

    def _check_labels(self, place: str, targets: Tensor):
        expected = f"expected 0..{len(self.classes) - 1} ({len(self.classes)} classes)"
        if self.task == "segmentation":
            known = (targets != IGNORED).flatten(1).any(1)
            if not known.all():
                number = int(known.logical_not().nonzero()[0])
                raise DataError(
                    f"{place} are {IGNORED} (ignored) in every pixel of image {number}. Leave the image out, or say of "
                    "some pixels what they are."
                )
            targets, expected = targets[targets != IGNORED], f"{expected}, or {IGNORED} for an ignored pixel"
        if len(targets) and not 0 <= int(targets.min()) <= int(targets.max()) < len(self.classes):
            raise DataError(f"{place} run from {int(targets.min())} to {int(targets.max())}; {expected}.")

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(channels, height, width) of every image."""
        _, channels, height, width = self.sites[0].train.images.shape
        return channels, height, width

    @property
    def outline(self) -> Outline:
        """All of it but sites and images."""
        return Outline(self.name, self.classes, self.image_shape, self.task)

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits over site names, class names, pixels, labels and, where there are any, volumes, in order."""
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
        sites = {site.name: site for site in self.sites}
        (found,) = chosen_sites(self.name, sites, name)
        return sites[found]

    def only(self, name: str) -> "Federation":
        """The same federation with this site alone; DataError if there is none of this name."""
        return replace(self, sites=(self.site(name),))

    def counts(self):
        """A data frame, sites by splits, of image counts."""
        import pandas

        rows = {site.name: {split: len(getattr(site, split)) for split in SPLITS} for site in self.sites}
        return pandas.DataFrame.from_dict(rows, orient="index")

    def to(self, device) -> "Federation":
        """The same federation with its images resident on a device; the fingerprint is carried over."""
        moved = replace(self, sites=tuple(site.to(device) for site in self.sites))
        if "fingerprint" in self.__dict__:
            moved.__dict__["fingerprint"] = self.fingerprint
        return moved


def refuse_names(federation: str, sites: Iterable[str], classes: Iterable[str]) -> None:
    """DataError for a name that is not UTF-8, and for a site without one or called as tables call the mean of all."""
    named = [("federation", federation), *(("site", name) for name in sites), *(("class", name) for name in classes)]
    for kind, name in named:
        if name != printable(name) or (kind == "site" and name in ("", AVERAGE)):
            raise DataError(
                f'{federation} has a {kind} "{name}"; expected names in UTF-8, and of sites other ones than "" and '
                f'"{AVERAGE}", which tables call the mean of all. Rename it.'
            )


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
    """A federation of noise, to count bytes or seconds on: ``client 1``, ... with the same ``images`` in each split,
    the spare one too."""
    pixels = torch.randint(
        0, 256, (images, *image_shape), generator=torch.Generator().manual_seed(0), dtype=torch.uint8
    )
    split = Split(pixels, torch.arange(images) % classes)
    sites = tuple(Site(f"client {number + 1}", split, split, split, split) for number in range(clients))
    return Federation("made", sites, tuple(map(str, range(classes))))
