"""Own folders with masks: pairs, values and classes, resizing, cuts, and what can be wrong with them."""

import numpy as np
import pytest
from PIL import Image
from test_data_odd_files import deep

import fednb
from fednb.datasets import _images as images
from fednb.datasets import folders
from fednb.errors import DataError, RecipeError
from fednb.federation import SPLITS
from fednb.recipe import Recipe
from fednb.records.store import Store
from fednb.report import tables as overview

NAMES = ("background", "tumour")
SIDE = 8


def rows(*filled: int) -> np.ndarray:
    """A mask whose filled rows are 1."""
    mask = np.zeros((SIDE, SIDE), np.uint8)
    mask[list(filled)] = 1
    return mask


@pytest.fixture
def save():
    """``save(path, array, mode)`` writes a mask."""

    def write(path, array, mode="L"):
        path.parent.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(np.asarray(array))
        if mode == "P":
            image.putpalette([90, 0, 0, 0, 90, 0, 0, 0, 90])
        (image.convert("1") if mode == "1" else image).save(path)
        return path

    return write


@pytest.fixture
def own(tmp_path, picture, save):
    """root/own/<north|south>/: ten images each; of image i the rows i % 8 and above are 1."""
    for number in range(20):
        place, name = tmp_path / "own" / ("north", "south")[number // 10], f"{number % 10:02}.png"
        picture(place / "images" / name, number)
        save(place / "masks" / name, rows(*range(number % 10 % 8 + 1)))
    return tmp_path


def load(root, masks=NAMES, size=SIDE, **options):
    return fednb.datasets.load("folders", root, folder="own", size=size, masks=masks, **options)


def said(federation) -> tuple[str, ...]:
    """The notes but for the classes' shares of the masks, which are always said."""
    return tuple(note for note in federation.notes if "of the masks' pixels" not in note)


def by_image(federation, site: str = "north") -> dict:
    """The masks of a site's images by their pixels, and in which split they are."""
    found = {}
    for split in SPLITS:
        part = getattr(federation.site(site), split)
        found |= {i.numpy().tobytes(): (split, m.numpy()) for i, m in zip(part.images, part.targets, strict=True)}
    return found


def mask_of(root, federation, name: str, site: str = "north"):
    (path,) = (root / "own" / site).rglob(f"images/{name}.*")
    return by_image(federation, site)[images.decode(path, SIDE, upright=True)[0].tobytes()][1]


class TestLoaded:
    def test_counts_and_task(self, own):
        federation = load(own)
        assert (federation.task, federation.classes, said(federation)) == ("segmentation", NAMES, ())
        assert federation.counts().to_numpy().tolist() == [[6, 2, 2], [6, 2, 2]]
        assert federation.fingerprint == load(own).fingerprint == load(own, list(NAMES)).fingerprint
        assert federation.fingerprint != load(own, seed=1).fingerprint

    def test_a_mask_is_that_of_its_image(self, own):
        federation = load(own)
        assert len(by_image(federation)) == 10
        for number in range(10):
            assert (mask_of(own, federation, f"{number:02}") == rows(*range(number % 8 + 1))).all()

    @pytest.mark.parametrize("suffix", ["png", "tif", "jpg", "webp"])
    def test_suffixes_may_differ_and_photographs_are_upright(self, own, suffix):
        """An image of 8 x 6 pixels that is shown as 6 x 8, as its mask is."""
        place = own / "own" / "north"
        exif = Image.Exif()
        exif[0x0112] = 6
        (place / "images" / "00.png").unlink()
        Image.fromarray(np.full((6, 8, 3), 90, np.uint8)).save(place / "images" / f"00.{suffix}", exif=exif)
        Image.fromarray(np.ones((8, 6), np.uint8)).save(place / "masks" / "00.png")
        assert (mask_of(own, load(own), "00") == 1).all()

    def test_divided_on_disk(self, own, picture, save):
        for number in range(12):
            place = own / "own" / "east" / ("train", "test")[number % 4 == 3]
            picture(place / "images" / f"{number}.png", 100 + number)
            save(place / "masks" / f"{number}.png", rows(number % 8))
        site = load(own).site("east")
        assert [len(getattr(site, split)) for split in SPLITS] == [7, 2, 3]
        assert [int(mask.any(1).int().argmax()) for mask in site.test.targets] == [11 % 8, 3, 7]  # 11.png, 3.png, 7.png

    def test_decoded_once(self, own, monkeypatch):
        cold = load(own)
        for name in ("decode", "decode_mask"):
            monkeypatch.setattr(images, name, lambda *arguments: pytest.fail("decoded again"))
        assert load(own).fingerprint == cold.fingerprint

    def test_a_resized_pixel_has_the_class_that_covers_most_of_it(self, own, save):
        """Halved, a small row sees its own two rows by 3/8 each and the next ones by 1/8: of rows 2 to 4 small row 1
        gets 7/8 and small row 2 gets 1/8 and 3/8, a half of it: the lower class has it."""
        for path in images.files(own / "own" / "north" / "masks"):
            save(path, 2 * rows(2, 3, 4))
        mask = load(own, ("background", "ring", "core"), size=4).site("north").train.targets[0]
        assert mask.tolist() == [[0] * 4, [2] * 4, [0] * 4, [0] * 4]

    def test_described(self, own, picture):
        picture(own / "own" / "north" / "fov" / "00.png", 1)
        assert folders.describe(own) == [
            'folder="own": 20 images with masks in north, south',
            "  Image files that are not used: 1 in own/north/fov. Expected: <site>/<images|masks>/<file>.",
        ]
        assert fednb.datasets.available("folders", own, folder="own", masks=NAMES) is None

    def test_a_recipe_knows_the_task_before_anything_is_loaded(self):
        masked = Recipe(federation={"name": "folders", "masks": NAMES}, model="unet")
        with pytest.raises(RecipeError, match="fraug has no meaning for folders, whose task is segmentation"):
            masked.with_(augmentations=["fraug"])
        assert Recipe(federation={"name": "folders", "masks": ()}, augmentations=["fraug"]) == Recipe(
            federation="folders", augmentations=["fraug"]
        )

    def test_what_is_trained_is_called_dice(self, own, tmp_path):
        choice = {"name": "folders", "folder": "own", "size": 16, "masks": NAMES}
        recipe = Recipe(federation=choice, model={"name": "unet", "channels": 2}, rounds=1)
        results = fednb.Study([recipe], store=Store(tmp_path / "runs")).run(data=own, jobs=1)
        assert overview.runs_table(results).caption[0].startswith("Test Dice in per cent")

    def test_real_vessels_are_those_of_their_own_loader(self, real_data):
        if problem := fednb.datasets.available("retinal_vessels", real_data):
            pytest.skip(problem)
        vessels = ("background", "vessel")
        found = fednb.datasets.load("folders", real_data, folder="retinal_vessels", size=256, masks=vessels)
        own = fednb.datasets.load("retinal_vessels", real_data, size=256)
        assert [len(site.train) + len(site.validation) + len(site.test) for site in found.sites] == [28, 40, 45, 22, 20]
        for name in ("DRIVE", "STARE"):
            for pixels, (_, mask) in by_image(own, name).items():
                inside = mask != 255
                assert (by_image(found, name)[pixels][1][inside] == mask[inside]).all()


class TestValues:
    @pytest.mark.parametrize("mode", ["L", "P", "1"])
    def test_black_and_white(self, own, save, mode):
        for number, path in enumerate(images.files(own / "own" / "north" / "masks")):
            save(path, 255 * rows(number % 8), mode if mode != "P" else "L")
        federation = load(own)
        assert said(federation) == ()
        assert all((mask_of(own, federation, f"{n:02}") == rows(n % 8)).all() for n in range(10))

    def test_a_palettes_numbers_are_the_classes(self, own, save):
        for path in images.files(own / "own" / "north" / "masks"):
            save(path, rows(1) + 2 * rows(4), "P")
        federation = load(own, ("background", "rim", "cup"))
        assert (mask_of(own, federation, "03") == rows(1) + 2 * rows(4)).all()
        assert said(federation) == ("south has no training pixel of cup.",)

    def test_255_is_ignored_beside_numbers_and_a_note_where_it_might_be_meant_otherwise(self, own, save):
        place = own / "own" / "north" / "masks"
        save(place / "02.png", rows(1) + 255 * rows(5))
        save(place / "03.png", 255 * rows(5))
        federation = load(own)
        assert (mask_of(own, federation, "02") == rows(1) + 255 * rows(5)).all()
        assert said(federation) == (
            "north: 255 is ignored in 2 of 10 masks, as 1 is the second class.",
            "north: 1 of 10 masks are background alone, first north/masks/03.png.",
        )
        assert not load(own, (*NAMES, "vessel")).notes[0].startswith("north: 255")

    @pytest.mark.parametrize("white", [1, 255])
    def test_a_mask_of_background_alone_is_a_note(self, own, save, white):
        place = own / "own" / "south" / "masks"
        for number, path in enumerate(images.files(place)):
            save(path, white * rows(*[2] * (number not in (4, 7))))
        assert said(load(own)) == ("south: 2 of 10 masks are background alone, first south/masks/04.png.",)

    def test_a_site_of_background_alone_is_said_twice(self, own, save):
        for path in images.files(own / "own" / "south" / "masks"):
            save(path, rows())
        assert said(load(own))[1] == "south has no training pixel of tumour."

    @pytest.mark.parametrize("first", ["white", "black"])
    def test_each_classs_share_is_said_by_which_inverted_masks_are_seen(self, own, save, first):
        """A palette's numbers count and not its colours: where white is 0, the drawn row of eight is the background."""
        for path in images.files(own / "own" / "north" / "masks"):
            image = Image.fromarray(rows(1) if first == "black" else 1 - rows(1))
            image.putpalette([0, 0, 0, 255, 255, 255] if first == "black" else [255, 255, 255, 0, 0, 0])
            image.save(path)
        drawn = {"white": "12.5 % background, 87.5 % tumour", "black": "87.5 % background, 12.5 % tumour"}[first]
        assert load(own).notes[0] == f"north: of the masks' pixels are {drawn}."

    def test_shares_are_of_pixels_that_are_not_ignored_in_all_splits(self, own, save):
        for number, path in enumerate(images.files(own / "own" / "north" / "masks")):
            save(path, 2 * rows(0) + rows(1) + 255 * rows(*range(2, 8)) if number else 2 * rows(*range(8)))
        said = "north: of the masks' pixels are 0.0 % background, 34.6 % rim, 65.4 % cup."  # 9 and 9 + 8 rows of 26
        assert said in load(own, ("background", "rim", "cup")).notes


class TestBadInput:
    def test_names_of_class_folders_beside_masks(self, own):
        with pytest.raises(RecipeError, match="masks are .* and classes are .*; expected one"):
            fednb.load("folders", own, folder="own", masks=["background", "a"], classes=["a", "b"])

    @pytest.mark.parametrize("side", [(6, 8), (8, 6), (16, 16)])
    def test_other_sizes(self, own, save, side):
        save(own / "own" / "north" / "masks" / "03.png", np.zeros(side, np.uint8))
        with pytest.raises(DataError, match=rf"masks/03\.png is {side[1]} x {side[0]} pixels and its image 8 x 8"):
            load(own)

    @pytest.mark.parametrize(("value", "classes"), [(2, 2), (128, 2), (254, 3), (3, 3)])
    def test_values_that_are_no_class(self, own, save, value, classes):
        save(own / "own" / "south" / "masks" / "05.png", value * rows(1) + rows(4))
        names = ("background", "a", "b")[:classes]
        said = rf"south/masks/05\.png has the values {value}; expected 0 to {classes - 1} \({classes} classes\), or 255"
        for _ in range(2):  # decoded, and from the cache
            with pytest.raises(DataError, match=said):
                load(own, names)

    def test_a_photograph_in_the_place_of_a_mask_lists_a_few_values(self, own, picture):
        picture(own / "own" / "south" / "masks" / "05.png", 5, "L")
        with pytest.raises(DataError, match=r"05\.png has the values \d+, \d+, \d+, \d+, \d+, \.\.\.; expected"):
            load(own)

    @pytest.mark.parametrize("mode", ["RGB", "RGBA", "LA"])
    def test_channels(self, own, mode):
        channels = Image.fromarray(rows(3)).convert(mode)
        channels.save(own / "own" / "north" / "masks" / "03.png")
        said = rf"masks/03\.png has {len(mode)} channels \(mode {mode}\); expected a mask, one number for each pixel"
        with pytest.raises(DataError, match=said):
            load(own)

    @pytest.mark.parametrize("kind", ["grey", "colour"])
    def test_sixteen_bits(self, own, kind):
        path = own / "own" / "north" / "masks" / "03.png"
        if kind == "grey":
            Image.fromarray(rows(3).astype(np.uint16)).save(path)
        else:
            path.write_bytes(deep("rgb.png"))
        with pytest.raises(DataError, match=r"masks/03\.png has more than 8 bits a channel"):
            load(own)

    def test_a_mask_that_is_ignored_everywhere(self, own, save):
        save(own / "own" / "north" / "masks" / "03.png", np.full((SIDE, SIDE), 255, np.uint8))
        with pytest.raises(DataError, match=r"masks/03\.png is 255 \(ignored\) in every pixel"):
            load(own)

    @pytest.mark.parametrize(("kind", "other"), [("images", "masks"), ("masks", "images")])
    def test_one_alone(self, own, kind, other):
        for name in ("03", "07"):
            (own / "own" / "south" / other / f"{name}.png").unlink()
        said = rf"There is no \S+south/{other}/03\.\* for \S+south/{kind}/03\.png \(2 such {kind}\)"
        with pytest.raises(DataError, match=said):
            load(own)
        assert "no " in fednb.datasets.available("folders", own, folder="own", masks=NAMES)

    @pytest.mark.parametrize("kind", ["images", "masks"])
    def test_two_of_one_name(self, own, kind, save):
        save(own / "own" / "south" / kind / "03.tif", rows(1))
        with pytest.raises(DataError, match=rf"{kind}/03\.png has the name of 03\.tif"):
            load(own)

    @pytest.mark.parametrize("left", [10, -30])  # bytes: no header, or no end
    def test_an_unreadable_mask_is_named(self, own, left):
        path = own / "own" / "south" / "masks" / "03.png"
        path.write_bytes(path.read_bytes()[:left])
        with pytest.raises(DataError, match=r"south/masks/03\.png cannot be decoded"):
            load(own)

    def test_an_empty_folder(self, own):
        for path in images.files(own / "own" / "south" / "masks"):
            path.unlink()
        said = r"south/masks has no images \(it is empty\); expected \S+south/images/<file> and"
        with pytest.raises(DataError, match=said):
            load(own)

    def test_splits_inside_the_kinds(self, own):
        for kind in ("images", "masks"):
            (own / "own" / "south" / kind / "train").mkdir()
            for path in images.files(own / "own" / "south" / kind):
                path.rename(path.parent / "train" / path.name)
        with pytest.raises(DataError, match=r"images has no images \(it has train\); .* Put the folders .* above it\."):
            load(own)

    def test_mixed_sites(self, own, picture):
        picture(own / "own" / "west" / "cat" / "0.png", 1)
        for masks in (NAMES, ()):
            with pytest.raises(DataError, match=r"north has images and masks and \S+west \(it has cat\) has not"):
                load(own, masks)

    def test_masks_without_names_and_names_without_masks(self, own, picture):
        with pytest.raises(DataError, match=r'north has images and masks\. .* masks=\("background", "tumour"\)'):
            load(own, ())
        for site in ("a", "b"):
            picture(own / "classed" / site / "cat" / "0.png", 1)
        with pytest.raises(DataError, match=r"a has no folder images with a folder masks beside it \(it has cat\)"):
            fednb.datasets.load("folders", own, folder="classed", masks=NAMES)

    @pytest.mark.parametrize("masks", ["tumour", ("tumour",), ("a", "a"), ("a", ""), ("a", 1), None, {"a": 1}])
    def test_names_that_are_none(self, own, masks):
        with pytest.raises(RecipeError, match="masks is .* expected the names of 2 to 255 different classes"):
            load(own, masks)


class TestClassFolders:
    @pytest.mark.parametrize("place", ["south", "north", "south/train"])
    def test_names_that_differ_in_case_only(self, tmp_path, picture, place):
        picture(tmp_path / "own" / "north" / "Cat" / "0.png", 1)
        for part in ("train", "test") if place.endswith("train") else ("",):
            inside = place.removesuffix("train") + part
            picture(tmp_path / "own" / inside / "cat" / "0.png", 2)
        said = r'north has the class folder "Cat" and \S+ "cat"; expected class names that differ in more'
        with pytest.raises(DataError, match=said):
            load(tmp_path, ())
        assert "Cat" in fednb.datasets.available("folders", tmp_path, folder="own")

    def test_a_class_missing_at_a_site_is_a_note(self, tmp_path, picture):
        for number in range(20):
            site = ("north", "south")[number % 2]
            picture(tmp_path / "own" / site / ("cat" if number % 4 < 3 else "dog") / f"{number}.png", number)
        assert load(tmp_path, ()).notes == ("north has no training image of dog.",)


def test_samples_are_shown_with_a_line_around_what_is_drawn(own):
    from fednb.report import samples

    federation = load(own)
    figure = samples.samples(federation)
    for first, site in zip((0, 8), federation.sites, strict=True):
        drawn = [len(place.collections) for place in figure.axes[first : first + 8]]
        asked = [int(not mask.all()) for mask in site.train.targets[:8]]
        assert drawn == asked + [0] * (8 - len(asked))
    assert not federation.site("north").train.targets[0].all()
