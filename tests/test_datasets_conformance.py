"""What holds for every data set of tests/loaders.py, on its files made in small.

What is particular to one is in the file of its family.
"""

import re
import shutil
from itertools import combinations

import loaders
import numpy as np
import pytest
from loaders import copied, pixels

import fednb.datasets
from fednb import registry
from fednb.datasets import _digit_files, _images, emnist, prostate_mri
from fednb.errors import DataError, RecipeError

ROWS = {row.name: row for row in loaders.ROWS if row.make}
READERS = {"digits": (_digit_files, "read"), "emnist": (emnist, "_parsed"), "prostate_mri": (prostate_mri, "_voxels")}
LISTED = {"bioid", "bird200", "celeba", "domainnet", "office_caltech10", "rxrx1"}  # a list says which images there are
SAME_TESTS = {"bird200", "ch_mnist", "office_home", "pacs", "retinal_vessels", "rxrx1"}  # by every seed
UNLABELLED = {"bioid", "celeba", "retinal_vessels", "rxrx1"}  # images do not lie in folders of their class
OPTIONS = {name: registry.options(registry.find("datasets", name)) for name in ROWS}


def having(field, names=ROWS):
    """A test for each of these data sets whose row has the field."""
    return pytest.mark.parametrize("name", [name for name in ROWS if getattr(ROWS[name], field) and name in names])


def needed(name):
    """Files and folders that a data set cannot do without; "." is the data folder itself."""
    row = ROWS[name]
    folders = [] if name in ("bird200", "folders", "rxrx1") else [row.image.rpartition("/")[0]]
    own = [] if name == "folders" else ["."]
    return filter(None, (*own, *folders, row.file if name not in ("digits", "emnist") else "", *row.lacks))


@pytest.fixture
def tree(files_of, name, tmp_path):
    return copied(files_of(name), tmp_path / "data")


def load(name, root, **options):
    return fednb.datasets.load(name, root, **ROWS[name].variants[0] | options)


def damage(root, pattern, content=None):
    """Cuts these files in two, or writes others in their place."""
    files = sorted(root.glob(pattern))
    for file in files:
        held = file.read_bytes()
        file.unlink()
        file.write_bytes(held[: len(held) // 2 + 1] if content is None else content)
    return files


class TestFiles:
    @pytest.mark.parametrize("name, path", [(name, path) for name in ROWS for path in needed(name)])
    def test_what_is_missing_is_named_with_where_it_goes(self, tree, name, path):
        shutil.rmtree(tree / path) if (tree / path).is_dir() else (tree / path).unlink()
        problem = fednb.datasets.available(name, tree)
        assert (tree / path).name in problem and str(tree) in problem
        with pytest.raises(DataError) as found:
            load(name, tree)
        assert str(found.value) == f"{problem} Expected: {registry.file('datasets', name).NEEDS}"

    @having("image", {"ch_mnist", "cifar10", "office_home", "pacs"})
    def test_a_class_without_images_is_named(self, tree, name):
        folder = next(tree.glob(ROWS[name].image)).parent
        for file in folder.iterdir():
            file.unlink()
        with pytest.raises(DataError, match=f"{folder} has no images; expected those of the class"):
            load(name, tree)

    @having("image")
    def test_a_damaged_image_is_named(self, tree, name):
        files = damage(tree, ROWS[name].image)
        with pytest.raises(DataError, match=r" cannot be decoded \(.*Fetch") as found:
            load(name, tree)
        assert any(str(found.value).startswith(str(file)) for file in files)

    @having("image", LISTED)
    def test_an_image_that_is_listed_and_missing_is_named(self, tree, name):
        (file,) = tree.glob(ROWS[name].image)
        file.unlink()
        with pytest.raises(DataError, match=rf"cannot be read: .*No such file .*{file.parent.name}/{file.name}"):
            load(name, tree)

    @having("file")
    def test_a_damaged_file_is_named(self, tree, name):
        for content in (None, b"", b"<html>", b"\xff\xfe"):
            (file,) = damage(tree, ROWS[name].file, content)
            with pytest.raises(DataError, match=re.escape(file.name)):
                load(name, tree)


@pytest.mark.parametrize("name, classes", {"ch_mnist": 8, "bird200": 200, "cifar10": 10, "cifar100": 100}.items())
def test_a_client_is_tested_on_the_classes_that_it_trains_on_in_the_same_shares(files_of, name, classes):
    sites = load(name, files_of(name), clients=4, classes_per_client=classes // 2).sites
    assert [site.name for site in sites] == [f"client_{number}" for number in range(4)]
    held = np.array([[part.targets.bincount(minlength=classes).numpy() for part in site.parts[:3]] for site in sites])
    trained, tested = held[:, 0] + held[:, 1], held[:, 2]
    assert ((trained > 0).sum(axis=1) == classes // 2).all() and not (tested * (trained == 0)).any()
    whole = trained.sum(axis=0), tested.sum(axis=0)  # each rounded by less than one image
    assert (np.abs(trained / whole[0] - tested / whole[1]) < 1 / whole[0] + 1 / whole[1]).all()
    assert (np.abs(held[:, 1].sum(axis=1) - 0.1 * trained.sum(axis=1)) <= 0.5).all()


class TestOptions:
    @pytest.mark.parametrize(
        "option, values, said",
        [
            ("size", (0, 12.5, "64", True), "expected the height and width in pixels"),
            *(
                (share, (0, 1.5, "0.1"), "expected a share above 0 and up to 1")
                for share in ("fraction", "test_fraction")
            ),
            *((count, (0, -1, 2.5, True), "expected") for count in ("clients", "clients_per_cell_type")),
        ],
    )
    def test_out_of_range(self, files_of, option, values, said):
        for name in (name for name in ROWS if option in OPTIONS[name]):
            for value in values:
                with pytest.raises(RecipeError, match=re.escape(f"{option} is {value!r}; {said}")):
                    load(name, files_of(name), **{option: value})

    @pytest.mark.parametrize("option", ["split", "partition"])
    def test_an_unknown_choice_says_the_nearest(self, files_of, option):
        for name, known in ((name, options[option]) for name, options in OPTIONS.items() if option in options):
            for ask in (load, fednb.datasets.available):
                with pytest.raises(RecipeError, match=f'{name} has no {option} "{known}x"; did you mean "{known}"'):
                    ask(name, files_of(name), **{option: f"{known}x"})


class TestFederations:
    @having("image")
    def test_only_images_in_use_are_decoded(self, tree, name, monkeypatch):
        if name in ("folders", "retinal_vessels"):  # which decode all, or masks too
            return
        decoded, decode = [], _images.decode
        monkeypatch.setattr(_images, "decode", lambda path, *how: decoded.append(path) or decode(path, *how))
        federation = load(name, tree, **{"train_images": 200} if name == "cifar10" else {})
        used = {image for site in federation.sites for part in site.parts if part for image in pixels(part)}
        assert len(decoded) == len(set(decoded)) and len(used) <= len(decoded) <= len(used) + len(federation.sites)

    @pytest.mark.parametrize("name", [name for name in ROWS if name != "cifar100"])
    def test_files_are_read_once_and_always_give_the_same(self, tree, name, monkeypatch):
        module, reader = READERS.get(name, (_images, "decode"))
        read, work = [], getattr(module, reader)
        monkeypatch.setattr(module, reader, lambda path, *more: read.append(str(path)) or work(path, *more))
        cold = load(name, tree)
        assert len(read) == len(set(read)) > 0
        monkeypatch.setattr(module, reader, lambda *arguments: pytest.fail("read again"))
        assert load(name, tree).fingerprint == cold.fingerprint and load(name, tree).notes == cold.notes

    @pytest.mark.parametrize("name", [name for name in ROWS if "seed" in OPTIONS[name]])
    def test_the_seed_decides(self, files_of, name):
        one, again, other = (load(name, files_of(name), seed=seed) for seed in (0, 0, 1))
        assert one.fingerprint == again.fingerprint != other.fingerprint
        if name in SAME_TESTS:
            first, second = (sorted(pixels(*(site.test for site in made.sites))) for made in (one, other))
            assert first == second

    @pytest.mark.parametrize("name", [name for name in ROWS if name != "digits"])  # whose files here repeat images
    def test_no_image_is_in_two_splits_of_a_site_or_at_two_sites(self, files_of, name):
        apart = {"drop_duplicates": True} if "drop_duplicates" in OPTIONS[name] else {}
        for options in ROWS[name].variants:
            if options.get("split") == "stratified":  # two files of the same bytes may be in training and validation
                continue
            for site in fednb.datasets.load(name, files_of(name), **options | apart).sites:
                parts = [set(pixels(part)) for part in site.parts]
                assert all(not first & second for first, second in combinations(parts, 2))
        if name not in ("celeba", "bioid"):  # where a client is tested on others' images
            sites = [set().union(*map(pixels, site.parts)) for site in load(name, files_of(name)).sites]
            assert all(not first & second for first, second in combinations(sites, 2))

    @having("image", {*ROWS} - UNLABELLED)
    def test_labels_are_those_of_the_folders(self, files_of, name):
        federation = load(name, files_of(name))
        size = federation.image_shape[1]
        files = [file for file in files_of(name).rglob("*") if file.suffix in (".png", ".tif")]
        folders = {}
        for file in files:
            content = _images.decode(file, size)[0].tobytes()
            folders.setdefault(content, set()).update(file.relative_to(files_of(name)).parts)
        for split in (part for site in federation.sites for part in site.parts if part):
            for image, target in zip(pixels(split), split.targets.tolist(), strict=True):
                assert federation.classes[target] in folders[image]
