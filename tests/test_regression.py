"""Tiny recorded runs of every method, network and data set: a behaviour changes only in a commit that says why.

To record them again, from the root of the repository: ``python tests/test_regression.py``. It writes
``recorded_runs.json`` and the hashes in ``fednb/runs/behaviours.json``. Whatever still agrees keeps its recorded text:
the last digit of another machine makes no record stale.
"""

import hashlib
import json
import math
import tempfile
from functools import partial
from pathlib import Path

import loaders
import methods
import models
import pytest
import torch

from fednb import catalogue, data
from fednb.engine.loop import FederatedRun
from fednb.federation import Federation, Site, Split
from fednb.recipe import Recipe
from fednb.runs import behaviour

RECORDED = Path(__file__).with_name("recorded_runs.json")


def of_method(row: methods.Row) -> dict:
    """For each variant and round: losses to five digits, images classified correctly, bytes by name."""
    return {
        methods.label(case): [numbers(values) for values in methods.trained(case, "fp64").rounds]
        for case in row.cases()
    }


def of_model(row: models.Row) -> dict:
    """A round of FedAvg on random images of the row's shape, and how large the logits of its network are in the end."""
    task = {"federation": "shifted_strokes"} if row.pixels else {}
    recipe = Recipe(model=row.given, rounds=1, batch_size=4, learning_rate=0.01, precision="fp64", **task)
    sites = [Site(name, *(noise(row, 10 * number + part) for part in range(3))) for number, name in enumerate("ab")]
    run = FederatedRun(
        recipe, Federation("noise", sites, "xyz", task="segmentation" if row.pixels else "classification")
    )
    trained = numbers(run.advance())
    with torch.no_grad():
        logits = run.model.eval()(sites[0].test.images.double() / 255)
    return {phrase(row.name, row.options): [trained | {"logits": round(float(logits.abs().mean()), 5)}]}


def noise(row: models.Row, seed: int) -> Split:
    draw = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, (6, *row.shape), generator=draw, dtype=torch.uint8)
    masks = torch.randint(0, 3, (6, *row.shape[1:]), generator=draw, dtype=torch.uint8)
    return Split(images, masks if row.pixels else torch.arange(6) % 3)


def of_loader(row: loaders.Row) -> dict:
    """For each variant: how many training, validation and test images each site has, and the fingerprint of all."""
    with tempfile.TemporaryDirectory() as root:
        if row.make:
            row.make(Path(root))
        return {phrase(row.name, options): loaded(data.load(row.name, root, **options)) for options in row.variants}


def loaded(federation: Federation) -> dict:
    sites = {name: [int(count) for count in counts] for name, counts in federation.counts().T.to_dict("list").items()}
    return {"sites": sites, "fingerprint": federation.fingerprint}


def numbers(values: dict) -> dict:
    """What is compared of a round."""
    losses = {client: round(loss, 5) for client, loss in values["loss"].items()}
    return {"loss": losses, **{name: values[name] for name in ("validation", "test", "up", "down")}}


def phrase(name: str, options: dict) -> str:
    return f"{name}({', '.join(f'{option}={value}' for option, value in options.items())})" if options else name


RUNS = {
    **{f"{row.room}/{row.name}": partial(of_method, row) for row in methods.ROWS},
    **{f"models/{row.name}": partial(of_model, row) for row in models.ROWS},
    **{f"data/{row.name}": partial(of_loader, row) for row in loaders.ROWS},
}


def agree(found, recorded) -> bool:
    """Equal, fractions up to what another machine's arithmetic changes."""
    if isinstance(found, dict) and isinstance(recorded, dict):
        return found.keys() == recorded.keys() and all(agree(found[name], recorded[name]) for name in found)
    if isinstance(found, list) and isinstance(recorded, list):
        return len(found) == len(recorded) and all(map(agree, found, recorded))
    if isinstance(found, float) and isinstance(recorded, float):
        return math.isclose(found, recorded, rel_tol=1e-4)
    return found == recorded


def digest(entry: dict, by_hand: int = 0) -> str:
    """12 hex digits of an entry's canonical text, and of how often its file changed unseen by it."""
    text = json.dumps(entry, sort_keys=True, separators=(",", ":")) + f" {by_hand}" * bool(by_hand)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def recorded() -> dict:
    return json.loads(RECORDED.read_text())


def test_every_file_has_a_behaviour():
    rooms = ("algorithms", "augment", "models", "data")
    assert set(RUNS) == {f"{room}/{name}" for room in rooms for name in catalogue.own(room)}
    assert list(recorded()) == list(RUNS)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_gives_the_recorded_numbers(name):
    found, expected = RUNS[name](), recorded()[name]
    assert list(found) == list(expected)
    for label in found:
        assert agree(found[label], expected[label]), f"{label} gives {found[label]}, recorded are {expected[label]}"


def test_the_package_knows_the_hash_of_each():
    """A record keeps them; see fednb/runs/behaviour.py."""
    hashes, by_hand = (
        {name: equal[-1] for name, equal in behaviour.known()["now"].items()},
        behaviour.known()["by_hand"],
    )
    assert hashes == {name: digest(entry, by_hand.get(name, 0)) for name, entry in recorded().items()}
    assert behaviour.FILE.read_text() == as_text(behaviour.known())


def test_what_still_agrees_keeps_its_text_and_its_hash():
    before = {"a": {"a": [{"loss": {"x": 0.12345}, "test": [2]}]}}
    last_digit, other = json.loads(json.dumps(before)), json.loads(json.dumps(before))
    last_digit["a"]["a"][0]["loss"]["x"] = 0.12346
    other["a"]["a"][0]["test"] = [3]
    assert kept(last_digit, before) == before and kept(other, before) == other


def test_more_tiny_runs_of_a_file_make_nothing_stale():
    before, more = {"x": [1]}, {"x": [1], "x(y=2)": [3]}
    assert equal(more, before, [digest(before)]) == [digest(before), digest(more)]
    assert equal(before, before, ["older", digest(before)]) == ["older", digest(before)]
    assert equal({"x": [2], "x(y=2)": [3]}, before, [digest(before)]) == [digest({"x": [2], "x(y=2)": [3]})]
    assert equal({}, before, [digest(before)]) == [digest({})]
    assert equal(more, before, [digest(before)], by_hand=1) == [digest(more, 1)]
    assert equal(more, before, [digest(before, 1)], by_hand=1) == [digest(before, 1), digest(more, 1)]


def equal(entry: dict, before: dict, hashes: list[str], by_hand: int = 0) -> list[str]:
    """The hashes under which a file behaves as in this entry: those of before, where it gives all that it gave."""
    same = all(label in entry and entry[label] == run for label, run in before.items())
    same = same and digest(before, by_hand) in hashes
    return list(dict.fromkeys([*(hashes if same else []), digest(entry, by_hand)]))


def kept(found: dict, before: dict) -> dict:
    """What was found, in the text of before where that agrees."""
    return {name: before[name] if agree(entry, before.get(name)) else entry for name, entry in found.items()}


def as_text(sections: dict) -> str:
    """JSON with a line for each entry of a section."""
    texts = []
    for name, section in sections.items():
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in section.items())
        texts.append(f"{json.dumps(name)}: {{\n{lines}\n}}" if section else f"{json.dumps(name)}: {{}}")
    return "{\n" + ",\n".join(texts) + "\n}\n"


if __name__ == "__main__":
    torch.set_num_threads(1)
    before, known = recorded(), behaviour.known()
    runs = kept({name: run() for name, run in RUNS.items()}, before)
    RECORDED.write_text(as_text(runs))
    now = {
        name: equal(entry, before.get(name, {}), known["now"].get(name, []), known["by_hand"].get(name, 0))
        for name, entry in runs.items()
    }
    behaviour.FILE.write_text(as_text({"now": now, "by_hand": known["by_hand"]}))
