"""BioID: grey faces, where each client holds the images of one person."""

from pathlib import Path

from fednb.datasets._listed import lacking
from fednb.datasets.celeba import Persons
from fednb.federation import Federation

NEEDS = (
    "The BioID Face Database (Jesorsky et al. 2001), 1,521 grey images of 384 x 286 pixels. Layout: "
    'bioid/images/BioID_<number>.pgm and bioid/identity_BioID.txt, a list with lines such as "BioID_0000.pgm 1": the '
    "page does not say which of its 23 persons an image shows, so it has to be written by hand. From "
    "www.bioid.com/facedb; 167 MB unpacked. Licence: for research on face detection."
)
DATA = Persons("bioid", "identity_BioID.txt", "images", crop=256, channels=1)
missing = lacking(DATA.listed)


def load(root: Path, *, clients: int = 20, size: int = 256, seed: int = 0) -> Federation:
    """Sites client_0, client_1, ..., each with the images of one person, grey; a class for each client. All is as in
    ``fednb.datasets.celeba.load``, persons by their names in the list.

    Args:
        clients: how many sites, and classes. DisTrans: 20.
        size: of the centre, 256 x 256, when resized. DisTrans: 256, for LeNet.

    Reference: DisTrans, Sec. 5 ("20 people's images in a descending order") and 5.1. Its reader and its list of
    persons are not released, nor is the share of test images printed: CelebA's is taken."""
    return DATA.federation(root, clients, size, seed)
