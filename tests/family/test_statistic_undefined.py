"""Statistics that are not defined, such as the variance of one row: NaN, the prior, or a number."""

import numpy as np
import pandas as pd
import pytest

from gpu_encode import Greedy, KFold, LeaveOneOut, MergeableStatistic, Ordered, StatisticEncoder, encode_dataset, load
from tests.bits import assert_same_bits

pytestmark = pytest.mark.filterwarnings("ignore")

RANDOM = np.random.default_rng(3)
N = 90
# Many categories have one row, or two.
X = pd.DataFrame({"city": RANDOM.integers(0, 40, N).astype(str), "day": RANDOM.integers(0, 3, N)})
Y = RANDOM.normal(size=N).round(2)
WEIGHT = RANDOM.integers(1, 3, N)
STATISTICS = ["count", "var", "std", "mean", "sem", "skew", "kurt"]
IN_ORDER = [*STATISTICS, "median", ("quantile", 0.25)]


def over_itself(count, mean, variance):
    return (count - 1.0) / (count - 1.0)


SCHEMES = [KFold(4), KFold(4, random_state=3), LeaveOneOut(), Greedy()]


@pytest.mark.parametrize("cv", [*SCHEMES, Ordered(), Ordered(shuffle=False)], ids=str)
@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])
def test_a_number_replaces_nan_and_nothing_else(backend, cv, ddof, weight):
    statistics = [*STATISTICS, over_itself]
    plain, filled = (
        StatisticEncoder(statistics, cv=cv, ddof=ddof, undefined=undefined).fit_transform(X, Y, sample_weight=weight)
        for undefined in ("nan", -7.5)
    )
    lacking = plain.isna().to_numpy()
    assert lacking.any()
    assert_same_bits(filled.to_numpy(), np.where(lacking, -7.5, plain.to_numpy()))


@pytest.mark.host
@pytest.mark.parametrize("statistics", [STATISTICS, IN_ORDER], ids=["sums", "in order"])
@pytest.mark.parametrize("values", [False, True], ids=["target", "columns"])
def test_the_prior_is_that_of_unknown_categories(statistics, values):
    given = {"values": ["a", "b"]} if values else {}
    table = X.assign(a=Y, b=-Y * Y) if values else X
    y = None if values else Y
    plain, filled = (
        StatisticEncoder(statistics, columns=["city", "day"], undefined=undefined, **given).fit(table, y)
        for undefined in ("nan", "prior")
    )
    unknown = plain.transform(table.iloc[:1].assign(city="none", day=-1))
    before, after = plain.transform(table), filled.transform(table)
    assert before.isna().to_numpy().any()
    for name in before:
        expected = np.where(before[name].isna(), unknown[name].iloc[0], before[name])
        assert_same_bits(after[name].to_numpy(), expected)
    assert not after.isna().to_numpy().any()


def test_in_training_the_prior_is_that_of_the_rows_that_a_row_sees(backend):
    folds = np.arange(N) % 3
    trained = StatisticEncoder(STATISTICS, cv=folds, undefined="prior").fit_transform(X, Y)
    for fold in range(3):
        seen = folds != fold
        alone = StatisticEncoder(STATISTICS, undefined="prior").fit(X[seen], Y[seen])
        assert_same_bits(trained[~seen].to_numpy(), alone.transform(X[~seen]).to_numpy())


def test_cumls_variance_of_one_row():
    """cuML gives a category of one row the variance of all rows."""
    encoder = StatisticEncoder(["var"], undefined="prior").fit([["a"], ["a"], ["b"]], [1.0, 2.0, 4.0])
    assert encoder.transform([["a"], ["b"]]).ravel().tolist() == [0.5, 7 / 3]


@pytest.mark.host
def test_where_the_prior_is_not_defined_either():
    one = [[["a"]], [3.0]]
    for undefined, expected in (("nan", np.nan), ("prior", np.nan), (0.25, 0.25)):
        encoder = StatisticEncoder(["var"], undefined=undefined).fit(*one)
        assert_same_bits(encoder.transform([["a"], ["z"]]).ravel(), np.array([expected, expected]))
    chosen = StatisticEncoder(["var"], undefined=0.25, handle_unknown=9.0).fit(*one)
    assert chosen.transform([["a"], ["z"]]).ravel().tolist() == [0.25, 9.0]


@pytest.mark.host
def test_functions_of_merged_terms():
    ratio = MergeableStatistic("ratio", [np.abs], lambda count, sizes: (count - 1.0) / (count - 1.0) + 0.0 * sizes)
    for undefined, expected in (("nan", np.nan), ("prior", 1.0), (-1.0, -1.0)):
        encoder = StatisticEncoder([ratio], undefined=undefined).fit([["a"], ["a"], ["b"]], [1.0, 2.0, 0.0])
        assert_same_bits(encoder.transform([["a"], ["b"]]).ravel(), np.array([1.0, expected]))


@pytest.mark.host
@pytest.mark.parametrize("undefined", ["prior", 2.5])
def test_saved_exported_and_from_files(tmp_path, undefined):
    encoder = StatisticEncoder(["var", "skew"], columns=["city"], undefined=undefined)
    trained = encoder.fit_transform(X, Y)
    encoded = encoder.transform(X)
    encoder.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.get_params()["undefined"] == undefined
    assert loaded.transform(X).equals(encoded)
    row = encoder.row_encoder()
    rows = [row(each) for each in X.to_dict("records")]
    assert [list(each[:2]) for each in rows] == encoded[["city_var", "city_skew"]].to_numpy().tolist()
    X.assign(y=Y).to_parquet(tmp_path / "rows.parquet")
    encode_dataset(
        tmp_path / "rows.parquet",
        tmp_path / "out.parquet",
        StatisticEncoder(["var", "skew"], columns=["city"], undefined=undefined),
        target="y",
    )
    assert pd.read_parquet(tmp_path / "out.parquet")[["city_var", "city_skew"]].equals(
        trained[["city_var", "city_skew"]]
    )


@pytest.mark.host
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"undefined": "zero"}, "'undefined' parameter of StatisticEncoder must be one of 'nan', 'prior'"),
        ({"undefined": None}, "'undefined' parameter of StatisticEncoder must be a finite number"),
        ({"undefined": np.nan}, "'undefined' parameter of StatisticEncoder must be a finite number"),
        ({"undefined": -1.0, "scale": "log1p", "statistics": ["var"]}, "undefined=-1.0"),
    ],
)
def test_what_is_refused(parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        StatisticEncoder(**parameters).fit(X, Y)
