"""CIFAR-10: ten kinds of small photographs, dealt out to clients by class."""

from pathlib import Path

from fednb.data._cifar import Cifar
from fednb.data._published import Needs
from fednb.federation import Federation

NEEDS = Needs(
    what="CIFAR-10 (Krizhevsky 2009)",
    layout="as torchvision unpacks it, cifar-10-batches-py/ with data_batch_1 to data_batch_5 and test_batch, or "
    "cifar-10-python.tar.gz, in cifar10/ or in the data folder itself; or cifar10/<train|test>/<class>/<file>",
    page="www.cs.toronto.edu/~kriz/cifar.html",
    download="cifar-10-python.tar.gz, 170 MB",
    licence="for research; that of the photographs is not stated",
    folders=("cifar10",),
)
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CIFAR = Cifar(
    name="cifar10",
    title="CIFAR-10",
    folder="cifar-10-batches-py",
    archive="cifar-10-python.tar.gz",
    files={"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)},
    called="batches",
    labels="labels",
    classes=CLASSES,
    needs=NEEDS,
    pictures=True,
)
missing, describe, counts, damaged = CIFAR.missing, CIFAR.describe, CIFAR.counts, CIFAR.damaged


def load(
    root: Path,
    *,
    clients: int = 10,
    partition: str = "class_shares",
    classes_per_client: int = 10,
    concentration: float = 0.6,
    size: int = 64,
    train_images: int | None = None,
    test_images: int | None = None,
    spare: bool = False,
    seed: int = 0,
) -> Federation:
    """Sites client_0, client_1, ...; RGB ``size`` x ``size``, ten classes. A tenth of each client's training
    images is validation.

    Args:
        clients: how many sites. DisTrans: 10; FedFA: 100.
        partition: ``"class_shares"``: DisTrans' (``fednb.standalone.class_shares``), tested on the same classes in the
            same shares; with one class per client on as many images of other classes as well.
            ``"dirichlet"``: FedFA's (``_partition.dirichlet_shares``), at least 10 images for each client
            before a tenth becomes validation, tested on an equal part of all test images.
        classes_per_client: for class shares; times ``clients`` a multiple of ten. DisTrans: 10, 6, 4, 2, 1,
            which are DH = 0, 40, 60, 80, 100 %.
        concentration: for Dirichlet. FedFA: 0.6 and 0.3.
        size: height and width in pixels; resized bilinearly. DisTrans: 64. The files have 32.
        train_images: how many training images to use, stratified by class; None takes all on disk. A tenth of
            them is validation.
        test_images: the same for test images.
        spare: whether the test images that ``test_images`` leaves out are handed over as each site's ``spare``, dealt
            out as its test images are.
        seed: of all draws.

    Complete: 50,000 training and 10,000 test images; ``notes`` says how many are used if it is fewer.
    Licence and layout: see ``NEEDS``. Where there are batches and folders, the batches are read.

    Reference: DisTrans, Sec. 5 and 5.1; FedFA, App. E.1.

    Raises DataError when files are missing, damaged, fewer than asked for or too few for so many clients; RecipeError
    for an option out of its range.
    """
    partitioned = clients, partition, classes_per_client, concentration
    return CIFAR.federation(root, *partitioned, size, train_images, test_images, seed, spare)
