"""Encoders with several numbers a category, in an order: rows before the row, in memory and in parts."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import gpu_encode as ge
from tests.backends import ON_CUDA
from tests.family.members import AMOUNT, GRADIENTS, KIND, ROWS, SOLD, N, same
from tests.parts.in_parts import parts_of
from tests.parts.test_orders import encoded

CITIES = ROWS[["city"]]
ORDERS = {
    "random": lambda: ge.Ordered(random_state=3),
    "twice": lambda: ge.Ordered(2),
    "as they stand": lambda: ge.Ordered(shuffle=False),
    "in time": lambda: ge.Ordered(time="zip"),
}
ENCODERS = {
    "impact": (lambda **given: ge.ImpactEncoder(target_type="continuous", **given), AMOUNT),
    "impact, James-Stein": (lambda **given: ge.ImpactEncoder(["impact", "logit"], ge.JamesStein(), **given), SOLD),
    "impact of classes": (ge.ImpactEncoder, KIND),
    "statistics": (lambda **given: ge.StatisticEncoder(["mean", "std", "count"], **given), AMOUNT),
    "evidence": (ge.WeightOfEvidenceEncoder, SOLD),
    "indicators": (lambda **given: ge.StatisticEncoder(indicators=["missing", "unseen"], **given), AMOUNT),
    "missing": (lambda **given: ge.StatisticEncoder(indicators=["missing"], **given), AMOUNT),
    "gradients": (lambda **given: ge.GradientEncoder(regularization=0.5, **given), GRADIENTS),
    "on a scale": (lambda **given: ge.StatisticEncoder(["count", "std"], scale="log1p", **given), AMOUNT),
}
# A GPU's simulator takes seconds for an order, and is asked for a quantity and for classes.
QUICK = ("statistics", "evidence")
IN_PARTS = [
    pytest.param(*each, id=name, marks=() if name in QUICK else pytest.mark.host) for name, each in ENCODERS.items()
]


@pytest.mark.filterwarnings("ignore:[0-9]+ rows see no rows")
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize(("make", "y"), IN_PARTS)
def test_parts(make, y, order):
    X = ROWS[["city", "zip"]]
    expected = make(cv=order(), columns=["city"]).fit_transform(X, y)
    pieces = make(cv=order(), columns=["city"]).fit_transform([X[:10], X[10:11], X[11:]], [y[:10], y[10:11], y[11:]])
    same(pd.concat(pieces), expected)
    parts = parts_of(X, y, None, None, [1, 30, 30, 47, 83])
    same(pd.concat(encoded(make(cv=order(), columns=["city"]), parts, 3, "side by side")), expected)


@pytest.mark.host
@pytest.mark.filterwarnings("ignore:[0-9]+ rows see no rows")
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize(("make", "y"), ENCODERS.values(), ids=ENCODERS)
def test_no_leak(make, y, order):
    def codes(y):
        return make(cv=order(), columns=["city"]).fit_transform(ROWS[["city", "zip"]], y)

    expected = codes(y)
    for row in (0, 41, 88):
        changed = y.copy()
        changed[row] = y[np.flatnonzero((y != y[row]).reshape(N, -1).any(axis=1))[0]]
        same(codes(changed).iloc[[row]], expected.iloc[[row]])


JOINT = {
    f"joint keys, {' and '.join(asked)}": (
        lambda asked=asked, **given: ge.TargetEncoder(
            indicators=asked, **given | {"columns": ["city", ("zip", "city")]}
        ),
        SOLD,
    )
    for asked in (["missing"], ["missing", "unseen"])
}


@pytest.mark.host
@pytest.mark.skipif(bool(ON_CUDA), reason="files and tasks know nothing of the backend")
@pytest.mark.filterwarnings("ignore:.* rows see no rows")
@pytest.mark.parametrize(("make", "y"), (ENCODERS | JOINT).values(), ids=ENCODERS | JOINT)
def test_files_and_clusters(make, y, tmp_path):
    X = ROWS[["city", "zip"]].assign(zip=ROWS["zip"].where(ROWS["zip"] != 16).astype("Int64"))
    expected = make(cv=ORDERS["random"](), columns=["city"]).fit_transform(X, y)
    targets = pd.DataFrame(y).add_prefix("y") if y.ndim > 1 else pd.Series(y, name="y")
    table = pa.Table.from_pandas(pd.concat([X, targets], axis=1))
    pa.parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=17)
    target = "y" if y.ndim == 1 else targets.columns.tolist()
    written = make(cv=ORDERS["random"](), columns=["city"])
    ge.encode_dataset(tmp_path / "rows.parquet", tmp_path / "codes.parquet", written, target=target, keep_target=False)
    names = [name for name in expected.columns if name not in X or name in written.columns]
    same(pa.parquet.read_table(tmp_path / "codes.parquet").to_pandas()[names], expected[names])
    dd = pytest.importorskip("dask.dataframe")
    lazy = make(cv=ORDERS["random"](), columns=["city"]).fit_transform(
        dd.from_pandas(X, npartitions=4), dd.from_pandas(targets, npartitions=4)
    )
    same(lazy.compute(scheduler="synchronous")[names], expected[names])


def test_the_first_row_of_a_random_order_has_what_all_others_say():
    found = ge.ImpactEncoder(cv=ge.Ordered(), target_type="continuous").fit_transform(CITIES, AMOUNT)
    others = [np.delete(AMOUNT, row).std(ddof=1) for row in range(N)]
    first = [
        row
        for row in range(N)
        if found.iloc[row, [0, 2]].eq(0).all() and np.isclose(found.iloc[row, 1], others[row], rtol=1e-12)
    ]
    assert len(first) == 1
    assert not ge.StatisticEncoder(["mean"], cv=ge.Ordered()).fit_transform(CITIES, AMOUNT).isna().any(axis=None)


@pytest.mark.parametrize("make", [ENCODERS["impact"][0], ENCODERS["statistics"][0]], ids=["impact", "statistics"])
def test_rows_that_see_nothing_are_told_of(make):
    with pytest.warns(UserWarning, match=r"^1 rows see no rows at all and get NaN: their earlier folds or times"):
        found = make(cv=ge.Ordered(shuffle=False)).fit_transform(CITIES, AMOUNT)
    assert found.iloc[0, :2].isna().all()
    weights = np.where(np.arange(N) % 2, 1.0, 0.0)
    with pytest.warns(UserWarning, match=r"^Some rows see no rows at all and get NaN"):
        make(cv=ge.KFold(2, order="interleaved")).fit_transform(CITIES, AMOUNT, sample_weight=weights)


def test_the_users_number_stands_for_what_nobody_has_seen():
    X = pd.DataFrame({"shop": ["a", "b"], "price": [1.0, None]})
    encoder = ge.StatisticEncoder(["std"], values=["price"], handle_unknown=0.0).fit(X)
    assert encoder.transform(pd.DataFrame({"shop": ["never seen"]})).iloc[0, 0] == 0.0
