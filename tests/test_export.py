"""`fednb export`: what each tool reads is what the records say."""

from dataclasses import replace

import pandas
import pytest
import small_runs

from fednb import cli
from fednb.commands import export, notebooks
from fednb.study import default_store

STUDY = """from fednb import Recipe, Study
base = Recipe(model={"name": "digits_cnn", "channels": 4, "width": 32}, augmentations=["fedrdn"], rounds=3)
Study(base.vary(algorithm=["fedavg", {"name": "fedprox", "mu": 0.25}], seed=SEEDS)).run(data=DATA)"""
SETTINGS = "DATA = None\nSEEDS = [0, 1]"
SITES = ("a", "b & c")


def record(recipe, sites=SITES):
    """Numbers that are no short decimals; the second site has no validation images."""
    made = small_runs.record(recipe)
    rounds = [
        each | {"loss": {site: (k + 1) / (3 * each["round"]) for k, site in enumerate(sites)}, "validation": [1, 0]}
        for each in made.rounds
    ]
    images = {"train": [10, 10], "validation": [4, 0], "test": [7, 11]}
    return replace(made, clients=list(sites), images=images, rounds=rounds, notes=["Noted."])


@pytest.fixture
def planned(made):
    """The recipes of two notebooks, each of which asks for the first."""
    made("together/again", [STUDY], SETTINGS.replace("[0, 1]", "[0]"))
    return notebooks.plan(made("fedrdn/study", [STUDY], SETTINGS, about={"paper": "fedrdn"}))


@pytest.fixture
def records(planned):
    """All but the last are recorded."""
    store = default_store()
    for recipe in planned[:-1]:
        store.write(recipe, record(recipe))
    return {recipe.key: store.find(recipe) for recipe in planned[:-1]}


def expected(record) -> dict:
    """Name of a metric and round -> its number."""
    a, b = SITES
    found = {}
    for each in record.rounds:
        first, second = (100 * right / images for right, images in zip(each["test"], (7, 11), strict=True))
        numbers = {"train/loss/a": each["loss"][a], "train/loss/b___c": each["loss"][b]}
        numbers |= {"train/loss/average": (each["loss"][a] + each["loss"][b]) / 2}
        numbers |= {"validation/accuracy/a": 25.0, "validation/accuracy/average": 25.0}
        numbers |= {"test/accuracy/a": first, "test/accuracy/b___c": second}
        numbers |= {"test/accuracy/average": (first + second) / 2}
        found |= {(name, each["round"]): number for name, number in numbers.items()}
    assert len(found) == 8 * 3
    return found


def exported(capsys, *words) -> str:
    assert cli.main(["export", *words]) == 0
    return capsys.readouterr().out


def test_tables_have_every_number_of_every_round_once(records, tmp_path, capsys):
    before = {path: path.read_bytes() for path in (tmp_path / "checkout").rglob("*.*") if path.is_file()}
    out = exported(capsys, "--to", "csv")
    folder = tmp_path / "checkout/report/csv"
    assert f'3 runs exported, 1 not recorded\nnext: pandas.read_csv("{folder}/rounds.csv")' in out
    rounds = pandas.read_csv(folder / "rounds.csv")
    assert set(rounds["key"]) == set(records) and len(rounds) == 3 * 3 * 3 * 2
    for key, record in records.items():
        own = rounds[rounds["key"] == key].set_index(["split", "round", "client"])
        assert own.index.is_unique and set(own["seed"]) == {record.recipe["seed"]}
        for each in record.rounds:
            for k, (site, images) in enumerate(zip(SITES, (7, 11), strict=True)):
                assert own.loc[("train", each["round"], site), "loss"] == each["loss"][site]
                row = own.loc[("test", each["round"], site)]
                assert (row["correct"], row["images"]) == (each["test"][k], images)
                assert row["accuracy"] == 100 * each["test"][k] / images
    assert before == {path: path.read_bytes() for path in before}


def test_recipes_and_where_numbers_come_from_are_a_row_for_each_run(records, tmp_path, capsys):
    exported(capsys, "--to", "csv", "--out", str(tmp_path / "there"))
    runs = pandas.read_csv(tmp_path / "there/runs.csv", index_col="key")
    assert sorted(runs.index) == sorted(records)
    prox = runs[runs["algorithm.name"] == "fedprox"].iloc[0]
    assert prox["run"] == "fedprox(mu=0.25)+fedrdn" and prox["algorithm.mu"] == 0.25 and prox["model.width"] == 32
    assert (prox["augmentations"], prox["augmentations.fedrdn.variant"]) == ("fedrdn", "paper")
    assert (prox["origin.code"], prox["origin.device"], prox["notes"], prox["seed"]) == ("abc", "cpu", "Noted.", 0)
    assert prox["notebooks"] == "fedrdn/study + together/again" and prox["stand_in_for"] == "fedrdn"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # MLflow's own, of SQLAlchemy
def test_mlflow_reads_each_record_as_a_run(records, tmp_path, capsys):
    pytest.importorskip("alembic", reason='pip install "fednb[export]"')
    mlflow = pytest.importorskip("mlflow", reason='pip install "fednb[export]"')
    folder = tmp_path / "there"
    assert f"sqlite:///{folder}/mlflow.db" in exported(capsys, "--to", "mlflow", "--out", str(folder))
    client = mlflow.MlflowClient(f"sqlite:///{folder}/mlflow.db")
    experiment = client.get_experiment_by_name("shifted_digits")
    runs = {run.data.tags["key"]: run for run in client.search_runs([experiment.experiment_id])}
    assert set(runs) == set(records) and len(client.search_runs([experiment.experiment_id])) == 3
    for key, run in runs.items():
        history = [each for name in run.data.metrics for each in client.get_metric_history(run.info.run_id, name)]
        wanted = expected(records[key])
        assert {(each.key, each.step): each.value for each in history} == wanted and len(history) == len(wanted)
        assert run.data.tags["origin.code"] == "abc" and run.info.end_time - run.info.start_time == 1000
    (prox,) = (run for run in runs.values() if run.data.params["algorithm.name"] == "fedprox")
    assert prox.info.run_name == "fedprox(mu=0.25)+fedrdn, seed 0" and prox.info.status == "FINISHED"
    assert prox.data.params["algorithm.mu"] == "0.25" and prox.data.params["federation.name"] == "shifted_digits"


def test_tensorboard_reads_each_record_as_a_run(records, tmp_path, capsys):
    pytest.importorskip("tensorboard", reason='pip install "fednb[export]"')
    from numpy import float32
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    exported(capsys, "--to", "tensorboard", "--out", str(tmp_path / "there"))
    folders = sorted(path.parent for path in (tmp_path / "there").rglob("events*"))
    assert [f"{path.parent.name}/{path.name}.json" for path in folders] == sorted(
        f"{record.path.parent.name}/{record.path.name}" for record in records.values()
    )
    for folder in folders:
        (key,) = (key for key in records if folder.name.endswith(key[:6]))
        read = EventAccumulator(str(folder))
        read.Reload()
        found = [(name, each.step, each.value) for name in read.Tags()["scalars"] for each in read.Scalars(name)]
        wanted = expected(records[key])
        assert {(name, step): value for name, step, value in found} == {k: float32(v) for k, v in wanted.items()}
        assert (
            len(found) == len(wanted)
            and key.encode() in read.Tensors("record/text_summary")[0].tensor_proto.string_val[0]
        )
        assert read.PluginTagToContent("hparams")


def test_dice_and_unseen_sites(planned):
    recipe = planned[0].with_(federation="shifted_strokes", model="unet", augmentations=[], unseen=["b & c"])
    series = export.Run(recipe, record(recipe), []).series()
    last = {name: value for name, value, number in series if number == 3}
    assert last["test/Dice/average"] == last["test/Dice/a"] != last["test/Dice/b___c"]


def test_two_sites_of_one_name_are_refused_where_names_are_changed(planned, tmp_path, capsys):
    run = export.Run(planned[0], record(planned[0], ("a b", "a_b")), [])
    with pytest.raises(export.RunError, match="has sites that differ only in .*: a b, a_b. --to csv keeps"):
        run.series()
    assert list(run.rounds()["client"].unique()) == ["a b", "a_b"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--to", "csv", "--only", "fedrnd"], 'no notebook matches "fedrnd": did you mean "fedrdn/study"'),
        (["--to", "csv", "--set", "SEEDS=[9]", "--only", "study"], "of the 2 runs that these notebooks ask for with"),
        (["--to", "csv", "--out", "full"], "full is not empty, and an export adds to nothing: remove it, or name"),
        (["--to", "csv", "--out", "full/file"], "full/file is not empty"),
        (["--to", "csv", "--out", "full/file/inside"], "--out names another folder."),
    ],
)
def test_what_cannot_be_exported_is_named(records, tmp_path, capsys, words, message):
    full = tmp_path / "checkout/full/file"
    full.parent.mkdir()
    full.write_text("mine")
    assert cli.main(["export", *words]) == 1
    assert message in capsys.readouterr().err
    assert full.read_text() == "mine" and not (tmp_path / "checkout/report/csv").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--to", "mflow"], 'no tool "mflow": did you mean "mlflow"'), ([], "arguments are required: --to")],
)
def test_unknown_tool_stops_with_the_nearest(capsys, words, message):
    with pytest.raises(SystemExit, match="2"):
        cli.main(["export", *words])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("tool", "needed"), [("mlflow", "mlflow, sqlalchemy, alembic"), ("tensorboard", "tensorboard")]
)
def test_what_is_not_installed_is_named(planned, monkeypatch, capsys, tool, needed):
    monkeypatch.setattr(export, "find_spec", lambda name: None)
    assert cli.main(["export", "--to", tool]) == 1
    assert f'--to {tool} needs {needed}, not installed here: pip install -e ".[export]"' in capsys.readouterr().err


def test_exporting_twice_gives_no_doubles_and_half_an_export_is_none(records, tmp_path, monkeypatch, capsys):
    assert set(cli.TOOLS) == set(export.TOOLS)
    folder = tmp_path / "checkout/report/csv"
    rounds, read = export.Run.rounds, []
    with monkeypatch.context() as broken, pytest.raises(ZeroDivisionError):
        broken.setattr(export.Run, "rounds", lambda run: rounds(run) if read.append(run) or len(read) < 2 else 1 / 0)
        cli.main(["export", "--to", "csv"])
    assert not folder.exists()
    exported(capsys, "--to", "csv")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert cli.main(["export", "--to", "csv"]) == 1
    assert before == {path: path.read_bytes() for path in folder.iterdir()}
