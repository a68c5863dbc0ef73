"""Blood vessels of the retina, photographed by five cameras: a class for every pixel."""

from pathlib import Path

import numpy as np
import torch

from fednb.datasets import _images as images
from fednb.datasets._listed import lacking, require_folders
from fednb.datasets._masks import refuse_other_size
from fednb.datasets._partition import check_shares, sizes
from fednb.errors import DataError, RecipeError
from fednb.federation import IGNORED, Federation, Site, Split, chosen_sites
from fednb.randomness import random_state

TASK = "segmentation"
NEEDS = (
    "retinal vessels from CHASEDB1 (Fraz et al. 2012), DRIVE (Staal et al. 2004), HRF (Budai et al. 2013; masks "
    "Hemelings et al. 2019), LES-AV (Orlando et al. 2018) and STARE (Hoover et al. 2000). Layout: "
    "retinal_vessels/<site>/images/<file>.png, RGB, with a mask and a field of view of the same name and size, black "
    "and white, in <site>/masks and <site>/fov. Those called train_* and test_* are used so (DRIVE, HRF, LES-AV). Crop "
    "the sources to the field of view, pad them to a square and resize them to 256 x 256, a pixel being vessel from a "
    "coverage of 0.4. From github.com/zhengyuan-liu/Retinal-Vessel-Segmentation (ca8adae; CHASEDB1, DRIVE, STARE) and "
    "github.com/rmaphoh/Learning-AVSegmentation (f7de674; HRF, LES-AV: any label of artery or vein is vessel); 12 MB "
    "in this layout. Licence: for research: each has terms of its own."
)
SITES = {"CHASEDB1": 28, "DRIVE": 40, "HRF": 45, "LES-AV": 22, "STARE": 20}  # images
KINDS = ("images", "masks", "fov")
CLASSES = ("background", "vessel")
COVERAGE = 0.4  # of a pixel by vessel, or by the field of view, from which it is taken for it
TEST, VALIDATION = 0.3, 0.2  # of the images of a site without lists; of the others


def load(root: Path, *, size: int = 128, fraction: float = 1.0, seed: int = 0, site: str | None = None) -> Federation:
    """Five sites CHASEDB1, DRIVE, HRF, LES-AV, STARE; a class for every pixel.

    Classes are background and vessel; pixels outside the field of view are ignored (255). Test images are the official
    ones or the source's where there are any (DRIVE 20 of 40, HRF 21 of 45, LES-AV 11 of 22). CHASEDB1 and STARE have no
    lists: three tenths are for testing, always the same. Of the others a fifth is validation, drawn by ``seed``. Both
    eyes of a child of CHASEDB1 are in one split.

    Args:
        size: masks are resized as coverage: a pixel is vessel, or inside the field of view, from 0.4 on, as in the
            files. At 128 this keeps the share of vessel within a point; at 64 a third of it is left (HRF 2.3 of 6.1 %).
        fraction: share of a site's 9 to 19 training images that is used, the first in an order drawn by ``seed``.
        seed: of the validation images, and of that order.
    """
    check_shares(fraction=fraction)
    notes = []
    sites = [_site(root, name, files, size, fraction, seed, notes) for name, files in _files(root, site=site).items()]
    return Federation("retinal_vessels", sites, CLASSES, tuple(notes), TASK)


def _files(root: Path, *, site: str | None = None, **options) -> dict[str, dict[str, list[Path]]]:
    places = {name: root / "retinal_vessels" / name for name in chosen_sites("retinal_vessels", SITES, site)}
    require_folders(places.values(), KINDS)
    found = {}
    for name, place in places.items():
        listed = images.files(place / "images")
        found[name] = {kind: [place / kind / path.name for path in listed] for kind in KINDS}
        for kind in ("masks", "fov"):
            if lost := [path for path in found[name][kind] if not path.is_file()]:
                raise DataError(f"There is no {lost[0]} for the image of that name ({len(lost)} such images).")
    return found


missing = lacking(_files)


def _site(
    root: Path, name: str, files: dict[str, list[Path]], size: int, fraction: float, seed: int, notes: list[str]
) -> Site:
    for path, *others in zip(*files.values(), strict=True):
        for other in others:
            refuse_other_size(path, other)
            values = np.unique(images.decode_mask(other)).tolist()
            if values not in ([255], [0, 255]):
                found = ", ".join(map(str, values[:5]))
                raise DataError(f"{other} has the values {found}; expected white, 255, on black, 0. Write it so.")
    read = [images.read(root, f"retinal_vessels_{name}_{kind}", files[kind], size) for kind in KINDS]
    (pixels, vessels, field), unusual = zip(*read, strict=True)
    notes += [note for lines in unusual for note in lines]
    vessels, field = (coverage[:, 0] >= 255 * COVERAGE for coverage in (vessels, field))
    masks = np.where(field, vessels, IGNORED).astype(np.uint8)
    whole = Split(torch.from_numpy(pixels), torch.from_numpy(masks))
    train, *others = _cut(name, [path.stem for path in files["images"]], seed)
    used = round(fraction * len(train))
    if not used:
        raise RecipeError(f"fraction={fraction} leaves {name} no training image of {len(train)}. Enlarge it.")
    order = random_state("retinal_vessels", name, seed, "fraction").permutation(train)
    return Site(name, *(whole.select(cut) for cut in (np.sort(order[:used]), *others)))


def _cut(name: str, stems: list[str], seed: int) -> list[np.ndarray]:
    eyes = np.array([stem[:-1] if name == "CHASEDB1" else stem for stem in stems])  # Image_01L, Image_01R: one child

    def drawn(given: np.ndarray, share: float, *key) -> np.ndarray:
        count, _ = sizes(len(given), (share, 1 - share))
        return random_state("retinal_vessels", name, *key).permutation(given)[:count]

    tested = np.unique([stem for stem in eyes if stem.startswith("test_")])
    if not len(tested):
        tested = drawn(np.unique(eyes), TEST)
    rest = np.setdiff1d(eyes, tested)
    validated = drawn(rest, VALIDATION, seed)
    return [np.flatnonzero(np.isin(eyes, part)) for part in (np.setdiff1d(rest, validated), validated, tested)]
