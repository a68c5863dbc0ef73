"""The command line: `fednb VERB`, each verb with what it needs."""

import argparse
import ast
import importlib
import os
import sys

import fednb
from fednb.errors import FednbError, nearest
from fednb.loop.cluster import ENGINES

PROFILES = ("smoke", "quick", "paper")


def _one_of(what: str, known: tuple[str, ...]):
    def checked(text: str) -> str:
        if text not in known:
            raise argparse.ArgumentTypeError(f'no {what} "{text}": {nearest(text, known)}')
        return text

    return checked


def _setting(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f'"{text}" is not NAME=VALUE')
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


SHARED = {
    "--profile": {
        "type": _one_of("profile", PROFILES),
        "default": "quick",
        "help": "smoke, quick, paper (default: quick)",
    },
    "--only": {"metavar": "PATTERN", "help": 'part of a name, or a pattern such as "fedrdn/fig*"'},
    "--data": {"metavar": "DIR", "help": "folder with the images (default: $FEDNB_DATA, else data/)"},
    "--device": {"default": "cpu", "help": "cpu, cuda or cuda:1; several as cuda:0,cuda:1 (default: cpu)"},
    "--set": {
        "type": _setting,
        "action": "append",
        "default": [],
        "metavar": "NAME=VALUE",
        "help": "another parameter of the chosen notebooks, such as SEEDS=[0,1]; may be repeated",
    },
    "--report": {"metavar": "DIR", "help": "folder of the report (default: report/ in the project or repository)"},
}
TOOLS = ("csv", "mlflow", "tensorboard")


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit status is 0 well, 1 something failed, 2 not understood, 130 interrupted."""
    words = sys.argv[1:] if argv is None else argv
    try:
        options = parse(words)
        return importlib.import_module(f"fednb.commands.{options.verb}").main(options)
    except FednbError as error:
        print(f"fednb: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("fednb: stopped. What is finished is kept; the same command goes on from there.", file=sys.stderr)
        return 130


def parse(words: list[str]) -> argparse.Namespace:
    """The options of one command; exits with status 2 and the nearest valid name where one is unknown.

    Without any word it prints the help, as git does, and exits with status 2: a script that lost its verb did nothing.
    """
    parser = argparse.ArgumentParser(
        prog="fednb",
        description="Train what the notebooks need, execute them, and look at what is recorded.",
        epilog="example: fednb run --only quickstart",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"fednb {fednb.__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for add in (_list, _run, _status, _export, _data, _report, _laws, _bench, _federate, _new):
        add(verbs)
    if not words:
        parser.print_help()
        parser.exit(2)
    if not words[0].startswith("-") and words[0] not in verbs.choices:
        parser.error(f'no verb "{words[0]}": {nearest(words[0], verbs.choices)}')
    options, unknown = parser.parse_known_args(words)
    if unknown:
        verb = verbs.choices[options.verb]
        known = [name for action in verb._actions for name in action.option_strings if name.startswith("--")]
        if "--only" in known and not unknown[0].startswith("-"):
            verb.error(f"a notebook is chosen by its name or a part of it: --only {unknown[0]}")
        verb.error(f'"{unknown[0]}" is not an option here: {nearest(unknown[0], known)}')
    return options


def _verb(verbs, name: str, help: str, example: str) -> argparse.ArgumentParser:
    verb = verbs.add_parser(name, help=help, description=help, epilog=f"example: {example}", allow_abbrev=False)
    verb.set_defaults(verb=name)
    return verb


def _shared(verb, *names: str) -> None:
    for name in names:
        verb.add_argument(name, **SHARED[name])


def _list(verbs) -> None:
    verb = _verb(verbs, "list", "the notebooks: claim, data, cost; or the methods", "fednb list --only fedrdn")
    _shared(verb, "--only")
    verb.add_argument("--methods", action="store_true", help="instead, what each method changes, sends and keeps")


def _run(verbs) -> None:
    verb = _verb(
        verbs,
        "run",
        "train what is missing, execute the notebooks, write a report",
        "fednb run --profile quick --only fedrdn/table1 --jobs 2",
    )
    _shared(verb, "--profile", "--only", "--data")
    verb.add_argument("--jobs", type=_count, metavar="N", help="runs side by side (default: one per core, at most 8)")
    _shared(verb, "--device")
    _shared(verb, "--set", "--report")
    verb.add_argument(
        "--record",
        action="store_true",
        help="write to results/, figures/ and the committed notebooks; needs a clean work tree",
    )
    verb.add_argument(
        "--stale",
        action="store_true",
        help="train again what is recorded by older code; with --record the new run replaces the old one",
    )
    verb.add_argument(
        "--part",
        type=_part,
        metavar="I/N",
        help="of the runs only the I-th of N parts, and no notebook: for the jobs of an array",
    )
    verb.add_argument(
        "--engine",
        type=_one_of("engine", ENGINES),
        metavar="NAME",
        help="what trains on other machines, which share this folder and the images: ray (8 runs side by side "
        "unless --jobs says more)",
    )
    verb.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="of the Ray cluster (default: $RAY_ADDRESS, else one on this machine, else one that is started for this)",
    )


def _status(verbs) -> None:
    verb = _verb(verbs, "status", "runs recorded and missing, and their time", "fednb status --profile paper")
    _shared(verb, "--profile", "--only", "--data", "--device", "--report")


def _export(verbs) -> None:
    told = "recorded runs for MLflow or TensorBoard, or as tables"
    verb = _verb(verbs, "export", told, "fednb export --to mlflow --only fedrdn/table1_main")
    told = f"{', '.join(TOOLS)}; the last two need the extra export"
    verb.add_argument("--to", type=_one_of("tool", TOOLS), required=True, metavar="TOOL", help=told)
    _shared(verb, "--profile", "--only", "--data", "--set")
    told = "folder to write, new or empty (default: TOOL in the report's folder)"
    verb.add_argument("--out", metavar="DIR", help=told)
    _shared(verb, "--report")


def _data(verbs) -> None:
    verb = _verb(verbs, "data", "what is there, what is missing, where it comes from", "fednb data --data /mnt/images")
    _shared(verb, "--data")


def _report(verbs) -> None:
    verb = _verb(verbs, "report", "write the report's page again", "fednb report --readme")
    _shared(verb, "--report")
    verb.add_argument(
        "--readme", action="store_true", help="instead, write the repository's tables in README.md and docs/"
    )


def _laws(verbs) -> None:
    told = "hold a method of your own, or one of ours, to the laws that all of ours keep"
    verb = _verb(verbs, "laws", told, "fednb laws fedprox")
    verb.add_argument(
        "method", metavar="METHOD", help="its name in a recipe; found in your project, or where FEDNB_METHODS says"
    )


def _bench(verbs) -> None:
    told = "time a round against a bare PyTorch loop, and the four methods against FedAvg; needs the repository"
    verb = _verb(verbs, "bench", told, "fednb bench --rounds 5")
    verb.add_argument("--rounds", type=_count, default=5, metavar="N", help="rounds to time (default: 5)")
    told = "instead, write what `list --methods` and the notebook on speed show: every method, 4 to 500 clients"
    verb.add_argument("--record", action="store_true", help=told)
    _shared(verb, "--device")


def _federate(verbs) -> None:
    told = "train one recipe over Flower: in its simulation here, or over a network"
    verb = _verb(verbs, "federate", told, "fednb federate recipe.json")
    verb.add_argument("recipe", metavar="RECIPE", help="a JSON file with the settings of a recipe, or the JSON itself")
    verb.add_argument("--nodes", type=_count, metavar="N", help="clients, one for each site (default: all sites)")
    told = "instead, write Flower's app for so many nodes here, and say how a SuperLink runs it"
    verb.add_argument("--app", metavar="FOLDER", help=told)
    verb.add_argument(
        "--timeout", type=_count, default=3600, metavar="SECONDS", help="that a client has to answer (default: 3600)"
    )
    _shared(verb, "--data")


def _new(verbs) -> None:
    told = "write a project that reproduces a paper, or one more paper in the project that you are in"
    verb = _verb(verbs, "new", told, "fednb new paper third_way")
    verb.add_argument("what", type=_one_of("template", ("paper",)), metavar="paper", help="what to write")
    verb.add_argument(
        "name",
        metavar="NAME",
        help="of the paper, and of its method unless fednb has one of this name: lower case, a name in Python",
    )
    told = "begin with the file of an algorithm; without it, of an augmentation"
    verb.add_argument("--algorithm", action="store_true", help=told)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number of at least 1')
    return int(text)


def _part(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise argparse.ArgumentTypeError(f'"{text}" is no part; write 1/8 to 8/8 for the eight parts of the work')
    return int(number), int(count)
