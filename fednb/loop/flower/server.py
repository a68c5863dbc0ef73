"""The server's side of a run whose clients are elsewhere, and which goes on without a client."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from fednb.errors import FednbError, RecipeError, RunError
from fednb.loop.flower.checks import OF_METHODS, form, require, require_alike
from fednb.loop.flower.handshake import TORCH, Introduction, printable, require_one_federation
from fednb.loop.loop import Addressed, Rounds, refuse_without_spare
from fednb.methods import Message

if TYPE_CHECKING:
    from fednb.recipe import Recipe

OF_CLIENTS = ("_tested", "away", "after")  # what the server knows beside their replies

SUSPECT = 1e4  # a number above it is named where a round ends in an error

Ask = Callable[..., dict[str, Message | str]]


class RemoteRun(Rounds):
    """The server's side of a run whose clients are reached by ``ask(kind, round, {client: message}, wait=False)``.

    It returns {client: reply} of those who answered, in any order, and in the place of a reply what went wrong, in
    words; with ``wait`` it gives the others time to come back. A client that does not answer, or whose reply is none
    (see ``fednb.loop.flower.checks``), is left out of the round, as one that was not drawn, and keeps the scores of its
    last test; ``advance`` names it under ``absent``, and ``notes`` says so and why. Who is needed is waited for:
    everybody before round 1, at the first test, also of spare images, and in what is measured once after the last
    round. RunError where nobody answers, or one who is needed does not, or a method cannot use what came; RecipeError
    for a method that is no federation. carried: of the record's origin, read when the run has ended: ``engine``, and
    ``wire`` where bytes are counted.
    """

    saved_every_round = True

    def __init__(self, recipe: Recipe, introductions: Iterable[Introduction], ask: Ask, carried: dict):
        require_one_federation(introductions := list(introductions))
        met = {each.site: each for each in introductions}
        self.whole = next((each for each in introductions if set(each.sites) == met.keys()), None)
        self.clients = {name: met[name] for name in (self.whole.sites if self.whole else sorted(met))}
        outline = introductions[0].outline
        super().__init__(recipe, outline, list(self.clients))
        spare = {name: each.images[3] if len(each.images) > 3 else None for name, each in self.clients.items()}
        refuse_without_spare(recipe, outline.name, spare)
        if self.pooling:
            raise RecipeError(
                f"{self.pooling.name} trains centrally on pooled data, the images of all sites. Train it in one place."
            )
        self.ask = ask
        self.carried = carried
        self.away: dict[str, dict[int, str]] = {}
        self.after: dict[str, int] = {}
        self.largest = (0.0, "")  # of the numbers in all replies, and in words whose

    @property
    def images(self) -> dict[str, list[int]]:
        counts = zip(*(each.images[: len(self.splits)] for each in self.clients.values()), strict=True)
        return dict(zip(self.splits, map(list, counts), strict=True))

    @property
    def fingerprint(self) -> str:
        """Of the images: the federation's where one client has all, else of the sites' own fingerprints."""
        if self.whole:
            return self.whole.whole
        own = "\n".join(f"{name} {each.fingerprint}" for name, each in self.clients.items())
        return hashlib.sha256(own.encode()).hexdigest()[:16]

    @property
    def notes(self) -> list[str]:
        notes = dict.fromkeys(note for each in self.clients.values() for note in each.notes)
        for version in dict.fromkeys(each.torch for each in self.clients.values() if each.torch != TORCH):
            names = ", ".join(name for name, each in self.clients.items() if each.torch == version)
            notes[f"{names} computed with torch {version}, the server with {TORCH}."] = None
        for name, reasons in self.away.items():
            numbers, why = ", ".join(map(str, reasons)), "; ".join(dict.fromkeys(filter(None, reasons.values())))
            note = f"{name} did not answer in round {numbers}: it took no part, or has the scores of its last test."
            notes[note + f" What went wrong: {why}" * bool(why)] = None
        return list(notes)

    def prepare(self) -> dict:
        with self._named():
            return super().prepare()

    def train_round(self) -> dict:
        with self._named():
            return super().train_round()

    @contextmanager
    def _named(self) -> Iterator[None]:
        """RunError, naming method and client, where a method cannot use what came, though it looked like a reply; and
        who sent the largest numbers, which may be why the others' are none."""
        try:
            yield
        except Exception as error:
            hint = f" The largest number that a client sent is {self.largest[1]}." * (self.largest[0] > SUSPECT)
            if isinstance(error, RunError):
                raise RunError(f"{error}{hint}") from error
            if isinstance(error, FednbError) or not hasattr(error, "__notes__"):
                raise
            raise RunError(
                f"{self.recipe} cannot go on: {'; '.join(error.__notes__)} ({type(error).__name__}: {error}). Look at "
                f"what the clients' machines say, and start the run again.{hint}"
            ) from error

    def exchange(self, kind: str, round: int, messages: Iterable[Addressed]) -> Iterator[Addressed]:
        one_by_one = kind == "work" and any(method.sequential for method in self.methods)
        parts = ({name: message} for name, message in messages) if one_by_one else [dict(messages)]
        sent, replies, reasons = {}, {}, {}
        for part in parts:
            come, wrong = self._heard(kind, round, part)
            sent, replies, reasons = sent | part, replies | come, reasons | wrong
        scored = set(self.recipe.scored(round))
        tested = {name for name, scores in self._tested.items() if scored <= scores.keys()}
        spared = {"work": sent.keys(), "test": tested}.get(kind, set())
        if needed := [name for name in sent if name not in replies and name not in spared]:
            late, again = self._heard(kind, round, {name: sent[name] for name in needed}, wait=True)
            replies, reasons = replies | late, reasons | again
        absent = [name for name in sent if name not in replies]
        if not replies or not spared >= set(absent):
            named = ", ".join(f"{name} ({reasons[name]})" if name in reasons else name for name in absent)
            raise RunError(
                f'{named} did not answer "{kind}" in round {round} of {self.recipe}, which cannot go on without. Look '
                "at what their machines say, and start the run again."
            )
        if kind in OF_METHODS:
            self._require_alike(sent, replies)
        if absent and kind == "work":
            self.server.weigh([name for name in sent if name in replies])
        for name in absent:
            self.away.setdefault(name, {}).setdefault(round, reasons.get(name, ""))
        yield from ((name, replies[name]) for name in sent if name in replies)

    def _heard(
        self, kind: str, round: int, messages: dict[str, Message], wait: bool = False
    ) -> tuple[dict[str, Message], dict[str, str]]:
        """Replies in which nothing is amiss, and what went wrong with others. Each client goes on from its memory."""
        known = {name: {"after": torch.tensor(self.after.get(name, -1))} for name in messages}
        came = self.ask(kind, round, {name: message | known[name] for name, message in messages.items()}, wait)
        against = self.model, self.server.model, self.methods, self.recipe
        replies, reasons = {}, {}
        for name in (name for name in messages if name in came):
            if isinstance(came[name], str):
                reasons[name] = printable(came[name])
                continue
            try:
                replies[name] = dict(require(came[name], kind, round, self.clients[name], *against))
            except RunError as error:
                reasons[name] = printable(error)
        for name, reply in replies.items():
            self.after[name] = int(reply.pop("after"))
            if kind == "work":
                self._remember_largest(name, round, reply)
                self.server.hear(name, reply)
        return replies, reasons

    def _require_alike(self, sent: dict[str, Message], replies: dict[str, Message]) -> None:
        """Of clients that were sent the same entries by the methods."""
        alike: dict[tuple, dict] = {}
        for name, reply in replies.items():
            entries = tuple(sorted(entry for entry in sent[name] if not entry.startswith("model/")))
            alike.setdefault(entries, {})[name] = form(reply, self.methods)
        for forms in alike.values():
            require_alike(forms, " and ".join(method.name for method in self.methods))

    def _remember_largest(self, name: str, round: int, reply: Message) -> None:
        floats = {entry: value for entry, value in reply.items() if value.is_floating_point() and value.numel()}
        entry, size = max(((e, value.abs().max().item()) for e, value in floats.items()), key=lambda pair: pair[1])
        if size >= self.largest[0]:
            self.largest = size, f"{size:g}, in {entry} of {name} in round {round}"

    def state(self) -> dict:
        own = {name: getattr(self, name) for name in OF_CLIENTS}
        return super().state() | own | {"wire": self.carried.get("wire", {})}

    def load_state(self, state: dict) -> None:
        super().load_state(state)
        for name in OF_CLIENTS:
            setattr(self, name, state[name])
        for kind, before in state["wire"].items():
            wire = self.carried["wire"].setdefault(kind, dict.fromkeys(before, 0))
            wire.update({way: wire[way] + count for way, count in before.items()})

    def advance(self) -> dict:
        values = super().advance()
        absent = [name for name in self.clients if self.rounds in self.away.get(name, ())]
        return values | ({"absent": absent} if absent else {})
