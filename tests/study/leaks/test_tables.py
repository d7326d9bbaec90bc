"""Known leaks of encoders are found in every kind of table, and none in k-fold encodings."""

import os
from pathlib import Path

import category_encoders
import numpy as np
import pandas as pd
import pytest

from gpu_encode import KFold, TargetEncoder, leak_report
from tests.laws.real_tables import names_in, read_rows
from tests.study.leaks.encoders import MapOfMeans, PriorOfAllRows

pytestmark = pytest.mark.host
# The verdict on each column, by encoder.
EXPECTED = {
    "greedy": (category_encoders.TargetEncoder, "own target"),
    "map of means": (MapOfMeans, "own target"),
    "prior of all rows": (PriorOfAllRows, "prior"),
    "k-fold": (TargetEncoder, "no leak"),
}
MADE = {
    "as many ones": lambda random, effect: (effect + random.normal(size=len(effect)) > 0).astype(int),
    "few ones": lambda random, effect: (effect + random.normal(size=len(effect)) > 1.2).astype(int),
    "counts": lambda random, effect: random.poisson(np.exp(effect)),
    "prices": lambda random, effect: np.exp(2 * effect + random.normal(size=len(effect))),
    "no effect": lambda random, effect: random.normal(size=len(effect)),
}
# A folder of Parquet files; at least five of them are named in real_tables.toml.
FOLDER = os.environ.get("REAL_TABLES")


def find_verdicts(name, X, y, **given):
    make, _ = EXPECTED[name]
    kind = "binary" if len(np.unique(y)) == 2 else "continuous"
    encoder = make(cv=KFold(5), target_type=kind) if name == "k-fold" else make()
    return {column.verdict for column in leak_report(encoder, X, y, **given).columns}


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("table", MADE)
def test_made_tables(table, name):
    random = np.random.default_rng(len(table))
    towns = random.zipf(1.5, 240) % 80
    X = pd.DataFrame({"town": towns, "kind": random.choice(list("abc"), 240)}).astype(str)
    effect = random.normal(size=80)[towns] * (table != "no effect")
    y = MADE[table](random, effect)
    assert find_verdicts(name, X, y, n_shuffles=5, n_flips=6) == {EXPECTED[name][1]}


@pytest.mark.long
@pytest.mark.skipif(FOLDER is None, reason="REAL_TABLES names no folder of real tables")
@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("kind", ["binary", "continuous"])
def test_real_tables(kind, name):
    folder = Path(FOLDER)
    tables = [read_rows(folder, table, 2000) for table in names_in(folder)]
    assert len(tables) >= 5
    for rows in tables:
        X = rows.frame[rows.keys].astype(str).fillna("missing")
        assert find_verdicts(name, X, rows.targets[kind]) == {EXPECTED[name][1]}, rows.name
