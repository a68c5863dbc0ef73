"""The analysis is frozen with the rules: the verdicts of made records, as the protocol's edition gives them.

A change of code that changes one of them is a change of the rules: it is dated in docs/protocol.md, and
``python tests/test_frozen.py`` writes the file again.
"""

import io
from pathlib import Path

import pandas
from made_results import results, seeds_of
from pandas.testing import assert_frame_equal

from fednb.papers import protocol
from fednb.report.claims import judged

FROZEN = Path(__file__).with_name("frozen_verdicts.csv")
COLUMNS = "verdict why marks paper ours low high together_low together_high gap_low gap_high".split()
# Right answers of FedAvg and of FedRDN by site; how much seeds shift them; the rounds; whether at the paper's setting.
CALM, RESTLESS = (0, 1, -1), (6, -5, 1)
MADE = {
    "far above": ((90, 100, 14, 24), (160, 180, 26, 48), CALM),
    "larger if tested alone": ((90, 100, 14, 24), (121, 136, 19, 33), CALM),
    "above": ((90, 100, 14, 24), (105, 117, 17, 28), CALM),
    "restless": ((90, 100, 14, 24), (105, 117, 17, 28), RESTLESS),
    "level": ((90, 100, 14, 24), (91, 100, 14, 24), CALM),
    "below": ((105, 117, 17, 28), (90, 100, 14, 24), CALM),
    "guessing": ((20, 23, 4, 6), (105, 117, 17, 28), CALM),
    "one seed": ((90, 100, 14, 24), (105, 117, 17, 28), (0,)),
}


def frozen() -> str:
    rows = []
    for name, (fedavg, fedrdn, shifts) in MADE.items():
        for board in ("small", "paper"):
            for active in (1.0, 0.0):
                sides = {"fedavg": fedavg, "fedprox": fedavg, "fedavg+fedrdn": fedrdn, "fedprox+fedrdn": fedrdn}
                made = results(*(run for label, right in sides.items() for run in seeds_of(label, right, shifts)))
                for record in made.records:
                    record.activity = {"fedrdn": active} if "fedrdn" in record.key else {}
                    if board == "paper":
                        data = record.recipe["federation"] | {"size": 256}
                        record.recipe = {"federation": data, "precision": "bf16", "seed": 0}
                found = judged(made, "fedrdn").query("ours.notna()")
                rows.append(found[["effect", *COLUMNS]].assign(made=name, board=board, active=active))
    frame = pandas.concat(rows).set_index(["made", "board", "active", "effect"]).sort_index()
    return frame.to_csv(float_format="%.9g")


def test_the_verdicts_of_made_records_are_those_of_this_edition():
    assert protocol.rules()["edition"] == 2
    then, now = (pandas.read_csv(io.StringIO(text)) for text in (FROZEN.read_text(), frozen()))
    assert_frame_equal(then, now, rtol=1e-6, atol=1e-9)
    assert {*then["verdict"]} > {"larger", "above", "below", "opposite", "inconclusive", "not testable", "one seed"}


if __name__ == "__main__":
    FROZEN.write_text(frozen())
