"""CH-MNIST: eight kinds of tissue in histological images of colorectal cancer, dealt out to clients by class."""

from pathlib import Path

import numpy as np

from fednb.datasets._listed import Rows, decoded, in_classes, lacking
from fednb.datasets._partition import by_class_shares, sizes
from fednb.federation import Federation
from fednb.randomness import random_state

NEEDS = (
    "CH-MNIST (Kather et al. 2016), 5,000 images of 150 x 150 pixels, 625 of each class. Layout: "
    "ch_mnist/<class>/<file>.tif, classes 01_TUMOR, 02_STROMA, 03_COMPLEX, 04_LYMPHO, 05_DEBRIS, 06_MUCOSA, "
    "07_ADIPOSE, 08_EMPTY: the folder in Kather_texture_2016_image_tiles_5000.zip, renamed. From "
    "doi.org/10.5281/zenodo.53169; about 250 MB. Licence: CC BY 4.0."
)
CLASSES = tuple("01_TUMOR 02_STROMA 03_COMPLEX 04_LYMPHO 05_DEBRIS 06_MUCOSA 07_ADIPOSE 08_EMPTY".split())
SHARES = (0.8, 0.2)  # training and test images


def load(root: Path, *, clients: int = 8, classes_per_client: int = 8, size: int = 64, seed: int = 0) -> Federation:
    """Sites client_0, client_1, ...; eight classes. A tenth of each client's training images is validation.

    A fifth of all images is for testing, drawn without regard to classes (as released) and always the same. Both parts
    are cut by DisTrans' class shares (``_partition.class_shares``); with one class per client each is tested on as many
    images of other classes as well.

    Args:
        clients: how many sites. DisTrans: 8; 16, 24 and 40 in its Table 5.
        classes_per_client: times ``clients`` a multiple of eight. DisTrans: 8, 6, 4, 2, 1 (DH = 0, 25, 50, 75, 100 %).

    Reference: DisTrans, Sec. 5 and 5.1. As released the split depends on the order in which folders are listed."""
    unusual = []
    whole = decoded(root, "ch_mnist", _rows(root), size, unusual)
    order = random_state("ch_mnist", "test").permutation(len(whole))
    train, test = (whole.select(part) for part in np.split(order, sizes(len(whole), SHARES)[:1]))
    sites, dealt = by_class_shares(train, test, len(CLASSES), clients, classes_per_client, "ch_mnist", seed)
    return Federation("ch_mnist", sites, CLASSES, [*dealt, *unusual])


def _rows(root: Path, **options) -> Rows:
    return in_classes(root / "ch_mnist", CLASSES)


missing = lacking(_rows)
