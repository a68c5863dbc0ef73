"""CH-MNIST, Bird-200, CelebA, BioID, RxRx1 and EMNIST: who has which images, the papers' cuts, and damaged lists."""

import json

import loaders
import numpy as np
import pytest
import torch
from loaders import copied, pixels
from PIL import Image

import fednb.datasets
from fednb.datasets import _images as images
from fednb.datasets import bioid, celeba, emnist, rxrx1
from fednb.datasets._partition import sizes
from fednb.errors import DataError, RecipeError
from fednb.federation import SPLITS

FACES = {"celeba": celeba.DATA, "bioid": bioid.DATA}
SMALL = {
    "ch_mnist": {"size": 8},
    "bird200": {"clients": 2, "size": 6},
    "celeba": {"clients": 4, "size": 16},
    "bioid": {"clients": 4, "size": 16},
    "rxrx1": {"size": 6},
    "emnist": {"clients": 3},
}


def load(name, root, **options):
    return fednb.datasets.load(name, root, **SMALL[name] | options)


def everything(*sites) -> list[bytes]:
    return sorted(pixels(*(getattr(site, split) for site in sites for split in SPLITS)))


def decoded(files, size: int) -> list[bytes]:
    return sorted(images.decode(file, size)[0].tobytes() for file in files)


class TestTissue:
    def test_a_fifth_without_regard_to_classes_is_for_testing(self, files_of):
        """A stratified split would have six test images of each class."""
        root = files_of("ch_mnist")
        federation = load("ch_mnist", root)
        assert everything(*federation.sites) == decoded((root / "ch_mnist").rglob("*.tif"), 8)
        found = torch.cat([site.test.targets for site in federation.sites]).bincount(minlength=8)
        assert found.sum() == 48 and (found != 6).any() and 0 < found.min()


class TestBirds:
    def test_training_and_test_images_are_those_of_the_list(self, files_of):
        """Numbers 1 to 600 are for training."""
        root = files_of("bird200")
        federation = load("bird200", root)
        files = sorted((root / "CUB_200_2011" / "images").rglob("*.png"), key=lambda file: file.name)
        trained = pixels(*(part for site in federation.sites for part in (site.train, site.validation)))
        assert sorted(trained) == decoded(files[:600], 6)
        assert sorted(pixels(*(site.test for site in federation.sites))) == decoded(files[600:], 6)


@pytest.mark.parametrize(
    "name, file, change, said",
    [
        ("bird200", "classes.txt", lambda lines: lines[:-1], "image 1 has .* a class from 1 to 200"),
        ("bird200", "images.txt", lambda lines: [*lines, "1 twice.png"], r'images\.txt .*line 1001: "1 twice.png"'),
        ("bird200", "image_class_labels.txt", lambda lines: ["1 2", *lines[1:]], 'image 1 has .* class "2"'),
        ("rxrx1", "metadata.csv", lambda lines: [lines[0][:-8] + "label", *lines[1:]], r"be read \('sirna_id'\)"),
        ("rxrx1", "metadata.csv", lambda lines: [line.replace("RPE,", "CHO,") for line in lines],
         'has the cell type "CHO"; expected HEPG2'),
    ],
)  # fmt: skip
def test_a_damaged_list(files_of, tmp_path, name, file, change, said):
    root = copied(files_of(name), tmp_path / name)
    (path,) = root.glob(f"*/{file}")
    path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")
    with pytest.raises(DataError, match=said):
        load(name, root)


@pytest.mark.parametrize("name", FACES)
class TestFaces:
    COUNTS = {"12": 8, "9": 8, "2": 11, "4": 10, "7": 7}  # images of each person

    @pytest.fixture
    def root(self, name, tmp_path):
        loaders.faces(FACES[name], ".png", self.COUNTS)(tmp_path)
        return tmp_path

    def test_the_persons_with_the_most_images_and_of_equally_many_the_lower_number(self, root, name):
        assert load(name, root).classes == ("2", "4", "9", "12")
        assert load(name, root, clients=3).classes == ("2", "4", "9")

    def test_a_client_has_one_person_and_is_tested_on_as_many_of_others(self, root, name):
        """37 images of four persons: 7 are for testing whatever the seed, and each client has as many of others."""
        source, persons, own = FACES[name], {}, []
        for line in (root / name / source.listing).read_text().splitlines():
            file, person = line.split()
            image = images.decode(root / name / source.folder / file, 16, False, source.crop)[0]
            persons[image[: source.channels].tobytes()] = person
        for federation in (load(name, root), load(name, root, seed=1)):
            tests = []
            for site in federation.sites:
                (label,) = {*site.train.targets.tolist(), *site.validation.targets.tolist()}
                assert 2 * int((site.test.targets == label).sum()) == len(site.test)
                tests += [x for x, y in zip(pixels(site.test), site.test.targets, strict=True) if y == label]
                for split in (getattr(site, part) for part in SPLITS):
                    assert [persons[image] for image in pixels(split)] == [federation.classes[t] for t in split.targets]
            assert sum(len(site.train) + len(site.validation) for site in federation.sites) == 30
            own.append(sorted(tests))
        assert own[0] == own[1] and len(own[0]) == 7

    def test_what_is_refused(self, root, name):
        for clients in (1, 6):
            with pytest.raises((RecipeError, DataError), match=f"clients is {clients}; .* 2 or more, .* at most 5"):
                load(name, root, clients=clients)
        loaders.picture(root / name / FACES[name].folder / "000003.png", 1, size=FACES[name].crop - 1)
        with pytest.raises(DataError, match=rf"000003\.png has \d+ x \d+ .*; expected {FACES[name].crop} or more"):
            load(name, root)


def test_the_centre_of_original_faces(tmp_path):
    """A value for each row: CelebA keeps rows 20 to 197 of 218, BioID columns 64 to 319 and rows 15 to 270."""
    Image.fromarray(np.repeat(np.arange(218, dtype=np.uint8)[:, None], 178, axis=1)).save(tmp_path / "face.png")
    kept = images.decode(tmp_path / "face.png", None, False, 178)[0]
    assert kept.shape == (3, 178, 178) and (kept[0, :, 0] == np.arange(20, 198)).all()
    across = np.add.outer(np.arange(286) * 2, np.arange(384)) % 256
    Image.fromarray(across.astype(np.uint8)).save(tmp_path / "face.pgm")
    assert (images.decode(tmp_path / "face.pgm", 256, False, 256)[0][0] == across[15:271, 64:320]).all()


class TestCells:
    def test_8_12_and_16_clients_with_equally_many_batches(self, files_of):
        """Nine batches of HUVEC are four groups of two; the ninth is left over."""
        root = files_of("rxrx1")
        few, whole = load("rxrx1", root, clients_per_cell_type=2), load("rxrx1", root)
        names = [f"{kind}_{number}" for kind in ("HEPG2", "HUVEC", "RPE", "U2OS") for number in range(1, 5)]
        assert [site.name for site in whole.sites] == names and len(few.sites) == 8
        assert everything(few.site("RPE_2")) == everything(whole.site("RPE_2"))
        place = root / "rxrx1_v1.0" / "images"
        for number in range(4):
            batches = (f"HUVEC-{2 * number + 1:02}", f"HUVEC-{2 * number + 2:02}")
            files = [file for batch in batches for file in (place / batch).rglob("*.png")]
            assert everything(whole.site(f"HUVEC_{number + 1}")) == decoded(files, 6)
        assert "HUVEC: 4 groups of 2 batches, 1 left over." in whole.notes

    def test_48_classes_by_their_numbers_in_the_table(self, files_of):
        root, treatment = files_of("rxrx1"), {}
        federation = load("rxrx1", root)
        assert len(set(rxrx1.CLASSES)) == 48 and federation.classes == rxrx1.CLASSES
        for line in (root / "rxrx1_v1.0" / "metadata.csv").read_text().splitlines()[1:]:
            entry = line.split(",")
            if entry[10] != "0":
                file = root / "rxrx1_v1.0" / "images" / entry[4] / "Plate1" / f"{entry[6]}_s{entry[7]}.png"
                treatment[images.decode(file, 6)[0].tobytes()] = entry[10]
        for split in (getattr(site, name) for site in federation.sites for name in SPLITS):
            assert [treatment[image] for image in pixels(split)] == [rxrx1.CLASSES[t] for t in split.targets]


class TestWriters:
    @pytest.fixture
    def root(self, tmp_path):
        loaders.writers(tmp_path)
        return tmp_path

    def change(self, root, edit):
        file = root / "emnist" / "all_data_1.json"
        content = json.loads(file.read_text())
        edit(content)
        file.write_text(json.dumps(content))

    def test_a_client_is_a_writer_with_its_own_images(self, root):
        files = [json.loads(file.read_text())["user_data"] for file in sorted((root / "emnist").iterdir())]
        expected = {
            name: sorted((bytes(round(grey * 255) for grey in x), y) for x, y in zip(*entry.values(), strict=True))
            for name, entry in (files[0] | files[1]).items()
        }
        found, counts = [], []
        for site in load("emnist", root).sites:
            parts = [getattr(site, split) for split in SPLITS]
            held = sorted(zip(pixels(*parts), (int(y) for part in parts for y in part.targets), strict=True))
            found.append(next(name for name in expected if expected[name] == held))
            counts.append([len(part) for part in parts])
        assert sorted(found) == ["f0100_03", "f0101_47", "f0300_11"]
        assert sorted(counts) == [[16, 2, 2], [23, 2, 3], [28, 4, 3]]
        assert all(min(sizes(count, emnist.SHARES)) >= 1 for count in range(emnist.LEAST, 1000))

    def test_rows_stay_rows_and_classes_are_leafs(self, root):
        """The first 28 numbers of an image are its upper row; 10 to 35 are capital letters, 36 to 61 small ones."""
        self.change(root, lambda held: held["user_data"]["f0300_11"].update(x=[[1.0] * 28 + [0.0] * 756] * 28))
        (site,) = (s for s in load("emnist", root).sites if set(s.train.images.unique().tolist()) == {0, 255})
        assert (site.train.images[:, :, 0] == 255).all() and not site.train.images[:, :, 1:].any()
        assert [emnist.CLASSES[number] for number in (0, 9, 10, 35, 36, 61)] == list("09AZaz")

    def test_too_few_writers_and_one_in_two_files(self, root):
        with pytest.raises(DataError, match="4 clients are asked for; 3 of the 4 writers .* Take at most 3 clients"):
            load("emnist", root, clients=4)
        (root / "emnist" / "all_data_2.json").write_bytes((root / "emnist" / "all_data_0.json").read_bytes())
        with pytest.raises(DataError, match=r"all_data_2\.json has the writer f0100_03 a second time.*Remove one"):
            load("emnist", root)

    @pytest.mark.parametrize(
        "edit, message",
        [
            (lambda held: held["user_data"]["f0300_11"].update(x=[[0] * 783] * 28), r"images \[28, 783\]"),
            (lambda held: held["user_data"]["f0300_11"]["x"][3].__setitem__(5, 255), "pixels from 0.0 to 255.0"),
            (lambda held: held["user_data"]["f0300_11"]["y"].__setitem__(5, 62), "classes from 1 to 62"),
        ],
    )
    def test_a_damaged_file_is_named(self, root, edit, message):
        self.change(root, edit)
        with pytest.raises(DataError, match=rf"all_data_1\.json cannot be read \(.*{message}.*\)\. Fetch it again"):
            load("emnist", root)
