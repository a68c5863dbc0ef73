"""The server's side of a run whose clients are elsewhere, and which goes on without a client."""

import hashlib
from collections.abc import Callable, Iterable, Iterator

import torch

from fednb.errors import RecipeError, RunError
from fednb.loop.flower.checks import Introduction, printable, require, require_alike
from fednb.loop.loop import Addressed, Rounds, refuse_without_spare
from fednb.methods import Message
from fednb.recipe import Recipe

OF_CLIENTS = ("_tested", "away", "after")  # what the server knows besides their replies
EVALUATIONS = ("spare", "server")  # that need neither another site's network nor what shows a site's images

Ask = Callable[[str, int, dict[str, Message]], dict[str, Message | str]]


class RemoteRun(Rounds):
    """The server's side of a run whose clients are reached by ``ask(kind, round, {client: message})``.

    It returns {client: reply} of those who answered, and in place of a reply what went wrong. A client that does not
    answer, or whose reply is none (``fednb.loop.flower.checks``), is left out of the round, as one that was not drawn,
    and keeps the scores of its last test; ``advance`` names it under ``absent``, and ``notes`` says why. RunError where
    nobody answers, or one who is needed does not: anybody before round 1 and at the first test, also of spare images.
    carried: of the record's origin: ``engine``, and ``wire``.
    """

    saved_every_round = True

    def __init__(self, recipe: Recipe, introductions: Iterable[Introduction], ask: Ask | None, carried: dict):
        first, *others = introductions
        met = {first.site: first}
        for each in others:
            if each.outline != first.outline:
                raise RunError(
                    f"{each.site} has {each.outline}; {first.site} has {first.outline}. All sites of a federation need "
                    "the same: name the classes in the recipe, and look at the sites' folders."
                )
            if each.site in met:
                raise RunError(f"two clients say that they are {each.site}; expected one for each site. Stop one.")
            met[each.site] = each
        whole = next((each for each in met.values() if set(each.sites) == met.keys()), None)
        self.clients = {name: met[name] for name in (whole.sites if whole else sorted(met))}
        super().__init__(recipe, first.outline, list(self.clients))
        spare = {name: each.images[3] if len(each.images) > 3 else None for name, each in self.clients.items()}
        refuse_without_spare(recipe, first.outline.name, spare)
        if self.pooling:
            raise RecipeError(f"{self.pooling.name} trains centrally on pooled data, the images of all sites.")
        if refused := [name for name in recipe.evaluation if name not in EVALUATIONS]:
            raise RecipeError(f"no run over Flower has the evaluation {', '.join(refused)}. Train it in one place.")
        own = "\n".join(f"{name} {each.fingerprint}" for name, each in self.clients.items())
        self.fingerprint = whole.whole if whole else hashlib.sha256(own.encode()).hexdigest()[:16]
        counts = zip(*(each.images[: len(self.splits)] for each in self.clients.values()), strict=True)
        self.images = dict(zip(self.splits, map(list, counts), strict=True))
        self.ask = ask
        self.carried = carried
        self.away: dict[str, dict[int, str]] = {}
        self.after: dict[str, int] = {}

    @property
    def notes(self) -> list[str]:
        notes = [note for each in self.clients.values() for note in each.notes]
        for name, reasons in self.away.items():
            numbers, why = ", ".join(map(str, reasons)), "; ".join(dict.fromkeys(filter(None, reasons.values())))
            note = f"{name} did not answer in round {numbers}: it took no part, or has the scores of its last test."
            notes.append(note + f" What went wrong: {why}" * bool(why))
        return list(dict.fromkeys(notes))

    def advance(self) -> dict:
        """As in one place, and ``absent``; RunError, naming the round's clients, where what came cannot be used."""
        try:
            values = super().advance()
        except RunError as error:
            why = " Numbers that another client sent a round before can be why." * (self.rounds > 0)
            raise RunError(f"{error}{why}") from error
        except (LookupError, TypeError, ValueError, RuntimeError) as error:
            senders = ", ".join(self.server.weights or self.taking_part)
            raise RunError(
                f"{self.recipe} cannot use what {senders} sent ({type(error).__name__}: {error}). Look at what their "
                "machines say, and start the run again."
            ) from error
        absent = [name for name in self.clients if self.rounds in self.away.get(name, ())]
        return values | ({"absent": absent} if absent else {})

    def exchange(self, kind: str, round: int, messages: Iterable[Addressed]) -> Iterator[Addressed]:
        one_by_one = kind == "work" and any(method.sequential for method in self.methods)
        sent: dict[str, Message] = {}
        replies: dict[str, Message] = {}
        reasons: dict[str, str] = {}
        for part in ({name: message} for name, message in messages) if one_by_one else [dict(messages)]:
            sent |= part
            after = {name: {"after": torch.tensor(self.after.get(name, -1))} for name in part}
            came = self.ask(kind, round, {name: message | after[name] for name, message in part.items()})
            for name in (name for name in part if name in came):
                try:
                    replies[name] = self._believed(name, came[name], kind, round)
                except Exception as error:  # also of torch, where numbers of a kind have no order
                    reasons[name] = printable(error)
                    continue
                if kind == "work":
                    self.server.hear(name, replies[name])
        absent = [name for name in sent if name not in replies]
        scored = set(self.recipe.scored(round))
        tested = {name for name, scores in self._tested.items() if scored <= scores.keys()}
        spared = {"work": sent.keys(), "test": tested}.get(kind, set())
        if not replies or not spared >= set(absent):
            named = ", ".join(f"{name} ({reasons[name]})" if name in reasons else name for name in absent)
            raise RunError(
                f'{named} did not answer "{kind}" in round {round} of {self.recipe}, which cannot go on without. Look '
                "at what their machines say, and start the run again."
            )
        require_alike(sent, replies, self.methods)
        if absent and kind == "work":
            self.server.weigh([name for name in sent if name in replies])
        for name in absent:
            self.away.setdefault(name, {}).setdefault(round, reasons.get(name, ""))
        yield from ((name, replies[name]) for name in sent if name in replies)

    def _believed(self, name: str, reply: Message | str, kind: str, round: int) -> Message:
        if isinstance(reply, str):
            raise RunError(reply)
        believed = dict(require(reply, kind, round, self.clients[name], self.server, self.methods, self.recipe))
        self.after[name] = int(believed.pop("after"))
        return believed

    def state(self) -> dict:
        own = {name: getattr(self, name) for name in OF_CLIENTS}
        return super().state() | own | {"wire": self.carried.get("wire", {})}

    def load_state(self, state: dict) -> None:
        super().load_state(state)
        for name in OF_CLIENTS:
            setattr(self, name, state[name])
        self.carried.get("wire", {}).update(state["wire"])
