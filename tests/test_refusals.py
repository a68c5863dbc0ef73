"""What no run can be made of is refused by name before an image is loaded."""

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


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        ({"name": "pfedme", "steps": 0}, "pfedme has steps 0; expected at least 1"),
        ({"name": "moon", "tau": 0}, "moon has tau 0.0; expected a value above 0"),
        ({"name": "fedaws", "margin": 3}, "fedaws has margin 3.0; expected a value in [0, 2]"),
        ({"name": "pfedhn", "momentum": 1}, "pfedhn has momentum 1.0; expected a value in [0, 1)"),
        ({"name": "fedrobust", "matrix_penalty": 0}, "fedrobust has matrix_penalty 0.0; expected a value above 0"),
        (
            {"name": "fedrobust", "offset_rate": 1},
            "fedrobust has offset_rate 1.0 and offset_penalty 1.0; expected a pro",
        ),
        ({"name": "harmofl", "variant": "papr"}, 'harmofl has no variant "papr"; did you mean "paper"'),
        ({"name": "partialfed", "layers": ["haed"]}, 'partialfed was asked not to load "haed"; did you mean "head"'),
        ({"name": "pfedavg", "epochs": -1}, "pfedavg has epochs -1; expected at least 0"),
        ({"name": "fedbabu", "tune": 1}, 'fedbabu has no option "tune"; did you mean "tune_epochs"'),
    ],
    ids=str,
)
def test_options_of_an_algorithm(refusal, algorithm, message):
    assert message in refusal(algorithm=algorithm)


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
    ("given", "words"),
    [
        ({"rate": -0.1}, "has rate -0.1; expected at least 0."),
        ({"rate": float("nan")}, "has rate nan; expected at least 0."),
        ({"tau": 0}, "has tau 0; expected a value above 0."),
        ({"tau": float("nan")}, "has tau nan; expected a value above 0."),
        ({"beta": 1}, "has beta 1; expected a value in [0, 1)."),
        ({"beta": -1}, "has beta -1; expected a value in [0, 1)."),
        ({"beta": float("nan")}, "has beta nan; expected a value in [0, 1)."),
        ({"gamma": 0}, "has gamma 0; expected a value in (0, 1]."),
        ({"gamma": 1.1}, "has gamma 1.1; expected a value in (0, 1]."),
        ({"reading": "print"}, 'has no reading "print"; did you mean "printed"? Known: printed, released.'),
        ({"layers": ["all"]}, "has layers ['all']; expected names of layers."),
    ],
    ids=str,
)
def test_an_option_is_held_to_its_range_in_a_subclass_too(made, given, words):
    with pytest.raises(RecipeError) as raised:
        made(**given)
    assert str(raised.value) == f"test_refusals {words}"


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
        ({"algorithm": "scaffold", "optimiser": "adam"}, 'scaffold needs optimiser "sgd", not "adam"'),
        ({"algorithm": "scaffold", "learning_rate": 0}, "scaffold has learning_rate 0; expected more"),
        (
            {"algorithm": {"name": "pfedme", "penalty": 30}, "learning_rate": 0.09},
            "pfedme has penalty 30.0, and learning_rate x (penalty + weight_decay) is 2.7; with momentum 0.0",
        ),
        (
            {"algorithm": "fednova", "momentum": 0.9, "optimiser_state": "kept"},
            'fednova with momentum 0.9 needs optimiser_state "renewed"',
        ),
        ({"algorithm": "single", "unseen": ["low"]}, "single keeps entries of the network at its clients"),
        (
            {"algorithm": {"name": "fedproto", "share_model": False}, "unseen": ["low"]},
            "fedproto keeps entries of the network at its clients",
        ),
        ({"algorithm": "pfedhn_pc", "unseen": ["low"]}, "pfedhn_pc with a personal head keeps entries"),
        ({"augmentations": ["mixup", "fedmix"]}, "mixup and fedmix cannot be combined: each of them replaces"),
        ({"augmentations": ["fedmix", "normalise"]}, "fedmix cannot be combined with normalise"),
        ({"augmentations": ["normalise", "faug"]}, "faug comes after normalise"),
        ({"augmentations": ["normalise", "fedrdn"]}, "fedrdn comes after normalise, by which images become normalised"),
        ({"augmentations": ["fedrdn", "fedrdn_v"]}, "fedrdn_v comes after fedrdn, by which images become normalised"),
        ({"augmentations": ["fedrdn", "normalise"]}, "normalise comes after fedrdn, by which images become normalised"),
        (
            {"augmentations": ["fedrdn"], "algorithm": "harmofl"},
            "fedrdn comes after harmofl, by which images become of one amplitude",
        ),
        ({"augmentations": ["normalise", "image_noise"]}, "image_noise comes after normalise"),
        ({"augmentations": ["distrans", "normalise"]}, "distrans stands before normalise"),
        (
            {"augmentations": ["additional_embeddings"], "optimiser": "adam"},
            'additional_embeddings tunes heads by SGD, and the recipe has optimiser "adam"',
        ),
        ({"model": "unet"}, "unet predicts a class for every pixel"),
        ({"augmentations": [{"name": "fedfa", "stages": [9]}]}, "after stage 9 of DigitsCNN, which has stages 1 to 3"),
    ],
    ids=str,
)
def test_what_does_not_go_together(refusal, settings, message):
    assert message in refusal(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"algorithm": "fedbabu"}, "digits_cnn has no module named head"),
        ({"augmentations": ["mixstyle"]}, "which has none"),
    ],
    ids=str,
)
def test_a_network_without_what_a_method_needs(refusal, monkeypatch, settings, message):
    bare = torch.nn.Sequential(torch.nn.Flatten())
    if "augmentations" in settings:
        bare.add_module("head", torch.nn.Linear(3 * 32 * 32, 2))
    monkeypatch.setattr("fednb.models.build", lambda *given: bare)
    assert message in refusal(**settings)


def test_a_network_for_other_images_alone_is_left_to_the_run(refusal, monkeypatch):
    def build(given, image_shape, *others):
        raise ValueError("this network is for 28 x 28")

    monkeypatch.setattr("fednb.models.build", build)
    with pytest.raises(AssertionError, match="data were loaded first"):
        refusal(algorithm="fedbabu")
