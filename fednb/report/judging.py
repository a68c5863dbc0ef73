"""Every claim of every paper, judged from the records of a store: both boards, as two frames."""

from collections.abc import Callable, Iterable, Iterator
from math import nan
from pathlib import Path

import pandas
from pandas import DataFrame

from fednb import papers
from fednb.errors import RecipeError
from fednb.papers import protocol
from fednb.recipe import Recipe
from fednb.records.store import Store
from fednb.registry import names
from fednb.report import labels
from fednb.report.claims import CLAIM, NOT_RUN, judged
from fednb.report.curves import AS_PRINTED, CURVE, OTHERWISE
from fednb.report.curves import curves as judged_curves
from fednb.report.effects import EFFECT, SPARE
from fednb.report.verdicts import PRINTED, SMALL, TESTED
from fednb.study import Results, default_store, recipe_of

BOARDS = ("board.csv", "curves.csv")
NUMBERS = ("paper", *EFFECT, *SPARE, "gap_low", "gap_high", "activity")  # an empty cell is none


def recorded_board(paper: str = "", anew: bool = False) -> tuple[DataFrame, DataFrame]:
    """``claims`` and ``curves`` of one paper, of all unless given, as ``board.csv`` and ``curves.csv`` of ``results/``
    have them. anew: from the records, about a minute; also without such files, and of a paper from outside."""
    store, named = default_store(), [paper] if paper else ()
    folder = next((each for each in store.folders if all((each / name).is_file() for name in BOARDS)), None)
    if anew or not folder or (paper and paper not in papers.own()):
        return claims(store, named), curves(store, named)
    return tuple(frame[frame["of"] == paper] if paper else frame for frame in read_board(folder))


def read_board(folder: Path) -> tuple[DataFrame, DataFrame]:
    """Both from ``board.csv`` and ``curves.csv``, of our own papers, which ``fednb report --readme`` writes."""
    board, curves = (pandas.read_csv(folder / name, keep_default_na=False) for name in BOARDS)
    numbers = board.columns.intersection(NUMBERS)
    return board.assign(**board[numbers].apply(pandas.to_numeric)), curves


def claims(store: Store, named: Iterable[str] = ()) -> DataFrame:
    """A row for each claim of the named papers, of all unless given, on each board on which it was run, or one that was
    not: ``of`` (the paper), ``fednb.report.claims.CLAIM`` and ``federation``. Of several profiles at which it was run
    on one board, that counts which is tested and differs least from the paper's setting."""
    rows = [*_rows(store, named, papers.claims, ("federation",), _printed, judged)]
    more = [name for name in SPARE if any(name in row for row in rows)]
    return pandas.DataFrame(rows, columns=["of", *CLAIM, "federation", *more])


def curves(store: Store, named: Iterable[str] = ()) -> DataFrame:
    """The same for the claims on orders and curves, with ``fednb.report.curves.CURVE``."""
    rows = _rows(store, named, papers.curves, ("figure", "federation"), _swept, judged_curves)
    return pandas.DataFrame(rows, columns=CURVE)


def _rows(store: Store, named: Iterable[str], claims_of: Callable, by: tuple, wanted: Callable, judge: Callable):
    """by: what claims have in common that are judged together. wanted: gives the recipes that they rest on."""
    for paper in named or papers.names():
        groups: dict[tuple, list[dict]] = {}
        for claim in claims_of(paper):
            groups.setdefault(tuple(claim[name] for name in by), []).append(claim)
        for own in groups.values():
            found = list(_results(paper, own, wanted, store)) or [Results({})]
            frames = [judge(results, paper, claims=own) for results in found]
            yield from _chosen(frames, len(own), paper, own[0]["federation"])


def _results(paper: str, own: list[dict], wanted: Callable, store: Store) -> Iterator[Results]:
    """What is recorded of claims on one data set, at each of the paper's profiles at which something is."""
    federation, known = own[0]["federation"], {}
    if federation not in papers.profiles_on(paper):
        return
    for record in store.like([Recipe(**papers.recipe(paper, "paper", federation))]):
        try:
            known.setdefault(recipe_of(record).with_(evaluation=()), []).append(record)
        except RecipeError:  # made with options that are no more
            continue
    others = {*papers.settings(paper).get("on", {}).get(federation, {})} - {"smoke", "stand_in", "paper", "quick"}
    for profile in ("paper", "quick", *sorted(others)):
        base = Recipe(**papers.recipe(paper, profile, federation))
        found = {}
        for recipe in dict.fromkeys(wanted(paper, own, base, known, profile) if known else ()):
            if records := known.get(recipe.with_(evaluation=())):
                asked = list(base.evaluation)
                record = min(records, key=lambda one: (list(one.recipe["evaluation"]) != asked, one.key))
                found[recipe_of(record)] = record
        if found:
            yield Results(found, paper, (), store)


def _chosen(frames: list[DataFrame], count: int, paper: str, federation: str) -> list[dict]:
    """Of each claim its row on each board, from frames of the same claims."""
    rows = []
    for number in range(count):
        each = [frame.iloc[number].to_dict() | {"of": paper, "federation": federation} for frame in frames]
        boards = [[row for row in each if row["setting"] == board] for board in (PRINTED, SMALL)]
        rows += [min(board, key=_rank) for board in boards if board] or [min(each, key=_rank)]
    return rows


def _rank(row: dict) -> tuple[int, bool, int]:
    """Tested rows first, then those with a number, then those that ran; of these one at which the paper's method is
    shown to be active, then the one nearest to the paper's setting."""
    there = 1 if row["setting"] else 2 + (row["verdict"] == NOT_RUN)
    tested = 0 if row["verdict"] in (*TESTED, AS_PRINTED, OTHERWISE) else there
    return tested, not row.get("activity", nan) >= protocol.rules()["active"], row["deviations"].count("; ")


def _printed(paper: str, own: list[dict], base: Recipe, known: Iterable[Recipe], profile: str) -> list[Recipe]:
    """The runs of all rows that the claims' tables print, under each setting of the data set."""
    federation, seeds, options = own[0]["federation"], protocol.rules()["seeds"], papers.options(paper, profile)
    where = {"federation": papers.under_settings(paper, base.full["federation"]), "seed": seeds}
    made = []
    for table in dict.fromkeys(table for claim in own for table in claim["tables"]):
        printed = papers.printed(paper, table, federation)
        sites = sorted({*printed.loc[printed["setting"] == papers.UNSEEN, "site"]} - {"average"})
        for row in papers.rows(paper, table, federation):
            algorithm = row["algorithm"]
            augmentations = [options.get(each["name"], {}) | each for each in row["augmentations"]]
            if algorithm["name"] in names("augmentations"):  # printed in the place of an algorithm, it is over FedAvg
                algorithm, augmentations = {"name": "fedavg"}, [algorithm, *augmentations]
            methods = {"algorithm": [algorithm], "augmentations": [augmentations]}
            made += base.vary(unseen=[[], *([site] for site in sites)], **where, **methods)
    return made


def _swept(paper: str, own: list[dict], base: Recipe, known: Iterable[Recipe], profile: str) -> list[Recipe]:
    """The recorded runs that differ from a profile in what the claims' figure varies, and in their methods."""
    sweep = papers.settings(paper).get(own[0]["figure"], {})
    base = base.with_(evaluation=(), seed=0)
    if "rounds" in sweep:
        base = base.with_(rounds=papers.of_profile(sweep["rounds"], "quick"), local_steps=0)
    varied = {claim["x"]: getattr(base, claim["x"]) for claim in own if hasattr(base, claim["x"] or "-")}
    methods = {"algorithm": base.algorithm, "augmentations": base.augmentations, "seed": 0}
    settings = {base.with_(federation=each) for each in papers.under_settings(paper, base.full["federation"])}
    runs = {labels.method(label) for claim in own for label in claim["runs"]}
    return [one for one in known if labels.method(one.label) in runs and one.with_(**methods, **varied) in settings]
