"""The study of pairs finds the pair that made a table depends on, and finds none in a table of noise."""

import numpy as np
import pandas as pd
import pytest

from studies import pairs

pytestmark = pytest.mark.host


@pytest.mark.parametrize("planted", [True, False])
def test_pairs_gain_where_a_pair_matters(planted, monkeypatch):
    monkeypatch.delitem(pairs.MODELS, "boosted trees")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.integers(0, 6, 3000).astype(str) for name in "abc"})
    # The sum modulo 6 of two columns: neither says anything alone.
    rate = np.where((X["a"].astype(int) + X["b"].astype(int)) % 6 < 3, 0.8, 0.2) if planted else np.full(3000, 0.5)
    y = (rng.random(3000) < rate).astype(int)
    lines = {(line["keys"], line["model"]): line for line in pairs.compare(X, y, list("abc"), order=2, top=2, folds=3)}
    assert [lines[name, "linear"]["number"] for name in ("single columns", "all of up to 2")] == [3, 6]
    assert lines["single columns", "linear"]["gain"] == 0.0
    everything, best = lines["all of up to 2", "linear"], lines["the best 2", "linear"]
    if planted:
        assert best["number"] == 4
        assert min(everything["gain"], best["gain"]) > 0.2 > 10 * best["standard error"]
        assert best["area"] == pytest.approx(0.8, abs=0.04)
    else:
        assert best["number"] == 3
        assert best["gain"] == 0.0
        assert abs(everything["gain"]) < 0.05
