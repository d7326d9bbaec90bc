"""`python -m studies.boosting`: trees one by one are XGBoost's, and leaks cost what they must."""

import warnings

import numpy as np
import pandas as pd
import pytest

from gpu_encode import KFold, LeakWarning, TargetEncoder

xgboost = pytest.importorskip("xgboost")
boosting = pytest.importorskip("studies.boosting")

pytestmark = pytest.mark.host


@pytest.fixture
def rows():
    """300 rows of a column that matters and one of 150 tickets that do not, and as many new rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"shop": rng.integers(6, size=600), "ticket": rng.permutation(600) // 2}).astype(str)
    y = (rng.random(600) < np.where(X["shop"].astype(int) < 3, 0.2, 0.8)).astype(np.int64)
    return boosting.Rows(X[:300], y[:300], X[300:], ["shop", "ticket"]), y[300:]


def test_fixed_encodings_are_one_call_of_xgboost(rows):
    rows, y_new = rows
    encoder = TargetEncoder(columns=rows.keys, cv=KFold(5), smooth=1.0)
    start = np.log(rows.y.mean() / (1 - rows.y.mean()))

    def matrix(Z, y=None):
        return xgboost.DMatrix(Z.to_numpy(), y, base_margin=np.full(len(Z), start))

    model = xgboost.train(boosting.TREES, matrix(encoder.fit_transform(rows.X, rows.y), rows.y), 7)
    wanted = model.predict(matrix(encoder.transform(rows.X_new)))
    found = boosting.boost(boosting.fixed(KFold(5), rows), rows.y, len(y_new), 7)
    # XGBoost adds up in single precision.
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("redrawn", [boosting.orders, boosting.folds])
def test_each_tree_reads_other_encodings(rows, redrawn):
    statistic = redrawn(rows[0])
    (one, new), (other, same), (again, _) = (statistic(number, None) for number in (0, 1, 0))
    assert (one != other).any()
    np.testing.assert_array_equal(one, again)
    np.testing.assert_array_equal(new, same)


def test_gradients_of_a_category_by_hand(rows):
    rows, _ = rows
    sums = np.column_stack([0.5 - rows.y, np.full(300, 0.25)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeakWarning)
        train, new = boosting.gradients(boosting.Greedy(), rows)(0, sums)
    inside = (rows.X["shop"] == "3").to_numpy()
    ratio = sums[inside, 0].sum() / (sums[inside, 1].sum() + 10)
    assert train[inside, 0] == pytest.approx(ratio, rel=1e-12)
    assert new[(rows.X_new["shop"] == "3").to_numpy(), 0] == pytest.approx(ratio, rel=1e-12)


def test_leaks_cost_more_than_folds(rows):
    losses = {name: boosting.score(name, *rows, 40)["log loss"] for name in ("greedy", "leave-one-out", "5 folds")}
    assert losses["greedy"] > 1.3 * losses["5 folds"]
    assert losses["leave-one-out"] > 1.3 * losses["5 folds"]


def test_the_command(tmp_path, capsys):
    assert boosting.main(["--quick", "--rows", "120", "--folds", "2", "--rounds", "2", "--out", str(tmp_path)]) == 0
    written = (tmp_path / "boosting.md").read_text()
    assert all(f"| {name} |" in written for name in boosting.STATISTICS)
    assert "nowhere.csv" in (boosting.main(["nowhere.csv"]) == 2 and capsys.readouterr().err)
