"""RxRx1, on files made as WILDS has them: groups of batches, classes, the cut, and what can be wrong."""

from itertools import combinations

import pytest
from loaders import pixels

import fednb.datasets
from fednb.datasets import _images as images
from fednb.datasets import rxrx1
from fednb.errors import DataError, RecipeError
from fednb.federation import SPLITS

TABLE = f"{rxrx1.FOLDER}/{rxrx1.TABLE}"


def load(whole, size=6, **options):
    return fednb.datasets.load("rxrx1", whole, size=size, **options)


def everything(site) -> list[bytes]:
    return pixels(*(getattr(site, split) for split in SPLITS))


def on_disk(whole, *experiments) -> list[bytes]:
    files = [file for name in experiments for file in (whole / rxrx1.FOLDER / "images" / name).glob("Plate1/*.png")]
    return [images.decode(file, 6)[0].tobytes() for file in files]


def edit(whole, change):
    """Writes the table anew: ``change(lines)`` are its lines."""
    file = whole / TABLE
    file.write_text("\n".join(change(file.read_text().splitlines())) + "\n")


class TestClients:
    @pytest.mark.parametrize("each, clients", [(2, 8), (3, 12), (4, 16)])
    def test_8_12_and_16_clients(self, whole, each, clients):
        names = [site.name for site in load(whole, clients_per_cell_type=each).sites]
        assert len(names) == clients
        assert names == [
            f"{kind}_{number}" for kind in ("HEPG2", "HUVEC", "RPE", "U2OS") for number in range(1, each + 1)
        ]

    def test_a_client_has_one_group_of_equally_many_batches(self, whole):
        """Nine batches of HUVEC are four groups of two; the ninth is left over."""
        federation = load(whole)
        for number in range(4):
            names = (f"HUVEC-{2 * number + 1:02}", f"HUVEC-{2 * number + 2:02}")
            assert sorted(everything(federation.site(f"HUVEC_{number + 1}"))) == sorted(on_disk(whole, *names))
            own = everything(federation.site(f"HEPG2_{number + 1}"))
            assert sorted(own) == sorted(on_disk(whole, f"HEPG2-{number + 1:02}"))
        assert "HUVEC: 4 groups of 2 batches, 1 left over." in federation.notes

    def test_fewer_clients_are_the_first_ones_unchanged(self, whole):
        few, many = load(whole, clients_per_cell_type=2), load(whole)
        assert everything(few.site("RPE_2")) == everything(many.site("RPE_2"))

    def test_48_classes_by_their_numbers_in_the_table(self, whole):
        federation = load(whole)
        assert len(set(rxrx1.CLASSES)) == 48 and federation.classes == rxrx1.CLASSES
        assert sorted(map(int, rxrx1.CLASSES)) == list(map(int, rxrx1.CLASSES))
        treatment = {}
        for line in (whole / TABLE).read_text().splitlines()[1:]:
            entry = line.split(",")
            file = whole / rxrx1.FOLDER / "images" / entry[4] / "Plate1" / f"{entry[6]}_s{entry[7]}.png"
            if entry[10] != "0":
                treatment[images.decode(file, 6)[0].tobytes()] = entry[10]
        for site in federation.sites:
            for split in (getattr(site, name) for name in SPLITS):
                assert [treatment[image] for image in pixels(split)] == [rxrx1.CLASSES[t] for t in split.targets]

    def test_a_fifth_is_for_testing_always_the_same(self, whole):
        one, other = load(whole, seed=0).site("HUVEC_3"), load(whole, seed=1).site("HUVEC_3")
        assert [len(getattr(one, split)) for split in SPLITS] == [23, 3, 6]  # of 32: 6.4; of 26: 2.6
        assert pixels(one.test) == pixels(other.test) and set(pixels(one.validation)) != set(pixels(other.validation))
        assert all(not set(a) & set(b) for a, b in combinations([pixels(getattr(one, s)) for s in SPLITS], 2))


class TestCounts:
    def test_51_batches_are_complete(self, whole, monkeypatch):
        assert sum(rxrx1.BATCHES.values()) == 51
        assert "RPE: 4 batches are listed; RxRx1 has 11." in load(whole).notes
        monkeypatch.setattr(rxrx1, "BATCHES", {"HEPG2": 5, "HUVEC": 9, "RPE": 4, "U2OS": 4})
        assert not any("are listed" in note for note in load(whole).notes)

    def test_described_by_cell_type(self, whole):
        ready, *kinds = rxrx1.describe(whole)
        assert ready == "ready" and len(kinds) == 8 and kinds[2] == "HUVEC: 9 batches (complete: 24)"
        assert kinds[3] == "HUVEC, those listed of 48 classes: 144 images (complete: 144)"


class TestBadInput:
    @pytest.mark.parametrize(
        "change, message",
        [
            (lambda lines: [lines[0].replace("sirna_id", "label"), *lines[1:]], r"cannot be read \('sirna_id'\)"),
            (lambda lines: [lines[0], "0,0,HEPG2", *lines[1:]], "row 1 is too short"),
            (lambda lines: [line.replace("RPE,", "CHO,") for line in lines], 'has the cell type "CHO"; expected HEPG2'),
        ],
    )
    def test_a_damaged_table(self, tree, change, message):
        edit(tree, change)
        with pytest.raises(DataError, match=message):
            load(tree)
        ((file, reason),) = rxrx1.damaged(tree)
        assert file == tree / TABLE and rxrx1.describe(tree) == [reason]

    def test_too_few_batches_and_too_few_images(self, tree):
        edit(tree, lambda lines: [line for line in lines if "U2OS-04" not in line])
        with pytest.raises(DataError, match="has 3 experiments on U2OS; expected 4 or more"):
            load(tree)
        edit(tree, lambda lines: [line.replace("train,U2OS-03,1,B02", "train,U2OS-04,1,B02") for line in lines])
        with pytest.raises(DataError, match="has 2 images of the 48 classes for U2OS_4; expected 10 or more"):
            load(tree)

    def test_more_than_four_groups(self, whole):
        with pytest.raises(RecipeError, match="clients_per_cell_type is 5; expected a number from 1 to 4"):
            load(whole, clients_per_cell_type=5)
