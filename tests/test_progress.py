"""A bar while runs train, where somebody sees it, and the times that it counts with."""

import io
import sys

import pytest
from small_runs import SMALL, record

from fednb.records import progress
from fednb.records.progress import display, expected_seconds
from fednb.records.store import Store


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_expected_seconds_are_those_of_the_median_run_of_the_same_methods_on_such_a_device():
    recorded = [record(SMALL.with_(seed=seed), seconds) for seed, seconds in enumerate((2.0, 8.0, 4.0))]
    assert expected_seconds(SMALL, recorded) == 4
    assert expected_seconds(SMALL.with_(rounds=5, local_epochs=3), recorded) == 4 / 2 * 5 * 3
    assert expected_seconds(SMALL.with_(precision="bf16"), recorded) is None
    assert expected_seconds(SMALL, recorded, device="cuda") is None and expected_seconds(SMALL, []) is None
    recorded.append(record(SMALL.with_(augmentations=["fedmix"]), 30.0))
    assert expected_seconds(SMALL.with_(augmentations=[{"name": "fedmix", "ratio": 0.3}]), recorded) == 30
    assert expected_seconds(SMALL.with_(algorithm="fedbn"), recorded[:1]) == 2


def test_records_like_are_those_on_the_same_data(tmp_path):
    store, other = Store(tmp_path / "new", also=(tmp_path / "old",)), Store(tmp_path / "old")
    for recipe in (SMALL, SMALL.with_(federation="digits")):
        other.write(recipe, record(recipe))
    store.write(SMALL.with_(seed=1), record(SMALL.with_(seed=1)))
    damaged = store.write(SMALL.with_(seed=2), record(SMALL.with_(seed=2)))
    damaged.write_text("{")
    damaged.with_name("folder.json").mkdir()
    assert [found.recipe["seed"] for found in store.like([SMALL.with_(seed=5), SMALL])] == [1, 0]
    assert store.notes == []


def shown(monkeypatch, stream, recipes, records) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with display(recipes, records, jobs=1) as tell:
        for recipe in recipes:
            for rounds in (1, recipe.rounds):
                tell(recipe, rounds)
    return stream.getvalue()


@pytest.mark.parametrize("records", [[], [record(SMALL, 3.0)]])
def test_a_terminal_gets_a_bar_that_goes(monkeypatch, records):
    monkeypatch.setattr("tqdm.tqdm.__init__", _with(mininterval=0, ncols=200), raising=False)
    recipes = SMALL.vary(seed=[0, 1])
    lines = shown(monkeypatch, Terminal(), recipes, records).split("\r")
    assert any("run 2/2: " in line and f"seed 1 ({recipes[1].key}), round 2/2" in line for line in lines)
    assert any(line.startswith(" 50 %|##########") for line in lines) and not lines[-1].strip()


def _with(**settings):
    from tqdm import tqdm

    made = tqdm.__init__
    return lambda bar, *given, **named: made(bar, *given, **named | settings)


def test_a_log_and_a_notebook_that_is_only_executed_get_none(monkeypatch):
    class Shell:
        asked = True

        def get_parent(self):
            return {"content": {"allow_stdin": self.asked}}

    assert shown(monkeypatch, io.StringIO(), [SMALL], []) == ""
    shell = Shell()
    monkeypatch.setitem(sys.modules, "IPython", type("IPython", (), {"get_ipython": lambda *_: shell})())
    assert progress._is_watched()
    shell.asked = False
    assert not progress._is_watched() and shown(monkeypatch, Terminal(), [SMALL], []) == ""
