"""What the papers print: tables, captions, settings and claims, as files; this room needs no torch.

A paper is a folder of tables (``<paper>/<paper>_table1.csv``, ...), with ``captions.toml``, ``claims.toml``
and ``inconsistencies.csv``, and ``<paper>.toml`` beside it with the settings and our profiles.
"""

import tomllib
from pathlib import Path

from fednb.errors import RecipeError, nearest

_HERE = Path(__file__).parent
_CELL = ["algorithm", "augmentation", "federation", "source", "site"]


def names() -> list[str]:
    """The papers that are transcribed."""
    return sorted(path.stem for path in _HERE.glob("*.toml"))


def _folder(paper: str) -> Path:
    if paper not in names():
        raise RecipeError(f'"{paper}" is not in fednb/papers; {nearest(paper, names())}')
    return _HERE / paper


def _entry(mapping: dict, key: str, what: str):
    if key not in mapping:
        raise RecipeError(f'{what} "{key}" is not known; {nearest(key, mapping)}')
    return mapping[key]


def printed(paper: str, table: str, federation: str | None = None):
    """A printed table (``"table1"``) as a data frame, one row per printed number, in printed order.

    algorithm: ``fedavg``, ``fedavgm``, ``fedprox``, ``scaffold``, ``fednova``, ``fedproto``, ``fedfa``, ...
    augmentation: ``""``, ``normalise``, ``fedmix``, ``fedrdn`` or ``fedrdn_v``.
    federation: ``office_caltech10``, ``domainnet`` or ``prostate_mri``; one of them alone if it is given.
    source: the site whose local model is tested; ``""`` where the global model is.
    site: the site whose test images are used, or ``average``.
    value: per cent, 0..100, as printed.
    change: the rise (+) or fall (-) in points that is printed beside an average; NaN where none is.
    remark: what is wrong with the printed number, or ``""``.

    RecipeError for an unknown paper, table or federation.
    """
    import pandas

    files = {path.stem.removeprefix(f"{paper}_"): path for path in _folder(paper).glob(f"{paper}_*.csv")}
    frame = pandas.read_csv(_entry(files, table, f"{paper}'s table"), keep_default_na=False)
    frame["change"] = pandas.to_numeric(frame["change"])
    wrong = inconsistencies(paper)
    wrong = wrong[wrong["table"] == table].groupby(_CELL, as_index=False)["reason"].agg(" ".join)
    frame = frame.merge(wrong.rename(columns={"reason": "remark"}), how="left", on=_CELL)
    frame["remark"] = frame["remark"].fillna("")
    if federation is not None:
        if federation not in set(frame["federation"]):
            known = nearest(federation, set(frame["federation"]))
            raise RecipeError(f'{paper}, {table} has no federation "{federation}"; {known}')
        frame = frame[frame["federation"] == federation].reset_index(drop=True)
    return frame


def inconsistencies(paper: str):
    """The printed numbers that contradict others of the same paper, one row each, as a data frame.

    Columns: table, algorithm, augmentation, federation, source, site (as in ``printed``), kind (``average``,
    ``change``, ``count`` or ``rounded``), printed, expected (what the other numbers give), reason.
    """
    import pandas

    return pandas.read_csv(_folder(paper) / "inconsistencies.csv", keep_default_na=False)


def _toml(path: Path) -> dict:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def caption(paper: str, table: str) -> str:
    """The caption of ``"table1"`` or ``"fig1"`` as printed, without its references."""
    return _entry(_toml(_folder(paper) / "captions.toml"), table, f"{paper}'s caption")


def claims(paper: str) -> list[dict]:
    """The paper's claims that compare two runs; see the head of ``<paper>/claims.toml`` for the fields."""
    return _toml(_folder(paper) / "claims.toml")["claim"]


def settings(paper: str) -> dict:
    """``<paper>.toml``: what is printed and where, what is not, our profiles, and the methods' options."""
    return _toml(_folder(paper).with_suffix(".toml"))


def recipe(paper: str, profile: str) -> dict:
    """The Recipe fields of a profile, for ``Recipe(**recipe("fedrdn", "quick"), algorithm="fedavg")``."""
    fields = _entry(settings(paper)["profile"], profile, f"{paper}'s profile")
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


def of_profile(values: dict, profile: str):
    """The value of a profile, for example of ``{"smoke": 1, "quick": 4, "paper": 100}``; RecipeError if unknown."""
    return _entry(values, profile, "profile")


def algorithm(paper: str, name: str) -> dict:
    """An algorithm with the paper's options, as a Recipe takes it: ``{"name": "fedprox", "mu": 0.001}``."""
    return {"name": name, **_entry(settings(paper)["algorithm"], name, f"{paper}'s algorithm")}
