"""CelebA and BioID, on files made in their layouts: who takes part, the crop, the cut, and what can be wrong."""

import loaders
import numpy as np
import pytest
from loaders import pixels
from PIL import Image

import fednb.datasets
from fednb.datasets import _images as images
from fednb.datasets import bioid, celeba
from fednb.errors import DataError, RecipeError
from fednb.federation import SPLITS

SOURCES = {"celeba": celeba.DATA, "bioid": bioid.DATA}
COUNTS = {"12": 8, "9": 8, "2": 11, "4": 10, "7": 7}  # images of each person
MODULES = {"celeba": celeba, "bioid": bioid}
both = pytest.mark.parametrize("name", SOURCES)


def load(whole, name, size=16, **options):
    return fednb.datasets.load(name, whole, **{"clients": 4, "size": size, **options})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    whole = tmp_path_factory.mktemp("faces")
    loaders.faces(celeba.DATA, ".png", COUNTS)(whole)
    loaders.faces(bioid.DATA, ".pgm", COUNTS)(whole)
    return whole


def listed(whole, name) -> list[list[str]]:
    return [line.split() for line in (whole / name / SOURCES[name].needed[0]).read_text().splitlines()]


@both
class TestSites:
    def test_the_persons_with_the_most_images_and_of_equally_many_the_lower_number(self, whole, name):
        assert load(whole, name).classes == ("2", "4", "9", "12")
        assert load(whole, name, clients=3).classes == ("2", "4", "9")

    def test_a_client_has_one_person_and_is_tested_on_as_many_of_others(self, whole, name):
        federation = load(whole, name)
        held = []
        for site in federation.sites:
            (label,) = set(site.train.targets.tolist()) | set(site.validation.targets.tolist())
            assert 2 * int((site.test.targets == label).sum()) == len(site.test)
            held.append(label)
        assert sorted(held) == [0, 1, 2, 3]
        assert any("as many images of the others" in note for note in federation.notes)

    def test_pixels_and_labels_are_those_of_the_list(self, whole, name):
        source, federation = SOURCES[name], load(whole, name)
        persons = {}
        for file, person in listed(whole, name):
            decoded = images.decode(whole / name / source.needed[1] / file, 16, False, source.crop)[0]
            persons[decoded[: source.channels].tobytes()] = person
        for site in federation.sites:
            for split in (getattr(site, part) for part in SPLITS):
                assert [persons[image] for image in pixels(split)] == [federation.classes[t] for t in split.targets]

    def test_a_fifth_is_for_testing_whatever_the_seed(self, whole, name):
        """37 images of four persons: 7 are for testing, and each client has as many of others."""
        one, other = load(whole, name), load(whole, name, seed=1)
        own = []
        for federation in (one, other):
            tests = [
                image
                for site in federation.sites
                for image, target in zip(pixels(site.test), site.test.targets, strict=True)
                if target == site.train.targets[0]
            ]
            own.append(sorted(tests))
        assert own[0] == own[1] and len(own[0]) == 7 and one.fingerprint != other.fingerprint
        assert sum(len(site.train) + len(site.validation) for site in one.sites) == 30

    def test_a_list_that_is_not_whole_is_a_note(self, whole, name):
        assert load(whole, name).notes[0].startswith("44 images of 5 persons are listed; ")

    def test_what_is_listed_and_not_on_disk_is_counted(self, tree, name):
        source = SOURCES[name]
        assert [count.found for count in MODULES[name].counts(tree)] == [44, 5, 44]
        (tree / name / source.needed[1] / listed(tree, name)[7][0]).unlink()
        counts = MODULES[name].counts(tree)
        assert [count.found for count in counts] == [44, 5, 43]
        assert str(counts[-1]).startswith(f"{source.needed[1]}, those in the list: 43 images (complete: ")


class TestCrop:
    def test_the_centre_of_original_sizes(self, tmp_path):
        """A value for each row: CelebA keeps rows 20 to 197 of 218, BioID columns 64 to 319 and rows 15 to 270."""
        rows = np.repeat(np.arange(218, dtype=np.uint8)[:, None], 178, axis=1)
        Image.fromarray(rows).save(tmp_path / "face.png")
        kept = images.decode(tmp_path / "face.png", None, False, 178)[0]
        assert kept.shape == (3, 178, 178) and (kept[0, :, 0] == np.arange(20, 198)).all()
        across = np.add.outer(np.arange(286) * 2, np.arange(384)) % 256
        Image.fromarray(across.astype(np.uint8)).save(tmp_path / "face.pgm")
        kept = images.decode(tmp_path / "face.pgm", 256, False, 256)[0]
        assert (kept[0] == across[15:271, 64:320]).all()

    @both
    def test_an_image_smaller_than_the_crop_is_named(self, tree, name, picture):
        source = SOURCES[name]
        file = next(file for file, person in listed(tree, name) if person == "2")
        picture(tree / name / source.needed[1] / file, 1, size=source.crop - 1)
        with pytest.raises(DataError, match=rf"{file} has \d+ x \d+ pixels; expected {source.crop} or more"):
            load(tree, name)


@both
class TestBadInput:
    def test_a_damaged_list(self, tree, name):
        file = tree / name / SOURCES[name].needed[0]
        file.write_text(file.read_text() + "000099.jpg\n")
        with pytest.raises(DataError, match='line 45: "000099.jpg"; expected two words'):
            load(tree, name)
        ((path, reason),) = MODULES[name].damaged(tree)
        assert path == file and MODULES[name].describe(tree) == [reason]

    def test_only_images_of_persons_in_use_are_needed(self, tree, name):
        before = load(tree, name, clients=3).fingerprint
        folder = tree / name / SOURCES[name].needed[1]
        for file, person in listed(tree, name):
            if person in ("12", "7"):
                (folder / file).unlink()
        assert load(tree, name, clients=3).fingerprint == before
        with pytest.raises(DataError, match=r"\d+\.p[ng][gm] cannot be read"):
            load(tree, name)

    def test_options_out_of_range(self, whole, name):
        with pytest.raises(RecipeError, match="clients is 1; expected 2 or more"):
            load(whole, name, clients=1)
        with pytest.raises(DataError, match="has 5 persons for 6 clients"):
            load(whole, name, clients=6)
