"""StatisticEncoder of the target: against definitions in plain Python, and the laws of every encoder."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpu_encode import LeaveOneOut, Ordered, StatisticEncoder
from tests import naive, strategies
from tests.bits import assert_same_bits
from tests.family.drawn import STATISTICS, quietly, training_encodings, weights_of
from tests.laws import encoding

EVERY_SCHEME = sorted(encoding.SCHEMES)


def nearest_root(value):
    """Return the square root of an exact number, correctly rounded."""
    places = max(120 - (value.numerator.bit_length() - value.denominator.bit_length()), 0) // 2 + 1
    scaled, rest = divmod(value.numerator << (2 * places), value.denominator)
    root = math.isqrt(scaled)
    # One more binary digit says that the root is not whole.
    return naive.nearest(Fraction(2 * root + (rest > 0 or root * root < scaled), 2 << places))


def statistics(rows, ddof):
    """Return the statistics of (target, weight) pairs by their definitions: exact, and then rounded."""
    sums = naive.Sums()
    for target, weight in rows:
        sums.add(naive.exact(target), naive.exact(weight))
    variance = sums.sample_variance if ddof else sums.population_variance if sums.weight else 0
    enough = sums.weight > ddof
    deviation = nearest_root(variance) if enough else math.nan
    count = naive.nearest(sums.weight)
    return {
        "count": count,
        "sum": naive.nearest(sums.total),
        "mean": sums.mean,
        "var": naive.nearest(variance) if enough else math.nan,
        "std": deviation,
        "sem": deviation / math.sqrt(count) if enough else math.nan,
    }


def code(keys, rows, key, visible, ddof):
    """Return all statistics that a row with this key gets, which may look at some rows."""
    own = [rows[row] for row in visible if keys[row] == key and rows[row][1] > 0]
    found = statistics(own or [rows[row] for row in visible], ddof)
    return [*found.values()] if own else [*({**found, "count": 0.0, "sum": 0.0}).values()]


def looks(scheme, keys):
    """Give each row's key and the rows it looks at: the first of a random order is as unseen, beside all others."""
    own = list(keys)
    if scheme == "ordered":
        own[encoding.random_order(scheme, len(keys))[0]] = "never seen"
    return zip(own, encoding.visibility(scheme, len(keys)), strict=True)


@pytest.mark.long
@pytest.mark.parametrize("scheme", EVERY_SCHEME)
@strategies.examples(5)
@given(data=st.data())
def test_training_codes_are_the_definitions(scheme, data):
    size = data.draw(st.sampled_from(encoding.SIZES))
    drawn, ddof = data.draw(strategies.drawn_rows("continuous", size=size)), data.draw(st.sampled_from([0, 1]))
    rows = list(zip(drawn.target.tolist(), weights_of(drawn), strict=True))
    expected = [code(drawn.keys, rows, key, seen, ddof) for key, seen in looks(scheme, drawn.keys)]
    assert_same_bits(training_encodings(StatisticEncoder, drawn, scheme, statistics=STATISTICS, ddof=ddof), expected)


@strategies.examples(10)
@given(data=st.data())
def test_new_rows_see_all_rows(data):
    drawn = data.draw(strategies.drawn_rows("continuous", nulls=True))
    encoder = StatisticEncoder(STATISTICS).fit(drawn.frame, drawn.target, sample_weight=drawn.weight)
    rows = list(zip(drawn.target.tolist(), weights_of(drawn), strict=True))
    new = np.append(drawn.keys, "never seen")
    expected = [code(drawn.keys, rows, key, range(drawn.size), 1) for key in new]
    assert_same_bits(encoder.transform(new.reshape(-1, 1)), expected)


def test_tiny_targets_have_a_deviation():
    encoder = StatisticEncoder(["var", "std"]).fit([["a"], ["a"]], [1e-300, 3e-300])
    expected = statistics([(1e-300, 1), (3e-300, 1)], 1)
    assert [codes.tolist() for codes in encoder.encodings_] == [[0.0], [expected["std"]]]


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_labels_are_counted_as_zero_and_one(kind):
    y = np.array(list("uvuuvvuu" if kind == "binary" else "uvwuvvuw"))
    X = np.array([list("aaabbbcc")]).T
    encoder = StatisticEncoder(["sum", "var"], target_type=kind).fit(X, y)
    labels = ["v"] if kind == "binary" else ["u", "v", "w"]
    expected = [StatisticEncoder(["sum", "var"]).fit(X, (y == label).astype(float)).encodings_ for label in labels]
    for mine, theirs in zip(encoder.encodings_, [each for pair in expected for each in pair], strict=True):
        assert mine.tobytes() == theirs.tobytes()
    names = encoder.get_feature_names_out().tolist()
    parts = [""] if kind == "binary" else ["_u", "_v", "_w"]
    assert names == [f"x0{part}_{each}" for part in parts for each in ("sum", "var")]


def frame_of(n_rows=60):
    generator = np.random.default_rng(4)
    return pd.DataFrame(
        {"city": generator.choice(["x", "y", "z", None], n_rows), "zip": generator.integers(0, 5, n_rows)}
    ), generator.normal(size=n_rows)


def spread_over_mean(count, mean, variance):
    return variance / (mean * count)


def test_a_statistic_of_the_users_own(tmp_path):
    X, y = frame_of()
    encoder = StatisticEncoder(["count", spread_over_mean, "mean", "var"], cv=LeaveOneOut())
    codes = encoder.fit_transform(X, y)
    for key in X:
        count, own, mean, variance = (codes[f"{key}_{each}"] for each in ("count", "spread_over_mean", "mean", "var"))
        seen = count > 0
        assert (own == variance / (mean * count))[seen].all()
    assert pickle.loads(pickle.dumps(encoder)).transform(X).equals(encoder.transform(X))
    with pytest.raises(
        TypeError,
        match=r"statistics cannot be saved: it holds <function spr.* Pickle it instead, with functions that have names",
    ):
        encoder.save(tmp_path / "encoder")


def test_unseen_categories():
    X, y = [["a"], ["a"], ["b"], ["b"]], [1.0, 2.0, 4.0, 9.0]
    chosen = ["count", "sum", "mean", "var"]
    prior = StatisticEncoder(chosen).fit(X, y).transform([["c"]])
    assert prior.tolist() == [[0.0, 0.0, 4.0, 38 / 3]]
    assert_same_bits(StatisticEncoder(chosen, handle_unknown="nan").fit(X, y).transform([["c"]]), [[math.nan] * 4])
    assert StatisticEncoder(chosen, handle_unknown=-1).fit(X, y).transform([["c"]]).tolist() == [[-1.0] * 4]
    with pytest.raises(ValueError, match="Found unknown categories"):
        StatisticEncoder(handle_unknown="error").fit(X, y).transform([["c"]])


def nameless():
    return lambda count, mean, variance: mean


WRONG = [
    ({"statistics": "mean"}, "statistics must be a list of at least one of 'count', 'sum'.* Got 'mean'"),
    ({"statistics": []}, "statistics must be a list"),
    ({"statistics": ["kurtosis"]}, "statistics names 'kurtosis', which is none of 'count'"),
    ({"statistics": ["quantile"]}, r'names .quantile., which is none of .*, \("quantile", q\), \("share", t\), and no'),
    ({"statistics": ["mean", "mean"]}, "statistics lists 'mean' twice"),
    ({"statistics": [nameless()]}, "has no name for its column"),
    ({"ddof": 2}, "The 'ddof' parameter of StatisticEncoder must be one of 0, 1"),
    ({"prior": 0.5}, "unexpected keyword"),
]


@pytest.mark.parametrize(("parameters", "message"), WRONG, ids=[str(index) for index in range(len(WRONG))])
def test_refusals(parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        StatisticEncoder(**parameters).fit([["a"], ["b"]], [0.5, 1.0])


def test_a_function_must_give_a_number_for_every_category():
    def total(count, mean, variance):
        return count.sum()

    with pytest.raises(ValueError, match=r"the statistic 'total' must give an array of shape .* but gave"):
        StatisticEncoder([total]).fit_transform([["a"], ["b"]] * 5, np.arange(10.0))


def test_a_function_cannot_write_over_its_neighbours():
    def emptied(count, mean, variance):
        found = mean + 1
        for each in (count, mean, variance):
            each[...] = 0.0
        return found

    X, y = np.array([list("aabcbc")]).T, np.arange(1.0, 7.0)
    chosen = ["count", emptied, "mean", "var"]
    for cv in (3, LeaveOneOut(), Ordered()):
        alone = quietly(StatisticEncoder(["count", "mean", "var"], cv=cv).fit_transform, X, y)
        beside = quietly(StatisticEncoder(chosen, cv=cv).fit_transform, X, y)
        assert_same_bits(beside[:, [0, 2, 3]], alone)
        assert_same_bits(beside[:, 1], alone[:, 1] + 1)
    assert [codes.tolist() for codes in StatisticEncoder([emptied, "mean"]).fit(X, y).encodings_] == [
        [2.5, 5.0, 6.0],
        [1.5, 4.0, 5.0],
    ]


def test_text_is_no_quantity():
    with pytest.raises(ValueError, match="A continuous target needs numbers in y"):
        StatisticEncoder().fit([["a"], ["b"]], ["u", "v"])


@pytest.mark.host
@parametrize_with_checks([StatisticEncoder()])
def test_estimator_checks(estimator, check) -> None:
    """The default encoder passes scikit-learn's checks."""
    check(estimator)
