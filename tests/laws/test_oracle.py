"""The oracle itself against scikit-learn, category_encoders, fsum and numbers in print."""

from math import exp, fsum, isnan

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold
from sklearn.preprocessing import TargetEncoder as ScikitTargetEncoder

from tests import naive, strategies
from tests.laws import published


def problem_of(keys, target, **choices):
    targets = [naive.exact(value) for value in target]
    return naive.Problem([(key,) for key in keys], targets, [1] * len(targets), **choices)


def table(keys, target, **choices):
    problem = problem_of(keys, target, **choices)
    everyone = tuple(range(len(keys)))
    return {key: problem.code((key,), everyone) for key in dict.fromkeys(keys)}


@pytest.fixture
def random_rows():
    generator = np.random.default_rng(5)
    keys = generator.integers(0, 7, 200)
    return keys, keys * 0.3 + generator.normal(size=200)


@given(st.lists(strategies.finite_numbers(), min_size=1))
def test_a_total_is_fsum(values):
    assert naive.nearest(sum(naive.exact(value) for value in values)) == fsum(values)


@given(strategies.finite_numbers(1e300), st.integers(1, 10**6))
def test_a_constant_is_its_own_mean(value, count):
    assert naive.quotient(naive.exact(value) * count, count) == value


@given(strategies.finite_numbers(1e250), st.lists(st.floats(1e-30, 1e30), min_size=1))
def test_a_constant_of_fractional_weight_is_its_own_mean(value, weights):
    count = sum(naive.exact(weight) for weight in weights)
    assert naive.quotient(naive.exact(value) * count, count) == value


@given(st.lists(strategies.finite_numbers(), min_size=1), st.fractions(min_value="1/1000", max_value=1000))
def test_the_mean_is_the_exact_mean_within_one_unit(values, weight):
    total = sum(naive.exact(value) for value in values) * weight
    count = len(values) * weight
    expected = naive.nearest(total / count)
    assert abs(naive.quotient(total, count) - expected) <= np.spacing(abs(expected))


@pytest.mark.parametrize(("smooth", "codes"), published.SCIKIT_LEARN_CODES)
def test_scikit_learn_docstring_numbers(smooth, codes):
    smoothing = naive.empirical_bayes_total if smooth == "auto" else naive.m_estimate(smooth)
    keys, target = published.scikit_learn_rows()
    found = table(keys, target, smoothing=smoothing)
    np.testing.assert_allclose([found["cat"], found["dog"], found["snake"]], codes, rtol=1e-9)


@pytest.mark.parametrize("smooth", ["auto", 0.0, 3.5])
def test_scikit_learn_training_codes(random_rows, smooth):
    keys, target = random_rows
    smoothing = naive.empirical_bayes_total if smooth == "auto" else naive.m_estimate(smooth)
    splitter = KFold(4, shuffle=True, random_state=1)
    folds = np.zeros(len(keys), dtype=int)
    for fold, (_, test) in enumerate(splitter.split(keys)):
        folds[test] = fold
    scikit = ScikitTargetEncoder(smooth=smooth, cv=splitter).fit_transform(keys.reshape(-1, 1), target)
    problem = problem_of(keys.tolist(), target, smoothing=smoothing)
    np.testing.assert_allclose(problem.codes(naive.fold_visibility(folds)), scikit[:, 0], rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "options", "smoothing"),
    [
        ("MEstimateEncoder", {"m": 2.5}, naive.m_estimate(2.5)),
        (
            "TargetEncoder",
            {"min_samples_leaf": 12, "smoothing": 7},
            lambda own, _level: 1 / (1 + exp(-(own.count - 12) / 7)),
        ),
        ("JamesSteinEncoder", {"model": "pooled"}, naive.james_stein_pooled),
        ("JamesSteinEncoder", {"model": "independent"}, naive.james_stein_independent),
    ],
)
@pytest.mark.filterwarnings("ignore")  # what the peer does to pandas is its own affair
def test_category_encoders_formulas(random_rows, name, options, smoothing):
    category_encoders = pytest.importorskip("category_encoders")
    keys, target = random_rows
    frame = pd.DataFrame({"key": keys.astype(str)})
    peer = getattr(category_encoders, name)(cols=["key"], **options).fit(frame, pd.Series(target))
    expected = peer.transform(frame)["key"].to_numpy()
    found = table(keys.tolist(), target, smoothing=smoothing)
    np.testing.assert_allclose([found[key] for key in keys.tolist()], expected, rtol=1e-9)


def test_vtreat_pooled_estimate(random_rows):
    keys, target = random_rows
    found = table(keys.tolist(), target, smoothing=naive.partial_pooling)
    for key, code in published.vtreat_codes(keys, target).items():
        assert found[key] == pytest.approx(code, rel=1e-9)


def test_catboost_pinned_numbers_by_place():
    problem = problem_of("ABBCA", [1, 0, 1, 0, 1], smoothing=naive.m_estimate(1.0), prior=0.6)
    codes = naive.permuted_codes(problem, range(5))
    np.testing.assert_allclose(codes, [0.6, 0.6, 0.3, 0.6, 0.8])


def test_leave_one_out_pinned_numbers():
    problem = problem_of("aaabbb", [1, 0, 0, 1, 0, 1])
    codes = problem.codes(naive.fold_visibility(range(6)))
    np.testing.assert_allclose(codes, [0, 0.5, 0.5, 0.5, 1, 0.5])


def test_rows_of_equal_time_do_not_see_each_other():
    problem = problem_of("aaaa", [1, 2, 30, 400])
    codes = naive.timed_codes(problem, [5, 5, 6, 6])
    assert isnan(codes[0])
    assert isnan(codes[1])
    assert codes[2:] == [1.5, 1.5]


def test_top_nine_bits():
    assert [naive.top_nine_bits(place) for place in (0, 1, 511, 513, 1027, 2**40 + 1)] == [
        0,
        1,
        511,
        512,
        1024,
        2**40,
    ]


def test_averaging_leaves_out_what_is_not_given():
    nothing = float("nan")
    assert naive.averaged_codes([[nothing, 1.0], [2.0, 2.0], [4.0, 6.0]]) == [3.0, 3.0]
