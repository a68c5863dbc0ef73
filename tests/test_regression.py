"""Tiny recorded runs of every method, network and data set: a behaviour changes only in a commit that says why.

To record them again, from the root of the repository: ``python tests/test_regression.py``. It writes
``recorded_runs.json`` and the hashes in ``fednb/records/behaviours.json``. Whatever still agrees keeps its recorded
text: the last digit of another machine makes no record stale. The section ``agreed_on`` says on which arithmetics every
entry was found to agree; the script adds its own.
"""

import hashlib
import json
import math
import platform
import re
import tempfile
from functools import partial
from pathlib import Path

import loaders
import methods
import models
import pytest
import torch

from fednb import datasets, registry
from fednb.federation import Federation, Site, Split
from fednb.loop import loop
from fednb.loop.loop import FederatedRun
from fednb.recipe import Recipe
from fednb.records import staleness

RECORDED = Path(__file__).with_name("recorded_runs.json")
TOLERANCE = 3e-4


# Batches of twelve and a small rate: of weights that are off by 1e-7 losses are off by 3e-6 at most and logits by 7e-5.
# In batches of four units can be dead for all images; there, or at a larger rate, it can be all of the loss.
CALM = {"batch_size": 12, "learning_rate": 0.003, "precision": "fp64"}
SIZES = (("clinic", 37), ("harbour", 24), ("tower", 12))  # 37 = 12 + 12 + 13: a last image alone is joined


def of_method(row: methods.Row) -> dict:
    """For each variant and round: losses to five digits, images classified correctly, bytes by name; in the end how
    large the logits of each client's test images are."""
    entries = {}
    for case in row.cases():
        trained = methods.train(case | CALM, methods.federation(SIZES))
        logits = {name: size_of_logits(trained.run, name) for name in trained.run.clients}
        entries[methods.label(case)] = [*map(numbers, trained.rounds), {"logits": logits}]
    return entries


def size_of_logits(run: FederatedRun, name: str) -> float:
    client = run.clients[name]
    with client.at_test(run.server.send(name), run.rounds):
        client.model.eval()
        (batch,) = client.test_batches(client.site.test)
        with torch.no_grad():
            client.forward(batch)
        return round(float(batch.logits.abs().mean()), 5)


def of_models(name: str) -> dict:
    return {said: entry for row in models.ROWS if row.name == name for said, entry in of_model(row).items()}


def of_model(row: models.Row) -> dict:
    """A round of FedAvg on random images of the row's shape, and how large the logits of its network are in the end.

    Its step is tiny, as ResNet-50's first gradients are a hundred thousand times as far off as its weights; what it
    predicts is left out, as its logits are nearly equal.
    """
    task = {"federation": "shifted_strokes"} if row.pixels else {}
    recipe = Recipe(**CALM | {"model": row.given, "rounds": 1, "learning_rate": 1e-6} | task)
    sites = [Site(name, *(noise(row, 10 * number + part) for part in range(3))) for number, name in enumerate("ab")]
    run = FederatedRun(
        recipe, Federation("noise", sites, "xyz", task="segmentation" if row.pixels else "classification")
    )
    trained = numbers(run.advance())
    with torch.no_grad():
        logits = run.model.eval()(sites[0].test.images.double() / 255)
    told = {name: trained[name] for name in ("loss", "up", "down")}
    return {phrase(row.name, row.options): [told | {"logits": round(float(logits.abs().mean()), 5)}]}


def noise(row: models.Row, seed: int) -> Split:
    draw = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, (12, *row.shape), generator=draw, dtype=torch.uint8)
    masks = torch.randint(0, 3, (12, *row.shape[1:]), generator=draw, dtype=torch.uint8)
    return Split(images, masks if row.pixels else torch.arange(12) % 3)


def of_loader(row: loaders.Row) -> dict:
    """For each variant: how many training, validation and test images each site has, and the fingerprint of all."""
    with tempfile.TemporaryDirectory() as root:
        if row.make:
            row.make(Path(root))
        return {phrase(row.name, options): loaded(datasets.load(row.name, root, **options)) for options in row.variants}


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
    **{f"models/{name}": partial(of_models, name) for name in dict.fromkeys(row.name for row in models.ROWS)},
    **{f"datasets/{row.name}": partial(of_loader, row) for row in loaders.ROWS},
}


def agree(found, recorded) -> bool:
    """Equal, fractions up to what another machine's arithmetic changes."""
    if isinstance(found, dict) and isinstance(recorded, dict):
        return found.keys() == recorded.keys() and all(agree(found[name], recorded[name]) for name in found)
    if isinstance(found, list) and isinstance(recorded, list):
        return len(found) == len(recorded) and all(map(agree, found, recorded))
    if isinstance(found, float) and isinstance(recorded, float):
        return math.isclose(found, recorded, rel_tol=TOLERANCE)
    return found == recorded


def digest(entry: dict, by_hand: int = 0) -> str:
    """12 hex digits of an entry's canonical text, and of how often its file changed unseen by it."""
    text = json.dumps(entry, sort_keys=True, separators=(",", ":")) + f" {by_hand}" * bool(by_hand)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def recorded() -> dict:
    return {name: entry for name, entry in json.loads(RECORDED.read_text()).items() if name != "agreed_on"}


def agreed_on() -> dict[str, str]:
    """Arithmetics, and with which torch."""
    return json.loads(RECORDED.read_text())["agreed_on"]


def arithmetic() -> str:
    """What decides last digits on this machine, beside torch: "AMD EPYC, AVX512"."""
    information = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", information.read_text()) if information.exists() else None
    return f"{found[1].strip() if found else platform.machine()}, {torch.backends.cpu.get_cpu_capability()}"


def test_every_file_has_a_behaviour():
    rooms = ("algorithms", "augmentations", "models", "datasets")
    assert set(RUNS) == {f"{room}/{name}" for room in rooms for name in registry.builtin(room)}
    assert list(recorded()) == list(RUNS)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_gives_the_recorded_numbers(name):
    found, expected = RUNS[name](), recorded()[name]
    assert list(found) == list(expected)
    for label in found:
        assert agree(found[label], expected[label]), (
            f"{label} gives {found[label]} on {arithmetic()}; recorded are {expected[label]}, "
            f"which were found on {', '.join(agreed_on())}"
        )


@pytest.mark.parametrize("name", [name for name in RUNS if methods.FULL and not name.startswith("datasets/")])
def test_another_processors_last_digits_change_no_recorded_number(name, monkeypatch):
    """Weights are drawn in float32: another processor has other last digits of them, 6e-8. All is off by 1e-7 here."""
    monkeypatch.setattr(loop, "build", methods.perturbed(loop.build, 1, {torch.float64: 1e-7}))
    assert agree(RUNS[name](), recorded()[name])


def test_the_package_knows_the_hash_of_each():
    """A record keeps them; see fednb/records/staleness.py."""
    hashes, by_hand = (
        {name: equal[-1] for name, equal in staleness.known()["now"].items()},
        staleness.known()["by_hand"],
    )
    assert hashes == {name: digest(entry, by_hand.get(name, 0)) for name, entry in recorded().items()}
    assert staleness.FILE.read_text() == as_text(staleness.known())


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
    before, known = recorded(), staleness.known()
    runs = kept({name: run() for name, run in RUNS.items()}, before)
    agreed = agreed_on() if runs == before else {}
    agreed[arithmetic()] = "torch " + torch.__version__.partition("+")[0]
    RECORDED.write_text(as_text({"agreed_on": agreed} | runs))
    now = {
        name: equal(entry, before.get(name, {}), known["now"].get(name, []), known["by_hand"].get(name, 0))
        for name, entry in runs.items()
    }
    staleness.FILE.write_text(as_text({"now": now, "by_hand": known["by_hand"]}))
