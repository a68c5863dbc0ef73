"""The command line: `fednb VERB`, each verb with what it needs."""

import argparse
import ast
import importlib
import os
import re
import sys

import fednb
from fednb.errors import FednbError, nearest

PROFILES = ("smoke", "quick", "paper")


def _setting(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f'"{text}" is not NAME=VALUE')
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def _count(text: str) -> int:
    if not re.fullmatch("0*[1-9][0-9]*", text):
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number of at least 1')
    return int(text)


FLAG = {"action": "store_true"}
OPTIONS = {  # name: its help, and what else argparse needs; one that means other things to two verbs begins with a verb
    "--profile": ("how much is trained (default: quick)", {"choices": PROFILES, "default": "quick"}),
    "--only": ('part of a name, or a pattern such as "fedrdn/fig*"', {"metavar": "PATTERN"}),
    "--data": ("folder with the images (default: $FEDNB_DATA, else data/)", {"metavar": "DIR"}),
    "--device": ("cpu, cuda or cuda:1 (default: cpu)", {"default": "cpu"}),
    "--set": (
        "another parameter of the chosen notebooks, such as SEEDS=[0,1]; may be repeated",
        {"type": _setting, "action": "append", "default": [], "metavar": "NAME=VALUE"},
    ),
    "--report": ("folder of the report (default: report/ in the project or repository)", {"metavar": "DIR"}),
    "--methods": ("instead, the methods; of one alone its whole docstring", FLAG),
    "--jobs": ("notebooks, and runs of one, side by side (default: one per core, at most 8)", {"type": _count}),
    "--record": ("write to results/, figures/ and the committed notebooks; needs a clean work tree", FLAG),
    "--stale": ("train again what is recorded by older code; with --record the new run replaces the old one", FLAG),
    "--readme": ("instead, write the repository's tables in README.md and docs/", FLAG),
    "method": ("its name in a recipe; found in your project, or where FEDNB_METHODS says", {"metavar": "METHOD"}),
    "--rounds": ("rounds to time (default: 5)", {"type": _count, "default": 5}),
    "bench --record": ("instead, write what the notebook on speed shows: every method, 4 to 500 clients", FLAG),
    "recipe": ("a JSON file with the settings of a recipe, or the JSON itself", {"metavar": "RECIPE"}),
    "--nodes": ("clients, one for each site (default: all sites)", {"type": _count}),
    "--app": ("instead, write Flower's app to a folder, and say how a SuperLink runs it", {"metavar": "DIR"}),
    "--timeout": ("seconds that a client has to answer (default: 3600)", {"type": _count, "default": 3600}),
    "what": ("what to write", {"choices": ("paper",), "metavar": "paper"}),
    "name": ("of the paper, and of its method unless fednb has one of this name: a name in Python, lower case", {}),
    "--algorithm": ("begin with the file of an algorithm; without it, of an augmentation", FLAG),
}
VERBS = {  # verb: its help, an example, its options
    "list": ("the notebooks: claim, data, cost; or the methods", "--only fedrdn", "--only --methods"),
    "run": (
        "execute notebooks, each of which trains what it misses; without --only, write the report",
        "--only fedrdn/table1 --jobs 2",
        "--profile --only --data --jobs --device --set --report --record --stale",
    ),
    "status": ("what is recorded, and what of it by older code", "", ""),
    "data": ("what is there, what is missing, where it comes from", "--data /mnt/images", "--data"),
    "report": ("write the report again", "--readme", "--report --readme"),
    "check": ("hold a method, yours or ours, to the conformance tests of all of ours", "fedprox", "method"),
    "bench": (
        "time rounds against a bare PyTorch loop; needs the repository",
        "--rounds 5",
        "--rounds bench_--record --device",
    ),
    "federate": (
        "train one recipe over Flower: in its simulation here, or over a network",
        "recipe.json --app app --nodes 4",
        "recipe --nodes --app --timeout --data",
    ),
    "new": ("write a project for a paper, or one more paper in yours", "paper third_way", "what name --algorithm"),
}


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit status is 0 well, 1 something failed, 2 not understood, 130 interrupted."""
    try:
        options = parse(sys.argv[1:] if argv is None else argv)
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
    """The options of one command; exits with status 2 and the nearest valid name where one is unknown, or with the help
    where there is no word at all."""
    parser = argparse.ArgumentParser(
        prog="fednb",
        description="Execute the notebooks, train what they need, and look at what is recorded.",
        epilog="example: fednb run --only quickstart",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"fednb {fednb.__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for name in VERBS:
        _add(verbs, name)
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


def _add(verbs, name: str) -> None:
    help, example, options = VERBS[name]
    epilog = f"example: fednb {name} {example}"
    verb = verbs.add_parser(name, help=help, description=help, epilog=epilog, allow_abbrev=False)
    verb.set_defaults(verb=name)
    for option in options.split():
        about, how = OPTIONS[option.replace("_", " ")]
        verb.add_argument(option.rpartition("_")[2], help=about, **how)
