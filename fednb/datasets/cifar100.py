"""CIFAR-100: a hundred kinds of small photographs, dealt out to clients by class."""

from functools import partial
from pathlib import Path

from fednb.datasets._listed import Needs, lacking
from fednb.datasets.cifar10 import Cifar
from fednb.federation import Federation

NEEDS = Needs(
    what="CIFAR-100 (Krizhevsky 2009)",
    layout="as torchvision unpacks it, cifar-100-python/ with train and test, in cifar100/ or the data folder itself",
    page="www.cs.toronto.edu/~kriz/cifar.html",
    download="cifar-100-python.tar.gz, 169 MB",
    licence="for research; that of the photographs is not stated",
)
# The fine classes in the order of their numbers, which is the alphabet's.
CLASSES = tuple(
    """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can castle
    caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin elephant
    flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree
    motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate
    poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake spider
    squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle
    wardrobe whale willow_tree wolf woman worm
    """.split()
)
CIFAR = Cifar(
    name="cifar100",
    title="CIFAR-100",
    folder="cifar-100-python",
    files={"train": ("train",), "test": ("test",)},
    labels="fine_labels",
    classes=CLASSES,
)
missing = partial(lacking, CIFAR.place)


def load(
    root: Path,
    *,
    clients: int = 10,
    partition: str = "class_shares",
    classes_per_client: int = 100,
    concentration: float = 0.6,
    size: int = 64,
    train_images: int | None = None,
    test_images: int | None = None,
    seed: int = 0,
) -> Federation:
    """Sites client_0, client_1, ...; a hundred classes, the fine ones. All as for ``cifar10``, but that no image is
    spare.

    Args:
        clients: how many sites. DisTrans: 10; 50, 100 and 500 in its Table 6.
        partition: ``"class_shares"``, DisTrans', or ``"dirichlet"``.
        classes_per_client: for class shares; times ``clients`` a multiple of a hundred. DisTrans, with 10 clients:
            100, 60, 40, 20, 10, which are DH = 0, 40, 60, 80, 100 %; at 100 % the clients' classes are disjoint.
            Table 6: 10.
        concentration: for Dirichlet.
        size: the files have 32. DisTrans, Sec. 5 names no resizing; its Table 7 counts ResNet-50, used for CIFAR-100
            alone, at 64.
        train_images: how many training images to use, stratified by class; None takes all on disk.
        test_images: the same for test images.
        seed: of all draws.

    Reference: DisTrans, Sec. 5, 5.1 and 5.4. Its released code has no CIFAR-100.
    """
    dealt = clients, partition, classes_per_client, concentration
    return CIFAR.federation(root, *dealt, size, train_images, test_images, seed)
