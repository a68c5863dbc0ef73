"""Nothing stale: a record whose methods behave otherwise today is known, named, and made again."""

import json
from pathlib import Path

import numpy as np
import pytest
from small_runs import SMALL, entries_of, record

from fednb.errors import StoreError
from fednb.recipe import Recipe
from fednb.records import staleness, training
from fednb.records.record import read, to_text
from fednb.records.staleness import changed, used
from fednb.records.store import Record, Store
from fednb.study import Study

RECORDED = Path(__file__).parent.parent / "results"
MIXED = SMALL.with_(algorithm="fedprox", augmentations=["fedrdn", {"name": "mixup", "alpha": 0.3}])
FILES = ["datasets/shifted_digits", "models/digits_cnn", "algorithms/fedprox", "augmentations/fedrdn"]


@pytest.fixture
def now(monkeypatch):
    """What the package knows, for a test to change."""
    known = json.loads(staleness.FILE.read_text())
    monkeypatch.setattr(staleness, "known", lambda: known)
    return known["now"]


def kept(recipe: Recipe, **other) -> Record:
    """A record that keeps the behaviours of this moment."""
    return Record(**{**vars(record(recipe)), "behaviours": used(recipe.full), **other})


def test_a_run_uses_its_federation_network_algorithm_and_augmentations():
    known = staleness.known()["now"]
    assert used(MIXED.full) == {name: known[name][-1] for name in [*FILES, "augmentations/mixup"]}
    assert all(len(equal[-1]) == 12 and {len(digest) for digest in equal} <= {0, 12} for equal in known.values())


@pytest.mark.parametrize("name", FILES)
def test_a_change_of_one_behaviour_makes_stale_what_used_it_and_nothing_else(now, name):
    other = SMALL.with_(federation="digits", model="lenet5", algorithm="fedbn", augmentations=["moex"])
    records = [kept(MIXED), kept(other, origin={"code": "older", "torch": "1", "device": "cpu", "seconds": 1.0})]
    assert [changed(each) for each in records] == [[], []]
    now[name] = ["another"]
    assert [changed(each) for each in records] == [[name], []]


def test_a_hash_of_fewer_tiny_runs_is_as_good_while_all_of_them_agree(now):
    made = kept(MIXED)
    now["augmentations/fedrdn"].append("of one more")
    assert changed(made) == [] and used(MIXED.full)["augmentations/fedrdn"] == "of one more"


def test_every_committed_record_is_whole_and_none_is_stale():
    records = [read(path) for path in sorted(RECORDED.rglob("*.json"))]
    assert len(records) >= 1336
    for made in records:
        made.require_artefacts()
        assert made.behaviours and changed(made) == [], made.path


class TestStore:
    @pytest.fixture
    def old(self, store, now):
        """A stale record with an artefact, in the store."""
        path = store.write(MIXED, kept(MIXED), {"features": {"labels": np.arange(3)}})
        now["augmentations/fedrdn"] = ["another"]
        return path

    def test_a_stale_record_is_found_unless_it_is_to_be_renewed(self, store, old):
        assert changed(store.find(MIXED)) == ["augmentations/fedrdn"]
        store.write(MIXED, kept(MIXED, notes=["later"]))
        assert store.find(MIXED).notes == []  # the first writer wins
        store.renew = True
        assert store.find(MIXED) is None and old.exists()
        store.write(MIXED, kept(MIXED, notes=["again"]), {"features": {"labels": np.arange(5)}})
        store.write(MIXED, kept(MIXED, notes=["later"]))  # nothing to renew any more
        assert store.find(MIXED).notes == ["again"] and len(store.find(MIXED).artefact("features")["labels"]) == 5

    def test_of_two_folders_the_record_of_todays_code_is_taken(self, store, old, tmp_path):
        both = Store(tmp_path / "more", also=(store.folder,))
        assert both.find(MIXED).path == old
        Store(tmp_path / "more").write(MIXED, kept(MIXED))
        assert both.find(MIXED).path.is_relative_to(tmp_path / "more")
        assert Store(store.folder, also=(tmp_path / "more",)).find(MIXED).path.is_relative_to(tmp_path / "more")

    def test_a_record_under_another_default_is_refused_and_renewed_with_its_method(self, store, old):
        entries = entries_of(old.read_text())
        entries["recipe"]["algorithm"]["mu"], entries["checksums"] = 7.0, {}
        old.write_text(to_text(Record(**entries)))
        with pytest.raises(StoreError, match="algorithm was .*7.0.* and is .*0.001.* A default has changed"):
            store.find(MIXED)
        store.renew = True
        assert store.find(MIXED) is None
        store.write(MIXED, kept(MIXED))
        assert store.find(MIXED).recipe == MIXED.full

    def test_training_keeps_what_was_used_and_renews_what_is_stale(self, store, now, toy):
        recipe, heard = SMALL.with_(augmentations=["fedrdn"]), []

        def trained() -> tuple[Record, list[int]]:
            heard.clear()
            return training.train_one(recipe, store, progress=lambda _, rounds: heard.append(rounds)), list(heard)

        first = trained()[0]
        assert first.behaviours == used(recipe.full)
        now["augmentations/fedrdn"] = ["another"]
        assert trained() == (first, [2])  # all of its rounds are there
        store.renew = True
        again, rounds = trained()
        assert again.behaviours["augmentations/fedrdn"] == "another" and again.rounds == first.rounds
        assert rounds == [0, 1, 2] and trained()[1] == [2] and len(list(store.folder.rglob("*.json"))) == 1

    def test_results_name_the_stale_and_mark_their_rows(self, store, old):
        store.write(SMALL, kept(SMALL))
        results = Study([SMALL, MIXED, SMALL.with_(seed=5)], store=store).recorded()
        assert results.stale == {MIXED: ["augmentations/fedrdn"]}
        frame = results.frame
        assert frame["stale"].dtype == bool
        assert frame.groupby("key")["stale"].unique().map(list).to_dict() == {SMALL.key: [False], MIXED.key: [True]}
