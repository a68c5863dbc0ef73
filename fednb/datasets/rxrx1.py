"""RxRx1: cells of four types under the microscope; a client has the experiments of one institution on one type."""

from pathlib import Path

from fednb.datasets._files import table
from fednb.datasets._listed import Rows, decoded, lacking, require
from fednb.datasets._partition import check_whole, cut
from fednb.errors import DataError, RecipeError
from fednb.federation import Federation, Site

NEEDS = (
    "RxRx1 as WILDS prepares it (Taylor et al. 2019, Koh et al. 2021), 125,510 images of 256 x 256 pixels. Layout: "
    "rxrx1_v1.0/images/<experiment>/Plate<plate>/<well>_s<site>.png and the table rxrx1_v1.0/metadata.csv. From "
    "wilds.stanford.edu/datasets; 7.4 GB. Licence: CC BY-NC-SA 4.0."
)
FOLDER, TABLE = "rxrx1_v1.0", "metadata.csv"
COLUMNS = ("cell_type", "experiment", "plate", "well", "site", "sirna_id")
CELL_TYPES = ("HEPG2", "HUVEC", "RPE", "U2OS")
GROUPS = 4  # of the batches of a cell type
# Forty treatments, seven positive controls (1108 to 1137) and the negative one (1138), by sirna_id, as released.
CLASSES = tuple(
    "13 51 54 61 65 88 161 178 189 191 198 209 228 255 285 318 326 407 440 447 451 457 476 501 541 563 569 689 696 704 "
    "735 775 778 859 864 865 919 940 1034 1098 1110 1112 1120 1122 1126 1131 1135 1138".split()
)
TEST, VALIDATION = 0.2, 0.1  # of a client's images; of the others


def load(root: Path, *, clients_per_cell_type: int = 4, size: int = 256, seed: int = 0) -> Federation:
    """Sites HEPG2_1, HEPG2_2, ..., HUVEC_1, ..., RPE_1, ..., U2OS_1, ...; 48 classes: genetic treatments of the cells.

    The batches of experiments on a cell type, in the order of their names, are cut into four groups of equal size; a
    client has one group, and what four groups leave over is not used (``notes``). A fifth of each client's images is
    for testing, always the same, and a tenth of the others is validation, with all classes in proportion.

    Args:
        clients_per_cell_type: how many of the four groups take part, the first of them. FRAug, Table 3: 2, 3 and 4,
            which are 8, 12 and 16 clients.
        size: the files have 256, as has the released reader.

    Reference: FRAug, Sec. 4.2.1. It prints 50 classes; its code lists the 48 that are taken. Which batches a group has,
    and the division into training and test images, is neither printed nor released.
    """
    check_whole(clients_per_cell_type=clients_per_cell_type)
    if clients_per_cell_type > GROUPS:
        raise RecipeError(f"clients_per_cell_type is {clients_per_cell_type}; expected a number from 1 to {GROUPS}.")
    sites, notes = [], ["48 classes as released; the paper says 50. Its division of the images is not known."]
    for cell_type, batches in _batches(root).items():
        each = len(batches) // GROUPS
        notes.append(f"{cell_type}: {GROUPS} groups of {each} batches, {len(batches) % GROUPS} left over.")
        for number in range(clients_per_cell_type):
            name = f"{cell_type}_{number + 1}"
            group = sorted(batches)[number * each : (number + 1) * each]
            rows = [row for experiment in group for row in batches[experiment]]
            if len(rows) < 10:  # a part may be empty
                raise DataError(f"{root / FOLDER / TABLE} has {len(rows)} images for {name}. Fetch it again.")
            rest, test = cut(decoded(root, f"rxrx1_{name}", rows, size, notes), (1 - TEST, TEST), "rxrx1", name)
            sites.append(Site(name, *cut(rest, (1 - VALIDATION, VALIDATION), "rxrx1", name, seed), test))
    return Federation("rxrx1", sites, CLASSES, notes)


def _batches(root: Path, **options) -> dict[str, dict[str, Rows]]:
    place = root / FOLDER
    require(place / TABLE, place / "images")
    held = {cell_type: {} for cell_type in CELL_TYPES}
    for cell_type, experiment, plate, well, site, treatment in table(place / TABLE, *COLUMNS):
        if cell_type not in held:
            raise DataError(f'{place / TABLE} has the cell type "{cell_type}"; expected {", ".join(CELL_TYPES)}.')
        batch = held[cell_type].setdefault(experiment, [])
        if treatment in CLASSES:
            file = place / "images" / experiment / f"Plate{plate}" / f"{well}_s{site}.png"
            batch.append((file, CLASSES.index(treatment)))
    return held


missing = lacking(_batches)
