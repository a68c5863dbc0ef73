"""`fednb federate`, up to where Flower begins: its programs are scripts here."""

import json
import sys

import pytest
from methods import TINY

from fednb import cli
from fednb.command import federate
from fednb.recipe import Recipe

RECIPE = json.dumps(Recipe(**TINY).short)


@pytest.fixture
def flwr(tmp_path, monkeypatch):
    """``flwr(body)`` writes a script of this name, the first on PATH."""

    def script(body: str) -> None:
        path = tmp_path / "bin" / "flwr"
        path.parent.mkdir()
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(path.with_name("python")))

    monkeypatch.setattr(federate.importlib.util, "find_spec", lambda name: name == "flwr" or None)
    return script


@pytest.mark.parametrize(
    ("said", "code"),
    [("echo round 3/3; echo recorded: there.json; exit 1", 0), ("echo fednb: tower refuses: its loss is nan", 1)],
)
def test_a_run_elsewhere_is_well_where_it_says_that_it_is_recorded(said, code, flwr, capfd):
    flwr(f'echo "$@"; {said}')
    assert cli.main(["federate", RECIPE, "--superlink", "hospitals", "--nodes", "3"]) == code
    told = capfd.readouterr().out
    assert "hospitals --stream --federation-config num-supernodes=3" in told
    assert ("recorded: there.json" if code == 0 else "fednb: tower refuses") in told
