"""One row for every data set: how to make its files in small, and the options that its behaviour is recorded under.

A new file in ``fednb/datasets`` needs one row here.
"""

import csv
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from fednb.datasets import bioid, bird200, celeba, ch_mnist, cifar10, domainnet, office_home, pacs, rxrx1
from fednb.datasets.celeba import Persons
from fednb.datasets.office_caltech10 import CLASSES, TABLE11
from fednb.datasets.prostate_mri import SITES as HOSPITALS
from fednb.datasets.retinal_vessels import SITES as EYES
from fednb.federation import SPLITS


@dataclass(frozen=True)
class Row:
    """make: writes the files of the data set into a data folder, in lossless formats; None where it is embedded.
    own: patterns of all that a site needs there, of a loader that reads one site without the others.
    image: a pattern of some of which the first variant uses one. file: what else it reads. lacks: further files and
    folders that it cannot do without."""

    name: str
    make: Callable[[Path], None] | None = None
    variants: tuple[dict, ...] = ({},)
    own: Callable[[str], list[str]] | None = None
    lacks: tuple[str, ...] = ()
    image: str = ""
    file: str = ""


def picture(path: Path, number: int, mode: str = "RGB", size: int = 8) -> Path:
    """Writes an image of noise, a different one per number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # it may be a link
    shape = (size, size) if mode == "L" else (size, size, 3)
    Image.fromarray(np.random.RandomState(number).randint(0, 256, shape, np.uint8)).save(path)
    return path


def copied(root: Path, place: Path) -> Path:
    """A copy of a data folder, without cache, that a test may change; its images are links, which it may remove."""

    def copy(file: str, to: str) -> None:
        (os.link if Path(file).suffix in (".png", ".pgm", ".tif") else shutil.copy)(file, to)

    return shutil.copytree(root, place, copy_function=copy, ignore=shutil.ignore_patterns(".fednb_cache"))


def counts(federation) -> dict[str, tuple[int, ...]]:
    """The training, validation and test images of each site."""
    return {site.name: tuple(len(getattr(site, split)) for split in SPLITS) for site in federation.sites}


def pixels(*splits) -> list[bytes]:
    """The bytes of each image."""
    return [image.numpy().tobytes() for split in splits if split for image in split.images]


def different(*splits) -> set[bytes]:
    return set(pixels(*splits))


def tissue(root: Path) -> None:
    for number in range(8 * 30):
        picture(root / "ch_mnist" / ch_mnist.CLASSES[number % 8] / f"{number:03}.tif", number, size=9)


def cifar(root: Path) -> None:
    for part, first, count in (("train", 0, 300), ("test", 300, 100)):
        for number in range(first, first + count):
            picture(root / "cifar10" / part / cifar10.CLASSES[number % 10] / f"{number}.png", number, size=32)


def hundred(root: Path) -> None:
    """Three training and two test images of noise of each class, as CIFAR-100's binary version."""
    (root / "cifar-100-binary").mkdir(parents=True)
    for number, (part, count) in enumerate({"train": 300, "test": 200}.items()):
        pixels = np.random.RandomState(number).randint(0, 256, (count, 3072), np.uint8)
        entries = np.column_stack([np.zeros(count), np.arange(count) % 100, pixels]).astype(np.uint8)
        entries.tofile(root / "cifar-100-binary" / f"{part}.bin")


def writers(root: Path) -> None:
    """Two files of LEAF's, images of noise, the classes in turn; the last writer has too few images."""
    (root / "emnist").mkdir(parents=True)
    for number, counts in enumerate([{"f0100_03": 20, "f0101_47": 35}, {"f0300_11": 28, "f0301_02": 9}]):
        random, entries = np.random.RandomState(number), {}
        for name, count in counts.items():
            x = [[grey / 255 for grey in image] for image in random.randint(0, 256, (count, 784)).tolist()]
            entries[name] = {"x": x, "y": [(number + position) % 62 for position in range(count)]}
        held = {"users": list(counts), "num_samples": list(counts.values()), "user_data": entries}
        (root / "emnist" / f"all_data_{number}.json").write_text(json.dumps(held))


def digits(root: Path) -> None:
    """As many images as a hundredth of the complete sources, MNIST with as many more as MNIST-M is made from."""
    sizes = {"mnist": (1190, 28), "mnist_m": (590, 32, 3), "usps": (73, 16), "svhn": (733, 32, 3)}
    (root / "digits").mkdir()
    for seed, (name, (count, side, *channels)) in enumerate(sizes.items()):
        arrays = {}
        for part, images in (("train", count), ("test", 40)):
            shape = (images, side, side, *channels)
            arrays[f"x_{part}"] = np.random.RandomState(seed).randint(0, 256, shape, np.uint8)
            arrays[f"y_{part}"] = np.arange(images) % 10
        if name == "mnist_m":
            arrays |= {"index_train": np.arange(600, 1190), "index_test": np.arange(40)}
        np.savez(root / "digits" / f"{name}.npz", **arrays)


NAMES = (  # of folders, each of which means something to one of the formats that it goes into
    *("$x$", r"$\frac$", "a_b", "_a", "<b>", "a|b", "*", "**", "[x]", "%", "&", "\\", "`", "\"'", "new\nline", "-rf"),
    *("{}", "\u05d0\u05d1", "n" * 200, "\u00e9" * 110),
)


def folders(root: Path) -> None:
    """One site that is cut, one that is divided into training and test images."""
    for number in range(20):
        picture(root / "own" / "north" / ("cat", "dog")[number % 2] / f"{number}.png", number)
        picture(root / "own" / "south" / ("test", "train")[number % 5 > 0] / "cat" / f"{number}.png", 20 + number, "L")
        for site, white in {"east": 1, "west": 255}.items():  # with masks: numbers, and black and white
            picture(root / "masked" / site / "images" / f"{number}.png", 40 + number)
            (root / "masked" / site / "masks").mkdir(exist_ok=True)
            mask = np.uint8(white) * (np.arange(64).reshape(8, 8) % (number + 2) == 0)
            Image.fromarray(mask).save(root / "masked" / site / "masks" / f"{number}.png")


def write_list(root: Path, name: str, paths: list[str]) -> None:
    """One of FedBN's lists, of paths such as real/bird/a.png; the old file may be a hard link of other tests'."""
    file = root / "splits" / f"{name}.csv"
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    with open(file, "w", newline="") as handle:
        csv.writer(handle).writerows([("path", "label"), *((path, path.split("/")[1]) for path in paths)])


def office(root: Path) -> None:
    """All lists in their length."""
    sizes = {domain: (sum(sizes), sizes[2]) for domain, sizes in TABLE11.items()}
    with_lists(root, "office_caltech_10", CLASSES, sizes, 1)


def pictured(root: Path) -> None:
    """Lists as FedBN has them, but of 215 and 10 images; an eleventh class is not read."""
    with_lists(root, "DomainNet", domainnet.CLASSES, dict.fromkeys(domainnet.LISTS.domains, (225, 10)), 0)
    for site, domain in enumerate(domainnet.LISTS.domains):
        picture(root / "DomainNet" / domain / "aircraft_carrier" / "0.png", site)


def with_lists(root: Path, folder: str, classes, sizes: dict[str, tuple[int, int]], number: int) -> None:
    """All and test images of each domain; the first test image has the bytes of a training image."""
    for domain, (count, tests) in sizes.items():
        paths = [f"{domain}/{classes[i % 10]}/{i:04}.png" for i in range(count)]
        for position, path in enumerate(paths):
            picture(root / folder / path, number + tests * (position == 0), size=6)
            number += 1
        write_list(root, f"{folder.lower()}_{domain}_train", paths[tests:])
        write_list(root, f"{folder.lower()}_{domain}_test", paths[:tests])


def things(root: Path, each: int = 15) -> None:
    in_folders(root / "office_home", list(office_home.DOMAINS.values()), office_home.CLASSES, each, 4)


def drawings(root: Path, each: int = 20) -> None:
    in_folders(root / "pacs", list(pacs.DOMAINS), pacs.CLASSES, each, 6)


def in_folders(place: Path, folders: list[str], classes, each: int, size: int) -> None:
    """So many images of each class at each of four sites."""
    for number in range(4 * len(classes) * each):
        name = classes[number // 4 % len(classes)]
        picture(place / folders[number % 4] / name / f"{number:04}.png", number, size=size)


def eyes(root: Path) -> None:
    """The mask of an image is a quarter of it, by number; the upper rows are outside the field of view."""
    parts = [f"{part}_{i:02}" for part in ("train", "test") for i in range(5)]
    stems = dict.fromkeys(EYES, parts) | {
        "CHASEDB1": [f"Image_{child:02}{eye}" for child in range(1, 11) for eye in "LR"],
        "STARE": [f"im{number:04}" for number in range(10)],
    }
    rows, columns = np.mgrid[:24, :24]
    for site, name in enumerate(EYES):
        for number, stem in enumerate(stems[name]):
            place = root / "retinal_vessels" / name
            picture(place / "images" / f"{stem}.png", 100 * site + number, size=24)
            masks = {"masks": (rows // 12 * 2 + columns // 12) == number % 4, "fov": rows >= 5}
            for kind, mask in masks.items():
                (place / kind).mkdir(exist_ok=True)
                Image.fromarray(np.uint8(255) * mask).convert("1").save(place / kind / f"{stem}.png")


def birds(root: Path, suffix: str = ".png") -> None:
    """Three training and two test images of each species."""
    place, names = root / bird200.FOLDER, [f"{number:03}.Species_{number}" for number in range(1, 201)]
    files = [f"{names[number % 200]}/Species_{number:04}{suffix}" for number in range(5 * 200)]
    for number, file in enumerate(files):
        picture(place / "images" / file, number, size=6)
    labels, parts = [number % 200 + 1 for number in range(1000)], [int(number < 600) for number in range(1000)]
    held = {"classes": names, "images": files, "image_class_labels": labels, "train_test_split": parts}
    for name, words in held.items():
        (place / f"{name}.txt").write_text("".join(f"{number} {word}\n" for number, word in enumerate(words, 1)))


def cells(root: Path) -> None:
    """Sixteen images of eight of the classes in every batch, and in the table those of a class that is not used."""
    place, number = root / rxrx1.FOLDER, 0
    lines = ["site_id,well_id,cell_type,dataset,experiment,plate,well,site,well_type,sirna,sirna_id"]
    for cell_type, batches in {"HEPG2": 5, "HUVEC": 9, "RPE": 4, "U2OS": 4}.items():
        for batch in range(1, batches + 1):
            for well in range(9):
                treatment = 0 if well == 8 else rxrx1.CLASSES[(8 * batch + well) % 48]
                experiment, at = f"{cell_type}-{batch:02}", f"B{well + 2:02}"
                for site in (1, 2):
                    number += 1
                    lines.append(f"x,x,{cell_type},train,{experiment},1,{at},{site},treatment,s1,{treatment}")
                    if well < 8:
                        picture(place / "images" / experiment / "Plate1" / f"{at}_s{site}.png", number, size=6)
    (place / rxrx1.TABLE).write_text("\n".join(lines) + "\n")


def faces(source: Persons, suffix: str, counts: dict[str, int]) -> Callable[[Path], None]:
    """Writes so many images of each person, in turns, of two pixels more each way than are kept."""

    def make(root: Path) -> None:
        place, mode = root / source.name, "L" if source.channels == 1 else "RGB"
        order = sorted((turn, person) for person, count in counts.items() for turn in range(count))
        names = [f"{number:06}{suffix}" for number in range(1, len(order) + 1)]
        for number, name in enumerate(names):
            picture(place / source.folder / name, number, mode, source.crop + 2)
        lines = [f"{name} {person}\n" for name, (_, person) in zip(names, order, strict=True)]
        (place / source.listing).write_text("".join(lines))

    return make


def scan(place: Path, case: str, grey: np.ndarray, mask: np.ndarray | None, word: str = "segmentation") -> None:
    """Writes a volume and its mask, ``[slices, height, width]``, as the prostates' are published."""
    import nibabel

    place.mkdir(parents=True, exist_ok=True)
    for name, array in {case: grey, f"{case}_{word}": mask}.items():
        if array is not None:
            nibabel.Nifti1Image(array.transpose(), np.eye(4)).to_filename(place / f"{name}.nii.gz")


def prostates(root: Path) -> None:
    """Five volumes a site, of 13 slices; of slice i of volume n, pixel (n, i) is prostate, unless it is an end."""
    for site, name in enumerate(HOSPITALS):
        for number in range(5):
            grey = np.random.RandomState(10 * site + number).randint(0, 2000, (13, 20, 20), np.int16)
            mask = np.zeros((13, 20, 20), np.uint8)
            mask[range(1, 12), number, range(1, 12)] = 1 + (number == 2)
            word = ("segmentation", "Segmentation")[site % 2]
            scan(root / "prostate_mri" / name, f"Case{number:02}", grey, mask, word)


ROWS = [
    Row(
        "bioid",
        faces(bioid.DATA, ".pgm", {"1": 9, "2": 11, "3": 7, "4": 10}),
        ({"clients": 3, "size": 16},),
        image="bioid/images/000001.pgm",
        file="bioid/identity_BioID.txt",
    ),
    Row(
        "bird200",
        birds,
        ({"size": 5, "clients": 4, "classes_per_client": 100}, {"size": 6, "classes_per_client": 20, "seed": 1}),
        lacks=("CUB_200_2011/image_class_labels.txt", "CUB_200_2011/images"),
        image="CUB_200_2011/images/007.Species_7/Species_0006.png",
        file="CUB_200_2011/images.txt",
    ),
    Row(
        "celeba",
        faces(celeba.DATA, ".png", {"12": 8, "2": 11, "30": 8, "4": 10}),
        ({"clients": 3, "size": 16},),
        image="celeba/img_align_celeba/000001.png",
        file="celeba/identity_CelebA.txt",
    ),
    Row(
        "ch_mnist",
        tissue,
        ({"size": 8}, {"size": 8, "classes_per_client": 4, "seed": 1}),
        image="ch_mnist/03_COMPLEX/002.tif",
    ),
    Row(
        "cifar10",
        cifar,
        (
            {"size": 16},
            {"size": 32, "classes_per_client": 6, "train_images": 200, "test_images": 50},
            {"size": 32, "partition": "dirichlet", "clients": 4},
        ),
        image="cifar10/train/airplane/0.png",
    ),
    Row(
        "cifar100",
        hundred,
        (
            {"size": 32, "clients": 4, "classes_per_client": 50},
            {"size": 40, "clients": 5, "partition": "dirichlet", "train_images": 200, "seed": 1},
        ),
        file="cifar-100-binary/train.bin",
    ),
    Row(
        "domainnet",
        pictured,
        (
            {"size": 5},
            {"size": 6, "drop_duplicates": True, "split": "fedbn_95"},
            *({"size": 6, "split": split} for split in ("fedfa", "fedfa_released")),
        ),
        lambda site: [f"DomainNet/{site}", f"splits/*_{site}_*.csv"],
        image="DomainNet/real/bird/0000.png",
        file="splits/domainnet_real_test.csv",
    ),
    Row("emnist", writers, ({"clients": 3}, {"clients": 2, "size": 32, "seed": 1}), file="emnist/all_data_1.json"),
    Row(
        "digits",
        digits,
        ({"fraction": 0.01}, {"fraction": 0.005, "test_fraction": 0.002, "separate_mnist_m": True}),
        lambda site: [f"digits/{site}.npz", *["digits/mnist_m.npz"] * (site == "mnist")],
        file="digits/usps.npz",
    ),
    Row(
        "folders",
        folders,
        (
            *({"folder": "own", "size": 8}, {"folder": "own", "size": 6, "seed": 1}),
            {"folder": "masked", "size": 8, "masks": ("background", "spot")},
        ),
        lambda site: [f"*/{site}"],
        image="own/north/cat/0.png",
    ),
    Row(
        "office_caltech10",
        office,
        (
            *({"size": 5}, {"size": 6, "drop_duplicates": True}),
            *({"size": 6, "split": split} for split in ("fedfa", "stratified")),
        ),
        lambda site: [f"office_caltech_10/{site}", f"splits/*_{site}_*.csv"],
        image="office_caltech_10/dslr/back_pack/0000.png",
        file="splits/office_caltech_10_dslr_test.csv",
    ),
    Row(
        "office_home",
        things,
        ({"size": 4}, {"size": 3, "fraction": 0.5, "test_fraction": 0.5, "seed": 1}, {"size": 4, "spare": True}),
        lambda site: [f"office_home/{office_home.DOMAINS[site]}"],
        image="office_home/Clipart/Soda/*.png",
    ),
    Row(
        "pacs",
        drawings,
        ({"size": 5, "fraction": 0.5}, {"size": 6, "fraction": 1.0, "test_fraction": 0.5}),
        lambda site: [f"pacs/{site}"],
        image="pacs/cartoon/dog/*.png",
    ),
    Row(
        "prostate_mri",
        prostates,
        ({"size": 20}, {"size": 20, "split": "harmofl"}, {"size": 14, "split": "patients", "ratio": 0.3}),
        lambda site: [f"prostate_mri/{site}"],
        lacks=("prostate_mri/UCL", "prostate_mri/HK/Case02.nii.gz", "prostate_mri/I2CVB/Case01_segmentation.nii.gz"),
        file="prostate_mri/HK/Case04.nii.gz",
    ),
    Row(
        "retinal_vessels",
        eyes,
        ({"size": 16}, {"size": 24, "seed": 1}),
        lambda site: [f"retinal_vessels/{site}"],
        lacks=("retinal_vessels", "retinal_vessels/HRF/fov", "retinal_vessels/DRIVE/masks/test_03.png"),
        image="retinal_vessels/STARE/images/im0004.png",
    ),
    Row(
        "rxrx1",
        cells,
        ({"size": 5}, {"size": 6, "clients_per_cell_type": 2, "seed": 1}),
        lacks=("rxrx1_v1.0/metadata.csv", "rxrx1_v1.0/images"),
        image="rxrx1_v1.0/images/RPE-02/Plate1/B03_s2.png",
        file="rxrx1_v1.0/metadata.csv",
    ),
    Row("shift_dial", variants=({"factor": "blur", "level": 3}, {})),
    Row("shifted_digits", variants=({}, {"size": 40})),
    Row("shifted_strokes"),
]
