"""Trains one recipe: from its last checkpoint on, into a record."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from fednb.errors import FednbError, RunError, StoreError
from fednb.federation import Federation
from fednb.files import is_full
from fednb.recipe import Recipe
from fednb.records import scores, signals
from fednb.records.provenance import maker, origin
from fednb.records.record import require_measured, require_readable, require_wire
from fednb.records.staleness import sources, used
from fednb.records.store import Record, Store

if TYPE_CHECKING:
    from torch import Tensor

    from fednb.loop.loop import Rounds

CHECKPOINT_SECONDS = 60.0
MOST_THREADS = 1024
OF_DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)  # what a state that is none leads to
NO_ROOM = ("out of memory", "not enough memory", "allocate memory")  # torch's words for it, on a GPU and on a CPU

Progress = Callable[[Recipe, int], None]


def silent(recipe: Recipe, rounds: int) -> None:
    """No progress display."""


def train_one(
    recipe: Recipe,
    store: Store,
    device: str = "cpu",
    root: str | Path | None = None,
    progress: Progress = silent,
    federation: Federation | None = None,
    wait: bool = True,
) -> Record:
    """The record of a recipe: found, or trained from its last checkpoint on.

    ``progress(recipe, rounds_done)`` is called after every round. federation: of a recipe whose images are in memory.
    wait: for another process that trains it, or raise HeldError. Ctrl-C and SIGTERM end it after its round, with a
    checkpoint. Raises FednbError for what a user can mend.
    """
    with store.lock(recipe, wait), signals.watched():
        if record := store.find(recipe, mend=True):
            store.drop_checkpoint(recipe)  # whoever made it may have been killed before this
            return record
        from fednb.loop.loop import FederatedRun
        from fednb.loop.network import rehearse
        from fednb.models import pretrained_below

        rehearse(recipe)
        if federation is None:
            federation = federation_of(recipe, root)
        elif recipe.full["federation"].get("fingerprint") != federation.fingerprint:
            raise RunError(
                f"{recipe} is not for {federation.name} (fingerprint {federation.fingerprint}). Make the recipe by "
                "Study(recipes, federation=...)."
            )
        with pretrained_below(root):
            return finish(partial(FederatedRun, recipe, federation, device), store, progress, root)


def finish(
    begin: Callable[[], Rounds], store: Store, progress: Progress = silent, root: str | Path | None = None
) -> Record:
    """The record of the run that ``begin()`` makes, trained from its last checkpoint on; needs the recipe's lock.

    A checkpoint is written about once a minute, or after each round where the run is ``saved_every_round``.
    """
    run = begin()
    saved = store.load_checkpoint(run.recipe, next(run.model.parameters()).device)
    with _threads_of(saved):
        return _finish(run, begin, saved, store, progress, root)


def _finish(
    run: Rounds, begin: Callable[[], Rounds], saved: dict | None, store: Store, progress: Progress, root: Path | None
) -> Record:
    recipe = run.recipe
    made_from = {"data": run.fingerprint, "recipe": recipe.full, **maker(run.model)}
    if sources(recipe):
        made_from["source"] = used(recipe)
    seen = {
        split: [n * (name not in recipe.unseen) for name, n in zip(run.clients, counts, strict=True)]
        for split, counts in run.images.items()
    }
    try:
        resumed = _resume(run, store, made_from, saved, seen)
    except (*OF_DAMAGE, RuntimeError, FednbError) as error:
        store.refuse_checkpoint(recipe, f"{type(error).__name__}: {error}")
        run, resumed = begin(), ([], 0.0, {}, {})
    try:
        return _trained(run, resumed, store, progress, made_from, seen, root)
    except Damaged as error:  # of what methods keep a checkpoint's form does not say whether it is theirs
        why = f"{error} (where the new start ends in that, too, it is the method's)"
        store.refuse_checkpoint(recipe, why)
        return _trained(begin(), ([], 0.0, {}, {}), store, progress, made_from, seen, root)


class Damaged(Exception):
    """What a run went on from may be why it cannot end."""


def _trained(
    run: Rounds, resumed: tuple, store: Store, progress: Progress, made_from: dict, seen: dict, root: Path | None
) -> Record:
    """The record, from the rounds, seconds and scores that there are; Damaged where these may be none of a run's."""
    recipe, (rounds, before, kept, spare) = run.recipe, resumed
    as_loaded = bool(rounds)
    begun = written = time.monotonic()
    progress(recipe, run.rounds)
    while run.rounds < recipe.rounds:
        try:
            rounds.append(run.advance())
        except RunError:
            if run.saved_every_round:  # its numbers may be why: the last that led to a sound round are those before
                store.step_back(recipe)
            raise
        except (*OF_DAMAGE, RuntimeError) as error:
            if not as_loaded or any(words in str(error) for words in NO_ROOM):
                raise
            raise Damaged(f"{type(error).__name__}: {error} in round {len(rounds) + 1}") from error
        kept[run.rounds] = run.scores
        spare |= {} if run.spare is None else {run.rounds: run.spare}
        kept = {number: kept[number] for number in scores.rounds_to_keep(rounds, seen)}
        progress(recipe, run.rounds)
        late = run.saved_every_round or time.monotonic() - written >= CHECKPOINT_SECONDS
        if (late or signals.requested()) and run.rounds < recipe.rounds:
            seconds = before + time.monotonic() - begun
            state = {"run": run.state(), "rounds": rounds, "scores": kept, "seconds": seconds, "made_from": made_from}
            state |= {"spare": spare} if spare else {}
            try:
                store.save_checkpoint(recipe, state, keep_last=run.saved_every_round)
                as_loaded = False
            except StoreError as error:  # a full disk: the run is worth more than its checkpoint
                store.notes.append(f"{recipe} goes on without a new checkpoint: {error}")
            written = time.monotonic()
            if signals.requested():
                signals.end()
    seconds = before + time.monotonic() - begun
    record, artefacts = _measured(run, rounds, scores.packed(kept, spare), seconds)
    require_readable(record)  # else its checkpoint would go for a record that nobody can read
    _write(recipe, store, record, artefacts, root)
    store.drop_checkpoint(recipe)
    return store.find(recipe)


def _measured(run: Rounds, rounds: list[dict], packed: dict, seconds: float) -> tuple[Record, dict]:
    """A finished run's record and what lies beside it."""
    recipe = run.recipe
    artefacts = {"scores": packed}
    for name, made in (("features", run.features), ("examples", run.examples), ("masks", run.masks)):
        if name in recipe.evaluation:
            artefacts[name] = {entry: tensor.numpy() for entry, tensor in made().items()}
    if "server" in recipe.evaluation:
        artefacts["server"] = {name: tensor.cpu().numpy() for name, tensor in run.server.remembered().items()}
    told = run.carried | {"outside": sources(recipe)}
    record = Record(
        recipe=recipe.full,
        key=recipe.key,
        clients=list(run.clients),
        images=run.images,
        prepare=run.prepared,
        rounds=rounds,
        fingerprint=run.fingerprint,
        notes=run.notes,
        origin=origin(run.model, seconds) | {name: value for name, value in told.items() if value},
        behaviours=used(recipe),
    )
    return record, artefacts


@contextmanager
def _threads_of(saved: dict | None):
    """Inside, torch has the threads of the checkpoint: with another number sums have other last digits."""
    import torch

    here = torch.get_num_threads()
    threads = (saved or {}).get("made_from", {}).get("threads")
    torch.set_num_threads(threads if type(threads) is int and 0 < threads <= MOST_THREADS else here)
    try:
        yield
    finally:
        torch.set_num_threads(here)


def federation_of(recipe: Recipe, root: str | Path | None = None, site: str | None = None) -> Federation:
    """The federation of a recipe, with one site or with all, loaded once per process."""
    from fednb.datasets import data_root

    choice = recipe.dealt | ({"site": site} if site else {})
    return _load(json.dumps(choice), str(data_root(root).absolute()))


@lru_cache(maxsize=2)
def _load(choice: str, root: str) -> Federation:
    from fednb import datasets

    return datasets.load(root=root, **json.loads(choice))


def _resume(
    run: Rounds, store: Store, made_from: dict, saved: dict | None, seen: dict[str, list[int]]
) -> tuple[list[dict], float, dict, dict]:
    """The rounds that a checkpoint holds, their seconds, and the scores of its test and spare images; the run goes on
    after them.

    A checkpoint from other images, defaults, code or device is not used: a record says where all of it is from.
    """
    if saved is None:
        return [], 0.0, {}, {}
    before = saved.get("made_from", {})
    if differing := [name for name, value in made_from.items() if before.get(name) != value]:
        store.notes.append(
            f"The checkpoint of {run.recipe} was made with other {' and other '.join(differing)}; the run starts again."
        )
        return [], 0.0, {}, {}
    require_wire(saved["run"].get("wire", {}))
    run.load_state(saved["run"])
    rounds = saved["rounds"]
    kept, spare = ({n: v.detach().cpu() for n, v in saved.get(name, {}).items()} for name in ("scores", "spare"))
    if not len(rounds) == run.rounds < run.recipe.rounds:
        raise ValueError(f"it holds {len(rounds)} of {run.recipe.rounds} rounds and was made after {run.rounds}")
    require_measured(rounds, list(run.clients), run.images, run.prepared, saved["seconds"], run.notes)
    if not kept.keys() >= scores.rounds_to_keep(rounds, seen) or spare.keys() != {
        number for number in range(1, run.rounds + 1) if "spare" in run.recipe.scored(number)
    }:
        raise ValueError("its scores are not those of its rounds")
    for split, found in (("test", kept), ("spare", spare)):
        _require_scores(found.values(), sum(run.images.get(split, ())), split)
    return rounds, saved["seconds"], kept, spare


def _require_scores(found: Iterable[Tensor], images: int, split: str) -> None:
    if not all(
        values.shape == (images,) and str(values.dtype) == "torch.float64" and ((values >= 0) & (values <= 1)).all()
        for values in found
    ):
        raise ValueError(f"its scores are not those of {images} {split} images")


def _write(recipe: Recipe, store: Store, record: Record, artefacts: dict[str, dict], root: str | Path | None) -> None:
    """A record has the last word on a full disk: decoded images there, then the run's checkpoint, make room for it."""
    from fednb.datasets import _cache, data_root

    for make_room in (partial(_cache.clear, data_root(root), store.folder), partial(store.drop_checkpoint, recipe)):
        try:
            store.write(recipe, record, artefacts)
            return
        except StoreError as error:
            if not is_full(error):
                raise
            make_room()
    store.write(recipe, record, artefacts)
