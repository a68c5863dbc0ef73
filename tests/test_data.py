"""Loading by name, the embedded federation, own folders, and what loaders share: images, cache, cutting."""

import errno
import hashlib
import inspect
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import loaders
import numpy as np
import pandas
import pytest
import torch
from PIL import Image

import fednb.datasets
from fednb import catalogue, report
from fednb.datasets import _cache as cache
from fednb.datasets import _images as images
from fednb.datasets import folders
from fednb.datasets._partition import sizes, stratified
from fednb.errors import DataError, RecipeError
from fednb.federation import SPLITS, Federation, Site
from fednb.files import MACHINE, write_text
from fednb.recipe import Recipe
from fednb.records.record import read
from fednb.records.store import Store


def hashes(split) -> set[str]:
    return {hashlib.sha256(image.numpy().tobytes()).hexdigest() for image in split.images}


@pytest.fixture
def tree(tmp_path, picture):
    """root/own/<hospital_a|hospital_b>/<cat|dog>/: 20 and 12 images of a, 10 and 10 of b."""
    root = tmp_path / "data"
    number = 0
    for site, counts in {"hospital_a": (20, 12), "hospital_b": (10, 10)}.items():
        for label, count in zip(("cat", "dog"), counts, strict=True):
            for i in range(count):
                number += 1
                picture(root / "own" / site / label / f"{i:02}.png", number)
    return root


class TestByName:
    @pytest.mark.parametrize("name", catalogue.names("datasets"))
    def test_every_file_without_an_underscore_is_a_loader(self, name):
        loader = catalogue.file("datasets", name)
        assert all(callable(getattr(loader, function)) for function in ("load", "missing"))
        assert loader.NEEDS is None or loader.missing(Path("nowhere"))

    def test_unknown_name_and_option_say_the_nearest(self):
        with pytest.raises(RecipeError, match='did you mean "shifted_digits"'):
            fednb.datasets.load("shifted_digit")
        with pytest.raises(RecipeError, match='no option "sise"; did you mean "size"'):
            fednb.datasets.load("shifted_digits", sise=32)
        with pytest.raises(RecipeError, match='did you mean "split"'):
            fednb.datasets.available("office_caltech10", splits="fedbn")

    def test_root_is_the_argument_then_the_environment_then_data(self, monkeypatch, tmp_path):
        monkeypatch.setenv("FEDNB_DATA", str(tmp_path / "named"))
        assert fednb.datasets.data_root(tmp_path / "given") == tmp_path / "given"
        assert fednb.datasets.data_root() == tmp_path / "named"
        monkeypatch.delenv("FEDNB_DATA")
        assert str(fednb.datasets.data_root()) == "data"

    @pytest.mark.parametrize(
        "name", [name for name in catalogue.names("datasets") if catalogue.file("datasets", name).NEEDS]
    )
    def test_a_missing_folder_says_where_it_looked_and_what_it_needs(self, name, tmp_path):
        root = tmp_path / "nowhere"
        assert str(root) in fednb.datasets.available(name, root)
        with pytest.raises(DataError) as caught:
            fednb.datasets.load(name, root)
        assert str(root) in str(caught.value)
        assert str(sys.modules[f"fednb.datasets.{name}"].NEEDS) in str(caught.value)

    def test_loaders_import_without_the_libraries_that_few_need(self):
        late = "sklearn", "scipy", "platformdirs", "pandas", "torchvision", "nibabel"
        program = (
            "import sys, importlib\nfrom fednb import catalogue\n"
            "[importlib.import_module(f'fednb.datasets.{name}') for name in catalogue.names('datasets')]\n"
            f"print([name for name in {late} if name in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"

    def test_names_are_found_without_torch(self):
        program = "import sys; from fednb import catalogue; catalogue.names('datasets'); print('torch' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "False"


@pytest.fixture(scope="module")
def federation():
    return fednb.datasets.load("shifted_digits")


class TestShiftedDigits:
    def test_counts(self, federation):
        assert federation.image_shape == (3, 32, 32)
        assert federation.counts().to_dict("index") == {
            "plain": {"train": 224, "validation": 68, "test": 157},
            "photos": {"train": 224, "validation": 68, "test": 157},
            "blurred": {"train": 225, "validation": 67, "test": 158},
            "tinted": {"train": 224, "validation": 68, "test": 157},
        }
        assert federation.classes == tuple("0123456789") and federation.notes == ()

    def test_every_class_has_its_share_in_every_split(self, federation):
        for site in federation.sites:
            for split, (low, high) in {"train": (20, 25), "validation": (5, 8), "test": (14, 18)}.items():
                counts = getattr(site, split).targets.bincount(minlength=10)
                assert low <= counts.min() <= counts.max() <= high

    def test_every_digit_is_used_once(self, monkeypatch):
        """With one look for all sites, the pictures are the 1,797 digits, as often as they are there."""
        from sklearn.datasets import load_digits

        from fednb.datasets import shifted_digits

        monkeypatch.setattr(shifted_digits, "_LOOKS", dict.fromkeys(shifted_digits.SITES, shifted_digits._plain))
        federation = shifted_digits.load()
        used = [
            (hashlib.sha256(image.numpy().tobytes()).hexdigest(), int(target))
            for site in federation.sites
            for split in (getattr(site, name) for name in SPLITS)
            for image, target in zip(split.images, split.targets, strict=True)
        ]
        digits = load_digits()
        pictures = np.rint(shifted_digits._plain(shifted_digits._enlarge(digits.images / 16))).astype(np.uint8)
        whole = [
            (hashlib.sha256(np.ascontiguousarray(p.transpose(2, 0, 1)).tobytes()).hexdigest(), int(target))
            for p, target in zip(pictures, digits.target, strict=True)
        ]
        assert len(set(whole)) == 1797  # no two digits are equal, so disjointness is seen by hash
        assert sorted(used) == sorted(whole)

    def test_looks(self, federation):
        """What each site is said to look like, from its mean and its spread of grey and of colour."""
        pixels = {site.name: site.train.images.float() for site in federation.sites}
        grey = {name: images.std(dim=1).mean() for name, images in pixels.items()}
        spread = {name: images.std(dim=(2, 3)).mean() for name, images in pixels.items()}
        assert grey["plain"] == grey["blurred"] == 0 and grey["photos"] > 10 and grey["tinted"] > 10
        assert pixels["plain"].mean() < 100 < 150 < pixels["blurred"].mean()
        assert spread["tinted"] < 0.3 * spread["blurred"] < 0.3 * spread["plain"]

    def test_larger_images(self, federation):
        larger = fednb.datasets.load("shifted_digits", size=64)
        assert larger.image_shape == (3, 64, 64)
        assert torch.equal(larger.sites[0].test.targets, federation.sites[0].test.targets)

    def test_a_model_of_one_site_loses_on_another(self, federation):
        """Softmax regression on pixels, 40 steps: on average about 73 % at home and 22 % elsewhere."""
        at_home, elsewhere = [], []
        for home in federation.sites:
            torch.manual_seed(0)
            model = torch.nn.Linear(3 * 32 * 32, 10)
            optimiser = torch.optim.Adam(model.parameters(), 0.003)

            def logits(split, model=model):
                return model(split.images.flatten(1) / 255.0)

            for _ in range(40):
                optimiser.zero_grad()
                torch.nn.functional.cross_entropy(logits(home.train), home.train.targets).backward()
                optimiser.step()
            for site in federation.sites:
                correct = (logits(site.test).argmax(1) == site.test.targets).float().mean()
                (at_home if site is home else elsewhere).append(correct.item())
        assert np.mean(at_home) > 0.65 and np.mean(elsewhere) < 0.35

    def test_without_scikit_learn(self, monkeypatch):
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        assert "pip install scikit-learn" in fednb.datasets.available("shifted_digits")
        with pytest.raises(DataError, match="scikit-learn"):
            fednb.datasets.load("shifted_digits")


class TestFolders:
    def load(self, tree, **options):
        return fednb.datasets.load("folders", tree, folder="own", size=8, **options)

    def test_counts(self, tree):
        federation = self.load(tree)
        assert federation.name == "own" and federation.classes == ("cat", "dog")
        assert federation.counts().to_dict("index") == {
            "hospital_a": {"train": 19, "validation": 5, "test": 8},
            "hospital_b": {"train": 12, "validation": 3, "test": 5},
        }
        for split, counts in {"train": [12, 7], "validation": [3, 2], "test": [5, 3]}.items():
            assert getattr(federation.sites[0], split).targets.bincount().tolist() == counts

    def test_other_images_than_the_recipe_names_are_refused(self, tree):
        own = self.load(tree).fingerprint
        assert self.load(tree, fingerprint=own).fingerprint == own
        with pytest.raises(DataError, match=f"have the fingerprint {own}; the recipe asks for 0123"):
            self.load(tree, fingerprint="0123")

    def test_sites_in_the_root_itself(self, tree):
        inside = fednb.datasets.load("folders", tree / "own", size=8)
        assert inside.fingerprint == self.load(tree).fingerprint

    def test_divided_on_disk(self, tree, picture):
        for i in range(10):
            picture(tree / "own" / "hospital_c" / "train" / "cat" / f"{i}.png", 100 + i)
            picture(tree / "own" / "hospital_c" / "test" / "dog" / f"{i}.png", 200 + i)
        site = self.load(tree).site("hospital_c")
        assert [len(getattr(site, split)) for split in SPLITS] == [8, 2, 10]
        assert site.test.targets.tolist() == [1] * 10
        picture(tree / "own" / "hospital_c" / "validation" / "cat" / "0.png", 300)
        site = self.load(tree).site("hospital_c")
        assert [len(getattr(site, split)) for split in SPLITS] == [10, 1, 10]

    def test_half_divided_is_refused(self, tree, picture):
        picture(tree / "own" / "hospital_c" / "train" / "cat" / "0.png", 1)
        picture(tree / "own" / "hospital_c" / "val" / "cat" / "0.png", 2)
        with pytest.raises(DataError, match="hospital_c has the folders train, val; .* needs train and test"):
            self.load(tree)

    def test_a_class_that_a_site_lacks_is_a_note(self, tree, picture):
        picture(tree / "own" / "hospital_b" / "fox" / "0.png", 1)
        assert self.load(tree).notes == ("hospital_a has no training image of fox.",)

    def test_a_site_without_images_is_refused(self, tree):
        (tree / "own" / "hospital_c" / "cat").mkdir(parents=True)
        with pytest.raises(DataError, match="hospital_c has no class folder with images"):
            self.load(tree)
        assert "hospital_c" in fednb.datasets.available("folders", tree, folder="own")

    def test_other_and_hidden_files_are_ignored(self, tree):
        before = self.load(tree).fingerprint
        (tree / "own" / "hospital_a" / "cat" / "Thumbs.db").write_text("no image")
        (tree / "own" / "hospital_a" / "cat" / "._00.png").write_text("no image")
        (tree / "own" / ".DS_Store").mkdir()
        assert self.load(tree).fingerprint == before

    def test_real_pacs(self, real_data):
        if fednb.datasets.available("folders", real_data, folder="pacs"):
            pytest.skip("no pacs folder")
        (line,) = (line for line in folders.describe(real_data) if "pacs" in line)
        assert line == 'folder="pacs": 9991 images in art_painting, cartoon, photo, sketch'


class TestNames:
    """Names of sites, classes and folders are data everywhere."""

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("folder", ["**", "n" * 200])
    def test_any_that_is_utf8_is_kept_from_the_folder_to_every_form_of_the_table(self, tmp_path, picture, folder):
        for number, (site, label) in enumerate(2 * list(zip(loaders.NAMES, loaders.NAMES[::-1], strict=True))):
            for image in range(2):
                picture(tmp_path / folder / site / label / f"{number}_{image}.png", 2 * number + image)
        federation = fednb.datasets.load("folders", tmp_path, folder=folder, size=8)
        assert [site.name for site in federation.sites] == sorted(loaders.NAMES) == list(federation.classes)
        cached = {file.name: file.stat().st_mtime_ns for file in (tmp_path / ".fednb_cache").iterdir()}
        assert len(cached) == len(loaders.NAMES) and max(len(os.fsencode(name)) for name in cached) < 160
        assert fednb.datasets.load("folders", tmp_path, folder=folder, size=8).fingerprint == federation.fingerprint
        assert cached == {file.name: file.stat().st_mtime_ns for file in (tmp_path / ".fednb_cache").iterdir()}
        choice = {"name": "folders", "folder": folder, "size": 8}
        recipe = Recipe(federation=choice, model={"name": "digits_cnn", "channels": 2, "width": 4}, rounds=1)
        results = fednb.Study([recipe], store=Store(tmp_path / "runs")).run(data=tmp_path, jobs=1)
        (record,) = results.records
        assert record.clients == sorted(loaders.NAMES) == read(record.path)[0].clients
        table = report.runs_table(results)
        assert all(form.encode() for form in (table.text(), table.html(), table.csv(), table.latex()))
        assert set(pandas.read_csv(io.StringIO(table.csv()))["client"]) == {"average", *loaders.NAMES}

    @pytest.mark.parametrize("kind", ["federation", "site", "class"])
    def test_one_that_is_not_utf8_is_named_by_its_codes(self, tmp_path, picture, kind):
        names = {"federation": "own", "site": "north", "class": "cat"} | {kind: os.fsdecode(b"h\xf4tel")}
        picture(tmp_path.joinpath(*names.values(), "0.png"), 1)
        root = tmp_path / names["federation"]
        with pytest.raises(DataError, match=rf'has a {kind} "h\\udcf4tel"; expected names in UTF-8'):
            fednb.datasets.load("folders", root, size=8)
        assert r"h\udcf4tel" in fednb.datasets.available("folders", root)
        if kind == "federation":
            with pytest.raises(RecipeError, match="expected a name in quotes and in UTF-8"):
                fednb.datasets.load("folders", tmp_path, folder=names["federation"], size=8)

    def test_of_files_they_are_told_in_notes_by_their_codes(self, tree, picture):
        clear = Image.new("RGBA", (8, 8))
        clear.save(tree / "own" / "hospital_a" / "cat" / os.fsdecode(b"h\xf4tel.png"))
        picture(tree / "own" / os.fsdecode(b"h\xf4tel.png"), 1)
        notes = "".join(fednb.datasets.load("folders", tree, folder="own", size=8).notes)
        assert r"first hospital_a/cat/h\udcf4tel.png" in notes and notes.encode()

    @pytest.mark.parametrize("name", ["average", ""])
    def test_a_site_called_as_the_mean_of_all_is_refused(self, tmp_path, picture, name):
        split = fednb.load("shifted_digits").sites[0].train
        with pytest.raises(DataError, match=f'mine has a site "{name}"; expected'):
            Federation("mine", [Site(name, split, split, split)], "0123456789")
        picture(tmp_path / "average" / "cat" / "0.png", 1)
        assert 'has a site "average"' in fednb.datasets.available("folders", tmp_path)


class TestLayout:
    """Words of the layout at another level or in another spelling."""

    @pytest.mark.parametrize(
        ("places", "message"),
        [
            (
                ["train/cat", "val/cat", "test/cat"],
                "own has the folders test, train, val where sites are expected. These are parts of a site: make a "
                "folder with the site's name there, and put them into it as train, validation and test.",
            ),
            (["Training/cat", "dev/cat"], "own has the folders Training, dev where sites are expected"),
            (["train/cat"], "own has the folders train where sites are expected"),
            (["images/train", "masks/train"], "own has the folders images, masks where sites are expected"),
            (["a/Train/cat", "a/TEST/cat"], "nothing else. Rename TEST to test, Train to train."),
            (["a/train/cat", "a/val/cat"], "a has the folders train, val; a site that is divided"),
            (["a/train/cat", "a/val/cat"], "nothing else. Rename val to validation."),
            (["a/Images", "a/Masks"], "a has the folders Images and Masks; expected images and their masks in folders"),
            (["a/train/imgs", "a/train/Labels", "a/test/imgs"], "train has the folders Labels and imgs; expected"),
            (
                ["a/cat/train", "a/cat/test"],
                "(it has cat); expected {}/own/a/<class>/<file>. Put train and test above the classes.",
            ),
        ],
    )
    def test_they_are_recognised_and_named(self, tmp_path, picture, places, message):
        for number, place in enumerate(places):
            picture(tmp_path / "own" / place / "0.png", number)
        with pytest.raises(DataError, match=re.escape(message.format(tmp_path))):
            fednb.datasets.load("folders", tmp_path, folder="own", size=8)
        assert message.format(tmp_path) in fednb.datasets.available("folders", tmp_path, folder="own")

    def test_one_alone_may_be_a_class_or_a_site(self, tmp_path, picture):
        for number, place in enumerate(
            ("test/Train", "test/bus", "test/mask", "other/Train", "other/bus", "other/mask")
        ):
            for image in range(2):
                picture(tmp_path / place / f"{image}.png", 2 * number + image)
        assert fednb.datasets.load("folders", tmp_path, size=8).classes == ("Train", "bus", "mask")


class TestLeftOut:
    def load(self, tree):
        return fednb.datasets.load("folders", tree, folder="own", size=8)

    def test_files_are_counted_by_suffix_and_change_no_image(self, tree):
        before, cat = self.load(tree), tree / "own" / "hospital_a" / "cat"
        for number in range(12):
            (cat / f"{number}.HEIC").write_text("another format")
        for name in ("Thumbs.db", "notes", "scan.0001", ".hidden", ".git/config", "__MACOSX/x.txt"):
            (cat / name).parent.mkdir(exist_ok=True)
            (cat / name).write_text("no image")
        federation = self.load(tree)
        assert federation.fingerprint == before.fingerprint and before.notes == ()
        said = (
            "Left out beside 52 files, by suffix: 12 .heic, 1 .0001, 1 .db, 1 without suffix. Convert the images among "
            "them, such as to PNG."
        )
        assert federation.notes == (said,)

    def test_a_class_folder_without_an_image_is_named(self, tree):
        for name in "hospital_a/fox", "hospital_b/fox", "hospital_b/owl":
            (tree / "own" / name).mkdir()
            (tree / "own" / name / "0.heic").write_text("another format")
        first, second = self.load(tree).notes
        assert first.startswith("Left out beside 52 files, by suffix: 3 .heic.")
        assert second == "Class folders without an image: hospital_a/fox, hospital_b/fox, hospital_b/owl."

    def test_a_site_without_an_image_that_is_read_says_what_it_has(self, tree):
        (tree / "own" / "west" / "cat").mkdir(parents=True)
        (tree / "own" / "west" / "cat" / "0.heic").write_text("another format")
        said = r"west has no class folder with images \(it has cat, 1 \.heic\); expected .* Convert what is in another"
        with pytest.raises(DataError, match=said):
            self.load(tree)

    def test_images_without_a_site_folder_are_counted(self, tree, picture):
        for name in ("cat", "dog"):
            picture(tree / "flat" / name / "0.png", 1)
        with pytest.raises(DataError, match=r"has no class folder with images \(it has 1 images that lie in no folder"):
            fednb.datasets.load("folders", root=tree / "flat")

    def test_jfif_and_files_without_a_suffix_are_read(self, tree, picture):
        place, before = tree / "own" / "hospital_a" / "cat", hashes(self.load(tree).site("hospital_a").train)
        Image.new("RGB", (8, 8), "red").save(place / "new.jfif", format="JPEG")
        for suffix in ("png", "jpg", "gif", "bmp", "tif", "webp", "ppm"):
            picture(place / f"{suffix}.{suffix}", len(suffix)).rename(place / suffix)
        os.mkfifo(place / "pipe")
        assert {"new.jfif", "png", "jpg", "gif", "bmp", "tif", "webp", "ppm"} <= {p.name for p in images.files(place)}
        site = self.load(tree).site("hospital_a")
        assert sum(len(getattr(site, split)) for split in SPLITS) == 32 + 8 and before != hashes(site.train)
        picture(tree / "own" / "other.png", 1).rename(tree / "own" / "other")
        assert self.load(tree).notes[0].startswith("Image files that are not used: 1 in own.")
        (place / "png").write_bytes((place / "png").read_bytes()[:-30])


class TestImages:
    def test_colour_is_kept_and_resized_without_cropping(self, tmp_path, picture):
        path = picture(tmp_path / "a.png", 1, size=10)
        with Image.open(path) as image:
            expected = np.asarray(image.resize((6, 6), Image.BILINEAR))
        assert (images.decode(path, 6)[0] == expected.transpose(2, 0, 1)).all()
        assert images.decode(path, None)[0].shape == (3, 10, 10)

    def test_grey_becomes_rgb(self, tmp_path, picture):
        decoded = images.decode(picture(tmp_path / "grey.png", 1, mode="L"), 8)[0]
        assert decoded.shape == (3, 8, 8) and decoded.std() > 0
        assert (decoded[0] == decoded[1]).all() and (decoded[0] == decoded[2]).all()

    @pytest.mark.parametrize("suffix", ["jpg", "png", "gif", "bmp"])
    def test_a_truncated_image_is_named(self, tmp_path, picture, suffix):
        path = picture(tmp_path / f"half.{suffix}", 1, size=64)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        with pytest.raises(DataError, match=rf"half\.{suffix} cannot be decoded"):
            images.decode(path, 8)

    @pytest.mark.parametrize("content", [b"", b"not an image", b"\x89PNG\r\n\x1a\n" + bytes(100)])
    def test_what_is_no_image_is_named(self, tmp_path, content):
        (tmp_path / "bad.jpg").write_bytes(content)
        with pytest.raises(DataError, match=r"bad\.jpg cannot be decoded"):
            images.decode(tmp_path / "bad.jpg", 8)

    def test_a_missing_image_is_named(self, tmp_path):
        with pytest.raises(DataError, match=r"gone\.jpg is not there"):
            images.decode(tmp_path / "gone.jpg", 8)

    def test_loading_names_the_corrupt_image_and_check_finds_all(self, tree):
        bad = [tree / "own" / "hospital_a" / "dog" / "03.png", tree / "own" / "hospital_b" / "cat" / "07.png"]
        for path in bad:
            path.write_bytes(path.read_bytes()[:-40])
        with pytest.raises(DataError, match=r"03\.png cannot be decoded"):
            fednb.datasets.load("folders", tree, folder="own", size=8)


def test_what_a_site_needs_is_said_of_every_loader_that_reads_one_alone():
    loads = {row.name: inspect.signature(catalogue.find("datasets", row.name)).parameters for row in loaders.ROWS}
    assert {name for name, options in loads.items() if "site" in options} == {
        row.name for row in loaders.ROWS if row.own
    }


@pytest.mark.parametrize("row", [row for row in loaders.ROWS if row.own], ids=lambda row: row.name)
def test_an_institution_that_has_its_own_files_alone_loads_them_as_all_together_do(row, tmp_path):
    whole = tmp_path / "whole"
    whole.mkdir()
    row.make(whole)
    for options in row.variants:
        together = fednb.datasets.load(row.name, whole, **options)
        if row.name == "folders" and "masks" not in options:
            options = options | {"classes": together.classes}
        for number, site in enumerate(together.sites):
            own, cut = tmp_path / site.name, together.only(site.name)
            for path in (path for pattern in row.own(site.name) for path in whole.glob(pattern)):
                place = own / path.relative_to(whole)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.exists() or place.symlink_to(path)
            alone = fednb.datasets.load(row.name, own, site=site.name, **options)
            assert (alone.fingerprint, alone.outline) == (cut.fingerprint, cut.outline)
            assert set(alone.notes) <= set(cut.notes)
            with pytest.raises(DataError, match='has no site "nowhere"; '):
                fednb.datasets.load(row.name, own, site="nowhere", **options)
            with pytest.raises(DataError):
                fednb.datasets.load(row.name, own, site=together.sites[number - 1].name, **options)


class TestCache:
    def make(self):
        self.made = getattr(self, "made", 0) + 1
        return {"pixels": np.arange(1000, dtype=np.uint8), "labels": np.arange(10)}

    def fetch(self, root):
        arrays = cache.cached(root, "name", self.make)
        assert (arrays["pixels"] == np.arange(1000, dtype=np.uint8)).all()
        assert (arrays["labels"] == np.arange(10)).all()
        return self.made

    def test_made_once_beside_the_data(self, tmp_path):
        assert self.fetch(tmp_path) == 1
        assert [p.name for p in (tmp_path / ".fednb_cache").iterdir()] == ["name.npz"]
        assert self.fetch(tmp_path) == 1

    @pytest.mark.parametrize("damage", ["empty", "half", "bit", "text", "pickle"])
    def test_a_damaged_file_is_made_again(self, tmp_path, damage):
        self.fetch(tmp_path)
        file = tmp_path / ".fednb_cache" / "name.npz"
        content = bytearray(file.read_bytes())
        if damage == "pickle":
            np.savez(file, pixels=np.array([{"an": "object"}], dtype=object))
        else:
            content[600] ^= 1
            changed = {"empty": b"", "half": content[: len(content) // 2], "bit": content, "text": b"no"}
            file.write_bytes(changed[damage])
        assert self.fetch(tmp_path) == 2
        assert self.fetch(tmp_path) == 2

    def test_a_folder_that_may_not_be_written_is_left_alone(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
        root = tmp_path / "data"
        root.mkdir()
        root.chmod(0o555)
        assert self.fetch(root) == self.fetch(root) == 1
        assert list(root.iterdir()) == []
        assert (tmp_path / "user" / "fednb" / "name.npz").is_file()

    @pytest.mark.parametrize("where", ["savez", "replace"])
    def test_a_full_disk_is_a_warning_and_leaves_nothing(self, tmp_path, monkeypatch, where):
        def full(*arguments, **named):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
        monkeypatch.setattr(*{"savez": (np, "savez"), "replace": (os, "replace")}[where], full)
        with pytest.warns(UserWarning, match="not cached.*No space left on device"):
            self.fetch(tmp_path)
        assert [p for p in tmp_path.rglob("*") if p.is_file()] == []

    def test_a_full_disk_does_not_stop_a_load(self, tree, monkeypatch):
        expected = fednb.datasets.load("folders", tree, folder="own", size=8).fingerprint
        for file in (tree / ".fednb_cache").iterdir():
            file.unlink()

        def full(*arguments, **named):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(np, "savez", full)
        with pytest.warns(UserWarning, match="not cached"):
            assert fednb.datasets.load("folders", tree, folder="own", size=8).fingerprint == expected

    def test_killed_while_writing_leaves_no_file_under_the_name(self, tmp_path, monkeypatch):
        def stopped(part, **arrays):
            part.write(b"PK half a file")
            raise KeyboardInterrupt

        monkeypatch.setattr(np, "savez", stopped)
        with pytest.raises(KeyboardInterrupt):
            self.fetch(tmp_path)
        assert list((tmp_path / ".fednb_cache").iterdir()) == []

    @pytest.mark.parametrize("name", ["**", "*", "[x]"])
    def test_a_name_is_no_pattern_where_half_files_are_removed(self, tmp_path, name):
        begun = [tmp_path / f".{stem}.npz.~{MACHINE}~{2**31 - 1}.part" for stem in (name, "x")]
        for file in begun:
            file.write_text("half a file of a process that is gone")
        write_text(tmp_path / f"{name}.npz", "whole")
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted((begun[1].name, f"{name}.npz"))

    def test_a_reader_never_sees_half_a_file(self, tmp_path, monkeypatch):
        """While the arrays are being written the name is not there, and the file that takes it is whole."""
        file = tmp_path / ".fednb_cache" / "name.npz"
        savez = np.savez

        def watched(part, **arrays):
            savez(part, **arrays)
            assert not file.exists()

        monkeypatch.setattr(np, "savez", watched)
        self.fetch(tmp_path)
        assert file.is_file()

    def test_changed_content_and_size_are_other_entries(self, tree, picture):
        first = fednb.datasets.load("folders", tree, folder="own", size=8).fingerprint
        path = tree / "own" / "hospital_a" / "cat" / "00.png"
        before = path.stat()
        picture(path, 999)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        changed = fednb.datasets.load("folders", tree, folder="own", size=8)
        assert changed.fingerprint != first
        assert fednb.datasets.load("folders", tree, folder="own", size=9).image_shape == (3, 9, 9)


class TestPartition:
    def test_parts_are_disjoint_stratified_and_of_the_sizes(self):
        targets = np.repeat([0, 1, 2], [50, 30, 20])
        parts = stratified(targets, [60, 15, 25], "key")
        assert [len(part) for part in parts] == [60, 15, 25]
        assert sorted(np.concatenate(parts)) == list(range(100))
        for part in parts:
            assert np.abs(np.bincount(targets[part]) - len(part) * np.array([0.5, 0.3, 0.2])).max() < 2

    def test_a_smaller_part_is_inside_a_larger_one(self):
        targets = np.arange(100) % 7
        (small,), (large,) = stratified(targets, [10], "key"), stratified(targets, [30], "key")
        assert set(small) <= set(large) and set(targets[small]) == set(range(7))

    def test_the_key_decides(self):
        targets = np.arange(100) % 7
        first, again, other = (stratified(targets, [50], key)[0].tolist() for key in ("a", "a", "b"))
        assert first == again != other

    def test_sizes_sum_to_the_total(self):
        assert sum(sizes(1797, [0.25] * 4)) == 1797
        assert sizes(10, (0.6, 0.15, 0.25)) == [6, 2, 2]
        assert sizes(1, (0.6, 0.15, 0.25)) == [1, 0, 0]
