"""Office-Home: 65 kinds of objects in art, as clip art, in shops and in photographs."""

from pathlib import Path

from fednb.data._fraction import Cut
from fednb.data._published import Needs
from fednb.federation import Federation

NEEDS = Needs(
    what="Office-Home (Venkateswara et al. 2017)",
    layout="office_home/<domain>/<class>/<file>, domains Art, Clipart, Product, Real World (2427, 4365, 4439, 4357 "
    "images), 65 classes Alarm_Clock to Webcam; the archive's folder OfficeHomeDataset_10072016/, renamed, is "
    "office_home/",
    page="www.hemanthdv.org/officeHomeDataset.html",
    download="one archive of 1.1 GB",
    licence="for research that is not commercial, under fair use: the images belong to their authors",
    folders=("office_home",),
)
# Site, its folder and how many images it has.
DOMAINS = {
    "art": ("Art", 2427),
    "clipart": ("Clipart", 4365),
    "product": ("Product", 4439),
    "real": ("Real World", 4357),
}
CLASSES = (
    *("Alarm_Clock", "Backpack", "Batteries", "Bed", "Bike", "Bottle", "Bucket", "Calculator", "Calendar", "Candles"),
    *("Chair", "Clipboards", "Computer", "Couch", "Curtains", "Desk_Lamp", "Drill", "Eraser", "Exit_Sign", "Fan"),
    *("File_Cabinet", "Flipflops", "Flowers", "Folder", "Fork", "Glasses", "Hammer", "Helmet", "Kettle", "Keyboard"),
    *("Knives", "Lamp_Shade", "Laptop", "Marker", "Monitor", "Mop", "Mouse", "Mug", "Notebook", "Oven"),
    *("Pan", "Paper_Clip", "Pen", "Pencil", "Postit_Notes", "Printer", "Push_Pin", "Radio", "Refrigerator", "Ruler"),
    *("Scissors", "Screwdriver", "Shelf", "Sink", "Sneakers", "Soda", "Speaker", "Spoon", "TV", "Table"),
    *("Telephone", "ToothBrush", "Toys", "Trash_Can", "Webcam"),
)
NOTE = "Office-Home has no lists: test, validation and training images are drawn by fednb."
DATA = Cut("office_home", DOMAINS, CLASSES, NEEDS, NOTE)
missing, describe, counts = DATA.missing, DATA.describe, DATA.counts


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
    """Four sites art, clipart, product, real; RGB ``size`` x ``size``, 65 classes.

    Office-Home has no lists: a domain is cut here, by class. A tenth is for testing, always the same; of the rest a
    tenth is validation, drawn by ``seed``, and of what is left ``fraction`` is used for training. FRAug's code takes
    the same shares, but its cut depends on the order in which the file system lists a folder: it cannot be had again.
    Here files are sorted by name.

    Args:
        fraction: share of a domain's training images that is used, stratified by class. FRAug: 0.1, by which its code
            trains on 8.1 % of a domain; its text says "10% of the original data", which is 0.1235.
        test_fraction: share of the test images that is used, stratified; below 1 testing takes less time.
        size: height and width in pixels; resized bilinearly without cropping. Grey images get three channels.
            FRAug prints none, its code uses 224.
        spare: whether the training images that ``fraction`` leaves out are handed over as each site's ``spare``, as
            FRAug's Table 1 needs; at 224 pixels they take 1.7 GB.
        seed: of the validation and training images.

    ``notes`` says so when a domain has more or fewer images than the original. Licence and layout: see ``NEEDS``.

    Reference: FRAug, Sec. 4.1.1.

    Raises DataError when a domain or a class is missing or an image is damaged; RecipeError for an option out
    of its range.
    """
    return DATA.federation(root, fraction, test_fraction, size, spare, seed, site, _other_number)


def _other_number(domain: str, files: list[Path], used: list[Path]) -> list[str]:
    folder, complete = DOMAINS[domain]
    return [f"{folder} has {len(files)} images; Office-Home's has {complete}."] if len(files) != complete else []
