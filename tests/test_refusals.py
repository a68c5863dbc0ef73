"""What no run can be made of is refused by name before an image is loaded."""

import math
import re
from dataclasses import dataclass

import pytest
import torch
from methods import ROWS, train

from fednb.errors import RecipeError
from fednb.methods import Method, option
from fednb.recipe import Recipe
from fednb.records.store import Store
from fednb.records.training import train_one
from fednb.registry import find, options


@pytest.fixture
def refusal(tmp_path, monkeypatch):
    """``refusal(**settings)``: what the run of a recipe is refused with; data that are loaded fail the test."""

    def load(**_):
        raise AssertionError("data were loaded first")

    def told(**settings) -> str:
        with pytest.raises(RecipeError) as raised:
            train_one(Recipe(**settings), Store(tmp_path))
        return str(raised.value)

    monkeypatch.setattr("fednb.datasets.load", load)
    return told


@pytest.mark.parametrize("row", [row for row in ROWS if options(find(row.room, row.name))], ids=lambda row: row.name)
def test_what_is_refused_bears_the_name_that_was_asked_for(row):
    """Also where the method is another's subclass: one of these, and one from a file of its own."""
    made, messages = find(row.room, row.name), []
    other = type("Other", (made,), {"__module__": "theirs.another_name"})
    for each in options(made):
        for value in (-1, -1.0, 9e9, "no such", (-1,)):
            for method, name in ((made, row.name), (other, "another_name")):
                try:
                    method(**{each: value})
                except RecipeError as error:
                    messages.append((name, str(error)))
                except TypeError:  # a recipe refuses another type by itself
                    pass
    assert [told for name, told in messages if not told.startswith(f"{name} ")] == []


@dataclass(frozen=True)
class Theirs(Method):
    rate: float = option(0.1, at_least=0)
    tau: float = option(0.5, above=0)
    beta: float = option(0.9, within="[0, 1)")
    gamma: float = option(0.5, within="(0, 1]")
    reading: str = option("printed", one_of=("printed", "released"))
    layers: tuple[str, ...] = option((), allowed=lambda given: "all" not in given, expected="names of layers")


@dataclass(frozen=True)
class AlsoTheirs(Theirs):
    rate: float = 0.2


@pytest.mark.parametrize("made", [Theirs, AlsoTheirs])
@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("rate", (-0.1, math.nan), "expected at least 0."),
        ("tau", (0, math.nan), "expected a value above 0."),
        ("beta", (1, -1, math.nan), "expected a value in [0, 1)."),
        ("gamma", (0, 1.1), "expected a value in (0, 1]."),
        ("reading", ("print",), 'did you mean "printed"? Known: printed, released.'),
        ("layers", (["all"],), "expected names of layers."),
    ],
    ids=str,
)
def test_an_option_is_held_to_its_range_in_a_subclass_too(made, name, values, words):
    for value in values:
        with pytest.raises(RecipeError, match=f"^test_refusals has .*{name} .*{re.escape(words)}$"):
            made(**{name: value})


def test_the_ends_of_a_range_are_allowed_and_its_default_is_seen():
    Theirs(rate=0, tau=1e-9, beta=0, gamma=1, reading="released", layers=("head",))
    assert options(AlsoTheirs) == options(Theirs) | {"rate": 0.2} and AlsoTheirs.tau == 0.5
    assert list(options(Theirs).values()) == [0.1, 0.5, 0.9, 0.5, "printed", ()]


@pytest.mark.parametrize("name", ["pfedhn", "pfedhn_pc"])
def test_a_hypernetwork_that_is_too_large_bears_the_name_that_was_asked_for(name):
    with pytest.raises(RecipeError, match=f"^{name} has hidden 1000000 "):
        train({"algorithm": {"name": name, "hidden": 10**6}})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"algorithm": {"name": "partialfed", "layers": ["haed"]}}, 'not to load "haed"; did you mean "head"'),
        ({"algorithm": "all", "unseen": ["tower"]}, "all cannot be combined with unseen sites (tower)"),
        ({"algorithm": "all", "participation": 0.5}, "all cannot be combined with participation 0.5"),
        ({"algorithm": "all", "buffers": "local"}, 'all cannot be combined with buffers "local"'),
        ({"algorithm": "all", "evaluation": ["cross_site"]}, "cross_site, which compares clients"),
        ({"algorithm": "all", "augmentations": ["mixup", "fedrdn"]}, "all cannot be combined with fedrdn"),
        ({"algorithm": "scaffold", "optimiser": "adam"}, 'scaffold was given optimiser "adam"'),
        ({"algorithm": "fednova", "momentum": 0.9, "optimiser_state": "kept"}, "fednova was given momentum 0.9 kept"),
        ({"algorithm": "single", "unseen": ["low"]}, "single keeps entries of the network at its clients"),
        ({"algorithm": "pfedhn_pc", "unseen": ["low"]}, "pfedhn_pc with a personal head keeps entries"),
        ({"augmentations": ["mixup", "fedmix"]}, "mixup and fedmix cannot be combined"),
        ({"augmentations": ["fedmix", "normalise"]}, "fedmix cannot be combined with normalise"),
        ({"augmentations": ["normalise", "faug"]}, "faug comes after normalise"),
        ({"augmentations": ["normalise", "fedrdn"]}, "fedrdn comes after normalise"),
        ({"augmentations": ["fedrdn", "fedrdn_v"]}, "fedrdn_v comes after fedrdn"),
        ({"augmentations": ["fedrdn", "normalise"]}, "normalise comes after fedrdn"),
        ({"augmentations": ["fedrdn"], "algorithm": "harmofl"}, "fedrdn comes after harmofl"),
        ({"augmentations": ["normalise", "image_noise"]}, "image_noise comes after normalise"),
        ({"augmentations": ["distrans", "normalise"]}, "distrans stands before normalise"),
        ({"model": "unet"}, "unet has no last layer named head of the type Linear"),
        ({"augmentations": [{"name": "fedfa", "stages": [9]}]}, "after stage 9 of DigitsCNN"),
    ],
    ids=str,
)
def test_what_does_not_go_together(refusal, settings, message):
    assert message in refusal(**settings)


def test_a_network_without_what_a_method_needs(refusal, monkeypatch):
    bare = torch.nn.Sequential(torch.nn.Flatten())
    monkeypatch.setattr("fednb.models.build", lambda *given: bare)
    assert "digits_cnn has no last layer named head of the type" in refusal(algorithm="fedbabu")
    bare.add_module("head", torch.nn.Linear(3 * 32 * 32, 2))
    assert "which has none" in refusal(augmentations=["mixstyle"])


def test_a_network_for_other_images_alone_is_left_to_the_run(refusal, monkeypatch):
    def build(given, image_shape, *others):
        raise ValueError("this network is for 28 x 28")

    monkeypatch.setattr("fednb.models.build", build)
    with pytest.raises(AssertionError, match="data were loaded first"):
        refusal(algorithm="fedbabu")
