"""Times that are expected and left; lines in logs, a bar where somebody sits before it."""

import io
import json
import logging

import papermill
import pytest
import recording
from jupyter_client.manager import start_new_kernel
from small_runs import SMALL, record

from fednb.records import progress
from fednb.records.progress import MARK, Display, between, duration, expected_seconds
from fednb.records.store import Store

STUDY = """import fednb
model = {"name": "digits_cnn", "channels": 2, "width": 8}
federation = {"name": "shifted_digits", "size": 8}
recipe = fednb.Recipe(federation=federation, model=model, rounds=2)
print("before")
results = fednb.Study([recipe]).run()
print(*results.notes)"""


def elsewhere(seconds: float):
    """Between which times a run is expected that took so long on other machines."""
    return pytest.approx((seconds / 8, 3 * seconds))


def test_expected_seconds_are_those_of_the_median_run_like_it():
    recorded = [record(SMALL.with_(seed=seed), seconds) for seed, seconds in enumerate((2.0, 8.0, 4.0))]
    assert expected_seconds(SMALL, recorded) == elsewhere(4)
    assert expected_seconds(SMALL.with_(rounds=5, local_epochs=3), recorded) == elsewhere(4 / 2 * 5 * 3)
    assert expected_seconds(SMALL.with_(precision="bf16"), recorded) is None
    assert expected_seconds(SMALL, []) is None


def test_expected_seconds_prefer_runs_of_the_same_methods_and_keep_devices_apart():
    recorded = [record(SMALL, 2.0), record(SMALL.with_(augmentations=["fedmix"]), 30.0)]
    assert expected_seconds(SMALL.with_(seed=5), recorded) == elsewhere(2)
    assert expected_seconds(SMALL.with_(seed=5, augmentations=["fedmix"]), recorded) == elsewhere(30)
    released = SMALL.with_(augmentations=[{"name": "fedrdn", "variant": "released"}])
    kin = [record(SMALL.with_(augmentations=["fedrdn"]), 50.0), *recorded]
    assert expected_seconds(released, kin) == elsewhere(50)
    assert expected_seconds(released, recorded) == elsewhere(30)
    assert expected_seconds(SMALL.with_(algorithm="fedbn"), recorded[:1]) == elsewhere(2)
    assert expected_seconds(SMALL, recorded, device="cuda") is None


def test_three_runs_of_the_kind_on_this_machine_make_one_number(tmp_path):
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    there.write(SMALL.with_(seed=9), record(SMALL.with_(seed=9), 100.0))
    for seed, wanted in enumerate(((50 / 4, 300), (1, 4), (2, 8), (3, 3))):
        recorded = [found for store in (here, there) for found in store.like([SMALL])]
        assert expected_seconds(SMALL, recorded, here=here.folder) == pytest.approx(wanted)
        here.write(SMALL.with_(seed=seed), record(SMALL.with_(seed=seed), (2.0, 4.0, 3.0, 1.0)[seed]))


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


def test_duration_is_for_a_reader():
    assert [duration(seconds) for seconds in (0.2, 89, 90, 7190, 12000)] == [
        "1 s",
        "89 s",
        "2 min",
        "2 h 0 min",
        "3 h 20 min",
    ]


def test_two_times_have_their_unit_once():
    assert between([(100, 600), (20, 120)]) == "2 to 12 min" and between([(100, 600)], jobs=2) == "50 s to 5 min"
    assert between([(59.8, 60.2)]) == "60 s" and between([(3600, 36000)]) == "60 min to 10 h 0 min"
    assert between([(7200, 36000)]) == "2 h 0 min to 10 h 0 min" and between([(1, 3)]) == "1 to 3 s"


@pytest.fixture
def clock(monkeypatch):
    """The time that a display believes in, in seconds: `clock[0]`."""
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_lines_say_run_round_and_time_left_from_before_the_first_round(clock, capsys):
    one, two = recipes = SMALL.with_(rounds=4).vary(seed=[0, 1])
    with Display({one.key: (30.0, 60.0), two.key: (30.0, 60.0)}) as display:
        display.say("2 runs to train")
        tell = display.runs(recipes, lambda recipe: f", for {recipe.seed}")
        tell(one, 0)
        clock[0] += 9
        tell(one, 1)  # too soon after the last line
        clock[0] += 11
        tell(one, 2)
        clock[0] += 20
        tell(one, 4)
        tell(two, 0)
        clock[0] += 100
        tell(two, 4)
    out, err = capsys.readouterr()
    assert out == "" and err.splitlines() == [
        "2 runs to train (about 60 s to 2 min left)",
        f"run 1/2: {one}, round 0/4, for 0 (about 60 s to 2 min left)",
        f"run 1/2: {one}, round 2/4, for 0 (about 30 s to 2 min left)",  # 20 s for a quarter, half or twice as fast
        f"run 1/2: {one}, round 4/4, for 0 (about 20 to 80 s left)",
        f"run 2/2: {two}, round 4/4, for 1",
    ]


def test_a_terminal_gets_a_bar_that_goes(clock, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    shown = Terminal()
    with Display({"a": (40.0, 40.0), "b": (40.0, 40.0)}, stream=shown) as display:
        for share in (0.0, 0.25, 0.5, 1.0):
            clock[0] += 10
            display.update("a", "run 1/2: a recipe of a long name", share)
            display.update("b", "too soon", 0.0)
    *lines, last = shown.getvalue().split("\r")
    assert lines[0] == "\x1b[K[....................] about 80 s left: run 1/2: a recipe o"
    assert [line.count("#") for line in lines] == [0, 2, 5, 10] and last == "\x1b[K"
    assert all(len(line) <= 3 + 59 for line in lines) and "too soon" not in shown.getvalue()
    monkeypatch.setenv("TERM", "dumb")
    shown = Terminal()
    with Display({"a": None}, stream=shown) as display:
        display.say("1 runs to train")
    assert shown.getvalue() == "1 runs to train (the time left is not known yet)\n"


def test_a_long_training_has_some_hundred_lines(clock, capsys):
    display = Display({"a": (86400.0, 86400.0)})
    for second in range(0, 86400, 5):
        clock[0] = 1000.0 + second
        display.update("a", "training", second / 86400)
    assert 300 < capsys.readouterr().err.count("\n") < 600


def test_time_left_counts_what_goes_side_by_side_and_not_what_was_done_before(clock):
    display = Display({"a": (100.0, 400.0), "b": (100.0, 400.0), "c": None, "d": None}, jobs=2)
    assert display.left == "about 3 to 13 min left"  # 400 to 1600 s, two at a time
    display.update("a", "resumed", 0.5)
    assert display.left == "about 3 to 12 min left"  # 350 to 1400 s
    clock[0] += 10
    display.update("a", "", 0.6)
    assert display.left == "about 3 to 11 min left"  # 10 s for 20 of 700: 340 s, half or twice as fast
    clock[0] += 190
    display.finish("b", "")
    display.finish("a", "")
    assert display.left == "about 2 to 9 min left"  # 200 s for 300
    display.finish("d", "")
    assert display.left == "about 80 s left"  # 200 s for 500, by three
    display.finish("c", "")
    assert display.left == "" and display.done == 1


def test_time_left_is_not_known_where_nothing_like_it_is_recorded(clock):
    display = Display({"a": None, "b": None})
    assert display.left == "the time left is not known yet"
    display.update("a", "", 0.0)
    clock[0] += 30
    display.update("a", "", 0.5)
    assert display.left == "about 45 s to 3 min left"  # 90 s: a quarter took 30


def test_papermill_logs_lines_that_recording_leaves_out(made, tmp_path, caplog):
    book, executed = made("a/b", [STUDY]), tmp_path / "executed.ipynb"
    with caplog.at_level(logging.INFO, "papermill"):
        papermill.execute_notebook(str(book.path), str(executed), progress_bar=False, log_output=True)
    lines = [line for line in caplog.messages if line.startswith(("1 runs", "run 1/1"))]
    assert lines[0] == "1 runs to train (the time left is not known yet)"
    assert "round 0/2 (" in lines[1] and "round 2/2" in lines[-1]
    content = json.loads(executed.read_text())
    assert [output.get("metadata") for output in content["cells"][0]["outputs"]].count(MARK) == len(lines)
    settled = recording.settle(content)
    assert [output["text"] for output in settled["cells"][0]["outputs"]] == [["before\n", "\n"]]


def test_jupyterlab_gets_a_bar_that_goes(made, tmp_path):
    made("a/b", [])
    manager, client = start_new_kernel(kernel_name="python3")
    shown = []
    try:
        client.execute_interactive(STUDY, allow_stdin=True, timeout=300, output_hook=shown.append)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    shown = [each["content"] for each in shown if each["msg_type"] in ("display_data", "update_display_data")]
    assert len({each["transient"]["display_id"] for each in shown}) == 1 and all(
        each["metadata"] == MARK for each in shown
    )
    bars = [each["data"].get("text/html", "") for each in shown[1:-1]]
    assert all(bar.startswith("<progress value=") for bar in bars) and "round 2/2" in bars[-1]
    assert shown[-1]["data"] == {}
