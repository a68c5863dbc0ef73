"""Loading by name, embedded and dealt federations, names of sites and classes, and the cache of decoded images."""

import errno
import inspect
import io
import os
from pathlib import Path

import loaders
import numpy as np
import pandas
import pytest
import torch
from methods import TINY

import fednb
from fednb import registry, report
from fednb.datasets import _cache as cache
from fednb.datasets import shifted_digits
from fednb.datasets.shift_dial import LOOKS
from fednb.errors import DataError, RecipeError
from fednb.federation import Federation, Site
from fednb.recipe import Recipe
from fednb.records.record import read
from fednb.records.training import federation_of


class TestByName:
    def test_unknown_name_and_option_say_the_nearest(self):
        with pytest.raises(RecipeError, match='did you mean "shifted_digits"'):
            fednb.datasets.load("shifted_digit")
        for ask in (fednb.datasets.load, fednb.datasets.available):
            with pytest.raises(RecipeError, match='no option "splits"; did you mean "split"'):
                ask("office_caltech10", splits="fedbn")

    def test_root_is_the_argument_then_the_environment_then_data(self, monkeypatch, tmp_path):
        monkeypatch.setenv("FEDNB_DATA", str(tmp_path / "named"))
        assert fednb.datasets.data_root(tmp_path / "given") == tmp_path / "given"
        assert fednb.datasets.data_root() == tmp_path / "named"
        monkeypatch.delenv("FEDNB_DATA")
        assert str(fednb.datasets.data_root()) == "data"


class TestShiftedDigits:
    def test_every_digit_is_used_once(self, monkeypatch):
        """With one look for all sites, the pictures are the 1,797 digits, as often as they are there."""
        from sklearn.datasets import load_digits

        monkeypatch.setattr(shifted_digits, "_LOOKS", dict.fromkeys(shifted_digits.SITES, shifted_digits._plain))
        parts = [part for site in shifted_digits.load().sites for part in site.parts if part]
        labels = [int(target) for part in parts for target in part.targets]
        digits = load_digits()
        pictures = np.rint(shifted_digits._plain(shifted_digits._enlarge(digits.images / 16))).astype(np.uint8)
        whole = [np.ascontiguousarray(picture.transpose(2, 0, 1)).tobytes() for picture in pictures]
        assert len(set(whole)) == 1797  # no two digits are equal, so disjointness is seen by their bytes
        assert sorted(zip(loaders.pixels(*parts), labels, strict=True)) == sorted(
            zip(whole, digits.target, strict=True)
        )

    def test_without_scikit_learn(self, monkeypatch):
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(DataError, match="pip install scikit-learn"):
            fednb.datasets.load("shifted_digits")


class TestNames:
    """Names of sites, classes and folders are data everywhere."""

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("folder", ["**", "n" * 200])
    def test_any_that_is_utf8_is_kept_from_the_folder_to_the_table(self, tmp_path, store, folder):
        for number, (site, label) in enumerate(2 * list(zip(loaders.NAMES, loaders.NAMES[::-1], strict=True))):
            for image in range(2):
                loaders.picture(tmp_path / folder / site / label / f"{number}_{image}.png", 2 * number + image)
        federation = fednb.datasets.load("folders", tmp_path, folder=folder, size=8)
        assert [site.name for site in federation.sites] == sorted(loaders.NAMES) == list(federation.classes)
        cached = {file.name: file.stat().st_mtime_ns for file in (tmp_path / ".fednb_cache").iterdir()}
        assert len(cached) == len(loaders.NAMES) and max(len(os.fsencode(name)) for name in cached) < 160
        assert fednb.datasets.load("folders", tmp_path, folder=folder, size=8).fingerprint == federation.fingerprint
        assert cached == {file.name: file.stat().st_mtime_ns for file in (tmp_path / ".fednb_cache").iterdir()}
        small = {"name": "digits_cnn", "channels": 2, "width": 4}
        recipe = Recipe(federation={"name": "folders", "folder": folder, "size": 8}, model=small, rounds=1)
        results = fednb.Study([recipe], store=store).run(data=tmp_path, jobs=1)
        (record,) = results.records
        assert record.clients == sorted(loaders.NAMES) == read(record.path).clients
        assert report.runs_table(results).html().encode()

    @pytest.mark.parametrize("name", ["average", ""])
    def test_a_site_called_as_the_mean_of_all_is_refused(self, name):
        split = fednb.load("shifted_digits").sites[0].train
        with pytest.raises(DataError, match=f'mine has a site "{name}"; expected'):
            Federation("mine", [Site(name, split, split, split)], "0123456789")


def test_what_a_site_needs_is_said_of_every_loader_that_reads_one_alone():
    for row in loaders.ROWS:
        options = inspect.signature(registry.find("datasets", row.name)).parameters
        assert ("site" in options) == bool(row.own), row.name


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


class Called:
    """A pickle of it calls something that no reader catches."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was executed",)


class TestCache:
    def make(self):
        self.made = getattr(self, "made", 0) + 1
        return {"pixels": np.arange(1000, dtype=np.uint8), "labels": np.arange(10)}

    def fetch(self, root):
        """How often the arrays were made."""
        arrays = cache.cached(root, "name", self.make)
        assert (arrays["pixels"] == np.arange(1000) % 256).all() and (arrays["labels"] == np.arange(10)).all()
        return self.made

    @pytest.mark.parametrize("damage", ["empty", "half", "bit", "text", "object", "packed"])
    def test_made_once_and_again_where_the_file_is_damaged(self, tmp_path, damage):
        assert self.fetch(tmp_path) == self.fetch(tmp_path) == 1
        (file,) = (tmp_path / ".fednb_cache").iterdir()
        held, content = dict(np.load(file)), bytearray(file.read_bytes())
        content[600] ^= 1
        if damage == "object":
            np.savez(file, **held | {"pixels": np.array([Called()])})
        elif damage == "packed":  # ours are not
            np.savez_compressed(file, **{name: array + 1 for name, array in held.items()})
        else:
            file.write_bytes({"empty": b"", "half": content[:1000], "bit": content, "text": b"no"}[damage])
        assert self.fetch(tmp_path) == self.fetch(tmp_path) == 2

    def test_a_folder_that_may_not_be_written_is_left_alone(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
        root = tmp_path / "data"
        root.mkdir()
        root.chmod(0o555)
        assert self.fetch(root) == self.fetch(root) == 1
        assert list(root.iterdir()) == [] and (tmp_path / "user" / "fednb" / "name.npz").is_file()

    @pytest.mark.parametrize("where", [(np, "savez"), (os, "replace")])
    def test_a_full_disk_is_a_warning_and_leaves_nothing(self, tmp_path, monkeypatch, where):
        def full(*arguments, **named):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(*where, full)
        with pytest.warns(UserWarning, match=r"name.npz cannot be written \(No space left on device\)"):
            self.fetch(tmp_path)
        assert [p for p in tmp_path.rglob("*") if p.is_file()] == []

    def test_changed_content_is_another_entry(self, tmp_path):
        path = tmp_path / "own" / "a" / "cat" / "0.png"
        images = (loaders.picture(path, number) for number in (1, 2))
        prints = [fednb.load("folders", tmp_path, folder="own", size=8).fingerprint for _ in images]
        assert prints[0] != prints[1]


def test_where_nobody_has_a_home_nothing_is_cached(tmp_path, monkeypatch):
    def homeless(*_, **named):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("platformdirs.user_cache_path", homeless)
    monkeypatch.setattr(cache.os, "access", lambda *_: False)
    assert cache._place(tmp_path) == tmp_path / ".fednb_cache"


def test_a_site_called_na_stays_one():
    how = 'keep_default_na=False, na_values={"accuracy": [""]}'
    assert f"{how})" in (Path(__file__).parents[1] / "docs" / "running.md").read_text(encoding="utf-8")
    again = pandas.read_csv(io.StringIO("client,accuracy\nNA,50.0\nb,\n"), **eval(f"dict({how})"))
    assert again["client"].tolist() == ["NA", "b"] and again["accuracy"].isna().tolist() == [False, True]


# Federations that are dealt out with the seed of the run: ``{"name": "cifar10", "seed": "run"}``

PLAIN = {"name": "cifar10", "clients": 2, "size": 8}
OWN = PLAIN | {"seed": "run"}
RECIPE = Recipe(**TINY | {"federation": OWN, "rounds": 1})


@pytest.fixture(scope="module")
def root(files_of):
    return files_of("cifar10")


def test_a_recipe_without_it_is_the_same_recipe():
    assert Recipe(federation=PLAIN).key == Recipe(federation=PLAIN | {"seed": 0}).key == "02916c9a7465"
    assert Recipe(federation=PLAIN).short["federation"] == PLAIN
    assert len({Recipe(federation=own, seed=1).key for own in (PLAIN, PLAIN | {"seed": 1}, OWN)}) == 3
    assert RECIPE.full["federation"]["seed"] == RECIPE.short["federation"]["seed"] == "run"
    assert Recipe(**RECIPE.full) == Recipe(**RECIPE.short) == RECIPE


def test_every_loader_with_a_seed_takes_it_and_no_other():
    for name in registry.builtin("datasets"):
        if "seed" in registry.options(registry.find("datasets", name)):
            assert registry.complete("datasets", {"name": name, "seed": "run"})["seed"] == "run"
        else:
            with pytest.raises(RecipeError, match=f'{name} has no option "seed"'):
                registry.complete("datasets", {"name": name, "seed": "run"})


@pytest.mark.parametrize("given", [{"seed": "runs"}, {"clients": "run"}], ids=str)
def test_another_text_and_another_option_are_refused_by_name(given):
    with pytest.raises(RecipeError, match="cifar10 has .*'runs?'; expected a value of type int"):
        Recipe(federation=PLAIN | given)


def test_without_a_recipe_there_is_no_seed_of_a_run(root):
    for asked in (fednb.datasets.load, fednb.datasets.available):
        with pytest.raises(RecipeError, match='cifar10 has seed "run", which is the seed of a recipe'):
            asked(root=root, **OWN)
    assert not fednb.datasets.available(root=root, **RECIPE.dealt)


def test_two_seeds_get_two_partitions_and_one_seed_the_same_again(root):
    first, second, again = (federation_of(RECIPE.with_(seed=seed), root) for seed in (0, 1, 0))
    assert first.fingerprint == again.fingerprint != second.fingerprint
    for seed, found in enumerate((first, second)):
        assert found.fingerprint == fednb.datasets.load(root=root, **PLAIN, seed=seed).fingerprint
    plain = [federation_of(RECIPE.with_(federation=PLAIN, seed=seed), root).fingerprint for seed in (0, 1)]
    assert plain == [first.fingerprint] * 2


def test_a_study_records_each_seeds_own_images_and_finds_them_again(root, store):
    study = fednb.Study(RECIPE.vary(seed=[0, 1]), store=store)
    found = study.run(str(root))
    assert [record.fingerprint for record in found.records] == [
        fednb.datasets.load(root=root, **PLAIN, seed=seed).fingerprint for seed in (0, 1)
    ]
    assert not any("other images" in note for note in study.run(str(root)).notes)
    assert found.frame["dealt_by_seed"].all() and "federation_seed" not in found.frame
    both = fednb.Study([*study.recipes, RECIPE.with_(federation=PLAIN)], store=study.store).run(str(root)).frame
    assert both.groupby("federation_seed")["dealt_by_seed"].first().to_dict() == {0: False, "run": True}


# The shift dial: sites that are alike at level 0, and what each factor does to an image at the others


def pixels(factor: str, level: int) -> list[np.ndarray]:
    """The training images of each site, float64."""
    return [
        site.train.images.numpy().astype(float) for site in fednb.load("shift_dial", factor=factor, level=level).sites
    ]


def test_at_level_0_no_factor_does_anything_and_labels_never_change():
    plain = fednb.load("shift_dial")
    for factor in LOOKS:
        assert fednb.load("shift_dial", factor=factor).fingerprint == plain.fingerprint
        far = fednb.load("shift_dial", factor=factor, level=4)
        assert far.fingerprint != plain.fingerprint
        assert all(torch.equal(a.train.targets, b.train.targets) for a, b in zip(far.sites, plain.sites, strict=True))


@pytest.mark.parametrize("level", [2, 4])
def test_factors_are_what_they_say(level):
    """Written out for single images; the first site is untouched but for its cast."""
    share, plain = level / 4, pixels("colour", 0)
    found = {factor: pixels(factor, level) for factor in LOOKS}
    for factor in LOOKS.keys() - {"colour"}:
        np.testing.assert_array_equal(found[factor][0], plain[0])
    for site, cast in enumerate(([255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 0])):
        toward = np.array(cast)[:, None, None]
        np.testing.assert_allclose(
            found["colour"][site][3], plain[site][3] + (toward - plain[site][3]) * share / 2, atol=0.51
        )
        image, less = plain[site][5], 1 - 0.8 * share * site / 3
        np.testing.assert_allclose(found["contrast"][site][5], image.mean() * (1 - less) + image * less, atol=0.51)
        noise = (found["noise"][site] - plain[site])[(plain[site] > 120) & (plain[site] < 135)]
        assert noise.std() == pytest.approx(64 * share * site / 3, rel=0.1, abs=1e-9)
    if level == 4:  # a right angle, counter-clockwise
        np.testing.assert_allclose(found["rotation"][3], np.rot90(plain[3], 1, (2, 3)), atol=0.51)
    at = np.arange(-20, 21)
    kernel = np.exp(-(at**2) / (2 * (2 * share) ** 2))
    seen = np.pad(plain[3][7, 0], 20, mode="symmetric")
    for axis in (0, 1):
        seen = np.apply_along_axis(np.convolve, axis, seen, kernel / kernel.sum(), "same")
    np.testing.assert_allclose(found["blur"][3][7, 0], seen[20:-20, 20:-20], atol=0.6)  # scipy cuts the kernel off


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"factor": "color"}, 'no "color"; did you mean "colour"'),
        ({"images": "mnist"}, 'no "mnist"'),
        ({"level": 5}, "level 5; expected a whole number from 0 to 4"),
    ],
)
def test_a_dial_that_is_not_there_is_refused(options, said):
    with pytest.raises(RecipeError, match=said):
        fednb.load("shift_dial", **options)
