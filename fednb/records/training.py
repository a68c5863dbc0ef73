"""Trains one recipe: from its last checkpoint on, into a record."""

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path

import torch

from fednb import datasets
from fednb.errors import RunError, StoreError
from fednb.federation import Federation
from fednb.loop.loop import FederatedRun, Rounds
from fednb.loop.network import rehearse
from fednb.models import pretrained_below
from fednb.recipe import Recipe
from fednb.records import scores, signals
from fednb.records.provenance import maker, origin, source_hash
from fednb.records.staleness import sources, used
from fednb.records.store import Record, Store

CHECKPOINT_SECONDS = 60.0

Progress = Callable[[Recipe, int], None]


def train_one(
    recipe: Recipe,
    store: Store,
    device: str = "cpu",
    root: str | Path | None = None,
    progress: Progress = lambda recipe, rounds: None,
    federation: Federation | None = None,
    wait: bool = True,
) -> Record:
    """The record of a recipe: found, or trained from its last checkpoint on. Ctrl-C and SIGTERM end it after its round.

    ``progress(recipe, rounds_done)`` is called after every round. federation: of a recipe whose images are in memory.
    wait: for another process that trains it, or raise HeldError."""
    with store.lock(recipe, wait), signals.watched():
        if record := store.find(recipe, mend=True):
            store.drop_checkpoint(recipe)  # whoever made it may have been killed before this
            progress(recipe, recipe.rounds)
            return record
        rehearse(recipe)
        with pretrained_below(root):
            return finish(FederatedRun(recipe, federation or federation_of(recipe, root), device), store, progress)


def finish(run: Rounds, store: Store, progress: Progress = lambda recipe, rounds: None) -> Record:
    """The record of a run, trained from its last checkpoint on; needs the recipe's lock. Checkpoints are a minute
    apart, or a round where the run is ``saved_every_round``."""
    recipe = run.recipe
    saved = store.load_checkpoint(recipe, next(run.model.parameters()).device) or {}
    with ExitStack() as afterwards:
        afterwards.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(saved.get("made_from", {}).get("threads") or torch.get_num_threads())
        made_from = {"data": run.fingerprint, "recipe": recipe.full, **maker(run.model), "code": source_hash()}
        if sources(recipe.full):
            made_from["source"] = used(recipe.full)
        rounds, before, kept, spare = _resume(run, store, made_from, saved)
        seen = {
            split: [n * (name not in recipe.unseen) for name, n in zip(run.clients, counts, strict=True)]
            for split, counts in run.images.items()
        }
        begun = written = time.monotonic()
        progress(recipe, run.rounds)
        while run.rounds < recipe.rounds:
            try:
                rounds.append(run.advance())
            except RunError:
                if run.saved_every_round:  # its numbers may be why: the last that led to a sound round are those before
                    store.step_back(recipe)
                raise
            kept[run.rounds] = run.scores
            spare |= {} if run.spare is None else {run.rounds: run.spare}
            kept = {number: kept[number] for number in scores.rounds_to_keep(rounds, seen)}
            progress(recipe, run.rounds)
            late = run.saved_every_round or time.monotonic() - written >= CHECKPOINT_SECONDS
            if (late or signals.requested()) and run.rounds < recipe.rounds:
                state = {"run": run.state(), "rounds": rounds, "scores": kept, "spare": spare, "made_from": made_from}
                state["seconds"] = before + time.monotonic() - begun
                try:
                    store.save_checkpoint(recipe, state, keep_last=run.saved_every_round)
                except StoreError as error:  # a full disk: the run is worth more than its checkpoint
                    store.notes.append(f"{recipe} goes on without a new checkpoint: {error}")
                written = time.monotonic()
                signals.end_if_requested()
        record, artefacts = _measured(run, rounds, scores.packed(kept, spare), before + time.monotonic() - begun)
        store.write(recipe, record, artefacts)
        store.drop_checkpoint(recipe)
        return store.find(recipe)


def _measured(run: Rounds, rounds: list[dict], packed: dict, seconds: float) -> tuple[Record, dict]:
    recipe = run.recipe
    artefacts = {"scores": packed}
    for name, call in {"features": "represent", "examples": "show", "masks": "compare"}.items():
        if name in recipe.evaluation:
            found = run.features() if name == "features" else run.gathered(call)
            artefacts[name] = {entry: tensor.numpy() for entry, tensor in found.items()}
    if "server" in recipe.evaluation:
        artefacts["server"] = {name: tensor.cpu().numpy() for name, tensor in run.server.remembered().items()}
    carried = run.carried | {"outside": sources(recipe.full)}
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
        behaviours=used(recipe.full),
        activity=run.activity(),
    )
    return record, artefacts


def federation_of(recipe: Recipe, root: str | Path | None = None, site: str | None = None) -> Federation:
    """The federation of a recipe, with one site or with all, loaded once per process."""
    choice = recipe.dealt | ({"site": site} if site else {})
    return _load(json.dumps(choice), str(datasets.data_root(root).absolute()))


@lru_cache(maxsize=2)
def _load(choice: str, root: str) -> Federation:
    return datasets.load(root=root, **json.loads(choice))


def _resume(run: Rounds, store: Store, made_from: dict, saved: dict) -> tuple[list[dict], float, dict, dict]:
    """The rounds of a checkpoint, their seconds, and the scores of test and spare images; the run goes on after them.
    One from other images, defaults, code or device is not used."""
    before = saved.get("made_from", {})
    differing = [name for name, value in made_from.items() if before.get(name) != value]
    if saved and differing:
        made = f"The checkpoint of {run.recipe} was made with other {' and other '.join(differing)}"
        store.notes.append(f"{made}; the run starts again.")
    if not saved or differing:
        return [], 0.0, {}, {}
    run.load_state(saved["run"])
    kept, spare = ({n: values.cpu() for n, values in saved[name].items()} for name in ("scores", "spare"))
    return saved["rounds"], saved["seconds"], kept, spare
