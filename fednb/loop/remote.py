"""A federation whose clients are elsewhere: server and client each alone, and a run that goes on without a client."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from fednb.errors import FednbError, RecipeError, RunError
from fednb.federation import Federation
from fednb.loop.client import Client
from fednb.loop.introduction import TORCH, Introduction, worded
from fednb.loop.loop import Addressed, Rounds, refuse_without_spare
from fednb.loop.network import build, require_shapes
from fednb.loop.replies import OF_METHODS, form, require
from fednb.methods import Message

if TYPE_CHECKING:
    from fednb.recipe import Recipe

BEGINNING = ("offer", "relearn")  # the calls of a client that need no memory
TEACHING = (*BEGINNING, "learn", "work")  # those of a client that change what it remembers
ASKED = (*TEACHING, "test", "visit", "measure", "represent", "show", "compare")
OF_CLIENTS = ("_tested", "away", "after", "lost", "shared", "forms")  # what the server knows beside their replies

Ask = Callable[..., dict[str, Message | str]]
Memories = dict[int, dict[str, Message]]  # what a client keeps, by the number of the round after which it did


def answer(
    recipe: Recipe,
    federation: Federation,
    memories: Memories,
    kind: str,
    message: Message,
    round: int,
    device: str | torch.device = "cpu",
) -> tuple[Message, Memories]:
    """One call of a client that lives for this call alone: its reply, and its memories from now on.

    federation: with the client's own site and no other; the classes are those of all. kind: one of ``ASKED``. The
    message says by ``after`` which memory the client goes on from, and the reply which one it has by then (-1: none):
    the one before it is kept as well, for a server that has not seen the reply and asks again. The reply is empty
    where the client does not have that memory.
    """
    if kind not in ASKED:
        raise RunError(f'a client is asked to "{kind}"; expected one of {", ".join(ASKED)}.')
    after = -1 if kind in BEGINNING else int(message["after"])
    if after not in (-1, *memories):
        return {}, memories
    (site,) = federation.to(device).sites
    client = Client(site, federation.outline, *build(recipe, federation.outline, device), recipe)
    client.refuse_batches_of_one(in_rounds=not client.unseen)
    require_shapes(message, client.model, "the server")
    client.memories |= {name: _moved(memory, device, copy=True) for name, memory in memories.get(after, {}).items()}
    reply = getattr(client, kind)(_moved(message, device), round)
    if kind in TEACHING:
        memories = {number: memory for number, memory in memories.items() if number == after} | {round: client.memories}
        after = round if any(client.memories.values()) else -1
    return reply | {"after": torch.tensor(after)}, memories


class RemoteRun(Rounds):
    """The server's side of a run whose clients are reached by ``ask(kind, round, {client: message}, wait=False)``.

    It returns {client: reply} of those who answered, in any order, and in the place of a reply what went wrong, in
    words; with ``wait`` it gives the others time to come back. A client that does not answer, or whose reply is none
    (see ``fednb.loop.replies``), is left out of the round, as one that was not drawn, and keeps the scores of its
    last test; ``advance`` names it under ``absent``, and ``notes`` says so and why. One that comes back without what it
    has kept learns once more what was shared before round 1, and goes on; ``notes`` says so, too. Who is needed is
    waited for: everybody before round 1, at the first test, also of spare images, and in what is measured once after
    the last round. RunError where nobody answers, or one who is needed does not; RecipeError for a method that is no
    federation. carried: of the record's origin, read when the run has ended: ``engine``, and ``wire`` where bytes are
    counted.
    """

    saved_every_round = True

    def __init__(self, recipe: Recipe, introductions: Iterable[Introduction], ask: Ask, carried: dict):
        told = {each.site: each for each in _agreeing(list(introductions))}
        self.whole = next((each for each in told.values() if set(each.sites) == told.keys()), None)
        self.clients = {name: told[name] for name in (self.whole.sites if self.whole else sorted(told))}
        super().__init__(recipe, next(iter(told.values())).outline, list(self.clients))
        spare = {name: each.images[3] if len(each.images) > 3 else None for name, each in self.clients.items()}
        refuse_without_spare(recipe, next(iter(told.values())).outline.name, spare)
        if self.pooling:
            raise RecipeError(
                f"{self.pooling.name} trains centrally on pooled data, the images of all sites. Train it in one place."
            )
        self.ask = ask
        self.carried = carried
        self.away: dict[str, dict[int, str]] = {}
        self.after: dict[str, int] = {}
        self.lost: dict[str, list[int]] = {}
        self.shared: Message = {}
        self.forms: dict[str, dict[str, tuple[str, ...]]] = {}  # of what methods added, as each client last sent it

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
            notes[f"{names} computed with torch {version}, the server with {TORCH}."] = 0
        for name, reasons in self.away.items():
            numbers, why = ", ".join(map(str, reasons)), "; ".join(dict.fromkeys(filter(None, reasons.values())))
            told = f"{name} did not answer in round {numbers}: it took no part, or has the scores of its last test."
            notes[told + f" What went wrong: {why}" * bool(why)] = 0
        for name, rounds in self.lost.items():
            numbers = ", ".join(map(str, rounds))
            notes[f"{name} came back in round {numbers} without its memory: what it had kept began anew."] = 0
        return list(notes)

    def trained_on(self, name: str) -> int:
        return self.clients[name].images[0]

    @property
    def _sequential(self) -> bool:
        return any(method.sequential for method in self.methods)

    def prepare(self) -> dict:
        with self._named():
            return super().prepare()

    def train_round(self) -> dict:
        with self._named():
            return super().train_round()

    @contextmanager
    def _named(self) -> Iterator[None]:
        """RunError, naming method and client, where a method cannot use what came, though it looked like a reply."""
        try:
            yield
        except Exception as error:
            if isinstance(error, FednbError) or not hasattr(error, "__notes__"):
                raise
            raise RunError(
                f"{self.recipe} cannot go on: {_noted(error)}. Look at what the clients' machines say, and start the "
                "run again."
            ) from error

    def exchange(self, kind: str, round: int, messages: Iterable[Addressed]) -> Iterator[Addressed]:
        one_by_one = kind == "work" and self._sequential
        parts = ({name: message} for name, message in messages) if one_by_one else [dict(messages)]
        sent, replies, reasons = {}, {}, {}
        for part in parts:
            come, wrong = self._replies(kind, round, part)
            sent, replies, reasons = sent | part, replies | come, reasons | wrong
        if kind == "learn":
            self.shared = next(iter(sent.values()))
        scored = set(self.recipe.scored(round))
        tested = {name for name, scores in self._tested.items() if scored <= scores.keys()}
        spared = {"work": sent.keys(), "test": tested}.get(kind, set())
        if needed := [name for name in sent if name not in replies and name not in spared]:
            late, again = self._replies(kind, round, {name: sent[name] for name in needed}, wait=True)
            replies, reasons = replies | late, reasons | again
        absent = [name for name in sent if name not in replies]
        if not replies or not spared >= set(absent):
            named = ", ".join(f"{name} ({reasons[name]})" if name in reasons else name for name in absent)
            raise RunError(
                f'{named} did not answer "{kind}" in round {round} of {self.recipe}, which cannot go on without. Look '
                "at what their machines say, and start the run again."
            )
        if absent and kind == "work":
            self.server.weigh([name for name in sent if name in replies])
        for name in absent:
            self.away.setdefault(name, {}).setdefault(round, reasons.get(name, ""))
        yield from ((name, replies[name]) for name in sent if name in replies)

    def _replies(
        self, kind: str, round: int, messages: dict[str, Message], wait: bool = False
    ) -> tuple[dict[str, Message], dict[str, str]]:
        """Of ``ask``, and what went wrong; each client goes on from its memory as the server knows of it, or anew."""
        replies, reasons, lost = self._heard(kind, round, messages, wait)
        if lost:
            for name in lost:
                self.lost.setdefault(name, []).append(round)
            ready, unready, _ = self._heard("relearn", 0, dict.fromkeys(lost, self.shared))
            again, failed, empty = self._heard(kind, round, {name: messages[name] for name in ready})
            replies, reasons = replies | again, reasons | unready | failed
            reasons |= dict.fromkeys(empty, "it has no memory, and was told all that was shared before round 1")
        return replies, reasons

    def _heard(
        self, kind: str, round: int, messages: dict[str, Message], wait: bool = False
    ) -> tuple[dict[str, Message], dict[str, str], list[str]]:
        """Replies in which nothing is amiss, what went wrong with others, and the clients without their memory."""
        known = {name: {"after": torch.tensor(self.after.get(name, -1))} for name in messages}
        told = self.ask(kind, round, {name: message | known[name] for name, message in messages.items()}, wait)
        reasons = {name: worded(told[name]) for name in messages if isinstance(told.get(name), str)}
        lost = [
            name for name in messages if isinstance(told.get(name), dict) and not told[name] and kind not in BEGINNING
        ]
        replies = {}
        for name in (name for name in messages if name in told and name not in reasons and name not in lost):
            try:
                replies[name] = dict(require(told[name], kind, *self._beside(round, name)))
            except RunError as error:
                reasons[name] = worded(error)
        if kind in OF_METHODS:
            reasons |= self._unlike_most(kind, messages, replies)
        for name, reply in replies.items() if kind == "work" else ():
            if name not in reasons:
                try:
                    self.server.hear(name, reply)
                except Exception as error:  # whatever a method meets in what is none of its own
                    reasons[name] = worded(_noted(error))
                    for forms in self.forms.values():
                        forms.pop(name, None)
        replies = {name: reply for name, reply in replies.items() if name not in reasons}
        self.after |= {name: int(reply.pop("after")) for name, reply in replies.items()}
        return replies, reasons, lost

    def _beside(self, round: int, name: str) -> tuple:
        """What a client's reply is held against."""
        return round, self.clients[name], self.model, self.server.model, self.methods, self.recipe

    def _unlike_most(self, kind: str, messages: dict[str, Message], replies: dict[str, Message]) -> dict[str, str]:
        """Who sent, for the methods, other names or shapes than most clients that ever did after messages with the same
        entries; of as many the first.

        Of a sequential method nobody is: the first client alone does not say what the others send.
        """
        alike, reasons = {}, {}
        for name, reply in replies.items():
            told = " ".join(sorted(entry for entry in messages[name] if not entry.startswith("model/")))
            after = f"{kind} {hashlib.sha256(told.encode()).hexdigest()[:8]}"
            self.forms.setdefault(after, {})[name] = form(reply, self.methods)
            alike.setdefault(after, []).append(name)
        for after, names in alike.items():
            forms = self.forms[after]
            counts = Counter(forms.values())
            (common, most), *_ = counts.most_common(1)
            first = next(name for name, own in forms.items() if own == common)
            for name in (name for name in names if forms[name] != common):
                if self._sequential and kind == "work" and counts[forms[name]] == most:
                    continue
                pairs = (forms[name], common), (common, forms[name])
                here, there = ("; ".join(sorted({*one} - {*other})) or "nothing" for one, other in pairs)
                others = "at most clients" if most > 1 else f"in what {first} sent"
                reasons[name] = worded(f"{here} in what {name} sent and {there} {others}")
        return reasons

    def state(self) -> dict:
        own = {name: getattr(self, name) for name in OF_CLIENTS}
        return super().state() | own | {"wire": self.carried.get("wire", {})}

    def load_state(self, state: dict) -> None:
        super().load_state(state)
        for name, scores in state["_tested"].items():
            require({"after": torch.tensor(-1), **scores}, "test", *self._beside(self.rounds, name))
        for name in OF_CLIENTS:
            setattr(self, name, state[name])
        for kind, before in state["wire"].items():
            wire = self.carried["wire"].setdefault(kind, dict.fromkeys(before, 0))
            wire.update({way: wire[way] + count for way, count in before.items()})

    def advance(self) -> dict:
        values = super().advance()
        absent = [name for name in self.clients if self.rounds in self.away.get(name, ())]
        return values | ({"absent": absent} if absent else {})


def _agreeing(introductions: list[Introduction]) -> list[Introduction]:
    """RunError, naming the site, where two have one name, speak of different classes or images, or one is not there."""
    first, *others = introductions
    for each in others:
        for what in ("classes", "image_shape", "task"):
            found, expected = getattr(each.outline, what), getattr(first.outline, what)
            if found != expected:
                raise RunError(
                    f"{each.site} has {what} {_listed(found)}; {first.site} has {_listed(expected)}. All sites of a "
                    "federation need the same: name the classes in the recipe, and look at the sites' folders."
                )
    names = Counter(each.site for each in introductions)
    for name, count in names.items():
        if count > 1:
            raise RunError(f"two clients say that they are {name}; expected one for each site. Stop one of them.")
    for each in introductions:
        if missing := [name for name in each.sites if name not in names]:
            raise RunError(
                f"{', '.join(missing)} of {each.outline.name} did not come; the recipe's federation has "
                f"{', '.join(each.sites)}. Start a client for each, or take a recipe for the sites that take part."
            )
    return introductions


def _noted(error: Exception) -> str:
    return f"{'; '.join(error.__notes__)} ({type(error).__name__}: {error})"


def _listed(value) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _moved(message: Message, device: str | torch.device, copy: bool = False) -> Message:
    return {name: value.to(device, copy=copy) for name, value in message.items()}
