"""What the papers print: tables, captions, settings and claims, as files; this room needs no torch.

A paper is a folder of tables (``<paper>/<paper>_table1.csv``, ...) with ``captions.toml``, ``claims.csv`` and, where
there are such, ``curves.csv`` and ``inconsistencies.csv``; ``<paper>.toml`` next to it has the settings and profiles.
"""

import ast
import csv
import re
import tomllib
from functools import cache, partial
from pathlib import Path

from fednb import registry
from fednb.errors import RecipeError, nearest

_HERE = Path(__file__).parent
UNSEEN = "unseen client"  # the printed setting of numbers of sites that took no part
OPTION = re.compile(r"(\w+)=((?:\[[^]]*\]|[^,[])*)")  # of a method in a label
FILES = ("{0}.toml", "{0}/captions.toml", "{0}/claims.csv")  # that a paper cannot do without
SETTINGS = {"title", "venue", "printed", "not_printed", "profile", "algorithm"}  # nor its settings without these
_CELL = ["algorithm", "augmentation", "federation", "source", "setting", "site"]
_PRINTED = {"algorithm", "augmentation", "federation", "site", "value"}
_PAIR = ("federation", "setting", "site", "better", "worse")  # what a claim is of
_CLAIM = frozenset({"table", *_PAIR, "place"})


def names() -> list[str]:
    """The papers, ours first, then those from outside."""
    return [*own(), *sorted(registry.outside("papers"))]


def own() -> tuple[str, ...]:
    return registry.builtin("papers")


def folder(paper: str) -> Path:
    """Where the files of a paper lie; RecipeError for an unknown paper, and one from outside that lacks a file."""
    if paper in own():
        return _HERE / paper
    if paper not in registry.outside("papers"):
        raise RecipeError(f'"{paper}" is not in fednb/papers; {nearest(paper, names())}')
    room = registry.outside("papers")[paper] / "papers"
    if lacking := [name for name in (each.format(paper) for each in FILES) if not (room / name).is_file()]:
        raise RecipeError(f"{paper} has no {' and no '.join(lacking)} in {room}; `fednb new paper` writes such files.")
    return room / paper


def _entry(mapping: dict, key: str, what: str):
    if key not in mapping:
        raise RecipeError(f'{what} "{key}" is not known; {nearest(key, mapping)}')
    return mapping[key]


def _require(expected: set[str], found, file: str) -> None:
    if lacking := sorted(expected.difference(found)):
        raise RecipeError(f"{file} has {', '.join(found)}; expected {', '.join(lacking)}, too.")


def _files(paper: str) -> dict[str, Path]:
    return {path.stem.removeprefix(f"{paper}_"): path for path in folder(paper).glob(f"{paper}_*.csv")}


@cache
def _frame(path: Path):
    import pandas

    try:
        return pandas.read_csv(path, keep_default_na=False)
    except ValueError as error:  # also of an empty file, and of a text that is no UTF-8
        raise RecipeError(f"{path} cannot be read: {error}. Expected a table with a line of names.") from error


def numbers(paper: str, table: str):
    """A printed table of other numbers than accuracies, such as bytes or parameters, with the columns of its file."""
    return _frame(_entry(_files(paper), table, f"{paper}'s table")).copy()


def tables(paper: str) -> list[str]:
    """The tables of accuracies, which ``printed`` reads."""
    return sorted(table for table, path in _files(paper).items() if "algorithm" in _frame(path))


def printed(paper: str, table: str, federation: str | None = None, setting: str | None = None):
    """A printed table (``"table1"``) as a data frame, one row per printed number, in printed order.

    algorithm, augmentation: ``fedavg``, ``fedfa+mixup``; with the options that make the row: ``fedfa(stages=[1, 2])``.
    federation, setting: what the row is printed under (DisTrans' heterogeneity ``"40 %"``, FedFA's share of the images
        ``"1/6"``, ``UNSEEN`` where the site was left out of the training, or ``""``); one of them alone if it is given.
    source, site: whose local model is tested, ``""`` for the global one, and on whose test images; or ``average``.
    value: per cent, 0..100, as printed; DisTrans prints fractions, here times 100.
    change, std: the rise or fall in points printed next to an average, and the deviation over seeds; NaN where none is.
    runs: of how many runs the value is the mean, as the paper's text says; 1 where it says nothing.
    run_on: see ``run_on``. sites: those that an average is over, sorted, where the paper names them; none where each
        is a mean of clients. remark: what is wrong with the printed number, or ``""``.

    RecipeError for what is not there, and for a file that lacks a column, has no number in a row, or has one twice."""
    frame = _printed(paper, table)
    for column, wanted in (("federation", federation), ("setting", setting)):
        if wanted is not None:
            _entry(dict.fromkeys(frame[column]), wanted, f"{paper}, {table}: the {column}")
            frame = frame[frame[column] == wanted]
    return frame.reset_index(drop=True)


@cache
def _printed(paper: str, table: str):
    import pandas

    frame, file, told = numbers(paper, table), f"{paper}_{table}.csv", settings(paper)
    if "algorithm" not in frame:
        raise RecipeError(f"{paper}, {table} has no accuracies; read it with fednb.papers.numbers.")
    _require(_PRINTED, frame.columns, file)
    frame = frame.reindex(columns=[*_CELL, "value", "change", "std"], fill_value="")
    if (wrong := pandas.to_numeric(frame["value"], errors="coerce").isna() | frame.duplicated(_CELL)).any():
        row = ", ".join(filter(None, map(str, frame[wrong].iloc[0])))
        raise RecipeError(f"{file} has a row {row}; expected a number as value, and each once.")
    for name in ("change", "std"):
        frame[name] = pandas.to_numeric(frame[name])
    frame["runs"] = told["printed"].get("seeds", {"value": 1})["value"]
    made_by = cache(partial(run_on, paper))
    frame["run_on"] = list(map(made_by, frame["federation"], frame["setting"]))
    over = {name: ", ".join(sorted(sites(paper, name))) for name in frame["federation"].unique()}
    over |= dict.fromkeys(told.get("means_of_clients", ()), "")
    frame["sites"] = frame["federation"].map(over).where(frame["site"] == "average", "")
    wrong = inconsistencies(paper)
    wrong = wrong[wrong["table"] == table].groupby(_CELL, as_index=False)["reason"].agg(" ".join)
    frame = frame.merge(wrong.rename(columns={"reason": "remark"}), how="left", on=_CELL)
    return frame.fillna({"remark": ""})


def labels_of(printed) -> list[str]:
    """The rows of a printed table as labels of recipes: ``["fedavg", "fedavg+fedrdn"]``."""
    runs = zip(printed["algorithm"], printed["augmentation"], strict=True)
    return list(dict.fromkeys("+".join(filter(None, run)) for run in runs))


def rows(paper: str, table: str, federation: str | None = None) -> list[dict]:
    """The rows of a printed table as a Recipe takes them, in printed order, without methods that are not built here:
    ``{"algorithm": {"name": "fedprox", "mu": 0.01}, "augmentations": [{"name": "fedrdn"}]}``; an algorithm has the
    options of the paper's settings."""
    known = {*registry.names("algorithms"), *registry.names("augmentations")}
    made = []
    for label in labels_of(printed(paper, table, federation)):
        first, *others = choices(label)
        if {each["name"] for each in (first, *others)} <= known:
            options = settings(paper)["algorithm"].get(first["name"], {})
            made.append({"algorithm": options | first, "augmentations": others})
    return made


def choices(label: str) -> list[dict]:
    """The methods of a run's label as a Recipe takes them: ``"fedavg+fedfa(stages=[1, 2])"`` ->
    ``[{"name": "fedavg"}, {"name": "fedfa", "stages": [1, 2]}]``."""
    parts = [(name, OPTION.findall(options)) for name, options in re.findall(r"(\w+)(?:\(([^)]*)\))?", label)]
    return [{"name": name} | {option: _value(text) for option, text in pairs} for name, pairs in parts]


def _value(text: str):
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):  # a word
        return text


def run_on(paper: str, federation: str, setting: str) -> str:
    """The federation with the options that make a printed setting, ``cifar10(classes_per_client=6)``; ``""`` where no
    option of ours makes it."""
    if setting in ("", UNSEEN):
        return federation
    options = settings(paper).get("setting", {}).get(federation, {}).get(setting)
    return f"{federation}({', '.join(f'{name}={value}' for name, value in options.items())})" if options else ""


def sites(paper: str, federation: str) -> list[str]:
    """The sites that the paper's tables name for a federation."""
    frames = (numbers(paper, table) for table in tables(paper))
    found = dict.fromkeys(site for frame in frames for site in frame.loc[frame["federation"] == federation, "site"])
    return [site for site in found if site != "average"]


@cache
def printed_federations(paper: str) -> frozenset[str]:
    """The federations that the paper prints accuracies on."""
    return frozenset(name for table in tables(paper) for name in numbers(paper, table)["federation"])


def inconsistencies(paper: str):
    """The printed numbers that contradict others of the same paper, as a data frame: columns as in ``printed``, table,
    kind (``average``, ``change``, ``count``, ``rounded``, or ``repeated`` and ``repeated std`` of a run that an earlier
    table prints too), printed, expected (what the others give), reason."""
    import pandas

    path = folder(paper) / "inconsistencies.csv"
    if not path.exists():
        return pandas.DataFrame(columns=["table", *_CELL, "kind", "printed", "expected", "reason"], dtype=object)
    frame = _frame(path)
    return frame.assign(setting=frame.get("setting", ""))


@cache
def toml(path: Path) -> dict:
    """A file of settings, never changed by its readers; RecipeError where it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # also of a text that is no UTF-8
        raise RecipeError(f"{path} cannot be read: {error}. Expected TOML.") from error


def caption(paper: str, table: str) -> str:
    """The caption of ``"table1"`` or ``"fig1"`` as printed, without its references."""
    return _entry(toml(folder(paper) / "captions.toml"), table, f"{paper}'s caption")


def claims(paper: str) -> list[dict]:
    """The paper's claims that compare two runs of one printed table, each pair once, from its ``claims.csv``.

    table, tables: the first printed table that has the pair, and all. federation, setting, site: as in ``printed``.
    better, worse: runs as a recipe's label. place: where the paper says so. primary: whether it is one of the few that
    the paper stands on, by its settings."""
    rows = _rows(folder(paper) / "claims.csv", _CLAIM)
    primary = [{"setting": "", "site": "average"} | each for each in settings(paper).get("primary", ())]
    found, stands_on = {}, {tuple(each[name] for name in _PAIR) for each in primary}
    for row in rows:
        pair = tuple(row[name] for name in _PAIR)
        first = found.setdefault(pair, row | {"tables": [], "primary": pair in stands_on})
        first["tables"].append(row["table"])
    if strange := stands_on - found.keys():
        raise RecipeError(f"{paper}.toml has a primary claim {min(strange)}; expected one of its claims.csv.")
    return list(found.values())


def curves(paper: str) -> list[dict]:
    """The rows of the paper's ``curves.csv``: its claims on several runs, which no single pair is.

    figure: ``"fig4"`` or ``"table5"``. federation, setting: as in ``printed``; of the average over sites. kind:
    ``"order"``, several runs stand so at every x; ``"maximum"``, one is largest at one x; ``"monotone"``, it rises or
    falls. runs: a list of labels, the highest first. x: the field or option that varies, or ``""``. values: of x, as
    the paper's settings list them for the figure; [None] without one. at: the x of the maximum, as in values;
    ``"rises"`` or ``"falls"``. place: where the text says it. RecipeError for another kind, x or at."""
    path = folder(paper) / "curves.csv"
    return [_curve(paper, **row) for row in _rows(path)] if path.exists() else []


def _curve(paper: str, figure: str, kind: str, runs: str, x: str, at: str, **others: str) -> dict:
    where = f"{paper}/curves.csv: {kind} of {runs} in {figure}"
    values = _entry(settings(paper).get(figure, {}), x, f"{where}: its x") if x or kind != "order" else [None]
    known = {"order": [""], "maximum": values, "monotone": ["rises", "falls"]}
    possible = {str(value): value for value in _entry(known, kind, f"{where}: its kind")}
    at = _entry(possible, at, f"{where}: what it is at,")
    return {"figure": figure, "kind": kind, "runs": runs.split(" > "), "x": x, "values": values, "at": at, **others}


@cache
def _rows(path: Path, expected: frozenset[str] = frozenset()) -> list[dict]:
    """The rows of a file; a remark begins with #."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found, file = csv.DictReader(line for line in lines if not line.startswith("#")), f"{path.parent.name}/{path.name}"
    read = list(found)
    _require(expected, found.fieldnames or (), file)
    for row in read:
        if None in row or None in row.values():
            wanted = f"a value for each of {', '.join(found.fieldnames)}, in quotes where it has a comma"
            raise RecipeError(f"{file} has a row {', '.join(map(str, row.values()))}; expected {wanted}.")
    return read


def family(paper: str, federation: str) -> int:
    """How many claims the paper has on a data set that are tested together: all but its primary ones."""
    return sum(claim["federation"] == federation and not claim["primary"] for claim in claims(paper))


def own_rule(paper: str) -> str:
    """The rule of selection that the paper prints, or its released code has."""
    told = settings(paper)
    return _entry(told["not_printed"] | told["printed"], "selection", f"{paper}'s setting")["value"]


def settings(paper: str) -> dict:
    """``<paper>.toml``: what is printed and where, what is not, our profiles, and the methods' options."""
    told = toml(folder(paper).with_suffix(".toml"))
    _require(SETTINGS, told, f"{paper}.toml")
    return told


def recipe(paper: str, profile: str, on: str | None = None) -> dict:
    """The Recipe fields of a profile, for ``Recipe(**recipe("fedrdn", "quick"), algorithm="fedavg")``.

    on: a federation, the profile's own unless given: ``[on.<federation>.<profile>]`` of the paper's settings says what
    differs; a profile that one federation alone has, what differs from ``paper``."""
    told = settings(paper)
    own = told.get("on", {}).get(on, {})
    if profile in own and profile not in told["profile"]:
        return recipe(paper, "paper", on) | own[profile]
    fields = _entry(told["profile"], profile, f"{paper}'s profile")
    if on not in (None, _federation(told)):
        known = {_federation(told): {}} | told.get("on", {})
        fields = fields | _entry(known, on, f"{paper}'s federation").get(profile, {})
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


def options(paper: str, profile: str) -> dict[str, dict]:
    """The options that a profile gives to methods where a printed row has none of that name:
    ``{"distrans": {"offset_rate": 1.0}}``."""
    return settings(paper).get("options", {}).get(profile, {})


def profiles_on(paper: str) -> set[str]:
    """The federations that ``recipe(paper, "paper", on)`` is for."""
    told = settings(paper)
    return {_federation(told), *told.get("on", {})}


def _federation(told: dict) -> str:
    chosen = _entry(_entry(told["profile"], "paper", "the profile"), "federation", "of the profile paper, the field")
    return chosen if isinstance(chosen, str) else chosen["name"]


def federations(paper: str, profile: str, on: str | None = None) -> list:
    """``under_settings`` of the federation of a ``recipe``."""
    return under_settings(paper, recipe(paper, profile, on)["federation"])


def under_settings(paper: str, chosen) -> list:
    """A federation, as a Recipe takes it, under each setting that the paper prints for it, if there is any."""
    made_by = {} if isinstance(chosen, str) else settings(paper).get("setting", {}).get(chosen["name"], {})
    return [chosen | options for options in made_by.values()] or [chosen]


def of_profile(values: dict, profile: str):
    """The value of a profile, for example of ``{"smoke": 1, "quick": 4, "paper": 100}``."""
    return _entry(values, profile, "profile")


def algorithm(paper: str, name: str) -> dict:
    """An algorithm with the paper's options, as a Recipe takes it: ``{"name": "fedprox", "mu": 0.001}``."""
    return {"name": name, **_entry(settings(paper)["algorithm"], name, f"{paper}'s algorithm")}
