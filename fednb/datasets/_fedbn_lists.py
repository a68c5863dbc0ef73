"""Images in class folders that FedBN's lists cut: a train and a test list for each domain."""

import itertools
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from fednb.datasets import _class_folders as class_folders
from fednb.datasets import _files as tables
from fednb.datasets import _images as images
from fednb.datasets._partition import stratified
from fednb.datasets._published import Count, Needs, Published, damage
from fednb.errors import DataError, RecipeError, nearest
from fednb.federation import Federation, Site, Split, chosen_sites

SIDES = ("train", "test")  # of FedBN's lists
Parts = dict[str, list[str]]  # train, validation, test and perhaps spare: paths such as amazon/mug/frame_0001.jpg


@dataclass(frozen=True)
class Lists(Published):
    """One data set: images at ``folder``/<domain>/<class>/<file>, and their lists.

    domains: the rows of FedBN's train and test list of each. classes: in FedBN's numbering. splits: their names; the
    last needs no lists. sizes: by domain, split and the length of a train list, how many of its first images are for
    training and of its last for validation. whole: whether all images of a domain are read, and what lies beside them
    is told; else those that a split uses.
    """

    name: str
    folder: str
    domains: Mapping[str, tuple[int, int]]
    classes: tuple[str, ...]
    splits: tuple[str, ...]
    sizes: Callable[[str, str, int], tuple[int, int]]
    needs: Needs
    whole: bool = False

    def federation(
        self,
        root: Path,
        split: str,
        size: int,
        drop_duplicates: bool,
        site: str | None,
        train_images: int | None = None,
        spare: bool = False,
    ) -> Federation:
        """The options are those of ``office_caltech10.load``."""
        images.check_size(size)
        here = chosen_sites(self.name, self.domains, site)
        self.needs.require(self.missing(root, split=split, domains=here))
        sites, notes = [], []
        for domain in here:
            parts = self._parts(root, domain, split, train_images)
            if not spare:
                del parts["spare"]
            made, said = self._site(root, domain, parts, size, drop_duplicates)
            sites.append(made)
            notes += [*said, *([] if split == self.splits[-1] else self._lacking(root, domain))]
            notes += self._unused(root, domain)
        return Federation(self.name, sites, self.classes, tuple(notes))

    def missing(
        self, root: Path, *, split: str = "fedbn", domains: Iterable[str] | None = None, **options
    ) -> str | None:
        """One sentence when a domain's or a class's folder, or a list that ``split`` needs, is not there; RecipeError
        for an unknown split."""
        if split not in self.splits:
            raise RecipeError(f'{self.name} has no split "{split}"; {nearest(str(split), self.splits)}')
        domains = domains or self.domains
        if absent := class_folders.missing([root / self.folder / domain for domain in domains], self.classes):
            return absent
        for domain, part in itertools.product(domains, SIDES) if split != self.splits[-1] else ():
            if not self._list_file(root, domain, part):
                places = ", ".join(str(place) for place in self._list_places(root, domain, part))
                return f'The {part} list of {domain} is at none of {places}; split="stratified" needs no lists.'
        return None

    def told(self, root: Path) -> list[str]:
        """How much of each domain is on disk; ``damaged`` names its damaged lists."""
        lines = []
        for domain in self.domains:
            lists = sum(self._list_file(root, domain, part) is not None for part in SIDES)
            lines.append(f"{self._count(root, domain)}, {lists} of 2 lists")
            with suppress(DataError):
                lines += self._lacking(root, domain)
            lines += self._unused(root, domain)
        return lines

    def counts(self, root: Path) -> list[Count]:
        """The images of each domain, and the rows of each of its lists."""
        both = ((self._count(root, domain), *self._rows(root, domain)) for domain in self.domains)
        return list(itertools.chain.from_iterable(both))

    def damaged(self, root: Path) -> list[tuple[Path, str]]:
        listed = {self._list_file(root, *each): each for each in itertools.product(self.domains, SIDES)}
        return damage(filter(None, listed), lambda file: self.listed(root, *listed[file]))

    def files(self, root: Path, domain: str) -> dict[str, Path]:
        """All images of a domain by their path in the lists, sorted."""
        held = class_folders.there(root / self.folder / domain, self.classes)
        return {"/".join(file.parts[-3:]): file for file in held}

    def _parts(self, root: Path, domain: str, split: str, train_images: int | None) -> Parts:
        """The images for training, validation and testing, and the others. Without lists, of sizes as FedFA has them.

        Raises DataError for a train list that is too short; RecipeError for ``train_images`` out of its range.
        """
        lists = split != self.splits[-1]
        listed, test = (self._both if lists else self._drawn)(root, domain)
        length = len(listed) if lists else self.domains[domain][0]
        train, validation = self.sizes(domain, split if lists else "fedfa", length)
        most, given = len(listed) - validation, train_images is not None
        if validation < 1 or most < 1 or not (given or 0 < train <= most):
            others = f"{validation} others" if validation > 0 else "others"
            raise DataError(
                f'the train list of {domain} has {len(listed)} images; split="{split}" trains on {train} and validates '
                f"on {others}. Get the whole list."
            )
        count = train_images if given else train
        if not isinstance(count, int) or isinstance(count, bool) or not 0 < count <= most:
            raise RecipeError(
                f'train_images is {count!r}; {domain} with split="{split}" has 1 to {most} beside its validation '
                "images."
            )
        return {"train": listed[:count], "validation": listed[most:], "test": test, "spare": listed[count:most]}

    def _both(self, root: Path, domain: str) -> tuple[list[str], list[str]]:
        """The train and the test list; DataError if an image is in both."""
        train, test = (self.listed(root, domain, part) for part in SIDES)
        common = set(train) & set(test)
        if common:
            raise DataError(f"{min(common)} is in the train list and in the test list of {domain}; expected one only.")
        return train, test

    def _drawn(self, root: Path, domain: str) -> tuple[list[str], list[str]]:
        """Training and validation images, and test images, drawn, all classes in proportion, always the same.

        Raises DataError unless the domain is complete.
        """
        names, (rows, tested) = list(self.files(root, domain)), self.domains[domain]
        if len(names) != rows + tested:
            raise DataError(
                f'{root / self.folder / domain} has {len(names)} images; split="stratified" divides {rows + tested}. '
                'Complete the folder, or use the federation "folders" for other images.'
            )
        sizes = *self.sizes(domain, "fedfa", rows), tested
        cuts = stratified(np.array(self._targets(names)), sizes, self.name, domain)
        train, validation, test = ([names[position] for position in cut] for cut in cuts)
        return train + validation, test

    def _site(self, root: Path, domain: str, parts: Parts, size: int, drop_duplicates: bool) -> tuple[Site, list[str]]:
        """The site of these parts, and notes on duplicates and unusual files.

        Raises DataError when an image of the parts is not there.
        """
        files, used = self.files(root, domain), {path for part in parts.values() for path in part}
        if not self.whole:
            files = {path: file for path, file in files.items() if path in used}
        absent = [path for part in parts.values() for path in part if path not in files]
        if absent:
            raise DataError(
                f"{len(absent)} images in the lists of {domain} are not in {root / self.folder}, first {absent[0]}. "
                'Get the images of the lists, or use split="stratified".'
            )
        hashes = dict(zip(files, images.digests(list(files.values())), strict=True))
        notes = _duplicates(domain, parts, hashes, drop_duplicates)
        held = list(files.values())
        pixels, unusual = images.read(root, f"{self.name}_{domain}", held, size, hashes=list(hashes.values()))
        row = {path: number for number, path in enumerate(files)}
        splits = []
        for part in parts.values():
            targets = torch.tensor(self._targets(part), dtype=torch.int64)
            splits.append(Split(torch.from_numpy(pixels[[row[path] for path in part]]), targets))
        return Site(domain, *splits), [*notes, *unusual]

    def listed(self, root: Path, domain: str, part: str) -> list[str]:
        """The paths of a list, in its order, as <domain>/<class>/<file>."""
        file = self._list_file(root, domain, part)
        if file.suffix == ".pkl":
            rows = zip(*tables.paths_and_labels(file), strict=True)
        else:
            rows = tables.table(file, ("path", "label"))
        paths = []
        for number, (path, label) in enumerate(rows, 1):
            path = "/".join(path.replace("\\", "/").split("/")[-3:])
            if path.count("/") != 2 or path.split("/")[:2] != [domain, label] or label not in self.classes:
                raise DataError(
                    f'{file}, entry {number}: path "{path}" and label "{label}"; expected '
                    f"{domain}/<class>/<file> and its class, one of {', '.join(self.classes)}."
                )
            paths.append(path)
        if not paths or len(set(paths)) < len(paths):
            raise DataError(f"{file} has {len(paths)} entries, {len(set(paths))} different; expected each image once.")
        return paths

    def _lacking(self, root: Path, domain: str) -> list[str]:
        """A note on each list that is there and is shorter or longer than FedBN's."""
        return [
            f"The {part} list of {domain} has {count.found} rows; FedBN's has {count.published}."
            for part, count in zip(SIDES, self._rows(root, domain), strict=True)
            if 0 < count.found != count.published
        ]

    def _unused(self, root: Path, domain: str) -> list[str]:
        return class_folders.unused(root / self.folder / domain, self.classes) if self.whole else []

    def _count(self, root: Path, domain: str) -> Count:
        return Count(domain, len(self.files(root, domain)), sum(self.domains[domain]))

    def _rows(self, root: Path, domain: str) -> list[Count]:
        """Of the train list and the test list; none of one that is not there."""
        made = []
        for part, rows in zip(SIDES, self.domains[domain], strict=True):
            found = len(self.listed(root, domain, part)) if self._list_file(root, domain, part) else 0
            made.append(Count(f"{domain}, {part} list", found, rows, "rows"))
        return made

    def _targets(self, paths: list[str]) -> list[int]:
        return [self.classes.index(path.split("/")[1]) for path in paths]

    def _list_file(self, root: Path, domain: str, part: str) -> Path | None:
        """Where a list is."""
        return next((place for place in self._list_places(root, domain, part) if place.is_file()), None)

    def _list_places(self, root: Path, domain: str, part: str) -> tuple[Path, ...]:
        pickle = f"{domain}_{part}.pkl"
        return (
            root / "splits" / f"{self.folder.lower()}_{domain}_{part}.csv",
            root / self.folder / pickle,
            root / "splits" / pickle,
        )


def _duplicates(domain: str, parts: Parts, hashes: dict[str, str], drop: bool) -> list[str]:
    """Counts, and with ``drop`` removes, training and validation images that equal a test image; removes spare images
    that equal one of the others."""
    notes = []
    if "spare" in parts:
        others = {hashes[path] for name, part in parts.items() if name != "spare" for path in part}
        spare = [path for path in parts["spare"] if hashes[path] not in others]
        same = len(parts["spare"]) - len(spare)
        notes = [f"{domain}: {len(spare)} spare images; {same} with the same bytes as another of its images left out."]
        parts["spare"] = spare
    test = {hashes[path] for path in parts["test"]}
    counts = []
    for part in ("train", "validation"):
        kept = [path for path in parts[part] if hashes[path] not in test]
        if len(kept) < len(parts[part]):
            counts.append(f"{len(parts[part]) - len(kept)} in {part}")
        if drop:
            parts[part] = kept
    if not counts:
        return notes
    done = "left out" if drop else "kept; drop_duplicates=True leaves them out"
    return [f"{domain}, images with the same bytes as a test image: {', '.join(counts)} ({done}).", *notes]
