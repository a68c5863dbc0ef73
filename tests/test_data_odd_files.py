"""Images that are used otherwise than meant, files that unpack to more than they may, and files that are none."""

import os
import struct
import zlib

import numpy as np
import pytest
from PIL import Image
from test_data_readers import limited

import fednb.datasets
from fednb.datasets import _images as images
from fednb.errors import DataError, RecipeError


def noise(number: int, *shape: int) -> np.ndarray:
    return np.random.RandomState(number).randint(0, 256, shape, np.uint8)


@pytest.fixture
def own(tmp_path, picture):
    """root/own/<north|south>/<cat|dog>/: ten images each."""
    root = tmp_path / "data"
    for number in range(40):
        site, label = ("north", "south")[number % 2], ("cat", "dog")[number // 2 % 2]
        picture(root / "own" / site / label / f"{number:02}.png", number)
    return root


def load(root, **options):
    return fednb.datasets.load("folders", root, folder="own", size=8, **options)


def turned(path, pixels: np.ndarray, tag: int):
    exif = Image.Exif()
    exif[0x0112] = tag
    Image.fromarray(pixels).save(path, exif=exif)


class TestUsedAsMeant:
    @pytest.mark.parametrize("tag, turns, mirrored", [(3, 2, False), (6, -1, False), (8, 1, False), (2, 0, True)])
    def test_own_photographs_are_turned_upright(self, tmp_path, tag, turns, mirrored):
        """What is stored, turned against the clock in quarters: the tags' meaning in the EXIF standard."""
        stored = noise(1, 8, 8, 3)
        turned(tmp_path / "photo.png", stored, tag)
        meant = stored[:, ::-1] if mirrored else np.rot90(stored, turns)
        upright, unusual = images.decode(tmp_path / "photo.png", 8, upright=True)
        assert (upright == meant.transpose(2, 0, 1)).all() and unusual == {"turned"}
        assert (images.decode(tmp_path / "photo.png", 8)[0] == stored.transpose(2, 0, 1)).all()

    def test_own_folders_are_read_upright_and_apart_from_published_ones(self, own):
        turned(own / "own" / "north" / "cat" / "00.png", noise(1, 8, 8, 3), 6)
        federation = load(own)
        meant = np.rot90(noise(1, 8, 8, 3), -1).transpose(2, 0, 1)
        site = federation.site("north")
        held = [image for part in (site.train, site.validation, site.test) for image in part.images.numpy()]
        assert any((image == meant).all() for image in held) and federation.notes == ()
        assert load(own).fingerprint == federation.fingerprint
        paths = images.files(own / "own" / "north" / "cat")
        _, notes = images.read(own, "own_north", paths, 8)
        assert notes == [
            "Stored turned (EXIF), which is heeded in your own folders alone: 1 of 10 images, first north/cat/00.png."
        ]

    @pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "RGB"])
    def test_transparent_pixels_are_white_and_a_note(self, own, mode):
        """The left half is transparent, of whatever colour; the right half keeps its own."""
        path = own / "own" / "north" / "cat" / "00.png"
        colours = np.full((8, 8, 3), (0, 0, 0), np.uint8)
        colours[:, :4] = 90
        opaque = np.full((8, 8), 255, np.uint8)
        opaque[:, :4] = 0
        if mode in ("RGBA", "LA"):
            grey = colours if mode == "RGBA" else colours[:, :, :1]
            Image.fromarray(np.concatenate((grey, opaque[:, :, None]), 2), mode).save(path)
        elif mode == "P":
            image = Image.fromarray((opaque == 0).astype(np.uint8), "P")
            image.putpalette([0, 0, 0, 90, 90, 90])
            image.save(path, transparency=1)
        else:
            Image.fromarray(colours).save(path, transparency=(90, 90, 90))
        pixels, unusual = images.decode(path, None)
        assert (pixels[:, :, :4] == 255).all() and (pixels[:, :, 4:] == 0).all() and unusual == {"transparent"}
        for _ in range(2):  # decoded, and from the cache
            (note,) = load(own).notes
            assert note == "With transparent pixels, which become white: 1 of 20 images, first north/cat/00.png."
        assert note.replace("20", "40") in str(fednb.datasets.check(own))

    def test_an_opaque_alpha_channel_changes_nothing(self, tmp_path):
        pixels = noise(1, 8, 8, 3)
        Image.fromarray(np.concatenate((pixels, np.full((8, 8, 1), 255, np.uint8)), 2)).save(tmp_path / "a.png")
        decoded, unusual = images.decode(tmp_path / "a.png", None)
        assert (decoded == pixels.transpose(2, 0, 1)).all() and not unusual

    @pytest.mark.parametrize("name", ["rgb.png", "rgba.png", "rgb.tif", "packed.tif", "rgb.ppm", "grey.pgm", "la.png"])
    def test_sixteen_bits_are_refused_in_colour_too(self, tmp_path, name):
        path = tmp_path / name
        path.write_bytes(deep(name))
        with pytest.raises(DataError, match=rf"{name} has more than 8 bits"):
            images.decode(path, 8)

    @pytest.mark.parametrize("name", ["five.bmp", "four.ppm", "grey.png"])
    def test_fewer_bits_are_not(self, tmp_path, name):
        path = tmp_path / name
        if name == "five.bmp":  # 5 bits a channel, "BGR;15" to Pillow
            header = (14 + 40).to_bytes(4, "little")
            info = b"".join(n.to_bytes(4, "little") for n in (40, 2, 2)) + b"\1\0\x10\0" + bytes(24)
            path.write_bytes(b"BM" + bytes(8) + header + info + b"\xff\x7f" * 4)
        elif name == "four.ppm":
            path.write_bytes(b"P6 1 1 15 " + b"\x0f\x0f\x0f")
        else:
            Image.new("1", (2, 2), 1).save(path)
        assert (images.decode(path, None)[0] == 255).all()

    @pytest.mark.parametrize("suffix", ["gif", "tif", "webp", "png"])
    def test_later_frames_are_a_note(self, own, suffix):
        first, second = Image.new("RGB", (8, 8), "red"), Image.new("RGB", (8, 8), "blue")
        path = own / "own" / "south" / "dog" / f"film.{suffix}"
        lossless = {"lossless": True} if suffix == "webp" else {}
        first.save(path, save_all=True, append_images=[second], **lossless)
        pixels, unusual = images.decode(path, None)
        assert unusual == {"frames"} and pixels[:, 4, 4].tolist() == [255, 0, 0]
        (note,) = load(own).notes
        assert note == (
            f"With later frames or pages, which are not used: 1 of 21 images, first south/dog/film.{suffix}."
        )
        assert "which are not used: 1 of 41 images" in str(fednb.datasets.check(own))

    def test_images_in_other_places_are_counted(self, own, picture):
        north = own / "own" / "north"
        for place in (north / "cat" / "old", north / "cat" / "old", north, north.parent):
            picture(place / f"{len(list(place.glob('*.png')))}_more.png", 500)
        (north.parent / "__MACOSX" / "north").mkdir(parents=True)
        (north.parent / "__MACOSX" / "north" / "._00.png").write_bytes(b"no image")
        os.mkfifo(north / "dog" / "pipe.png")
        (note,) = load(own).notes
        assert note == (
            "Image files that are not used: 1 in own, 1 in own/__MACOSX/north, 1 in own/north, 2 more folders. "
            "Expected: <site>/<class>/<file>."
        )
        assert note in str(fednb.datasets.check(own))

    @pytest.mark.parametrize("count, lacks", [(1, "validation and no test"), (2, "test"), (3, "validation")])
    def test_a_site_too_small_for_validation_is_a_note(self, own, picture, count, lacks):
        for number in range(count):
            picture(own / "own" / "tiny" / "cat" / f"{number}.png", number)
        assert load(own).notes[0] == f"tiny has no {lacks} images: it has too few for the shares."


def deep(name: str) -> bytes:
    """The bytes of an image of two pixels with 16 bits a channel; Pillow writes none of these."""
    stem, _, suffix = name.partition(".")
    if suffix in ("ppm", "pgm"):
        return b"P%d 2 1 65535 " % (6 if suffix == "ppm" else 5) + bytes(range(12 if suffix == "ppm" else 4))
    if suffix == "png":
        colour, channels = {"rgb": (2, 3), "rgba": (6, 4), "la": (4, 2)}[stem]

        def chunk(kind: bytes, data: bytes) -> bytes:
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        header = struct.pack(">IIBBBBB", 2, 1, 16, colour, 0, 0, 0)
        rows = zlib.compress(b"\0" + bytes(range(4 * channels)))
        return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    samples = bytes(range(12))
    data = zlib.compress(samples) if stem == "packed" else samples
    compression = 8 if stem == "packed" else 1
    tags = [(256, 3, 1, 2), (257, 3, 1, 1), (258, 3, 3, 0), (259, 3, 1, compression), (262, 3, 1, 2), (273, 4, 1, 0),
            (277, 3, 1, 3), (278, 3, 1, 1), (279, 4, 1, len(data))]  # fmt: skip
    end = 8 + 2 + 12 * len(tags) + 4
    values = {258: end, 273: end + 6}
    entries = b"".join(struct.pack("<HHII", tag, kind, n, values.get(tag, value)) for tag, kind, n, value in tags)
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags)) + entries + bytes(4) + b"\x10\0" * 3 + data


class TestMoreThanTheyMay:
    """Small files that are much in memory, in a process of its own."""

    def test_an_image_of_too_many_pixels_is_refused_before_it_is_decoded(self, own):
        Image.new("L", (9000, 9000)).save(own / "own" / "north" / "cat" / "wide.png")
        program = (
            f"try: fednb.datasets.load('folders', {str(own)!r}, folder='own', size=8)\n"
            "except fednb.datasets.DataError as error: print(error)\n"
            f"print(fednb.datasets.check({str(own)!r}))"
        )
        said = limited(program, 60)
        assert said.count("wide.png has 9000 x 9000 pixels") + said.count("wide.png: ") == 3, said

    def test_large_images_are_resized_one_after_the_other(self, own):
        """Eight of 19 million pixels, 76 MB each while they are decoded, where there are eight workers."""
        Image.new("RGB", (4500, 4200)).save(own / "own" / "north" / "cat" / "0.png", compress_level=1)
        for number in range(1, 8):
            os.link(own / "own" / "north" / "cat" / "0.png", own / "own" / "north" / "cat" / f"{number}.png")
        program = (
            "images._workers = lambda: 8\n"
            f"print(len(fednb.datasets.load('folders', {str(own)!r}, folder='own', size=8).site('north').train))"
        )
        assert int(limited(program, 200)) == 17

    def test_a_size_beyond_memory(self, own, monkeypatch):
        with pytest.raises(RecipeError, match="a whole number from 1 to 8192"):
            fednb.datasets.load("folders", own, folder="own", size=10**6)

        def none(*arguments):
            raise MemoryError("Unable to allocate 8 GiB")

        monkeypatch.setattr(np, "empty", none)
        with pytest.raises(DataError, match=r"folders needs more memory than there is \(Unable to allocate 8 GiB\)"):
            load(own)


class TestNamedErrors:
    @pytest.mark.parametrize(
        "shares",
        [
            *("abc", 3, None, (0.6, "a", 0.2), (0.6, float("nan"), 0.2)),
            *((0.5, 0.5), (0.5, 0.3, 0.3), (1.2, -0.3, 0.1), (0.5, 0.5, 0.0)),
        ],
    )
    def test_shares_that_are_none(self, own, shares):
        with pytest.raises(RecipeError, match="expected three positive numbers"):
            load(own, shares=shares)

    @pytest.mark.parametrize("folder", [3, None, ["own"]])
    def test_folder_that_is_no_name(self, own, folder):
        with pytest.raises(RecipeError, match="expected a name in quotes"):
            fednb.datasets.load("folders", own, folder=folder)
        with pytest.raises(RecipeError, match="expected a name in quotes"):
            fednb.datasets.available("folders", own, folder=folder)

    @pytest.mark.parametrize("held", ["other", "pixels", "shape", "type", "packed"])
    def test_a_cache_that_holds_something_else_is_made_again(self, own, held):
        expected = load(own).fingerprint
        for file in (own / ".fednb_cache").iterdir():
            with np.load(file) as arrays:
                pixels, unusual = arrays["pixels"], arrays["unusual"]
            arrays = {
                "other": {"picture": pixels},
                "pixels": {"pixels": 255 - pixels},
                "shape": {"pixels": 255 - pixels[:, :, :4], "unusual": unusual},
                "type": {"pixels": 255.0 - pixels, "unusual": unusual},
                "packed": {"pixels": 0 * pixels, "unusual": unusual},
            }[held]
            (np.savez_compressed if held == "packed" else np.savez)(file, **arrays)
        assert load(own).fingerprint == expected

    def test_a_file_that_cannot_be_read_is_named(self, own, monkeypatch):
        bad = own / "own" / "north" / "cat" / "00.png"
        listed = images.files
        monkeypatch.setattr(images, "files", lambda folder: listed(folder) + [bad] * (folder == bad.parent))
        bad.unlink()
        with pytest.raises(DataError, match=r"00\.png cannot be read \(No such file"):
            load(own)

    def test_a_folder_that_cannot_be_read_is_named(self, own, monkeypatch):
        def refuse(folder):
            raise PermissionError(13, "Permission denied", str(folder))

        monkeypatch.setattr(images, "subfolders", refuse)
        with pytest.raises(DataError, match="folders cannot be read: .*Permission denied: .*own"):
            load(own)
        assert "Permission denied" in fednb.datasets.available("folders", own, folder="own")

    def test_what_macos_adds_is_no_site(self, own):
        before = load(own).fingerprint
        (own / "own" / "__MACOSX" / "north" / "cat").mkdir(parents=True)
        (own / "own" / "__MACOSX" / "north" / "cat" / "._00.png").write_bytes(b"no image")
        federation = load(own)
        assert federation.fingerprint == before
        assert "1 in own/__MACOSX/north/cat" in federation.notes[0]

    def test_a_pipe_among_the_images_is_named_and_not_waited_for(self, own):
        os.mkfifo(own / "own" / "north" / "cat" / "pipe.png")
        program = f"found = fednb.datasets.check({str(own)!r})\nprint(found)"
        said = limited(program, 60)
        assert "pipe.png: no regular file" in said and "1 in own/north/cat" in said
