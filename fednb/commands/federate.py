"""`fednb federate`: one recipe over a network by Flower; on loopback for a first try, or on a SuperLink that runs."""

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from importlib import metadata
from pathlib import Path

import fednb
from fednb.commands.run import require_device
from fednb.errors import RecipeError, RunError
from fednb.recipe import Recipe
from fednb.records.store import Store
from fednb.registry import FOLDERS, searched
from fednb.study import default_store

NO_INSTALLING = "--disable-runtime-dependency-installation"  # fednb is there already
READY_SECONDS = 120  # for a SuperLink to answer, on a slow machine
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
"""


def main(options) -> int:
    """Returns 0, or 1 where the run has not said that it is recorded; on loopback its log is shown then."""
    if importlib.util.find_spec("flwr") is None:
        install = 'pip install -c constraints-flower.txt -e ".[flower]" in a clone of fednb'
        raise RunError(f"Flower is not installed: {install}")
    if options.simulation:
        _require_ray()
    recipe, runs = read(options.recipe), default_store()
    store = runs.by("flower")
    config = {"recipe": json.dumps(recipe.short), "timeout": options.timeout, "clients": options.nodes or 0}
    config |= {"runs": "", "checkpoints": "", "device": options.device}
    with tempfile.TemporaryDirectory() as folder:
        if options.superlink:
            if not options.nodes:
                raise RunError("--superlink needs --nodes: how many clients the run waits for.")
            if options.device != "cpu":
                raise RunError("--device is for nodes on this machine; each other names its own in its --node-config.")
            words = [_program("flwr"), "run", _app(folder, config), options.superlink, "--stream"]
            words += ["--federation-config", f"num-supernodes={options.nodes}"]
            try:
                return int(not _streamed(words))
            except KeyboardInterrupt:
                print("fednb: the run goes on at the SuperLink; `flwr stop` ends it.", file=sys.stderr)
                return 130
        if record := store.find(recipe):
            shutil.rmtree(store.checkpoints / recipe.key, ignore_errors=True)
            print(f"recorded before: {record.path}")
            return 0
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what this starts ends with it
        config |= {"runs": str(runs.folder), "checkpoints": str(runs.checkpoints)}
        return _on_loopback(recipe, config, options, store, Path(folder))


def _streamed(words: list[str]) -> bool:
    """Whether Flower's program, whose output is shown, says that the run is recorded: it ends well where one failed."""
    recorded, told_at_once = False, os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=told_at_once) as stream:
        for line in stream.stdout:
            print(line, end="", flush=True)
            recorded |= line.strip().startswith("recorded: ")
    return recorded


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
    return Recipe.from_dict(settings)


def _require_ray() -> None:
    """RunError where Ray is not there in the version that Flower names: with another, nodes never answer."""
    from packaging.requirements import Requirement

    asked = [Requirement(line) for line in metadata.requires("flwr")]
    asked = [each for each in asked if each.name == "ray" and each.marker.evaluate({"extra": "simulation"})]
    try:
        found = metadata.version("ray")
    except metadata.PackageNotFoundError:
        found = "none"
    if found == "none" or not all(found in each.specifier for each in asked):
        wanted = ", ".join(str(each.specifier) for each in asked)
        raise RunError(f'--simulation needs Ray {wanted}; found {found}. Run pip install "flwr[simulation]"')


def _on_loopback(recipe: Recipe, config: dict, options, store: Store, folder: Path) -> int:
    """A SuperLink, without TLS, on this machine alone, and a SuperNode for each site or Flower's simulation of them.

    All of them end with this. What no run can be made from is refused before any of them starts.
    """
    from fednb.datasets import data_root
    from fednb.loop.introduction import Introduction
    from fednb.loop.network import rehearse
    from fednb.loop.remote import RemoteRun
    from fednb.records.training import federation_of

    require_device(options.device)
    rehearse(recipe)
    data = str(data_root(options.data).absolute())
    federation = federation_of(recipe, data)
    sites = [site.name for site in federation.sites]
    RemoteRun(recipe, [Introduction.of(federation.only(name)) for name in sites], ask=None, carried={})  # or refuses
    config["clients"] = len(sites)
    if options.nodes not in (None, len(sites)):
        listed = ", ".join(sites)
        raise RunError(f"--nodes {options.nodes}: {recipe} has {len(sites)} sites, {listed}, and each needs a node.")
    port = _free_port()
    link = f"127.0.0.1:{port}"
    (folder / "config.toml").write_text(f'[superlink.loopback]\naddress = "{link}"\ninsecure = true\n')
    memory = store.checkpoints / recipe.key
    own = {"FLWR_HOME": str(folder), "FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
    own |= {"FEDNB_DATA": data, "FEDNB_MEMORY": str(memory), FOLDERS: searched()}
    own |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}  # else Ray hides the GPUs
    own |= {"RAY_ADDRESS": os.environ.get("RAY_ADDRESS", "local")}
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    environment = os.environ | own | {"PATH": path, "PYTHONUNBUFFERED": "1"}
    log = folder / "log"
    with ExitStack() as running, log.open("ab") as output:

        def start(program: str, *words: str, **more) -> subprocess.Popen:
            streams = {"stdout": output, "stderr": output} | more
            return running.enter_context(_process([_program(program), *words], env=environment, **streams))

        simulated = ["--simulation"] * options.simulation
        start("flower-superlink", "--insecure", "--host", "127.0.0.1", "--port", str(port), NO_INSTALLING, *simulated)
        _wait_for(f"http://{link}/health", log)
        for site in [] if simulated else sites:
            node, own_port = f'site={_quoted(site)} device="{options.device}"', str(_free_port())
            start("flower-supernode", "--insecure", "--superlink", link, "--port", own_port, "--node-config", node)
        nodes = "Flower's simulation" if simulated else "SuperNodes"
        print(f"{recipe}: a SuperLink at {link}, {nodes} for {', '.join(sites)}", flush=True)
        words = ["run", _app(folder / "app", config), "loopback", "--stream"]
        words += ["--federation-config", f"num-supernodes={len(sites)}"]
        for line in start("flwr", *words, stdout=subprocess.PIPE, text=True).stdout:
            output.write(line.encode())
            if line.strip().startswith(("round ", "fednb: ")):
                print(line.strip(), flush=True)
    if record := store.find(recipe):
        shutil.rmtree(memory, ignore_errors=True)
        print(f"recorded: {record.path}")
        return 0
    print(log.read_text(errors="replace")[-6000:], file=sys.stderr)
    return 1


@contextmanager
def _process(words: list[str], **streams):
    with subprocess.Popen(words, **streams) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def _app(folder: str | Path, config: dict) -> str:
    """A Flower app whose code is the installed fednb: nothing but its configuration is sent to the nodes."""
    Path(folder).mkdir(exist_ok=True)
    lines = [f"{name} = {json.dumps(value)}" for name, value in config.items()]  # TOML reads these values of JSON
    Path(folder, "pyproject.toml").write_text(APP.format(version=fednb.__version__) + "\n".join(lines) + "\n")
    return str(folder)


def _quoted(name: str) -> str:
    """A name for a node's configuration, which Flower cuts at quotes before it reads it as TOML."""
    return '"' + json.dumps(name, ensure_ascii=False)[1:-1].replace('\\"', r"\u0022") + '"'


def _program(name: str) -> str:
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name) or name


def _free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return trial.getsockname()[1]


def _wait_for(address: str, log: Path) -> None:
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    raise RunError(f"no SuperLink at {address} after {READY_SECONDS} s:\n{log.read_text(errors='replace')[-2000:]}")
