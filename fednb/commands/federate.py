"""`fednb federate`: one recipe over Flower; in its simulation on this machine, or as an app for a SuperLink."""

import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path

import fednb
from fednb.errors import RecipeError, RunError
from fednb.recipe import Recipe
from fednb.registry import FOLDERS, searched

APP = """[project]
name = "fednb-federation"
version = "{version}"
description = "A recipe of fednb over a network"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "fednb"

[tool.flwr.app.components]
serverapp = "fednb.records.federate:server_app"
clientapp = "fednb.records.federate:client_app"

[tool.flwr.app.config]
recipe = {recipe}
clients = {clients}
timeout = {timeout}
"""
RAY = {"init_args": {"include_dashboard": False}, "client_resources": {"num_cpus": 1, "num_gpus": 0}}
COMMANDS = """wrote {folder}/pyproject.toml
On the server, at each institution, and here (docs/network.md has them with certificates and keys):

    flower-superlink --insecure --disable-runtime-dependency-installation
    flower-supernode --insecure --superlink SERVER:9092 --node-config 'site="NAME" data="IMAGES" memory="FOLDER"'
    flwr run {folder} SUPERLINK --stream
"""


def main(options) -> int:
    """0 when the recipe is recorded, or its app written."""
    recipe = read(options.recipe)
    if options.app:
        if not options.nodes:
            raise RunError("--app needs --nodes: how many clients the run waits for.")
        values = {"recipe": json.dumps(json.dumps(recipe.short)), "clients": options.nodes, "timeout": options.timeout}
        Path(options.app).mkdir(parents=True, exist_ok=True)
        Path(options.app, "pyproject.toml").write_text(APP.format(version=fednb.__version__, **values))
        print(COMMANDS.format(folder=options.app), end="")
        return 0
    for module, package in (("flwr", '-e ".[flower]" in a clone of fednb'), ("ray", '"flwr[simulation]"')):
        if importlib.util.find_spec(module) is None:
            raise RunError(f"{module} is not installed: pip install -c constraints-flower.txt {package}")
    return _simulate(recipe, options)


def read(given: str) -> Recipe:
    """The recipe in a JSON file, or in the text itself."""
    try:
        text = given if given.lstrip().startswith("{") else Path(given).read_text(encoding="utf-8")
        settings = json.loads(text)
    except (OSError, ValueError) as error:
        raise RecipeError(
            f"{given} is no recipe ({error}); expected a JSON file, or JSON such as "
            '\'{"algorithm": "fedbn", "rounds": 2}\'.'
        ) from error
    if not isinstance(settings, dict):
        raise RecipeError(f"{given} holds {settings!r}; expected the settings of a recipe by name.")
    return Recipe(**settings)


def _simulate(recipe: Recipe, options) -> int:
    """Flower's simulation, a node for each site. What no run can be made from is refused before it starts."""
    from fednb.datasets import data_root
    from fednb.loop.flower.checks import Introduction
    from fednb.loop.flower.server import RemoteRun
    from fednb.loop.network import rehearse
    from fednb.records.training import federation_of
    from fednb.study import default_store

    rehearse(recipe)
    data = str(data_root(options.data).absolute())
    federation = federation_of(recipe, data)
    sites = [site.name for site in federation.sites]
    RemoteRun(recipe, [Introduction.of(federation.only(name)) for name in sites], ask=None, carried={})  # or refuses
    if options.nodes not in (None, len(sites)):
        listed = ", ".join(sites)
        raise RunError(f"--nodes {options.nodes}: {recipe} has {len(sites)} sites, {listed}, and each is a node.")
    store = default_store()
    memory = store.by("flower").checkpoints / recipe.key
    os.environ |= {"FEDNB_DATA": data, "FEDNB_MEMORY": str(memory), FOLDERS: searched()}
    os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    from flwr.serverapp import ServerApp
    from flwr.simulation import run_simulation

    from fednb.records.federate import client_app, serve

    server_app = ServerApp()
    server_app.main()(lambda grid, context: serve(grid, recipe, store, len(sites), options.timeout))
    try:
        run_simulation(server_app, client_app, len(sites), backend_config=RAY)
    except (KeyboardInterrupt, RuntimeError) as error:  # the server's thread would go on waiting for its clients
        why = f"Flower's simulation: {error}" if str(error) else "stopped"
        print(f"fednb: {why}; the same command goes on from the last round.", file=sys.stderr, flush=True)
        os._exit(1 if str(error) else 130)
    shutil.rmtree(memory, ignore_errors=True)
    return 0
