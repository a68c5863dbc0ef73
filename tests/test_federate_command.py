"""`fednb federate`, up to where Flower begins: its programs are scripts here."""

import json
import re
import sys
import tomllib

import pytest
from loaders import NAMES
from methods import TINY
from small_runs import use_toy

from fednb import cli
from fednb.commands import federate
from fednb.recipe import Recipe
from fednb.registry import FOLDERS

PYTHON = sys.executable
RECIPE = json.dumps(Recipe(**TINY).short)


@pytest.fixture
def script(tmp_path, monkeypatch):
    """``script(body, name)`` writes one of Flower's programs."""

    def script(body: str, name: str = "flwr") -> None:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(path.with_name("python")))

    monkeypatch.setattr(federate.importlib.util, "find_spec", lambda name: name == "flwr" or None)
    return script


@pytest.mark.parametrize(
    ("said", "code"),
    [("echo round 3/3; echo recorded: there.json; exit 1", 0), ("echo fednb: tower refuses: its loss is nan", 1)],
)
def test_a_run_elsewhere_is_well_where_it_says_that_it_is_recorded(said, code, script, capfd):
    script(f'echo "$@"; {said}')
    assert cli.main(["federate", RECIPE, "--superlink", "hospitals", "--nodes", "3"]) == code
    told = capfd.readouterr().out
    assert "hospitals --stream --federation-config num-supernodes=3" in told
    assert ("recorded: there.json" if code == 0 else "fednb: tower refuses") in told


@pytest.mark.parametrize("installed", [None, "2.60.0"])
def test_a_simulation_without_flowers_ray_is_refused_before_anything_starts(script, capsys, monkeypatch, installed):
    def version(name):
        if installed is None:
            raise federate.metadata.PackageNotFoundError(name)
        return installed

    asked = [
        "numpy",
        "ray==2.55.1; python_version < '3' and extra == 'simulation'",
        "ray==2.55.1; extra == 'simulation'",
    ]
    monkeypatch.setattr(federate.metadata, "requires", {"flwr": asked}.get)
    monkeypatch.setattr(federate.metadata, "version", version)
    script("exit 1")
    assert cli.main(["federate", RECIPE, "--simulation"]) == 1
    said = f"--simulation needs Ray ==2.55.1; found {installed or 'none'}"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "words", "said"),
    [
        ({"algorithm": "all"}, [], "all trains centrally on pooled data, the images of all sites"),
        ({"algorithm": "fedproto", "unseen": ["clinic"]}, [], "fedproto keeps entries of the network at its clients"),
        ({"unseen": ["clinc"]}, [], 'no site "clinc"; did you mean "clinic"'),
        ({"algorithm": {"name": "partialfed", "layers": ["haed"]}}, [], 'not to load "haed"; did you mean "head"'),
        ({}, ["--device", "gpu9"], 'device "gpu9" cannot be used'),
        ({}, ["--simulation", "--device", "gpu9"], 'device "gpu9" cannot be used'),
    ],
)
def test_what_no_run_can_be_made_from_is_refused_before_anything_starts(
    settings, words, said, script, tmp_path, monkeypatch, capsys
):
    use_toy(monkeypatch)
    monkeypatch.setattr(federate.signal, "signal", lambda *_: None)
    monkeypatch.setattr(federate, "_require_ray", lambda: None)
    monkeypatch.setattr(federate, "READY_SECONDS", 3)
    script(f"touch {tmp_path / 'started'}", "flower-superlink")
    assert cli.main(["federate", json.dumps(Recipe(**TINY | settings).short), *words]) == 1
    assert said in capsys.readouterr().err and not (tmp_path / "started").exists()


def test_the_device_of_nodes_elsewhere_is_their_own(script, capsys):
    script("exit 1")
    assert cli.main(["federate", RECIPE, "--superlink", "hospitals", "--nodes", "3", "--device", "cuda"]) == 1
    assert "each other names its own in its --node-config" in capsys.readouterr().err


def test_who_stops_watching_is_told_that_the_run_goes_on(script, capsys):
    script("sleep 0.5; kill -INT $PPID")
    assert cli.main(["federate", RECIPE, "--superlink", "hospitals", "--nodes", "3"]) == 130
    assert "the run goes on at the SuperLink; `flwr stop` ends it" in capsys.readouterr().err


def test_nodes_on_loopback_find_methods_from_outside_a_device_and_a_folder_to_remember(script, tmp_path, monkeypatch):
    use_toy(monkeypatch)
    monkeypatch.setattr(federate.signal, "signal", lambda *_: None)
    (tmp_path / "mine" / "augmentations").mkdir(parents=True)
    (tmp_path / "www").mkdir()
    (tmp_path / "www" / "health").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(FOLDERS, "mine")
    monkeypatch.setenv("FEDNB_RUNS", str(tmp_path / "runs"))
    script(f'exec "{PYTHON}" -m http.server --directory www --bind 127.0.0.1 "$5"', "flower-superlink")
    script('env > "node $7"; echo "$*" >> "node $7"; exec sleep 60', "flower-supernode")
    script("until [ $(cat node* | grep -c node-config) = 3 ]; do sleep 0.3; done; grep device $2/pyproject.toml > app")
    assert cli.main(["federate", RECIPE, "--device", "cpu:0"]) == 1
    assert (tmp_path / "app").read_text() == 'device = "cpu:0"\n'
    nodes = [path.read_text().splitlines() for path in tmp_path.glob("node *")]
    assert len(nodes) == 3
    for told in nodes:
        assert f"{FOLDERS}={tmp_path / 'mine'}" in told and told[-1].endswith(' device="cpu:0"')
        assert f"FEDNB_MEMORY={tmp_path / 'checkpoints' / 'flower' / Recipe(**TINY).key}" in told


@pytest.mark.parametrize("name", [*NAMES, r'\\"', "it's = b", "\U0001f3e5"])
def test_a_site_of_whatever_name_is_told_to_its_node(name):
    """As Flower 1 reads a configuration: values in quotes without such inside, each pair then a line of TOML."""
    pairs = re.findall(r"""(\S+?)=('[^']*'|"[^"]*"|\S+)""", f'site={federate._quoted(name)} device="cpu"')
    assert tomllib.loads("\n".join(f"{key} = {value}" for key, value in pairs)) == {"site": name, "device": "cpu"}
