"""A tiny recorded run of every method: its numbers change only in a commit that says why.

To record them again, from the root of the repository: ``python tests/test_regression.py``
"""

import json
from pathlib import Path

import pytest
from methods import CASES, label, trained

RECORDED = Path(__file__).with_name("recorded_runs.json")


def numbers(case: dict) -> list[dict]:
    """What is compared of each round: losses to five digits, images classified correctly, bytes by name."""
    return [
        {
            "loss": {client: round(loss, 5) for client, loss in values["loss"].items()},
            **{name: values[name] for name in ("validation", "test", "up", "down")},
        }
        for values in trained(case, "fp64").rounds
    ]


def test_every_case_is_recorded():
    assert list(json.loads(RECORDED.read_text())) == [label(case) for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=label)
def test_a_run_gives_the_recorded_numbers(case):
    recorded = json.loads(RECORDED.read_text())[label(case)]
    for found, expected in zip(numbers(case), recorded, strict=True):
        assert found.pop("loss") == pytest.approx(expected.pop("loss"), rel=1e-4)
        assert found == expected


if __name__ == "__main__":
    lines = [f"{json.dumps(label(case))}: {json.dumps(numbers(case))}" for case in CASES]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
