"""CelebA: faces of celebrities, where each client holds the images of one person."""

from dataclasses import dataclass
from pathlib import Path

from fednb.datasets._files import pairs
from fednb.datasets._listed import decoded, lacking, require
from fednb.datasets._partition import by_class_shares, check_whole, cut
from fednb.errors import DataError, RecipeError
from fednb.federation import Federation, Split

NEEDS = (
    "CelebA (Liu et al. 2015), 202,599 aligned images of 178 x 218 pixels of 10,177 persons. Layout: "
    "celeba/img_align_celeba/<number>.jpg and the list celeba/identity_CelebA.txt: torchvision's folder, unpacked. "
    "From mmlab.ie.cuhk.edu.hk/projects/CelebA.html; 1.4 GB. Licence: for non-commercial research."
)
SHARES = (0.8, 0.2)  # training and test images of each person


@dataclass(frozen=True)
class Persons:
    """Faces, where a class is a person and each client holds the images of one: CelebA or BioID.

    listing: the file in the folder ``name`` with lines "<image> <person>". folder: of the images, there. crop: the side
    of the square in the centre that is kept, in pixels. channels: 1 or 3."""

    name: str
    listing: str
    folder: str
    crop: int
    channels: int

    def federation(self, root: Path, clients: int, size: int, seed: int) -> Federation:
        """The persons with the most images, one for each client; the options are those of ``celeba.load``."""
        check_whole(clients=clients)
        persons, notes = self.listed(root), []
        if not 2 <= clients <= len(persons):
            there = f"at most {len(persons)}, the persons in {root / self.name / self.listing}"
            raise (RecipeError if clients < 2 else DataError)(f"clients is {clients}; expected 2 or more, and {there}.")
        chosen = sorted(persons, key=lambda person: (-len(persons[person]), len(person), person))[:clients]
        rows = [(file, number) for number, person in enumerate(chosen) for file in persons[person]]
        whole = decoded(root, self.name, rows, size, notes, crop=self.crop)
        whole = Split(whole.images[:, : self.channels].contiguous(), whole.targets)
        sites, dealt = by_class_shares(*cut(whole, SHARES, self.name), clients, clients, 1, self.name, seed)
        return Federation(self.name, sites, chosen, [*dealt, *notes])

    def listed(self, root: Path, **options) -> dict[str, list[Path]]:
        place, held = root / self.name, {}
        require(place / self.listing, place / self.folder)
        for file, person in pairs(place / self.listing).items():
            held.setdefault(person, []).append(place / self.folder / file)
        return held


DATA = Persons("celeba", "identity_CelebA.txt", "img_align_celeba", crop=178, channels=3)
missing = lacking(DATA.listed)


def load(root: Path, *, clients: int = 50, size: int = 128, seed: int = 0) -> Federation:
    """Sites client_0, client_1, ..., each with the images of one person; a class for each client: the persons by their
    numbers in the list.

    They are those with the most images; of equally many the lower number. A fifth of each person's images is for
    testing, always the same, and a tenth of a client's others is validation. A client is tested on its own person and
    on as many images of the others (DH = 100 %).

    Args:
        clients: how many sites, and classes. DisTrans: 50.
        size: of the centre, 178 x 178, when resized. DisTrans: 128, for AlexNet; its code crops 148 and resizes to 64.

    Reference: DisTrans, Sec. 5 ("50 identities in descending order") and 5.1. As released: the persons with the most
    images, and 80 % of each for training."""
    return DATA.federation(root, clients, size, seed)
