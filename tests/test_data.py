"""Loading by name, the embedded federation, names of sites and classes, and the cache of decoded images."""

import errno
import inspect
import io
import os
from pathlib import Path

import loaders
import numpy as np
import pandas
import pytest

import fednb.datasets
from fednb import registry, report
from fednb.datasets import _cache as cache
from fednb.datasets import shifted_digits
from fednb.errors import DataError, RecipeError
from fednb.federation import Federation, Site
from fednb.recipe import Recipe
from fednb.records.record import read
from fednb.records.store import Store


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
    def test_any_that_is_utf8_is_kept_from_the_folder_to_the_table(self, tmp_path, folder):
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
        results = fednb.Study([recipe], store=Store(tmp_path / "runs")).run(data=tmp_path, jobs=1)
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
