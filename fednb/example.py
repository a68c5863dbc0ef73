"""A small folder of images, to try the loader of your own data on."""

import tempfile
from pathlib import Path

from PIL import Image

from fednb.data import load


def example_folders(target: str | Path | None = None, per_class: int = 12) -> str:
    """Writes ``<site>/<class>/<number>.png`` from the embedded digits and returns the folder.

    target: an empty or missing folder; a new temporary one unless given. per_class: images per site and class.
    """
    target = Path(target or tempfile.mkdtemp(prefix="fednb_example_"))
    federation = load("shifted_digits")
    for site in federation.sites:
        for label, name in enumerate(federation.classes):
            folder = target / site.name / f"digit_{name}"
            folder.mkdir(parents=True)
            chosen = site.train.images[site.train.targets == label][:per_class]
            for number, image in enumerate(chosen):
                Image.fromarray(image.permute(1, 2, 0).numpy()).save(folder / f"{number:02}.png")
    return str(target)
