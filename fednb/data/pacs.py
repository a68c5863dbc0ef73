"""PACS: seven kinds of objects as art paintings, cartoons, photographs and sketches."""

from pathlib import Path

from fednb.data import _images as images
from fednb.data._fraction import Cut
from fednb.data._published import Needs
from fednb.federation import Federation

NEEDS = Needs(
    what="PACS (Li et al. 2017)",
    layout="pacs/<domain>/<class>/<file>, domains art_painting, cartoon, photo, sketch (2048, 2344, 1670, 3929 "
    "images), classes dog, elephant, giraffe, guitar, horse, house, person; the archive's folder kfold/, "
    "renamed, is pacs/",
    page="www.eecs.qmul.ac.uk/~dl307/project_iccv2017",
    download="about 190 MB",
    licence="for research; the images come from Caltech-256, Sketchy, TU-Berlin and Google",
    folders=("pacs",),
)
DOMAINS = {"art_painting": 2048, "cartoon": 2344, "photo": 1670, "sketch": 3929}
CLASSES = ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")
NOTE = "PACS' own lists are not used: test, validation and training images are drawn by fednb."
DATA = Cut("pacs", {name: (name, complete) for name, complete in DOMAINS.items()}, CLASSES, NEEDS, NOTE)
missing, describe, counts = DATA.missing, DATA.describe, DATA.counts
SIDE = 227  # of the original files


def load(
    root: Path,
    *,
    fraction: float = 0.1,
    test_fraction: float = 1.0,
    size: int = 224,
    spare: bool = False,
    seed: int = 0,
    site: str | None = None,
) -> Federation:
    """Four sites art_painting, cartoon, photo, sketch; RGB ``size`` x ``size``, seven classes.

    PACS' own lists are not used: a domain is cut here, by class. A tenth is for testing, always the same; of
    the rest a tenth is validation, drawn by ``seed``, and of what is left ``fraction`` is used for training.
    FRAug goes the same way from PACS' own training lists, which are nine tenths of each domain.

    Args:
        fraction: share of a domain's training images that is used, stratified by class. FRAug: 0.1.
        test_fraction: share of the test images that is used, stratified; below 1 testing takes less time.
        size: height and width in pixels; resized bilinearly without cropping. Grey images get three channels.
            FRAug prints none, its code uses 224.
        spare: whether the training images that ``fraction`` leaves out are handed over as each site's ``spare``.
        seed: of the validation and training images.

    ``notes`` says so when the files are not of the original size, 227 x 227. Licence and layout: see ``NEEDS``.

    Reference: FRAug, Sec. 4.1.1.

    Raises DataError when a domain or a class is missing or an image is damaged; RecipeError for an option out
    of its range.
    """
    return DATA.federation(root, fraction, test_fraction, size, spare, seed, site, _other_size)


def _other_size(domain: str, files: list[Path], used: list[Path]) -> list[str]:
    width, height = images.dimensions(used[0])
    if (width, height) == (SIDE, SIDE):
        return []
    return [f"Files of {width} x {height} pixels; PACS' own are {SIDE} x {SIDE}."]
