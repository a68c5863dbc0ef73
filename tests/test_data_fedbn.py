"""Office-Caltech-10 and DomainNet: the cuts of FedBN's lists in their published lengths, and what can be wrong."""

import csv
import shutil

import pytest
import torch
from loaders import counts, different, write_list

import fednb.datasets
from fednb import papers
from fednb.datasets import _images as images
from fednb.datasets import domainnet, office_caltech10
from fednb.datasets.office_caltech10 import TABLE11
from fednb.errors import DataError, RecipeError
from fednb.federation import SPLITS

FEDBN = {"amazon": (62, 50, 192), "caltech": (62, 50, 225), "dslr": (62, 50, 32), "webcam": (62, 50, 59)}
SPARE = {"amazon": 654, "caltech": 786, "dslr": 13, "webcam": 124}


def load(root, size=6, name="office_caltech10", **options):
    return fednb.datasets.load(name, root, size=size, **options)


def listed(root, name: str) -> list[str]:
    with open(root / "splits" / f"{name}.csv", newline="") as handle:
        return [row["path"] for row in csv.DictReader(handle)]


@pytest.fixture(scope="module")
def whole(files_of):
    return files_of("office_caltech10")


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, FEDBN),
        ({"split": "fedfa"}, TABLE11),
        ({"split": "stratified"}, TABLE11),
        ({"train_images": 75}, {domain: (75, *sizes[1:]) for domain, sizes in FEDBN.items()}),
        ({"split": "fedfa", "train_images": 20}, {domain: (20, *sizes[1:]) for domain, sizes in TABLE11.items()}),
    ],
)
def test_counts(whole, options, expected):
    assert counts(load(whole, **options)) == expected


@pytest.mark.parametrize("split, start", [("fedbn", -50), ("fedfa", 459)])
def test_images_and_labels_follow_the_lists_in_order(whole, split, start):
    site = load(whole, split=split, spare=split == "fedbn").site("amazon")
    train, test = (listed(whole, f"office_caltech_10_amazon_{part}") for part in ("train", "test"))
    taken = {"train": train[: len(site.train)], "validation": train[start:], "test": test}
    for part, paths in (taken | ({"spare": train[62:-50]} if site.spare else {})).items():
        held = getattr(site, part)
        assert held.targets.tolist() == [office_caltech10.CLASSES.index(path.split("/")[1]) for path in paths]
        for position in (0, 17, len(paths) - 1):
            expected = images.decode(whole / "office_caltech_10" / paths[position], 6)[0]
            assert (held.images[position].numpy() == expected).all()


def test_stratified_needs_no_lists_and_keeps_the_class_shares(tree):
    shutil.rmtree(tree / "splits")
    assert fednb.datasets.available("office_caltech10", tree, split="stratified") is None
    for site in load(tree, split="stratified").sites:
        total = sum(getattr(site, part).targets.bincount(minlength=10) for part in SPLITS)
        for part in SPLITS:
            share = len(getattr(site, part)) / total.sum()
            # Each of the two cuts around a part is less than one image per class away.
            assert (getattr(site, part).targets.bincount(minlength=10) - share * total).abs().max() < 2
    next((tree / "office_caltech_10" / "dslr" / "mug").iterdir()).unlink()
    with pytest.raises(DataError, match="dslr has 156 images; .* divides 157"):
        load(tree, split="stratified")


def test_duplicates_are_counted_and_left_out_on_demand_and_nothing_moves_up(whole):
    kept, dropped = load(whole), load(whole, drop_duplicates=True)
    for site in kept.sites:
        assert different(site.train) & different(site.test)
        assert torch.equal(dropped.site(site.name).train.images, site.train.images[1:])
        assert torch.equal(dropped.site(site.name).test.images, site.test.images)
    said = "dslr, images with the same bytes as a test image: 1 in train"
    assert f"{said} (kept; drop_duplicates=True leaves them out)." in kept.notes
    assert f"{said} (left out)." in dropped.notes and len(kept.notes) == len(dropped.notes) == 4


def test_spare_images_are_the_rest_of_the_train_list_but_for_copies_of_others(whole, tree):
    plain, asked = load(whole), load(whole, spare=True)
    assert {site.name: len(site.spare) for site in asked.sites} == SPARE and plain.sites[0].spare is None
    assert all(torch.equal(a.train.images, b.train.images) for a, b in zip(plain.sites, asked.sites, strict=True))
    assert [len(s.spare) for s in load(whole, spare=True, train_images=75).sites] == [641, 773, 0, 111]
    names, tests = (listed(tree, f"office_caltech_10_webcam_{part}") for part in ("train", "test"))
    for position, other in zip((70, 80, 90), (names[3], names[-4], tests[5]), strict=True):
        file = tree / "office_caltech_10" / names[position]
        file.unlink()
        file.write_bytes((tree / "office_caltech_10" / other).read_bytes())
    asked = load(tree, spare=True)
    assert any(note.startswith("webcam: 121 spare images; 3 with the same bytes") for note in asked.notes)
    left = [names[62:-50][n] for n in range(124) if n not in (8, 18, 28)]
    wanted = [office_caltech10.CLASSES.index(path.split("/")[1]) for path in left]
    assert asked.site("webcam").spare.targets.tolist() == wanted


@pytest.mark.parametrize("options", [{"train_images": count} for count in (0, 76, 2.5, True)] + [{"split": "fedfa"}])
def test_options_that_are_none(whole, options):
    with pytest.raises(RecipeError, match="expected 1 to |no spare images"):
        load(whole, spare=True, **options)


@pytest.mark.parametrize(
    "split, train, validation",
    [
        ("fedbn", [105] * 6, [105] * 6),
        ("fedbn_95", [1997, 2494, 2348, 3800, 4620, 2102], [105, 131, 123, 200, 243, 110]),
        ("fedfa", [672, 840, 791, 1280, 1556, 708], [420, 525, 494, 800, 972, 442]),
        ("fedfa_released", [1009, 1260, 1186, 1920, 2334, 1062], [420, 525, 494, 800, 972, 442]),
    ],
)
def test_published_counts_of_domainnet(split, train, validation):
    cuts = []
    for domain, (rows, tests) in domainnet.LISTS.domains.items():
        listed, tested = ([(number, 0) for number in range(count)] for count in (rows, tests))
        cuts.append(domainnet.LISTS.cut(domain, split, listed, tested, None)[:3])
        assert cuts[-1][0] == listed[: len(cuts[-1][0])] and cuts[-1][1] == listed[-len(cuts[-1][1]) :]
    assert [len(part) for part, _, _ in cuts] == train and [len(part) for _, part, _ in cuts] == validation
    if split == "fedfa":
        printed = papers.settings("fedfa")["printed"]["images_domainnet"]["value"]
        assert dict(zip(domainnet.LISTS.domains, ([*map(len, parts)] for parts in cuts), strict=True)) == printed
    numbers = {"bird": 0, "ice_cream": 3, "tiger": 5, "wine_glass": 8, "zebra": 9}  # of the label_dict in FedBN's code
    assert {name: domainnet.CLASSES.index(name) for name in numbers} == numbers


def test_folders_in_the_paths_of_a_list(whole, tree):
    for file in (tree / "splits").iterdir():
        text = file.read_text().replace("\n", "\n../data\\office_caltech_10/", file.read_text().count("\n") - 1)
        file.unlink()
        file.write_text(text)
    assert load(tree).fingerprint == load(whole).fingerprint


@pytest.mark.parametrize(
    "rows, split, said",
    [
        (None, "fedbn", r'no \S+_dslr_train\.csv.*split="stratified" needs no lists'),
        (lambda train, test: [*train, train[0]], "fedbn", r"train\.csv, entry 126: .*each image once"),
        (lambda train, test: [*train, test[0]], "fedbn", r"test\.csv, entry 1: .*each image once in both lists"),
        (lambda train, test: [], "fedbn", "has no entries"),
        (lambda train, test: ["dslr/cup/a.png"], "fedbn", r"entry 1: .*expected dslr/<class>/<file>"),
        (lambda train, test: ["amazon/mug/a.png"], "fedbn", r"entry 1: .*expected dslr/<class>/<file>"),
        (lambda train, test: train[:111], "fedbn", "expected 1 to 61 and 1 or more"),
        (lambda train, test: train[:75], "fedfa", "expected 1 to 75 and 1 or more"),
    ],
)
def test_a_damaged_list(tree, rows, split, said):
    train, test = listed(tree, "office_caltech_10_dslr_train"), listed(tree, "office_caltech_10_dslr_test")
    (tree / "splits" / "office_caltech_10_dslr_train.csv").unlink()
    if rows:
        write_list(tree, "office_caltech_10_dslr_train", rows(train, test))
    with pytest.raises(DataError, match=said):
        load(tree, split=split)


def test_real_counts_per_site_class_and_split(real_data):
    if problem := fednb.datasets.available("office_caltech10", real_data):
        pytest.skip(problem)
    federation = load(real_data, size=16, spare=True)
    # The labels of FedBN's lists, counted.
    dslr = federation.site("dslr")
    assert dslr.train.targets.bincount(minlength=10).tolist() == [2, 13, 5, 2, 5, 9, 10, 3, 4, 9]
    assert dslr.validation.targets.bincount(minlength=10).tolist() == [7, 4, 4, 3, 2, 8, 6, 7, 1, 8]
    assert dslr.test.targets.bincount(minlength=10).tolist() == [2, 4, 2, 3, 2, 5, 5, 2, 2, 5]
    assert {site.name: len(site.spare) for site in federation.sites} == SPARE | {"amazon": 642, "caltech": 785}
    without = load(real_data, size=16, split="fedfa", drop_duplicates=True)
    assert counts(without) == TABLE11 | {"amazon": (453, 299, 192), "caltech": (538, 359, 225)}
    for site in without.sites:
        assert not different(site.test) & (different(site.train) | different(site.validation))
