"""Trains one recipe: from its last checkpoint on, into a record."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from fednb.errors import FednbError, RunError, StoreError
from fednb.federation import Federation
from fednb.files import is_full
from fednb.recipe import Recipe
from fednb.records import scores, signals
from fednb.records.provenance import maker, origin, source_hash
from fednb.records.record import require_readable
from fednb.records.staleness import sources, used
from fednb.records.store import Record, Store

if TYPE_CHECKING:
    from fednb.loop.loop import Rounds

CHECKPOINT_SECONDS = 60.0
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
            progress(recipe, recipe.rounds)
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
            return finish(partial(FederatedRun, recipe, federation, device), store, progress)


def finish(begin: Callable[[], Rounds], store: Store, progress: Progress = silent) -> Record:
    """The record of the run that ``begin()`` makes, trained from its last checkpoint on; needs the recipe's lock.

    A checkpoint is written about once a minute, or after each round where the run is ``saved_every_round``.
    """
    run = begin()
    saved = store.load_checkpoint(run.recipe, next(run.model.parameters()).device)
    with _threads_of(saved):
        try:
            return _trained(run, saved, store, progress)
        except Damaged as error:  # of what methods keep a checkpoint's form does not say whether it is theirs
            store.refuse_checkpoint(run.recipe, f"{error} (where the new start ends in that, too, it is the method's)")
            return _trained(begin(), None, store, progress)


class Damaged(Exception):
    """What a run went on from may be why it cannot end."""


def _trained(run: Rounds, saved: dict | None, store: Store, progress: Progress) -> Record:
    """The record, from a checkpoint on; Damaged where that may be none of this run's."""
    recipe = run.recipe
    made_from = {"data": run.fingerprint, "recipe": recipe.full, **maker(run.model), "code": source_hash()}
    if sources(recipe):
        made_from["source"] = used(recipe)
    try:
        rounds, before, kept, spare = _resume(run, store, made_from, saved)
    except (*OF_DAMAGE, RuntimeError, FednbError) as error:
        raise Damaged(f"{type(error).__name__}: {error}") from error
    seen = {
        split: [n * (name not in recipe.unseen) for name, n in zip(run.clients, counts, strict=True)]
        for split, counts in run.images.items()
    }
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
            signals.end_if_requested()
    seconds = before + time.monotonic() - begun
    record, artefacts = _measured(run, rounds, scores.packed(kept, spare), seconds)
    require_readable(record)  # else its checkpoint would go for a record that nobody can read
    _write(recipe, store, record, artefacts)
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
    carried = run.carried | {"outside": sources(recipe)}
    record = Record(
        recipe=recipe.full,
        key=recipe.key,
        clients=list(run.clients),
        images=run.images,
        prepare=run.prepared,
        rounds=rounds,
        fingerprint=run.fingerprint,
        notes=run.notes,
        origin=origin(run.model, seconds) | {name: value for name, value in carried.items() if value},
        behaviours=used(recipe),
    )
    return record, artefacts


@contextmanager
def _threads_of(saved: dict | None):
    """Inside, torch has the threads of the checkpoint: with another number sums have other last digits."""
    import torch

    here = torch.get_num_threads()
    threads = (saved or {}).get("made_from", {}).get("threads")
    torch.set_num_threads(threads or here)
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


def _resume(run: Rounds, store: Store, made_from: dict, saved: dict | None) -> tuple[list[dict], float, dict, dict]:
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
    run.load_state(saved["run"])
    if not len(saved["rounds"]) == run.rounds < run.recipe.rounds:
        raise ValueError(f"it holds {len(saved['rounds'])} rounds and was made after {run.rounds}")
    kept, spare = ({n: v.detach().cpu() for n, v in saved.get(name, {}).items()} for name in ("scores", "spare"))
    return saved["rounds"], saved["seconds"], kept, spare


def _write(recipe: Recipe, store: Store, record: Record, artefacts: dict[str, dict]) -> None:
    """A record has the last word on a full disk: the run's checkpoint makes room for it."""
    try:
        store.write(recipe, record, artefacts)
    except StoreError as error:
        if not is_full(error):
            raise
        store.drop_checkpoint(recipe)
        store.write(recipe, record, artefacts)
