"""A picture's pixels, whether it is a file or an object in memory; what is unusual of it, and what is refused."""

import re
from collections.abc import Sequence

from PIL import ExifTags, Image, ImageOps

from fednb.errors import DataError

MOST_PIXELS = 2**26  # of an image, 8192 x 8192: the largest of the published data sets, in Office-Home, has 32 million
UNUSUAL = {
    "turned": "Stored turned (EXIF), which is heeded in your own folders alone",
    "upright": "Stored turned (EXIF), and turned upright",
    "transparent": "With transparent pixels, which become white",
    "frames": "With later frames or pages, which are not used",
}


def refuse(image: Image.Image, place: object) -> None:
    """DataError for an image of too many pixels, or of more than 8 bits a channel."""
    if image.width * image.height > MOST_PIXELS:
        size = f"{image.width} x {image.height}"
        raise DataError(f"{place} has {size} pixels; expected {MOST_PIXELS} or fewer. Make it smaller.")
    layout = [tile[3] for tile in getattr(image, "tile", ())]  # the samples in the file; 16-bit colours have no mode
    deep = any(re.search(r";16[BLN]", str(entry)) for entry in layout)
    deep |= image.format == "PPM" and any(isinstance(entry, tuple) and entry[-1] > 255 for entry in layout)
    if deep or image.mode.startswith(("I", "F")):
        raise DataError(f"{place} has more than 8 bits a channel (mode {image.mode}); expected 8. Convert it.")


def orientation(image: Image.Image) -> int:
    """Of the EXIF tag, 1 to 8; 1 where there is none or it cannot be read."""
    try:
        tag = image.getexif().get(ExifTags.Base.Orientation, 1)
    except Exception:  # damaged metadata of a picture that is whole
        return 1
    return tag if tag in range(1, 9) else 1


def plain(image: Image.Image, upright: bool) -> tuple[Image.Image, set[str]]:
    """A picture in RGB, and what of ``UNUSUAL`` it is. Transparent pixels are shown on white; the first frame counts;
    ``upright`` turns a photograph as its EXIF tag says, which the papers' code does not."""
    unusual = set()
    if getattr(image, "is_animated", False) and image.format != "MPO":  # there the others are previews
        unusual.add("frames")
    image.load()
    if orientation(image) != 1:
        unusual.add("upright" if upright else "turned")
        image = ImageOps.exif_transpose(image) if upright else image
    if image.has_transparency_data:
        shown = image.convert("RGBA")
        if shown.getchannel("A").getextrema()[0] < 255:
            unusual.add("transparent")
            image = Image.new("RGB", shown.size, "white")
            image.paste(shown, mask=shown)
    return image.convert("RGB"), unusual


def notes(names: Sequence[str], unusual: Sequence[set[str]]) -> list[str]:
    """A line for each kind of ``UNUSUAL``: what it is, how many of the images are, and the first."""
    found = {kind: [name for name, kinds in zip(names, unusual, strict=True) if kind in kinds] for kind in UNUSUAL}
    lines = {kind: f"{len(those)} of {len(names)} images, first {those[0]}." for kind, those in found.items() if those}
    return [f"{UNUSUAL[kind]}: {line}" for kind, line in lines.items()]
