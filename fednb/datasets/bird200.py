"""Bird-200: photographs of two hundred species of birds, dealt out to clients by class."""

from pathlib import Path

from fednb.datasets._files import pairs
from fednb.datasets._listed import Rows, decoded, lacking, require
from fednb.datasets._partition import by_class_shares
from fednb.errors import DataError
from fednb.federation import Federation

NEEDS = (
    "Caltech-UCSD Birds-200-2011 (Wah et al. 2011), 11,788 images. Layout: CUB_200_2011/images/<class>/<file>.jpg and "
    "the lists images.txt, image_class_labels.txt, train_test_split.txt and classes.txt in CUB_200_2011/. From "
    "www.vision.caltech.edu/datasets/cub_200_2011; 1.2 GB. Licence: for non-commercial research and education."
)
FOLDER = "CUB_200_2011"
LISTS = ("classes.txt", "images.txt", "image_class_labels.txt", "train_test_split.txt")
NUMBERS = [str(number) for number in range(1, 201)]  # of the classes
PARTS = {"1": "train", "0": "test"}  # in train_test_split.txt


def load(root: Path, *, clients: int = 10, classes_per_client: int = 200, size: int = 128, seed: int = 0) -> Federation:
    """Sites client_0, client_1, ...; two hundred classes. A tenth of each client's training images is validation.

    Training and test images are those of the data set's own list. Both are cut by DisTrans' class shares
    (``_partition.class_shares``).

    Args:
        clients: how many sites. DisTrans: 10.
        classes_per_client: times ``clients`` a multiple of 200. DisTrans: 200, 120, 80, 40, 20, which are DH = 0, 40,
            60, 80, 100 %.
        size: DisTrans: 128.

    Reference: DisTrans, Sec. 5 and 5.1. Its reader is not released, nor does the paper say by which list it tests."""
    classes, listed = _listed(root)
    notes = []
    splits = [decoded(root, f"bird200_{part}", rows, size, notes) for part, rows in listed.items()]
    sites, dealt = by_class_shares(*splits, len(classes), clients, classes_per_client, "bird200", seed)
    return Federation("bird200", sites, classes, [*notes, *dealt])


def _listed(root: Path, **options) -> tuple[list[str], dict[str, Rows]]:
    place = root / FOLDER
    require(*(place / name for name in (*LISTS, "images")))
    names, paths, labels, parts = (pairs(place / name) for name in LISTS)
    listed = {part: [] for part in PARTS.values()}
    for number in paths | labels | parts:
        path, label, mark = (held.get(number, "") for held in (paths, labels, parts))
        if [*names] != NUMBERS or path.split("/")[0] != names.get(label) or mark not in PARTS:
            found = f'image {number} has the path "{path}", class "{label}" and part "{mark}"'
            expected = f"the folder of a class from 1 to {len(NUMBERS)}, and 1 (training) or 0 (test)"
            raise DataError(f"{place}: {found}; expected {expected}. Fetch the lists again.")
        listed[PARTS[mark]].append((place / "images" / path, int(label) - 1))
    return list(names.values()), listed


missing = lacking(_listed)
