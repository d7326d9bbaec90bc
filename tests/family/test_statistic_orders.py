"""Order statistics of StatisticEncoder: quantiles, extremes, modes and counts of distinct values, by definition."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_encode import KFold, Ordered, StatisticEncoder
from gpu_encode.sums.distributions import Distribution
from tests import strategies
from tests.bits import assert_same_bits
from tests.family.drawn import ORDERS, describe, training_encodings
from tests.family.test_statistic_columns import encoder_of, frame_of
from tests.laws import encoding
from tests.storage.altered import assert_refused, changed, with_numbers

# Values are sorted and selected on the host, whatever holds them; test_laws.py asks the backends.
pytestmark = pytest.mark.host

NOT_ORDERED = sorted(set(encoding.SCHEMES) - {"ordered", "ordered-time"})


def code(keys, targets, weights, key, visible):
    """Return the statistics that a row with this key gets, which may look at some rows."""
    seen = [row for row in visible for _ in range(weights[row])]
    own = [targets[row] for row in seen if keys[row] == key]
    if own:
        return describe(own, ORDERS)
    found = describe([targets[row] for row in seen], ORDERS)
    return [*found[:5], 0.0, *found[6:]]


def whole_weights(drawn, data):
    """Draw weights that repeat rows, or none."""
    drawn.weight = None
    if data.draw(st.booleans()):
        whole = st.lists(st.integers(0, 3), min_size=drawn.size, max_size=drawn.size)
        drawn.weight = np.array(data.draw(whole.filter(any)))
    return [1] * drawn.size if drawn.weight is None else drawn.weight.tolist()


@pytest.mark.long
@pytest.mark.parametrize("scheme", NOT_ORDERED)
@strategies.examples(5)
@given(data=st.data())
def test_training_codes_are_the_definitions(scheme, data):
    size = data.draw(st.sampled_from(encoding.SIZES))
    drawn = data.draw(strategies.drawn_rows("continuous", size=size, weighted=False))
    weights, targets = whole_weights(drawn, data), drawn.target.tolist()
    seen = encoding.visibility(scheme, size)
    expected = [code(drawn.keys, targets, weights, key, rows) for key, rows in zip(drawn.keys, seen, strict=True)]
    assert_same_bits(training_encodings(StatisticEncoder, drawn, scheme, statistics=ORDERS), expected)


@strategies.examples(10)
@given(data=st.data())
def test_new_rows_see_all_rows(data):
    drawn = data.draw(strategies.drawn_rows("continuous", nulls=True, weighted=False))
    weights, targets = whole_weights(drawn, data), drawn.target.tolist()
    encoder = StatisticEncoder(ORDERS).fit(drawn.frame, drawn.target, sample_weight=drawn.weight)
    new = np.append(drawn.keys, "never seen")
    expected = [code(drawn.keys, targets, weights, key, range(drawn.size)) for key in new]
    assert_same_bits(encoder.transform(new.reshape(-1, 1)), expected)


def test_names_and_company():
    X = frame_of()
    encoder = StatisticEncoder([*ORDERS, "mean", "count"], values=["price"], columns=["city"]).fit(X)
    alone = StatisticEncoder(["mean", "count"], values=["price"], columns=["city"]).fit(X)
    names = [name for name in encoder.get_feature_names_out() if name.startswith("city")]
    words = ["min", "max", "median", "quantile_0.3", "quantile_0.75", "nunique", "mode", "share_above_0"]
    assert names == [f"city_price_{word}" for word in [*words, "mean", "count"]]
    for mine, theirs in zip(encoder.encodings_[-2:], alone.encodings_, strict=True):
        assert mine.tobytes() == theirs.tobytes()


def test_pandas_numbers():
    X = frame_of()
    found = encoder_of(statistics=["min", "max", "median", "nunique", ("quantile", 0.3)]).fit_transform(X)
    for value in ("price", "pieces"):
        groups = X.groupby("city", dropna=False)[value]
        for each in ("min", "max", "nunique"):
            assert found[f"city_{value}_{each}"].tolist() == groups.transform(each).tolist()
        np.testing.assert_allclose(found[f"city_{value}_median"], groups.transform("median"), rtol=1e-15)
        by_share = groups.transform(lambda values: values.quantile(0.3))
        np.testing.assert_allclose(found[f"city_{value}_quantile_0.3"], by_share, rtol=1e-12)


def test_overlapping_splits():
    X = frame_of(30)
    rows = np.arange(30)
    splits = [(rows[rows % 3 != part][:-part], rows[rows % 3 == part]) for part in (1, 2)]
    splits.append((np.append(rows[rows % 3 == 1], 1), rows[rows % 3 == 0]))
    found = encoder_of(statistics=ORDERS, cv=splits).fit_transform(X)
    for train, test in splits:
        pd.testing.assert_frame_equal(
            found.iloc[test], encoder_of(statistics=ORDERS).fit(X.iloc[train]).transform(X.iloc[test]), check_exact=True
        )


def test_blow_up():
    X = frame_of(40)
    encoder = encoder_of(statistics=ORDERS, columns=["city"], values=["pieces"], cv=KFold(2, blow_up=True))
    found = encoder.fit_transform(X)
    assert found.columns[:2].tolist() == ["city_pieces_min_fold0", "city_pieces_min_fold1"]
    assert found.equals(encoder.transform(X))


def vars_of(distribution):
    return {name: value.tolist() for name, value in vars(distribution).items()}


def test_a_large_table_of_integers():
    generator = np.random.default_rng(2)
    X = pd.DataFrame({"key": generator.integers(0, 50, 5000), "value": generator.integers(0, 300, 5000)})
    encoder = StatisticEncoder(["median", "mode", "nunique"], values=["value"]).fit(X)
    groups = X.groupby("key")["value"]
    expected = [groups.median(), groups.agg(lambda values: values.mode().min()), groups.nunique()]
    for codes, each in zip(encoder.encodings_, expected, strict=True):
        assert codes.tolist() == each.tolist()


def test_rows_in_order_are_refused():
    with pytest.raises(ValueError, match=r"statistics=\['median'\] of Stat.* Ordered would .* Take cv=LeaveOneOut\(\)"):
        StatisticEncoder(["mean", "median"], cv=Ordered()).fit([["a"], ["b"]], [0.5, 1.0])


def test_refusals():
    X, y = [["a"], ["b"]], [0.5, 1.0]
    with pytest.raises(ValueError, match="need whole weights, which repeat rows, but sample_weight has fractions"):
        StatisticEncoder(["median"]).fit(X, y, sample_weight=[0.5, 1])
    for wrong in (("quantile", 1.5), ("quantile", "a"), ("share", math.inf), ("share", 10**400), ["quantile", True]):
        with pytest.raises(ValueError, match=r"A quantile is \(\"quantile\", q\) with q from 0 to 1"):
            StatisticEncoder([wrong]).fit(X, y)
    with pytest.raises(
        ValueError, match=r"'median' of StatisticEncoder needs a continuous target, but y is binary. Pass"
    ):
        StatisticEncoder(["mean", "median"], target_type="auto").fit(X, [0, 1])


LARGE = 2**53


@pytest.mark.parametrize(
    "threshold", [LARGE, LARGE + 1, float(LARGE), LARGE - 1.0, -1.5, -0.5, 10**30, -(10**30), Fraction(1, 10)], ids=str
)
def test_shares_compare_exact_numbers(threshold):
    for values in (
        np.array([LARGE - 1, LARGE, LARGE + 1, LARGE + 2, -1, -2]),
        np.array([0.1, np.nextafter(0.1, 0), np.nextafter(0.1, 1), -0.5, 2.0**53, 2.0**53 + 2]),
    ):
        encoder = StatisticEncoder([("share", threshold)]).fit([["a"]] * 6, values)
        assert encoder.encodings_[0].tolist() == [sum(value > threshold for value in values.tolist()) / 6]


def test_thresholds_that_differ_have_names_that_differ():
    encoder = StatisticEncoder([("share", 1_000_001), ("share", 1_000_002), ("share", 0.5)]).fit([["a"]] * 2, [0.5, 2])
    names = ["x0_share_above_1000001", "x0_share_above_1000002", "x0_share_above_0.5"]
    assert encoder.get_feature_names_out().tolist() == names


DAMAGED = [
    (lambda found: found.pop("distribution"), "distribution"),
    (lambda found: found["distribution"].pop("values"), "values"),
    (lambda found: found["distribution"].update(value=found["distribution"]["values"]), "counts of values are of"),
    (lambda found: found["distribution"]["counts"]["shape"].reverse(), "do not fit one another"),
]
OUT_OF_ORDER = [
    ("values", lambda values: values[::-1]),
    ("values", lambda values: np.where(values == values[-1], np.inf, values)),
    ("category", lambda codes: codes[::-1]),
    ("category", lambda codes: codes + 1),
    ("value", lambda places: places + 1),
    ("counts", lambda counts: -counts),
]


@pytest.fixture
def content(tmp_path):
    encoder_of(statistics=ORDERS, values=["price"], columns=["zip"]).fit(frame_of()).save(tmp_path / "encoder")
    return (tmp_path / "encoder").read_bytes()


@pytest.mark.parametrize(("change", "message"), DAMAGED, ids=[str(index) for index in range(len(DAMAGED))])
def test_damaged_files_are_refused(change, message, content, tmp_path):
    altered = changed(content, lambda document: change(document["model"]["statistics"][0][0]))
    assert_refused(tmp_path / "other", altered, message)


@pytest.mark.parametrize(("name", "change"), OUT_OF_ORDER, ids=[str(index) for index in range(len(OUT_OF_ORDER))])
def test_counts_out_of_order_are_refused(name, change, content, tmp_path):
    altered = with_numbers(content, lambda model: model["statistics"][0][0]["distribution"][name]["array"], change)
    assert_refused(tmp_path / "other", altered, "counts of values are out of order, negative, or of categories")


def test_pairs_that_weigh_nothing_are_forgotten():
    X, weight = frame_of(), np.arange(60) % 3
    there = X[weight > 0]
    one, other = (
        encoder_of(statistics=["median"], columns=["zip"], values=["price"]).fit(rows, sample_weight=own)
        for rows, own in ((X, weight), (there, weight[weight > 0]))
    )
    found = [each._model.statistics[0][0].distribution for each in (one, other)]
    assert isinstance(found[0], Distribution)
    assert vars_of(found[0]) == vars_of(found[1])
