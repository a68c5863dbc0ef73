"""`fednb federate`, up to where Flower begins."""

import json
import tomllib

import pytest
from methods import TINY

from fednb import cli
from fednb.commands import federate
from fednb.recipe import Recipe

RECIPE = json.dumps(Recipe(**TINY).short)


def tiny(**settings) -> str:
    return json.dumps(Recipe(**TINY | settings).short)


@pytest.mark.parametrize(
    ("words", "installed", "said"),
    [
        (["nowhere.json"], False, "nowhere.json is no recipe"),
        (['{"algorithm": '], False, "is no recipe"),
        (['{"algorithm": "fedavgg"}'], False, 'did you mean "fedavg"'),
        ([RECIPE], False, "flwr is not installed: pip install -c constraints-flower.txt"),
        ([RECIPE, "--app", "there"], False, "--app needs --nodes"),
        ([tiny(algorithm="all")], True, "all trains centrally on pooled data, the images of all sites"),
        ([tiny(algorithm="fedproto", unseen=["clinic"])], True, "fedproto keeps entries of the network at its clients"),
        ([tiny(unseen=["clinc"])], True, 'no site "clinc"; did you mean "clinic"'),
        ([RECIPE, "--nodes", "2"], True, "has 3 sites, clinic, harbour, tower, and each is a node"),
    ],
)
def test_what_no_run_can_be_made_from_is_refused_before_flower_starts(words, installed, said, toy, monkeypatch, capsys):
    monkeypatch.setattr(federate.importlib.util, "find_spec", lambda name: "there" if installed else None)
    assert cli.main(["federate", *words]) == 1
    assert said in capsys.readouterr().err


def test_the_app_holds_the_recipe_and_the_commands_are_printed(tmp_path, capsys):
    assert cli.main(["federate", RECIPE, "--app", str(tmp_path / "app"), "--nodes", "3"]) == 0
    app = tomllib.loads((tmp_path / "app" / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    assert json.loads(app["config"]["recipe"]) == json.loads(RECIPE)
    assert (app["config"]["clients"], app["config"]["timeout"]) == (3, 3600)
    assert f"flwr run {tmp_path / 'app'} SUPERLINK --stream" in capsys.readouterr().out
