"""Errors that a user can cause. Each message says what was found, where, what was expected and what to do."""

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches


class FednbError(Exception):
    """Anything wrong with what fednb was given; the message is meant for the user."""

    def __str__(self) -> str:
        return printable(super().__str__())


class DataError(FednbError):
    """Images, labels, folders or split lists are missing or damaged."""


class RecipeError(FednbError):
    """A name, an option or a combination that no run can be made from."""


class RunError(FednbError):
    """A run that started and cannot go on, for example because its loss is not a number."""


class StoreError(FednbError):
    """A recorded run that cannot be read or written."""


class HeldError(StoreError):
    """A run that another process trains."""


class DamagedError(StoreError):
    """A recorded run whose file, or an artefact next to it, is not what was written."""


class NotebookError(FednbError):
    """A notebook, or a parameter of one, that cannot be run as asked."""


def reason(error: Exception) -> str:
    """What went wrong in one of many runs, also where it is no error of ours, such as want of memory."""
    return str(error) if isinstance(error, FednbError) else f"{type(error).__name__}: {error}"


def printable(text: str) -> str:
    """The text, with codes for what UTF-8 has not: the bytes of a file's name that are in another encoding."""
    return text.encode(errors="backslashreplace").decode()


def composed(name: str) -> str:
    """A name in Unicode's composed form (NFC): systems differ in how they write "\u00fc"."""
    return unicodedata.normalize("NFC", name)


def nearest(word: str, choices: Iterable[str]) -> str:
    """The end of an error message about an unknown name: the closest valid one and the list of all."""
    choices = sorted(choices)
    close = get_close_matches(word, choices, n=1, cutoff=0.5)
    hint = f'did you mean "{close[0]}"? ' if close else ""
    return f"{hint}Known: {', '.join(choices)}."
