"""DomainNet: the cuts of FedBN's lists in their published lengths, both forms, and what can be wrong with them."""

import csv
import pickle
from itertools import combinations

import numpy as np
import pytest
from loaders import counts, different

import fednb.datasets
from fednb import papers
from fednb.datasets import _images as images
from fednb.datasets import domainnet
from fednb.datasets.domainnet import CLASSES, DOMAINS
from fednb.errors import DataError
from fednb.federation import SPLITS

TESTS = {"clipart": 526, "infograph": 657, "painting": 619, "quickdraw": 1000, "real": 1217, "sketch": 554}


def load(root, size=6, **options):
    return fednb.datasets.load("domainnet", root, size=size, **options)


def listed(root, domain: str, part: str) -> list[str]:
    return pickle.loads((root / "DomainNet" / f"{domain}_{part}.pkl").read_bytes())[0].tolist()


def write_list(root, domain: str, part: str, paths: list[str]):
    """Paths such as DomainNet/real/bird/a.jpg; the old file may be a hard link that other tests use."""
    file = root / "DomainNet" / f"{domain}_{part}.pkl"
    file.unlink(missing_ok=True)
    file.write_bytes(pickle.dumps((np.array(paths), np.array([path.split("/")[2] for path in paths]))))


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Lists in their published lengths, and empty files in the images' place."""
    root = tmp_path_factory.mktemp("published")
    for domain, (train, test) in domainnet.LISTS.domains.items():
        paths = [f"DomainNet/{domain}/{CLASSES[i * i % 10]}/{i:05}.jpg" for i in range(train + test)]
        for name in CLASSES:
            (root / "DomainNet" / domain / name).mkdir(parents=True)
        for path in paths:
            (root / path).touch()
        write_list(root, domain, "train", paths[test:])
        write_list(root, domain, "test", paths[:test])
    return root


@pytest.fixture
def cut(published):
    """``cut(split)``: which paths each site has in which part."""

    def parts(domain: str, split: str) -> dict[str, list[str]]:
        parts = domainnet.LISTS._parts(published, domain, split, None)
        return {part: parts[part] for part in SPLITS}

    return lambda split: {domain: parts(domain, split) for domain in DOMAINS}


def test_classes_have_fedbns_numbers():
    numbers = {"bird": 0, "ice_cream": 3, "tiger": 5, "wine_glass": 8, "zebra": 9}  # of the label_dict in its code
    assert {name: CLASSES.index(name) for name in numbers} == numbers
    assert len(CLASSES) == 10 and list(CLASSES) == sorted(CLASSES)


class TestPublishedCounts:
    @pytest.mark.parametrize(
        "split, train, validation",
        [
            ("fedbn", [105] * 6, [105] * 6),
            ("fedbn_95", [1997, 2494, 2348, 3800, 4620, 2102], [105, 131, 123, 200, 243, 110]),
            ("fedfa", [672, 840, 791, 1280, 1556, 708], [420, 525, 494, 800, 972, 442]),
            ("fedfa_released", [1009, 1260, 1186, 1920, 2334, 1062], [420, 525, 494, 800, 972, 442]),
            ("stratified", [672, 840, 791, 1280, 1556, 708], [420, 525, 494, 800, 972, 442]),
        ],
    )
    def test_of_every_split(self, cut, split, train, validation):
        held = cut(split)
        assert [len(held[domain]["train"]) for domain in TESTS] == train
        assert [len(held[domain]["validation"]) for domain in TESTS] == validation
        assert {domain: len(parts["test"]) for domain, parts in held.items()} == TESTS
        for parts in held.values():
            assert len(set().union(*parts.values())) == sum(map(len, parts.values()))

    def test_table_12_is_the_papers(self, cut):
        printed = papers.settings("fedfa")["printed"]["images_domainnet"]["value"]
        for split in ("fedfa", "stratified"):
            assert {domain: [len(part) for part in parts.values()] for domain, parts in cut(split).items()} == printed

    @pytest.mark.parametrize("split", ["fedbn", "fedbn_95", "fedfa", "fedfa_released"])
    def test_training_is_the_beginning_of_a_list_and_validation_its_end(self, cut, published, split):
        for domain, parts in cut(split).items():
            train, test = (
                ["/".join(p.split("/")[1:]) for p in listed(published, domain, s)] for s in ("train", "test")
            )
            assert parts["train"] == train[: len(parts["train"])]
            assert parts["validation"] == train[-len(parts["validation"]) :] and parts["test"] == test

    def test_stratified_keeps_the_class_shares(self, cut, published):
        for domain, parts in cut("stratified").items():
            on_disk = np.array([len(images.files(published / "DomainNet" / domain / name)) for name in CLASSES])
            for paths in parts.values():
                held = np.array([sum(path.split("/")[1] == name for path in paths) for name in CLASSES])
                assert np.abs(held - on_disk * len(paths) / on_disk.sum()).max() < 2


class TestLoading:
    def test_images_and_labels_follow_the_lists(self, whole):
        federation = load(whole)
        assert counts(federation) == dict.fromkeys(TESTS, (105, 105, 10))
        assert federation.classes == CLASSES and federation.image_shape == (3, 6, 6)
        site = federation.site("quickdraw")
        train, test = listed(whole, "quickdraw", "train"), listed(whole, "quickdraw", "test")
        for part, paths in {"train": train[:105], "validation": train[110:], "test": test}.items():
            held = getattr(site, part)
            assert held.targets.tolist() == [CLASSES.index(path.split("/")[2]) for path in paths]
            for position in (0, len(paths) - 1):
                assert (held.images[position].numpy() == images.decode(whole / paths[position], 6)[0]).all()

    def test_an_image_in_two_splits_is_counted_and_left_out_on_request(self, whole):
        kept, dropped = load(whole), load(whole, drop_duplicates=True)
        assert counts(dropped) == dict.fromkeys(TESTS, (104, 105, 10))
        assert "real, images with the same bytes as a test image: 1 in train (left out)." in dropped.notes
        assert any("1 in train (kept" in note for note in kept.notes)
        parts = [different(part) for site in dropped.sites for part in site.parts if part]
        assert all(not first & second for first, second in combinations(parts, 2))

    def test_lists_of_other_lengths_are_noted(self, whole):
        assert "The train list of clipart has 215 rows; FedBN's has 2103." in load(whole).notes
        assert "The test list of sketch has 10 rows; FedBN's has 554." in domainnet.describe(whole)

    @pytest.mark.parametrize("place", ["splits", "DomainNet"])
    def test_plain_lists_and_pickles_are_the_same(self, whole, tree, place):
        (tree / "splits").mkdir()
        for domain in DOMAINS:
            for part in ("train", "test"):
                paths = listed(tree, domain, part)
                (tree / "DomainNet" / f"{domain}_{part}.pkl").unlink()
                if place == "splits":
                    with open(tree / "splits" / f"domainnet_{domain}_{part}.csv", "w", newline="") as handle:
                        csv.writer(handle).writerows([("path", "label"), *((p, p.split("/")[2]) for p in paths)])
                else:  # FedFA's folder is in small letters
                    write_list(tree, domain, part, [path.replace("DomainNet", "domainnet") for path in paths])
        assert load(tree).fingerprint == load(whole).fingerprint


class TestBadInput:
    def test_a_missing_list_says_where_it_looked(self, tree):
        (tree / "DomainNet" / "real_test.pkl").unlink()
        with pytest.raises(DataError, match=r"test list of real .*domainnet_real_test\.csv.*real_test\.pkl"):
            load(tree)
        assert fednb.datasets.available("domainnet", tree, split="stratified") is None

    @pytest.mark.parametrize("split, length", [("fedbn", 209), ("fedfa", 4), ("fedbn_95", 19)])
    def test_a_list_too_short_for_the_split(self, tree, split, length):
        write_list(tree, "sketch", "train", listed(tree, "sketch", "train")[:length])
        with pytest.raises(DataError, match=f"sketch has {length} images; .* Get the whole list"):
            load(tree, split=split)
