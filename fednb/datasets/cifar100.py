"""CIFAR-100: a hundred kinds of small photographs, dealt out to clients by class. The options of ``load`` are those of
``fednb.datasets.cifar10.load``."""

from functools import partial

from fednb.datasets._listed import lacking
from fednb.datasets.cifar10 import Cifar

NEEDS = (
    "CIFAR-100 (Krizhevsky 2009). Layout: torchvision's cifar-100-python/; or the binary version, cifar-100-binary/ "
    "with train.bin and test.bin; or cifar100/<train|test>/<class>/<file>. From www.cs.toronto.edu/~kriz/cifar.html; "
    "two archives of 161 MB. Licence: for research; that of the photographs is not stated."
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
    "cifar100",
    "CIFAR-100",
    CLASSES,
    folder="cifar-100-binary",
    pickled="cifar-100-python",
    files={"train": ("train",), "test": ("test",)},
    label=1,  # the fine one; byte 0 is the coarse one
)
load, missing = partial(CIFAR.load, classes_per_client=len(CLASSES)), lacking(CIFAR.place)
