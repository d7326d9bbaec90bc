"""StatisticEncoder of the target: against definitions in plain Python, and the laws of every encoder."""

import math
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpu_encode import KFold, LeaveOneOut, Ordered, StatisticEncoder, load, ops
from tests import naive, strategies
from tests.laws import encoding
from tests.parts.in_parts import encoded_in_parts, parts_of
from tests.parts.test_orders import encoded

EVERY_SCHEME = sorted(encoding.SCHEMES)
STATISTICS = ["count", "sum", "mean", "var", "std", "sem"]


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


def quietly(function, *arguments, **named):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return function(*arguments, **named)


def rows_of(drawn):
    weights = [1] * drawn.size if drawn.weight is None else drawn.weight.tolist()
    return list(zip(drawn.target.tolist(), weights, strict=True))


def looks(scheme, keys):
    """Give each row's key and the rows it looks at: the first of a random order is as unseen, beside all others."""
    own = list(keys)
    if scheme == "ordered":
        own[encoding.random_order(scheme, len(keys))[0]] = "never seen"
    return zip(own, encoding.visibility(scheme, len(keys)), strict=True)


def training_codes(drawn, scheme, chosen, **choices):
    encoder = StatisticEncoder(chosen, cv=encoding.SCHEMES[scheme](), columns=["key"], **choices)
    codes = quietly(encoder.fit_transform, encoding.framed(drawn.keys), drawn.target, sample_weight=drawn.weight)
    return np.asarray(codes, dtype=np.float64)[:, :-2]


@pytest.mark.long
@pytest.mark.parametrize("scheme", EVERY_SCHEME)
@encoding.examples(5)
@given(data=st.data())
def test_training_codes_are_the_definitions(scheme, data):
    size = data.draw(st.sampled_from(encoding.SIZES))
    drawn, ddof = data.draw(strategies.drawn_rows("continuous", size=size)), data.draw(st.sampled_from([0, 1]))
    rows = rows_of(drawn)
    expected = [code(drawn.keys, rows, key, seen, ddof) for key, seen in looks(scheme, drawn.keys)]
    encoding.assert_same_bits(training_codes(drawn, scheme, STATISTICS, ddof=ddof), expected)


@encoding.examples(10)
@given(data=st.data())
def test_new_rows_see_all_rows(data):
    drawn = data.draw(strategies.drawn_rows("continuous", nulls=True))
    encoder = StatisticEncoder(STATISTICS).fit(drawn.frame, drawn.target, sample_weight=drawn.weight)
    rows = rows_of(drawn)
    new = np.append(drawn.keys, "never seen")
    expected = [code(drawn.keys, rows, key, range(drawn.size), 1) for key in new]
    encoding.assert_same_bits(encoder.transform(new.reshape(-1, 1)), expected)


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


@pytest.mark.host
@pytest.mark.parametrize("scheme", [name for name in EVERY_SCHEME if name != "greedy"])
@encoding.examples(4)
@given(data=st.data())
def test_a_flipped_target_leaves_the_own_code_alone(scheme, data):
    drawn = data.draw(strategies.drawn_rows("continuous", smallest=6, largest_size=14, nulls=True))
    row = data.draw(st.integers(0, drawn.size - 1))
    choices = {
        "ddof": data.draw(st.sampled_from([0, 1])),
        "min_count": data.draw(st.sampled_from([0, 2])),
        "handle_missing": data.draw(st.sampled_from(["category", "prior"])),
        "indicators": data.draw(st.booleans()),
    }
    target = drawn.target.copy()
    target[row] = data.draw(strategies.finite_numbers())
    other = strategies.Drawn(drawn.keys, target, drawn.weight, drawn.kind)
    before, after = (training_codes(rows, scheme, STATISTICS, **choices)[row] for rows in (drawn, other))
    assert before.tobytes() == after.tobytes()


@pytest.mark.long
@pytest.mark.parametrize("scheme", [5, LeaveOneOut(), Ordered(2), KFold(3, blow_up=True)])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_backend_gives_the_same_bits(scheme, weighted):
    generator = np.random.default_rng(8)
    X, y = generator.integers(0, 40, (700, 2)), generator.normal(size=700)
    weight = generator.random(700) if weighted else None
    found = []
    for name in ("numpy", "compiled"):
        with ops.use_backend(name):
            found.append(StatisticEncoder(STATISTICS, cv=scheme).fit_transform(X, y, sample_weight=weight))
    assert found[0].tobytes() == found[1].tobytes()


def frame_of(n_rows=60):
    generator = np.random.default_rng(4)
    return pd.DataFrame(
        {"city": generator.choice(["x", "y", "z", None], n_rows), "zip": generator.integers(0, 5, n_rows)}
    ), generator.normal(size=n_rows)


def test_pandas_numbers():
    X, y = frame_of()
    encoder = StatisticEncoder(STATISTICS).fit(X, y)
    found = encoder.transform(X)
    for key in X:
        groups = pd.Series(y).groupby(X[key].to_numpy(), dropna=False)
        for each in STATISTICS:
            np.testing.assert_allclose(found[f"{key}_{each}"], groups.transform(each), rtol=1e-12)


@pytest.mark.parametrize("cv", [5, LeaveOneOut(), Ordered()])
def test_pieces_and_parts_are_one_table(cv):
    X, y = frame_of()
    encoder = StatisticEncoder(STATISTICS, cv=cv)
    whole = encoder.fit_transform(X, y)
    pieces = encoder.fit_transform([X[:10], X[10:11], X[11:]], [y[:10], y[10:11], y[11:]])
    assert pd.concat(pieces).equals(whole)
    parts, other = parts_of(X, y, cuts=(7, 31)), StatisticEncoder(STATISTICS, cv=cv)
    tables = encoded(other, parts, 3, "side by side") if isinstance(cv, Ordered) else encoded_in_parts(other, parts)
    assert pd.concat(tables).equals(whole)


def test_sums_add_up():
    X, y = frame_of()
    whole = StatisticEncoder(STATISTICS).fit(X, y)
    grown = StatisticEncoder(STATISTICS).partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    joined = StatisticEncoder(STATISTICS).fit(X[20:], y[20:]).merge(StatisticEncoder(STATISTICS).fit(X[:20], y[:20]))
    for other in (grown, joined):
        assert other.transform(X).equals(whole.transform(X))


@pytest.mark.host
@pytest.mark.parametrize("chosen", [["count"], ["sum", "mean"], ["std"]])
def test_saved_and_pickled(chosen, tmp_path):
    X, y = frame_of()
    encoder = StatisticEncoder(chosen, ddof=0, indicators=True).fit(X, y)
    encoder.save(tmp_path / "encoder")
    for again in (load(tmp_path / "encoder"), pickle.loads(pickle.dumps(encoder))):
        assert again.transform(X).equals(encoder.transform(X))


def test_whole_weights_repeat_rows():
    X, y = frame_of()
    weight = np.arange(len(y)) % 3
    weighted = StatisticEncoder(STATISTICS).fit(X, y, sample_weight=weight)
    repeated = StatisticEncoder(STATISTICS).fit(X.loc[X.index.repeat(weight)], np.repeat(y, weight))
    for mine, theirs in zip(weighted.encodings_, repeated.encodings_, strict=True):
        encoding.assert_same_bits(mine, theirs)


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
    encoding.assert_same_bits(
        StatisticEncoder(chosen, handle_unknown="nan").fit(X, y).transform([["c"]]), [[math.nan] * 4]
    )
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
        encoding.assert_same_bits(beside[:, [0, 2, 3]], alone)
        encoding.assert_same_bits(beside[:, 1], alone[:, 1] + 1)
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
