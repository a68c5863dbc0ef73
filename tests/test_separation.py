"""How well classes are separated in recorded features (Figure 7 of DisTrans)."""

import pandas
import pytest

import separation
from fednb.records.record import read


def test_where_features_are_kept_they_give_the_shares_of_the_table():
    known = pandas.read_csv(separation.SHARES, comment="#", index_col="key")["predicted"]
    kept = sorted(separation.SHARES.parent.glob("cifar10/*.features.npz"))
    records = [read(path.with_name(path.name.replace(".features.npz", ".json"))) for path in kept]
    assert len(known) == 3 * len(records) > 0
    for record in records[:2]:
        assert separation.predicted(record) == pytest.approx(known[record.key], abs=0.1)
