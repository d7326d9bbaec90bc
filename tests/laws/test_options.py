"""Priors, rare and absent categories, nulls, hierarchies and indicators by their definitions."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_encode
from tests import naive, strategies
from tests.laws import encoding

KIND = "continuous"
SCHEMES = ["k-fold", "holdout", "leave-one-out", "ordered", "ordered-time", "time-folds"]


def assert_training_codes(data, scheme, smoothing, kind="continuous", definition=None, **choices):
    size = data.draw(st.sampled_from(encoding.SIZES))
    drawn = data.draw(strategies.drawn_rows(kind, size, nulls=True))
    make, formula = encoding.SMOOTHINGS[smoothing]
    expected = encoding.expected_codes(scheme, drawn, smoothing=formula, **(definition or {}))
    for backend in encoding.BACKENDS:
        found = encoding.training_codes(drawn, encoding.SCHEMES[scheme](), make(), backend, **choices)
        encoding.assert_same_bits(found, expected)


@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@pytest.mark.parametrize("scheme", SCHEMES)
@encoding.examples(4)
@given(data=st.data())
def test_prior_of_category_means(scheme, smoothing, data):
    kind = data.draw(st.sampled_from(strategies.KINDS))
    choice = {"prior": "category_mean"}
    assert_training_codes(data, scheme, smoothing, kind, choice, **choice)


@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@pytest.mark.parametrize("scheme", SCHEMES)
@encoding.examples(4)
@given(data=st.data())
def test_prior_given_as_a_number(scheme, smoothing, data):
    choice = {"prior": data.draw(strategies.finite_numbers())}
    assert_training_codes(data, scheme, smoothing, "continuous", choice, **choice)


@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@pytest.mark.parametrize("scheme", SCHEMES)
@encoding.examples(4)
@given(data=st.data())
def test_rare_categories_count_as_unseen(scheme, smoothing, data):
    choice = {"min_count": data.draw(st.sampled_from([1, 2, 3, 5]))}
    kind = data.draw(st.sampled_from(strategies.KINDS))
    assert_training_codes(data, scheme, smoothing, kind, choice, **choice)


@pytest.mark.parametrize("missing", ["prior", "nan", "category"])
@pytest.mark.parametrize("smoothing", ["auto", "between", "james-stein", "partial-pooling", "m-estimate"])
@pytest.mark.parametrize("scheme", SCHEMES)
@encoding.examples(4)
@given(data=st.data())
def test_null_keys(scheme, smoothing, missing, data):
    prior = data.draw(st.sampled_from(["mean", "category_mean", 0.25]))
    definition = {"missing": missing, "prior": prior}
    choice = {"handle_missing": missing, "prior": prior}
    assert_training_codes(data, scheme, smoothing, "continuous", definition, **choice)


@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@pytest.mark.parametrize("scheme", SCHEMES)
@encoding.examples(4)
@given(data=st.data())
def test_rows_outside_given_categories_get_the_prior(scheme, smoothing, data):
    admitted = data.draw(st.sampled_from([["a"], ["b", "c"], ["a", "c", "d", "e", "not there"]]))
    kind = data.draw(st.sampled_from(strategies.KINDS))
    size = data.draw(st.sampled_from(encoding.SIZES))
    drawn = data.draw(strategies.drawn_rows(kind, size))
    make, formula = encoding.SMOOTHINGS[smoothing]
    expected = encoding.expected_codes(scheme, drawn, smoothing=formula, categories=admitted)
    for backend in encoding.BACKENDS:
        choice = {"categories": [admitted]}
        found = encoding.training_codes(drawn, encoding.SCHEMES[scheme](), make(), backend, **choice)
        encoding.assert_same_bits(found, expected)


@pytest.mark.parametrize("backend", encoding.BACKENDS)
@encoding.examples(10)
@given(data=st.data())
def test_indicators_mark_rows_whose_category_nobody_visible_has(backend, data):
    drawn = data.draw(strategies.drawn_rows("continuous", nulls=True))
    folds = data.draw(strategies.fold_numbers(drawn.size))
    (problem,) = encoding.problems(drawn, smoothing=naive.empirical_bayes_total)
    found = encoding.training_codes(drawn, np.array(folds), "auto", backend, indicators=True)
    encoding.assert_same_bits(found[:, 1], problem.unseen(naive.fold_visibility(folds)))


def chained(keys):
    """Turn the keys of the levels into whole paths, each without what lies above it being forgotten."""
    return tuple(None if key is None else tuple(keys[: depth + 1]) for depth, key in enumerate(keys))


@st.composite
def trees(draw, size):
    """Draw three columns, each value of which may come under several parents."""
    one = st.lists(st.sampled_from("xyz"), min_size=size, max_size=size)
    return [draw(one), draw(one), draw(one)]


def hierarchy_frame(columns):
    top, middle, leaf = columns
    frame = encoding.framed(leaf).assign(middle=middle, top=top)
    return frame[["key", "middle", "top", "group", "time"]]


@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@pytest.mark.parametrize("scheme", ["k-fold", "holdout", "leave-one-out", "ordered", "ordered-time"])
@encoding.examples(4)
@given(data=st.data())
def test_each_level_is_the_prior_of_the_next(scheme, smoothing, data):
    kind = data.draw(st.sampled_from(strategies.KINDS))
    size = data.draw(st.sampled_from(encoding.SIZES))
    drawn = data.draw(strategies.drawn_rows(kind, size))
    columns = data.draw(trees(size))
    drawn.keys = np.array(columns[2], dtype=object)
    paths = [chained(keys) for keys in zip(*columns, strict=True)]
    least = data.draw(st.sampled_from([0, 2]))
    make, formula = encoding.SMOOTHINGS[smoothing]
    expected = encoding.expected_codes(scheme, drawn, smoothing=formula, paths=paths, min_count=least)
    for backend in encoding.BACKENDS:
        found = encoding.fit_transform(
            hierarchy_frame(columns),
            drawn.target,
            drawn.weight,
            encoding.SCHEMES[scheme](),
            make(),
            kind,
            backend,
            columns=["key"],
            hierarchy={"key": ["middle", "top"]},
            min_count=least,
        )
        # The two members of the hierarchy are used up; group and time are passed through.
        encoding.assert_same_bits(found[:, : found.shape[1] - 2], expected)


def leading(*lengths):
    return lambda key: [*(key[:length] if len(key) > length else None for length in lengths), key]


def parted(key):
    parts = key.split(".")
    return [*(".".join(parts[-count:]) if len(parts) > count else None for count in (1, 2)), key]


@pytest.mark.parametrize(
    ("levels", "pool", "path"),
    [
        (lambda: gpu_encode.Prefixes(2, 1), ["aab", "aac", "abb", "b", "baa", "ba", ""], leading(1, 2)),
        (lambda: gpu_encode.Parts(".", from_end=True), ["a.x.com", "b.x.com", "x.com", "a.org", "org"], parted),
        (
            lambda: gpu_encode.Bits(24, 16),
            [0x0A010203, 0x0A010204, 0x0A010305, 0x0B010203, 7],
            lambda key: [key >> 16, key >> 8, key],
        ),
    ],
)
@pytest.mark.parametrize("smoothing", ["m-estimate", "between", "james-stein"])
@encoding.examples(10)
@given(data=st.data())
def test_levels_cut_from_the_value(levels, pool, path, smoothing, data):
    drawn = data.draw(strategies.drawn_rows("continuous", 16))
    values = data.draw(st.lists(st.sampled_from(pool), min_size=16, max_size=16))
    folds = data.draw(strategies.fold_numbers(16))
    make, formula = encoding.SMOOTHINGS[smoothing]
    (problem,) = encoding.problems(drawn, smoothing=formula, paths=[chained(path(value)) for value in values])
    frame = pd.DataFrame({"key": values})
    for backend in encoding.BACKENDS:
        found = encoding.fit_transform(
            frame, drawn.target, drawn.weight, np.array(folds), make(), KIND, backend, hierarchy={"key": levels()}
        )
        encoding.assert_same_bits(found[:, 0], problem.codes(naive.fold_visibility(folds)))


def test_a_hierarchy_of_columns_equals_the_same_one_of_prefixes():
    keys = ["aab", "aac", "abb", "baa", "bab", "aab", "abb", "baa"]
    target = np.arange(8.0) ** 2
    text = pd.DataFrame({"key": keys})
    columns = text.assign(two=text["key"].str[:2], one=text["key"].str[:1])
    cut = gpu_encode.TargetEncoder(hierarchy={"key": gpu_encode.Prefixes(2, 1)}, target_type="continuous", cv=2)
    given_columns = gpu_encode.TargetEncoder(
        columns=["key"], hierarchy={"key": ["two", "one"]}, target_type="continuous", cv=2
    )
    encoding.assert_same_bits(cut.fit_transform(text, target), given_columns.fit_transform(columns, target))
