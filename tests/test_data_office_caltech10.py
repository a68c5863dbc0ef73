"""Office-Caltech-10: counts, order, disjointness, lists in both forms, and what can be wrong with them."""

import csv
import os
import pickle
import shutil

import numpy as np
import pytest
import torch
from loaders import counts, different

import fednb.datasets
from fednb.datasets import _images as images
from fednb.datasets import office_caltech10
from fednb.datasets.office_caltech10 import CLASSES, DOMAINS, TABLE11
from fednb.errors import DataError, RecipeError
from fednb.federation import SPLITS

FEDBN = {"amazon": (62, 50, 192), "caltech": (62, 50, 225), "dslr": (62, 50, 32), "webcam": (62, 50, 59)}
SPARE = {"amazon": 654, "caltech": 786, "dslr": 13, "webcam": 124}
# The labels of FedBN's lists, counted: first 62, last 50, test; classes in their order.
REAL_CLASSES = {
    ("amazon", "train"): [6, 7, 6, 4, 9, 4, 8, 8, 9, 1],
    ("amazon", "validation"): [6, 4, 4, 7, 1, 5, 4, 3, 7, 9],
    ("amazon", "test"): [18, 16, 19, 20, 20, 20, 20, 20, 19, 20],
    ("caltech", "train"): [9, 11, 3, 5, 3, 7, 6, 6, 3, 9],
    ("caltech", "validation"): [11, 5, 1, 7, 5, 3, 7, 6, 2, 3],
    ("caltech", "test"): [30, 22, 20, 28, 17, 26, 27, 19, 17, 19],
    ("dslr", "train"): [2, 13, 5, 2, 5, 9, 10, 3, 4, 9],
    ("dslr", "validation"): [7, 4, 4, 3, 2, 8, 6, 7, 1, 8],
    ("dslr", "test"): [2, 4, 2, 3, 2, 5, 5, 2, 2, 5],
    ("webcam", "train"): [5, 7, 8, 4, 5, 7, 8, 9, 4, 5],
    ("webcam", "validation"): [7, 3, 4, 6, 7, 6, 10, 2, 2, 3],
    ("webcam", "test"): [6, 4, 6, 6, 5, 6, 9, 6, 5, 6],
}


def load(root, size=8, **options):
    return fednb.datasets.load("office_caltech10", root, size=size, **options)


def listed(root, domain: str, part: str) -> list[str]:
    with open(root / "splits" / f"office_caltech_10_{domain}_{part}.csv", newline="") as handle:
        return [row["path"] for row in csv.DictReader(handle)]


def write_list(root, domain: str, part: str, paths: list[str]):
    file = root / "splits" / f"office_caltech_10_{domain}_{part}.csv"
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    rows = [("path", "label"), *((path, path.split("/")[1]) for path in paths)]
    with open(file, "w", newline="") as handle:
        csv.writer(handle).writerows(rows)


def replace(path, content: bytes):
    """Writes a new file; the old one may be a hard link that other tests use."""
    path.unlink()
    path.write_bytes(content)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, picture):
    """All 2,533 images in small, of noise, in lists of the real lengths and a shuffled order.

    The first image of webcam's train list and the last of dslr's are byte for byte test images of their site.
    """
    root = tmp_path_factory.mktemp("office")
    number = 0
    for domain in DOMAINS:
        total = sum(TABLE11[domain])
        paths = [f"{domain}/{CLASSES[i % 10]}/frame_{i:04}.png" for i in range(total)]
        for path in paths:
            number += 1
            picture(root / "office_caltech_10" / path, number)
        order = np.random.RandomState(number).permutation(total)
        cut = total - TABLE11[domain][2]
        write_list(root, domain, "train", [paths[i] for i in order[:cut]])
        write_list(root, domain, "test", [paths[i] for i in order[cut:]])
    for domain, position in {"webcam": 0, "dslr": -1}.items():
        train = listed(root, domain, "train")[position]
        test = next(p for p in listed(root, domain, "test") if p.split("/")[1] == train.split("/")[1])
        shutil.copy(root / "office_caltech_10" / train, root / "office_caltech_10" / test)
    return root


class TestSplits:
    @pytest.mark.parametrize(
        "options, expected",
        [
            ({}, FEDBN),
            ({"split": "fedfa"}, TABLE11),
            ({"split": "stratified"}, TABLE11),
            ({"train_images": 75}, {domain: (75, *sizes[1:]) for domain, sizes in FEDBN.items()}),
            (
                {"split": "fedfa", "train_images": 20},
                {domain: (20, *sizes[1:]) for domain, sizes in TABLE11.items()},
            ),
            (
                {"drop_duplicates": True},
                FEDBN | {"webcam": (61, 50, 59), "dslr": (62, 49, 32)},
            ),
        ],
    )
    def test_counts(self, whole, options, expected):
        federation = load(whole, **options)
        assert counts(federation) == expected
        assert federation.classes == CLASSES and federation.image_shape == (3, 8, 8)

    @pytest.mark.parametrize("split, start", [("fedbn", -50), ("fedfa", 459)])
    def test_images_and_labels_follow_the_lists_in_order(self, whole, split, start):
        site = load(whole, split=split).site("amazon")
        train, test = listed(whole, "amazon", "train"), listed(whole, "amazon", "test")
        taken = {"train": train[: len(site.train)], "validation": train[start:], "test": test}
        for part, paths in taken.items():
            held = getattr(site, part)
            assert held.targets.tolist() == [CLASSES.index(path.split("/")[1]) for path in paths]
            for position in (0, 17, len(paths) - 1):
                expected = images.decode(whole / "office_caltech_10" / paths[position], 8)[0]
                assert (held.images[position].numpy() == expected).all()

    def test_stratified_needs_no_lists_and_keeps_the_class_shares(self, tree):
        expected = load(tree, split="stratified").fingerprint
        shutil.rmtree(tree / "splits")
        federation = load(tree, split="stratified")
        assert federation.fingerprint == expected
        for site in federation.sites:
            total = sum(getattr(site, part).targets.bincount(minlength=10) for part in SPLITS)
            assert total.sum() == sum(TABLE11[site.name])
            for part in SPLITS:
                share = len(getattr(site, part)) / total.sum()
                # Each of the two cuts around a part is less than one image per class away.
                assert (getattr(site, part).targets.bincount(minlength=10) - share * total).abs().max() < 2

    def test_stratified_refuses_an_incomplete_domain(self, tree):
        next((tree / "office_caltech_10" / "dslr" / "mug").iterdir()).unlink()
        with pytest.raises(DataError, match="dslr has 156 images; .* divides 157"):
            load(tree, split="stratified")

    def test_a_list_that_lacks_rows_is_a_note(self, tree):
        assert not any("rows" in note for note in load(tree).notes)
        write_list(tree, "webcam", "train", listed(tree, "webcam", "train")[:-6])
        note = "The train list of webcam has 230 rows; FedBN's has 236."
        assert note in load(tree).notes and note in load(tree, split="fedfa").notes
        assert note not in load(tree, split="stratified").notes


class TestSpare:
    def test_the_rest_of_the_train_list_in_its_order(self, whole):
        plain, asked = load(whole), load(whole, spare=True)
        assert all(site.spare is None for site in plain.sites)
        assert {site.name: len(site.spare) for site in asked.sites} == SPARE
        for site in asked.sites:
            paths = listed(whole, site.name, "train")[62:-50]
            assert site.spare.targets.tolist() == [CLASSES.index(path.split("/")[1]) for path in paths]
            expected = images.decode(whole / "office_caltech_10" / paths[-1], 8)[0]
            assert (site.spare.images[-1].numpy() == expected).all()
            for part in SPLITS:
                assert torch.equal(getattr(site, part).images, getattr(plain.site(site.name), part).images)
                assert not different(site.spare) & different(getattr(site, part))
        assert "amazon: 654 spare images; 0 with the same bytes as another of its images left out." in asked.notes
        (alone,) = load(whole, spare=True, site="dslr").sites
        assert torch.equal(alone.spare.images, asked.site("dslr").spare.images)
        more = load(whole, spare=True, train_images=75)
        assert [len(site.spare) for site in more.sites] == [641, 773, 0, 111]

    def test_the_same_bytes_as_another_image_of_the_site_stay_out(self, tree):
        names = listed(tree, "webcam", "train")
        others = names[3], names[-4], listed(tree, "webcam", "test")[5]
        for position, other in zip((70, 80, 90), others, strict=True):
            replace(tree / "office_caltech_10" / names[position], (tree / "office_caltech_10" / other).read_bytes())
        for drop in (False, True):
            asked = load(tree, spare=True, drop_duplicates=drop)
            assert len(asked.site("webcam").spare) == 124 - 3
            assert [note for note in asked.notes if "webcam: 121 spare images; 3 with the same bytes" in note]
            left = [names[62:-50][n] for n in range(124) if n not in (8, 18, 28)]
            assert asked.site("webcam").spare.targets.tolist() == [CLASSES.index(p.split("/")[1]) for p in left]

    @pytest.mark.parametrize("split", ["fedfa", "stratified"])
    def test_a_split_that_leaves_none_is_refused_by_name(self, whole, split):
        with pytest.raises(RecipeError, match=f'no spare images with split="{split}", only with split="fedbn"'):
            load(whole, split=split, spare=True)


class TestDuplicates:
    def test_kept_but_counted(self, whole):
        federation = load(whole)
        assert different(federation.site("webcam").train) & different(federation.site("webcam").test)
        assert [note.split(" (")[0] for note in federation.notes] == [
            "dslr, images with the same bytes as a test image: 1 in validation",
            "webcam, images with the same bytes as a test image: 1 in train",
        ]
        assert "drop_duplicates=True" in federation.notes[0]

    def test_left_out_and_nothing_moves_up(self, whole):
        kept, dropped = load(whole), load(whole, drop_duplicates=True)
        assert torch.equal(dropped.site("webcam").train.images, kept.site("webcam").train.images[1:])
        assert torch.equal(dropped.site("dslr").validation.images, kept.site("dslr").validation.images[:-1])
        for site in DOMAINS:
            assert torch.equal(dropped.site(site).test.images, kept.site(site).test.images)
        assert all("left out" in note for note in dropped.notes) and len(dropped.notes) == 2

    def test_straddling_names_the_groups(self, whole):
        groups = office_caltech10.straddling(whole)
        assert [train for train, _ in groups] == [
            [listed(whole, "dslr", "train")[-1]],
            [listed(whole, "webcam", "train")[0]],
        ]
        for (train,), (test,) in groups:
            first, second = ((whole / "office_caltech_10" / path).read_bytes() for path in (train, test))
            assert first == second and test in listed(whole, test.split("/")[0], "test")


class TestPickles:
    def convert(self, tree, protocol, dtype=str, prefix="office_caltech_10/"):
        for domain in DOMAINS:
            for part in ("train", "test"):
                paths = listed(tree, domain, part)
                pair = (
                    np.array([prefix + path for path in paths], dtype=dtype),
                    np.array([path.split("/")[1] for path in paths], dtype=dtype),
                )
                with open(tree / "office_caltech_10" / f"{domain}_{part}.pkl", "wb") as handle:
                    pickle.dump(pair, handle, protocol)
        shutil.rmtree(tree / "splits")

    @pytest.mark.parametrize("protocol", range(6))
    def test_fedbn_pickles_are_the_same_lists(self, whole, tree, protocol):
        self.convert(tree, protocol)
        assert load(tree).fingerprint == load(whole).fingerprint

    def test_arrays_of_objects_and_of_bytes_are_read(self, whole, tree):
        self.convert(tree, 4, dtype=object, prefix="../data/office_caltech_10/")
        assert load(tree).fingerprint == load(whole).fingerprint

    def test_names_of_older_and_newer_numpy(self, whole, tree):
        self.convert(tree, 2)
        for file in (tree / "office_caltech_10").glob("*.pkl"):
            content = file.read_bytes()
            old, new = b"numpy.core.multiarray", b"numpy._core.multiarray"
            assert old in content or new in content
            file.write_bytes(content.replace(new, old) if new in content else content.replace(old, new))
        assert load(tree).fingerprint == load(whole).fingerprint

    @pytest.mark.parametrize("protocol", range(6))
    def test_a_pickle_that_would_execute_code_is_refused_unexecuted(self, tree, tmp_path, protocol):
        self.convert(tree, 4)
        trace = tmp_path / "executed"

        class Evil:
            def __reduce__(self):
                return os.mkdir, (str(trace),)

        pair = (np.array([Evil()], dtype=object), np.array(["mug"]))
        (tree / "office_caltech_10" / "amazon_train.pkl").write_bytes(pickle.dumps(pair, protocol))
        with pytest.raises(DataError, match=r"amazon_train\.pkl is a pickle that asks for .*mkdir.*executed"):
            load(tree)
        assert not trace.exists()

    @pytest.mark.parametrize("asked", ["builtins eval", "builtins getattr", "numpy load", "pickle loads"])
    def test_no_other_name_is_looked_up(self, tree, asked):
        self.convert(tree, 4)
        module, name = asked.split()
        (tree / "office_caltech_10" / "amazon_test.pkl").write_bytes(f"c{module}\n{name}\n.".encode())
        with pytest.raises(DataError, match=rf"asks for {module}\.{name}"):
            load(tree)

    def test_no_other_codec_is_looked_up(self, tree):
        self.convert(tree, 4)
        evil = b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x05\x00\x00\x00rot13tR."
        (tree / "office_caltech_10" / "amazon_test.pkl").write_bytes(evil)
        with pytest.raises(DataError, match="codec rot13"):
            load(tree)

    @pytest.mark.parametrize("content", [b"", b"nothing", pickle.dumps(3), pickle.dumps((1, 2, 3))])
    def test_a_damaged_pickle_is_named(self, tree, content):
        self.convert(tree, 4)
        (tree / "office_caltech_10" / "amazon_test.pkl").write_bytes(content)
        with pytest.raises(DataError, match=r"amazon_test\.pkl cannot be read"):
            load(tree)

    def test_unequal_lengths_are_named(self, tree):
        self.convert(tree, 4)
        pair = np.array(["amazon/mug/a.png"]), np.array(["mug", "mug"])
        (tree / "office_caltech_10" / "amazon_test.pkl").write_bytes(pickle.dumps(pair))
        with pytest.raises(DataError, match="as many paths as labels"):
            load(tree)


class TestBadInput:
    def test_a_missing_list_says_where_it_looked_and_what_works_without(self, tree):
        (tree / "splits" / "office_caltech_10_dslr_test.csv").unlink()
        with pytest.raises(DataError, match=r"test list of dslr .*_dslr_test\.csv.*dslr_test\.pkl.*stratified"):
            load(tree)
        assert fednb.datasets.available("office_caltech10", tree, split="stratified") is None

    def test_an_image_in_both_lists_is_named(self, tree):
        train, test = listed(tree, "dslr", "train"), listed(tree, "dslr", "test")
        write_list(tree, "dslr", "test", [*test, train[0]])
        with pytest.raises(DataError, match=f"{train[0]} is in the train list and in the test list"):
            load(tree)

    def test_an_image_listed_twice(self, tree):
        test = listed(tree, "dslr", "test")
        write_list(tree, "dslr", "test", [*test, test[0]])
        with pytest.raises(DataError, match="33 entries, 32 different"):
            load(tree)

    @pytest.mark.parametrize("row", ["dslr/mug/a.png,bike", "dslr/cup/a.png,cup", "amazon/mug/a.png,mug", "a.png,mug"])
    def test_an_entry_of_another_class_or_domain(self, tree, row):
        file = tree / "splits" / "office_caltech_10_dslr_test.csv"
        replace(file, f"path,label\n{row}\n".encode())
        with pytest.raises(DataError, match=r"dslr_test\.csv, entry 1: .*expected dslr/<class>/<file>"):
            load(tree)

    @pytest.mark.parametrize(
        "content", [b"file,class\na,b\n", b"path,label\n\xff\xfe,\xff\n", b"path\na\n", b"label,path\nmug\n"]
    )
    def test_a_damaged_list_is_named(self, tree, content):
        file = tree / "splits" / "office_caltech_10_dslr_test.csv"
        replace(file, content)
        with pytest.raises(DataError, match=r"dslr_test\.csv cannot be read"):
            load(tree)
        assert [bad for bad, _ in office_caltech10.damaged(tree)] == [file]
        assert office_caltech10.describe(tree)[0] == "ready"

    def test_an_empty_list(self, tree):
        write_list(tree, "dslr", "test", [])
        with pytest.raises(DataError, match="0 entries"):
            load(tree)

    @pytest.mark.parametrize("split, length", [("fedbn", 50), ("fedbn", 111), ("fedfa", 75)])
    def test_a_list_too_short_for_the_split(self, tree, split, length):
        write_list(tree, "dslr", "train", listed(tree, "dslr", "train")[:length])
        with pytest.raises(DataError, match="Get the whole list"):
            load(tree, split=split)

    @pytest.mark.parametrize("count", [0, -3, 76, 2.5, True])
    def test_train_images_out_of_range(self, whole, count):
        with pytest.raises(RecipeError, match="train_images is .* 1 to "):
            load(whole, train_images=count)


class TestReal:
    def test_counts_per_site_class_and_split(self, real):
        federation = load(real, size=16)
        assert counts(federation) == FEDBN
        found = {
            (site.name, split): getattr(site, split).targets.bincount(minlength=10).tolist()
            for site in federation.sites
            for split in SPLITS
        }
        assert found == REAL_CLASSES
        assert counts(load(real, size=16, split="fedfa")) == TABLE11
        assert counts(load(real, size=16, split="stratified")) == TABLE11

    def test_spare_images_are_none_of_the_others(self, real):
        federation = load(real, size=16, spare=True)
        found = {site.name: len(site.spare) for site in federation.sites}
        assert found == SPARE | {"amazon": 642, "caltech": 785}
        for site in federation.sites:
            assert not different(site.spare) & set().union(*(different(getattr(site, part)) for part in SPLITS))

    def test_nine_groups_straddle_the_lists(self, real):
        groups = office_caltech10.straddling(real)
        assert len(groups) == 9
        assert sorted(test[0].split("/")[0] for _, test in groups) == ["amazon"] * 8 + ["caltech"]
        assert (["amazon/mug/frame_0071.jpg"], ["amazon/mug/frame_0073.jpg"]) in groups

    def test_without_duplicates_no_image_is_in_two_splits(self, real):
        federation = load(real, size=16, split="fedfa", drop_duplicates=True)
        assert counts(federation) == TABLE11 | {"amazon": (453, 299, 192), "caltech": (538, 359, 225)}
        for site in federation.sites:
            test = different(site.test)
            assert not test & (different(site.train) | different(site.validation))
