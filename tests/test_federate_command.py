"""`fednb federate`, up to where Flower begins."""

import json
import tomllib

import pytest
from methods import TINY
from small_runs import use_toy

from fednb import cli
from fednb.commands import federate
from fednb.recipe import Recipe

RECIPE = json.dumps(Recipe(**TINY).short)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.json"], "nowhere.json is no recipe"),
        (['{"algorithm": '], "is no recipe"),
        (['{"algorithm": "fedavgg"}'], 'did you mean "fedavg"'),
        ([RECIPE], "flwr is not installed: pip install -c constraints-flower.txt"),
        ([RECIPE, "--app", "there"], "--app needs --nodes"),
    ],
)
def test_a_recipe_is_read_before_flower_is_asked_for(words, said, monkeypatch, capsys):
    monkeypatch.setattr(federate.importlib.util, "find_spec", lambda name: None)
    assert cli.main(["federate", *words]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "words", "said"),
    [
        ({"algorithm": "all"}, [], "all trains centrally on pooled data, the images of all sites"),
        ({"algorithm": "fedproto", "unseen": ["clinic"]}, [], "fedproto keeps entries of the network at its clients"),
        ({"unseen": ["clinc"]}, [], 'no site "clinc"; did you mean "clinic"'),
        ({}, ["--nodes", "2"], "has 3 sites, clinic, harbour, tower, and each is a node"),
    ],
)
def test_what_no_run_can_be_made_from_is_refused_before_flower_starts(settings, words, said, monkeypatch, capsys):
    use_toy(monkeypatch)
    monkeypatch.setattr(federate.importlib.util, "find_spec", lambda name: "there")
    assert cli.main(["federate", json.dumps(Recipe(**TINY | settings).short), *words]) == 1
    assert said in capsys.readouterr().err


def test_the_app_holds_the_recipe_and_the_commands_are_printed(tmp_path, capsys):
    assert cli.main(["federate", RECIPE, "--app", str(tmp_path / "app"), "--nodes", "3"]) == 0
    app = tomllib.loads((tmp_path / "app" / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    assert json.loads(app["config"]["recipe"]) == json.loads(RECIPE)
    assert (app["config"]["clients"], app["config"]["timeout"]) == (3, 3600)
    assert f"flwr run {tmp_path / 'app'} SUPERLINK --stream" in capsys.readouterr().out
