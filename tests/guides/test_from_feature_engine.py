"""The README's lines about feature-engine, and about groups of pandas: the same numbers."""

import numpy as np
import pandas as pd
import pytest

from gpu_encode import CountEncoder, StatisticEncoder, TargetEncoder

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore:During the encoding, NaN values:UserWarning")]

RANDOM = np.random.default_rng(0)
X = pd.DataFrame({"shop": pd.Series((RANDOM.zipf(1.5, 600) % 90).astype(str), dtype=object)})
NEW = pd.DataFrame({"shop": pd.Series([*X["shop"].unique(), "never seen"], dtype=object)})
Y = {"binary": pd.Series(RANDOM.integers(0, 2, 600)), "continuous": pd.Series(RANDOM.normal(size=600) + 5)}


@pytest.mark.parametrize("unseen", ["encode", "ignore"])
@pytest.mark.parametrize("method", ["count", "frequency"])
def test_counts(method, unseen) -> None:
    encoding = pytest.importorskip("feature_engine.encoding")
    theirs = encoding.CountFrequencyEncoder(method, unseen=unseen).fit(X).transform(NEW)
    options = {} if unseen == "encode" else {"handle_unknown": "nan"}
    ours = CountEncoder(method, **options).fit(X).transform(NEW)
    np.testing.assert_array_equal(ours.to_numpy(float), theirs.to_numpy(float))


@pytest.mark.parametrize("unseen", ["encode", "ignore"])
@pytest.mark.parametrize("kind", ["binary", "continuous"])
@pytest.mark.parametrize("m", [0.0, 3.0])
def test_means_of_new_rows(m, kind, unseen) -> None:
    encoding = pytest.importorskip("feature_engine.encoding")
    theirs = encoding.MeanEncoder(smoothing=m, unseen=unseen).fit(X, Y[kind]).transform(NEW)
    options = {} if unseen == "encode" else {"handle_unknown": "nan"}
    ours = TargetEncoder(smooth=m, **options).fit(X, Y[kind]).transform(NEW)
    np.testing.assert_allclose(ours.to_numpy(float), theirs.to_numpy(float), rtol=1e-12)


@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "skew", "min", "max", "median", "nunique", "count"])
def test_groups_of_pandas(name) -> None:
    rows = X.assign(price=Y["continuous"].round(1))
    ours = StatisticEncoder([name], values=["price"], columns=["shop"]).fit_transform(rows)
    theirs = rows.groupby("shop")["price"].transform(name)
    np.testing.assert_allclose(ours[f"shop_price_{name}"], theirs, rtol=1e-10, atol=1e-10)
