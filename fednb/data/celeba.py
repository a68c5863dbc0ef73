"""CelebA: faces of celebrities, where each client holds the images of one person."""

from pathlib import Path

from fednb.data._persons import Persons
from fednb.data._published import Needs
from fednb.federation import Federation

NEEDS = Needs(
    what="CelebA (Liu et al. 2015), 202,599 aligned images of 178 x 218 pixels of 10,177 persons",
    layout="celeba/img_align_celeba/<number>.jpg and the list celeba/identity_CelebA.txt: torchvision's folder, "
    "unpacked; only the images of the persons in use have to be there",
    page="mmlab.ie.cuhk.edu.hk/projects/CelebA.html",
    download="img_align_celeba.zip, 1.4 GB, and the list",
    licence="for non-commercial research; the photographs belong to their owners",
    folders=("celeba",),
)
DATA = Persons(
    name="celeba",
    needed=("identity_CelebA.txt", "img_align_celeba"),
    needs=NEEDS,
    title="CelebA",
    complete=(202_599, 10_177),
    crop=178,
    channels=3,
)
missing, describe, counts, damaged = DATA.missing, DATA.describe, DATA.counts, DATA.damaged


def load(root: Path, *, clients: int = 50, size: int = 128, seed: int = 0) -> Federation:
    """Sites client_0, client_1, ..., each with the images of one person; RGB ``size`` x ``size``, a class for each
    client: the persons by their numbers in the list.

    They are those with the most images; of equally many the lower number. A fifth of each person's images is for
    testing, always the same, and a tenth of a client's others is validation. A client is tested on its own person and
    on as many images of the others: the heterogeneity is DH = 100 %, the only one that DisTrans evaluates here.

    Args:
        clients: how many sites, and classes. DisTrans: 50.
        size: height and width in pixels; the centre, 178 x 178, is resized bilinearly. DisTrans: 128, for AlexNet; its
            code crops 148 and resizes to 64 instead.
        seed: of who holds whom, of the validation images and of the test images of others.

    ``notes`` says so if the list is not whole. Licence and layout: see ``NEEDS``.

    Reference: DisTrans, Sec. 5 ("50 identities in descending order") and 5.1. As released: the persons with the most
    images, and 80 % of each for training; its draw is not the one here.

    Raises DataError when the list or an image of a person in use is missing or damaged, or there are too few persons
    or images; RecipeError for an option out of its range.
    """
    return DATA.federation(root, clients, size, seed)
