"""Own folders: each row a tree of files, and what is read of it, noted or refused."""

import os
import re
import struct
import unicodedata
import zlib

import numpy as np
import pytest
import torch
from PIL import Image, PngImagePlugin

import fednb
from fednb.datasets import _images as images
from fednb.errors import DataError, RecipeError
from fednb.federation import SPLITS, Federation

NAMES = ("background", "tumour")
THREE = ("background", "rim", "cup")
NFC, NFD = (unicodedata.normalize(form, "M\u00fcller") for form in ("NFC", "NFD"))


def noise(number: int, *shape: int) -> np.ndarray:
    return np.random.RandomState(number).randint(0, 256, shape or (8, 8, 3), np.uint8)


def rows(*filled: int) -> np.ndarray:
    """A mask whose filled rows are 1."""
    mask = np.zeros((8, 8), np.uint8)
    mask[list(filled)] = 1
    return mask


def classes(*sites: str, each: int = 5) -> dict:
    """Class folders cat and dog with so many images each."""
    names = [f"{site}/{label}/{n}.png" for site in sites for label in ("cat", "dog") for n in range(each)]
    return {name: noise(number) for number, name in enumerate(names)}


def masks(*sites: str) -> dict:
    """Ten images a site; of image n the first n % 8 + 1 rows are 1."""
    tree = {}
    for number in range(10 * len(sites)):
        site, n = sites[number // 10], number % 10
        tree |= {f"{site}/images/{n}.png": noise(number), f"{site}/masks/{n}.png": rows(*range(n % 8 + 1))}
    return tree


def image(array: np.ndarray, mode: str | None = None, **how):
    """Writes an image with what Pillow's ``save`` takes; ``orientation`` is the EXIF tag."""

    def write(path):
        made = Image.fromarray(array)
        made = made.convert(mode) if mode else made
        if orientation := how.pop("orientation", None):
            how["exif"] = Image.Exif()
            how["exif"][0x0112] = orientation
        made.save(path, **how)

    return write


def palette(array: np.ndarray, *colours: int, **how):
    def write(path):
        made = Image.fromarray(array)
        made.putpalette(colours)
        made.save(path, **how)

    return write


def grown(root, *trees: dict):
    """The trees as files in ``root/own``; of one path the last counts, None is no file."""
    for name, content in {name: content for tree in trees for name, content in tree.items()}.items():
        path = root / "own" / name
        if content is None:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if callable(content):
            content(path)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            Image.fromarray(content).save(path)
    return root


def load(root, **options):
    return fednb.load("folders", root, folder="own", **{"size": 8} | options)


def held(federation: Federation, site: str) -> dict:
    """The targets of a site's images by their pixels."""
    parts = [getattr(federation.site(site), split) for split in SPLITS]
    return {i.numpy().tobytes(): t.numpy() for p in parts for i, t in zip(p.images, p.targets, strict=True)}


def target(root, federation: Federation, name: str):
    """The target of the image in this file."""
    return held(federation, name.split("/")[0])[images.decode(root / "own" / name, 8, upright=True)[0].tobytes()]


def under(name: str, tree: dict) -> dict:
    return {f"{name}/{path}": content for path, content in tree.items()}


def deep(colour: int, channels: int) -> bytes:
    """The bytes of a PNG of two pixels with 16 bits a channel, of this colour type; Pillow writes none of these."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 2, 1, 16, colour, 0, 0, 0)
    lines = zlib.compress(b"\0" + bytes(range(4 * channels)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", lines) + chunk(b"IEND", b"")


def tiff(samples: bytes, width: int, height: int, photometric: int) -> bytes:
    """An unpacked grey TIFF file; photometric 0: white is 0, 1: black is 0."""
    tags = {256: width, 257: height, 258: 8, 259: 1, 262: photometric, 273: 122, 277: 1, 278: height, 279: len(samples)}
    entries = b"".join(struct.pack("<HHII", tag, 3, 1, value) for tag, value in tags.items())
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags)) + entries + bytes(4) + samples  # which begin at 122


TWO, MASKED, PNG = classes("north", "south"), masks("north", "south"), noise(99)
HALF = np.dstack([noise(1), np.full((8, 8), 255, np.uint8)])
HALF[:, :4, 3] = 0
RED, BLUE = (Image.new("RGB", (8, 8), colour) for colour in ("red", "blue"))
NOWHERE = "has no images where they are expected (it has"
LAYOUTS = [  # the trees of class folders, what is said of them before an image is decoded
    ([], "There is no folder {own} with site folders (it is empty)"),
    ([TWO, {"west/cat/0.heic": b"-"}], f"west {NOWHERE} cat)"),
    ([TWO, masks("west")], f"west {NOWHERE} images, masks)"),
    ([{"train/cat/0.png": PNG, "val/cat/1.png": PNG}], "site, even for a single one, and put its train and validation"),
    ([{"a/train/cat/0.png": PNG, "a/val/cat/0.png": PNG}], "a is divided, and it has train, val; expected folders tra"),
    ([{"a/train/cat/0.png": PNG, "a/test/cat/0.png": PNG, "a/dog/0.png": PNG}], "a is divided, and it has dog, test, "),
    ([classes(NFC), classes(NFD)], "own has a site twice, in Unicode's two forms of a name"),
    ([{"average/cat/0.png": PNG}], 'own has a site "average"'),
    ([{"h\udcf4tel/cat/0.png": PNG}], 'own has a site "h\\udcf4tel"; expected names'),
    ([TWO, {"south/dog/0_Segmentation.tif": rows(1)}], "dog/0_Segmentation.tif is the mask of 0.png by its name"),
]
MASK_LAYOUTS = [
    ([TWO, masks("west")], f"north {NOWHERE} cat, dog)"),
    ([under("Train", MASKED), under("val", MASKED)], "own has parts in the place of sites (it has Train, val)"),
    ([{"images/train/0.png": PNG, "masks/train/0.png": PNG}], f"own {NOWHERE} images, masks)"),
    ([MASKED, {"south/masks/3.png": None, "south/masks/7.png": None}], "There is no {own}/south/masks/3.* for "
     "{own}/south/images/3.png (2 such files)"),
    ([MASKED, {"south/masks/3_seg.png": rows(1)}], "has the name of another file there"),
]  # fmt: skip
IMAGES = [  # the same of what is in the files
    ([TWO, {"north/cat/x.png": b"no image"}], "x.png cannot be decoded ("),
    ([TWO, {"north/cat/x.png": lambda path: Image.new("L", (9000, 9000)).save(path)}], "x.png has 9000 x 9000 pixels"),
]
MASKS = [  # a mask of north, and what is said of it
    (noise(1, 6, 8), "masks/3.png is 8 x 6 pixels and its image 8 x 8"),
    (2 * rows(1) + rows(4), "masks/3.png has the values 0, 1, 2; expected 0 to 1 (2 classes), or 255"),
    (rows(*range(8)) * 255, "masks/3.png has the values 255; expected 0 to 1"),
    (palette(rows(3), 0, 0, 0, 9, 9, 9, transparency=1), "masks/3.png has transparent pixels"),
    (image(rows(3), orientation=3), "with the EXIF orientations 3 and 1 (1: upright); expected the same"),
]
REFUSED = [
    *((trees, (), said, True) for trees, said in LAYOUTS),
    *((trees, NAMES, said, True) for trees, said in MASK_LAYOUTS),
    *((trees, (), said, False) for trees, said in IMAGES),
    *(([MASKED, {"north/masks/3.png": mask}], NAMES, said, False) for mask, said in MASKS),
    ([MASKED, {"north/images/3.png": image(PNG, orientation=6)}], NAMES, "EXIF orientations 1 and 6", False),
    ([MASKED, {f"north/masks/{n}.png": 255 * rows(n % 8) for n in range(10)}], THREE,
     "north has masks of 0 and 255 alone ({own}/north/masks) for 3 classes; 255 is ignored", False),
]  # fmt: skip


@pytest.mark.parametrize(("trees", "masks", "said", "at_once"), REFUSED, ids=[row[2][:30] for row in REFUSED])
def test_refused(tmp_path, trees, masks, said, at_once):
    said = said.format(own=grown(tmp_path, *trees) / "own")
    for _ in range(2):  # decoded, and from the cache
        with pytest.raises(DataError, match=re.escape(said)):
            load(tmp_path, masks=masks)
    problem = fednb.datasets.available("folders", tmp_path, folder="own", masks=masks)
    assert said in problem if at_once else problem is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        *(({"shares": shares}, "sum 1") for shares in ("abc", (0.6, "a", 0.2), (0.5, 0.5), (1.2, -0.3, 0.1))),
        *(({"masks": names}, "expected the names of 2 to 255") for names in ("tumour", ("a", "a"), ("a", 1))),
        *(({"folder": name}, "expected a name in quotes") for name in (3, "h\udcf4tel")),
        ({"masks": NAMES, "classes": ("cat", "dog")}, "expected one: masks for pixels, else classes"),
        ({"classes": "cat"}, "expected a list of names"),
        ({"size": 10**6}, "a number from 1 to 8192"),
    ],
)
def test_options_that_are_none(tmp_path, options, said):
    with pytest.raises(RecipeError, match=re.escape(said)):
        fednb.load("folders", grown(tmp_path, TWO), **{"folder": "own"} | options)


def of_north(mask: np.ndarray) -> list[dict]:
    return [MASKED, {"north/masks/3.png": mask}]


X, FIRST = "north/cat/x.png", "1 of 11 images, first north/cat/x"
WHITE = (f"With transparent pixels, which become white: {FIRST}.png.",)
LEFT = {"north/cat/old/0.png": PNG, "north/1.heic": b"-", "0.heic": b"-", "north/.git/x": b"-", "north/notes": b"-"}
NOTED = [  # trees, names of masks' classes, the notes
    ([TWO], (), ()),
    ([MASKED], NAMES, ()),
    ([TWO, {"north/cat/x.jpg": image(PNG, orientation=6)}], (),
     (f"Stored turned (EXIF), and turned upright: {FIRST}.jpg.",)),
    ([TWO, {X: image(HALF)}], (), WHITE),
    ([TWO, {X: palette(np.uint8(HALF[:, :, 3] == 0), *range(6), transparency=1)}], (), WHITE),
    *(([TWO, {f"north/cat/x.{kind}": lambda path: RED.save(path, save_all=True, append_images=[BLUE])}], (),
       (f"With later frames or pages, which are not used: {FIRST}.{kind}.",)) for kind in ("gif", "tif")),
    ([TWO, LEFT], (), ("Files left out: 4, first 0.heic. Expected: <folder>/<site>/<class>/<file>, in "
                       f"{images.KNOWN}.",)),
    ([TWO, {f"{place}/@eaDir/0.png/x.png": PNG for place in ("north", "north/cat", ".")}], (), ()),
    ([TWO, {"west/cat/0.png": PNG}], (), ("west has no validation and no test images: it has too few for the shares.",
                                          "west has no training image of dog.")),
    ([{"a/train/cat/0.png": PNG, "a/val/cat/0.png": noise(1), "a/TEST/cat/0.png": PNG}], (),
     ("1 images are there twice, the first in a / train and a / test.",)),
    ([MASKED, {f"north/masks/{n}.png": 255 * rows(n % 8) for n in range(10)}], NAMES, ()),
    (of_north(rows(1) + 255 * rows(2)), NAMES, ()),
    (of_north(rows()), NAMES, ("north: 1 of 10 masks are background alone, first north/masks/3.png.",)),
]  # fmt: skip


@pytest.mark.parametrize(("trees", "masks", "said"), NOTED)
def test_noted(tmp_path, trees, masks, said):
    grown(tmp_path, *trees)
    for _ in range(2):  # decoded, and from the cache
        assert load(tmp_path, masks=masks).notes == said


class TestRead:
    def test_class_folders_are_cut_by_class(self, tmp_path):
        federation = load(grown(tmp_path, classes("a", each=20), classes("b", each=10)))
        assert federation.name == "own" and federation.classes == ("cat", "dog") and federation.task == "classification"
        assert federation.counts().to_numpy().tolist() == [[24, 6, 10], [12, 3, 5]]
        for site in federation.sites:
            for split in SPLITS:
                cats, dogs = getattr(site, split).targets.bincount().tolist()
                assert abs(cats - dogs) <= 1
        assert fednb.load("folders", tmp_path / "own", size=8).fingerprint == federation.fingerprint
        assert federation.fingerprint == load(tmp_path, fingerprint=federation.fingerprint).fingerprint
        assert federation.fingerprint != load(tmp_path, seed=1).fingerprint
        assert load(tmp_path, size=9).image_shape == (3, 9, 9)

    @pytest.mark.parametrize(
        ("parts", "counts"),
        [
            ({"train": 8, "test": 10}, [6, 2, 10]),
            ({"Training": 8, "VAL": 1, "testing": 10}, [8, 1, 10]),
            ({"train": 8, "valid": 1, "test": 10}, [8, 1, 10]),
        ],
    )
    @pytest.mark.parametrize("kinds", [{}, {"images": "Img", "masks": "Labels"}])
    def test_divided_on_disk(self, tmp_path, parts, counts, kinds):
        for number, (part, count) in enumerate(parts.items()):
            for n in range(count):
                folder = kinds.get("images", "cat")
                mask = {f"{part}/{kinds['masks']}/{n}.png": rows(number)} if kinds else {}
                grown(tmp_path, under("a", {f"{part}/{folder}/{n}.png": noise(100 * number + n)} | mask))
        federation = load(tmp_path, masks=NAMES if kinds else ())
        assert [len(getattr(federation.sites[0], split)) for split in SPLITS] == counts
        last = federation.sites[0].test.targets
        assert (last == torch.from_numpy(rows(len(parts) - 1))).all() if kinds else (last == 0).all()

    def test_words_of_the_layout_may_be_classes_and_sites(self, tmp_path):
        tree = {f"{site}/{label}/0.png": PNG for site in ("test", "other") for label in ("Train", "bus", "mask")}
        assert load(grown(tmp_path, tree)).classes == ("Train", "bus", "mask")

    def test_a_name_is_one_in_both_forms_of_unicode(self, tmp_path):
        federation = load(grown(tmp_path, {f"a/{NFC}/0.png": PNG, f"{NFD}/{NFD}/0.png": PNG}))
        assert federation.classes == (NFC,) and federation.site(NFD).name == NFC == federation.site(NFC).name
        assert load(tmp_path, classes=(NFD, "x"), site=NFD).classes == (NFC, "x")

    @pytest.mark.parametrize(("tag", "turns", "mirrored"), [(1, 0, 0), (3, 2, 0), (6, -1, 0), (8, 1, 0), (2, 0, 1)])
    def test_photographs_are_turned_upright(self, tmp_path, tag, turns, mirrored):
        """What is stored, turned against the clock in quarters: the tags' meaning in the EXIF standard."""
        path = grown(tmp_path, {"x.png": image(PNG, orientation=tag)}) / "own" / "x.png"
        meant = PNG[:, ::-1] if mirrored else np.rot90(PNG, turns)
        upright, unusual = images.decode(path, 8, upright=True)
        assert (upright == meant.transpose(2, 0, 1)).all() and bool(unusual) == (tag > 1)
        assert (images.decode(path, 8)[0] == PNG.transpose(2, 0, 1)).all()

    def test_transparent_pixels_are_white_and_grey_has_three_channels(self, tmp_path):
        root = grown(tmp_path, {"half.png": image(HALF), "grey.png": noise(1, 8, 8)})
        half = images.decode(root / "own" / "half.png", None)[0]
        assert (half[:, :, :4] == 255).all() and (half[:, :, 4:] == HALF[:, 4:, :3].transpose(2, 0, 1)).all()
        assert (images.decode(root / "own" / "grey.png", None)[0] == noise(1, 8, 8)).all()

    @pytest.mark.parametrize("content", [deep(2, 3), deep(4, 2), b"P6 2 1 65535 " + bytes(range(12))])
    def test_sixteen_bits_are_refused(self, tmp_path, content):
        with pytest.raises(DataError, match="x.png has more than 8 bits"):
            images.decode(grown(tmp_path, {"x.png": content}) / "own" / "x.png", 8)


class TestMasks:
    @pytest.mark.parametrize("name", ["{}.png", "{}_mask.tif", "{}_Segmentation.png", "{}_seg.bmp"])
    def test_a_mask_is_that_of_its_image(self, tmp_path, name):
        tree = {n: mask for n, mask in masks("north").items() if "masks" not in n}
        tree |= {f"north/masks/{name.format(n)}": rows(n % 8) for n in range(10)}
        federation = load(grown(tmp_path, tree), masks=list(NAMES))
        assert len(held(federation, "north")) == 10 and federation.task == "segmentation"
        for n in range(10):
            assert (target(tmp_path, federation, f"north/images/{n}.png") == rows(n % 8)).all()

    @pytest.mark.parametrize(
        ("mask", "meant"),
        [
            (palette(rows(2), 255, 255, 255, 0, 0, 0), rows(2)),  # the numbers of a palette, not its colours
            (image(255 * rows(2), "1"), 255 * rows(2)),
            (tiff(rows(2).tobytes(), 8, 8, photometric=1), rows(2)),
            (tiff(rows(2).tobytes(), 8, 8, photometric=0), rows(2)),  # stored as the other, and shown inverted
            (image(rows(2), transparency=7), rows(2)),  # of no pixel
        ],
    )
    def test_values_are_those_that_are_stored(self, tmp_path, mask, meant):
        path = grown(tmp_path, {"x.tif": mask}) / "own" / "x.tif"
        assert (images.decode_mask(path) == meant).all()

    def test_an_image_that_is_shown_upright_has_an_upright_mask(self, tmp_path):
        both = {"north/images/4.png": image(noise(4), orientation=3)}
        both |= {"north/masks/4.png": image(rows(0), orientation=3)}
        root = grown(tmp_path, MASKED, both)
        assert (target(root, load(root, masks=NAMES), "north/images/4.png") == rows(7)).all()

    def test_a_resized_pixel_has_the_class_that_covers_most_of_it(self, tmp_path):
        """Halved, a small row sees its own two rows by 3/8 each and the next ones by 1/8: of rows 2 to 4 small row 1
        gets 7/8 and small row 2 gets 1/8 and 3/8, a half of it: the lower class has it."""
        root = grown(tmp_path, MASKED, {f"north/masks/{n}.png": 2 * rows(2, 3, 4) for n in range(10)})
        mask = load(root, masks=THREE, size=4).site("north").train.targets[0]
        assert mask.tolist() == [[0] * 4, [2] * 4, [0] * 4, [0] * 4]


class TestHostile:
    def test_no_file_starts_another_program(self, tmp_path, monkeypatch):
        """PostScript under an image's name: Pillow would call Ghostscript."""
        ghost = tmp_path / "bin" / "gs"
        ghost.parent.mkdir()
        ghost.write_text(f"#!/bin/sh\ntouch {tmp_path}/called\n")
        ghost.chmod(0o755)
        monkeypatch.setenv("PATH", f"{ghost.parent}:{os.environ['PATH']}")
        script = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n"
        for trees, names in (
            ([TWO, {"north/cat/x.png": script}], ()),
            ([MASKED, {"north/masks/3.png": script}], NAMES),
        ):
            with pytest.raises(DataError, match=r"\.png cannot be decoded"):
                load(grown(tmp_path, *trees), masks=names)
        assert not (tmp_path / "called").exists()

    @pytest.mark.parametrize("how", ["text", "profile", "exif"])
    def test_a_whole_image_with_odd_metadata_is_read(self, tmp_path, how):
        long, text = b"x" * 3_000_000, PngImagePlugin.PngInfo()
        text.add_itxt("a", long.decode(), zip=True)
        given = {"text": {"pnginfo": text}, "profile": {"icc_profile": long}, "exif": {"exif": b"Exif\0\0" + long}}[how]
        path = grown(tmp_path, {"x.png": image(PNG, **given)}) / "own" / "x.png"
        assert (images.decode(path, None, upright=True)[0] == PNG.transpose(2, 0, 1)).all()

    def test_folders_that_cannot_be_read(self, tmp_path, monkeypatch):
        def refuse(folder):
            raise PermissionError(13, "Permission denied", str(folder))

        monkeypatch.setattr(images, "subfolders", refuse)
        with pytest.raises(DataError, match="folders cannot be read: .*Permission denied: .*own"):
            load(grown(tmp_path, TWO))

    def test_a_pipe_is_no_image(self, tmp_path):
        os.mkfifo(grown(tmp_path, TWO) / "own/north/cat/pipe.png")
        assert load(tmp_path).notes[0].startswith("Files left out: 1, first north/cat/pipe.png.")
        with pytest.raises(DataError, match="no regular file"):
            images.decode(tmp_path / "own/north/cat/pipe.png", 8)
