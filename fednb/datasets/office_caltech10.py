"""Office-Caltech-10: ten kinds of objects seen by four sources of photographs."""

from pathlib import Path

from fednb.datasets._fedbn import Lists
from fednb.datasets._listed import lacking
from fednb.errors import RecipeError
from fednb.federation import Federation

NEEDS = (
    "Office-Caltech-10 (Saenko et al. 2010, Griffin et al. 2007, Gong et al. 2012). Layout: "
    "office_caltech_10/<domain>/<class>/<file>, domains amazon, caltech, dslr, webcam (958, 1123, 157, 295 images), "
    "and FedBN's lists as splits/office_caltech_10_<domain>_<train|test>.csv (columns path,label). From the archive "
    "that github.com/med-air/FedBN links. Licence: for research; the images belong to their photographers and shops."
)
# FedBN's numbering, which is alphabetical.
CLASSES = tuple("back_pack bike calculator headphones keyboard laptop_computer monitor mouse mug projector".split())
# int(0.5 * 125) and int(0.4 * 125) of FedBN's fed_office.py; 125 is the length of the shortest list, dslr's.
FEDBN_TRAIN, FEDBN_VALIDATION = 62, 50
# FedFA, Table 11: train, validation, test.
TABLE11 = {"amazon": (459, 307, 192), "caltech": (538, 360, 225), "dslr": (75, 50, 32), "webcam": (141, 95, 59)}
DOMAINS = tuple(TABLE11)


def _sizes(domain: str, split: str, length: int) -> tuple[int, int]:
    train = TABLE11[domain][0]
    return (FEDBN_TRAIN, FEDBN_VALIDATION) if split == "fedbn" else (train, length - train)


LENGTHS = {domain: (train + validation, test) for domain, (train, validation, test) in TABLE11.items()}
LISTS = Lists("office_caltech10", "office_caltech_10", LENGTHS, CLASSES, ("fedbn", "fedfa", "stratified"), _sizes)
missing = lacking(LISTS.rows)


def load(
    root: Path,
    *,
    split: str = "fedbn",
    size: int = 256,
    train_images: int | None = None,
    drop_duplicates: bool = False,
    spare: bool = False,
    site: str | None = None,
) -> Federation:
    """Four sites amazon, caltech, dslr, webcam; ten classes in FedBN's numbering.

    Args:
        split: ``"fedbn"``: FedBN's lists in their order, the first 62 of a train list for training and its last 50 for
            validation (FedRDN uses this). ``"fedfa"``: FedBN's lists, the first 459 / 538 / 75 / 141 for training, the
            rest for validation (FedFA, Table 11). Both test on 192 / 225 / 32 / 59 images. ``"stratified"``: without
            lists, the sizes of Table 11, drawn with all classes in proportion, always the same. Its test images are
            not FedBN's.
        train_images: only the first so many training images of each site; None takes the split's own number.
        drop_duplicates: leave out training and validation images whose files are byte for byte a test image of the
            same site; else ``notes`` counts them.
        spare: whether what the split ``"fedbn"`` leaves of FedBN's train lists (654, 786, 13 and 124 images) is each
            site's ``spare``: all but files that are byte for byte a training, validation or test image of the site."""
    if spare and split != "fedbn":
        raise RecipeError(f'office_caltech10 has no spare images with split="{split}", only with split="fedbn".')
    return LISTS.federation(root, split, size, drop_duplicates, site, train_images, spare)
