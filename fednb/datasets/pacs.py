"""PACS: seven kinds of objects as art paintings, cartoons, photographs and sketches."""

from fednb.datasets._domains import Domains
from fednb.datasets._listed import lacking

NEEDS = (
    "PACS (Li et al. 2017). Layout: pacs/<domain>/<class>/<file>, domains art_painting, cartoon, photo, sketch (2048, "
    "2344, 1670, 3929 images), classes dog, elephant, giraffe, guitar, horse, house, person; the archive's folder "
    "kfold/, renamed, is pacs/. From www.eecs.qmul.ac.uk/~dl307/project_iccv2017; about 190 MB. Licence: for research; "
    "the images come from Caltech-256, Sketchy, TU-Berlin and Google."
)
DOMAINS = {name: name for name in ("art_painting", "cartoon", "photo", "sketch")}
CLASSES = ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")
NOTE = "PACS' own lists are not used: test, validation and training images are drawn by fednb."
DATA = Domains("pacs", DOMAINS, CLASSES, NOTE, side=227)
load, missing = DATA.load, lacking(DATA.rows)
