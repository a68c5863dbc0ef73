"""A small folder of images, to try the loader of your own data on."""

import shutil
import tempfile
from pathlib import Path

import platformdirs
from PIL import Image

from fednb.datasets import load


def example_folders(target: str | Path | None = None, per_class: int = 20) -> str:
    """Writes ``<site>/<class>/<number>.png`` from the embedded digits, once, and returns the folder.

    target: a missing folder, or one written before; in the user's cache unless given. per_class: images per site
    and class.
    """
    target = Path(target or Path(platformdirs.user_cache_dir("fednb")) / f"example_{per_class}")
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        begun = Path(tempfile.mkdtemp(dir=target.parent, prefix=".example"))
        _write(begun, per_class)
        try:
            begun.rename(target)
        except OSError:  # another process was faster
            shutil.rmtree(begun)
    return str(target)


def _write(folder: Path, per_class: int) -> None:
    federation = load("shifted_digits")
    for site in federation.sites:
        for label, name in enumerate(federation.classes):
            inside = folder / site.name / f"digit_{name}"
            inside.mkdir(parents=True)
            for number, image in enumerate(site.train.images[site.train.targets == label][:per_class]):
                Image.fromarray(image.permute(1, 2, 0).numpy()).save(inside / f"{number:02}.png")
