"""Priors, rare and missing categories, nulls, hierarchies and indicators, compared with their definitions."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_encode
from tests import naive, strategies
from tests.cases import pairs
from tests.laws import encoding
from tests.strategies import examples

KIND = "continuous"
SCHEMES = ["k-fold", "holdout", "leave-one-out", "ordered", "ordered-time", "time-folds"]


CHOICES = {
    "category mean": st.just({"prior": "category_mean"}),
    "number": st.fixed_dictionaries({"prior": strategies.finite_numbers()}),
    # Rare categories count as unseen.
    "min_count": st.fixed_dictionaries({"min_count": st.sampled_from([1, 2, 3, 5])}),
}


@pytest.mark.parametrize(("choice", "scheme", "smoothing"), pairs(CHOICES, SCHEMES, encoding.SMOOTHINGS))
@examples(4)
@given(data=st.data())
def test_priors_and_rare_categories(choice, scheme, smoothing, data):
    chosen = data.draw(CHOICES[choice])
    kind = "continuous" if isinstance(chosen.get("prior"), float) else data.draw(st.sampled_from(strategies.KINDS))
    drawn = data.draw(encoding.sized_rows(kind, nulls=True))
    encoding.check_training_encodings(drawn, scheme, smoothing, **chosen)


SOME = ["auto", "between", "anova-pooled", "james-stein", "partial-pooling", "m-estimate"]


@pytest.mark.parametrize(("scheme", "smoothing", "missing"), pairs(SCHEMES, SOME, ["prior", "nan", "category"]))
@examples(4)
@given(data=st.data())
def test_null_keys(scheme, smoothing, missing, data):
    prior = data.draw(st.sampled_from(["mean", "category_mean", 0.25]))
    drawn = data.draw(encoding.sized_rows("continuous", nulls=True))
    definition = {"missing": missing, "prior": prior}
    encoding.check_training_encodings(drawn, scheme, smoothing, definition, handle_missing=missing, prior=prior)


@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@pytest.mark.parametrize("scheme", SCHEMES)
@examples(2)
@given(data=st.data())
def test_rows_outside_given_categories_get_the_prior(scheme, smoothing, data):
    admitted = data.draw(st.sampled_from([["a"], ["b", "c"], ["a", "c", "d", "e", "not there"]]))
    kind = data.draw(st.sampled_from(strategies.KINDS))
    drawn = data.draw(encoding.sized_rows(kind))
    definition = {"categories": admitted}
    encoding.check_training_encodings(drawn, scheme, smoothing, definition, categories=[admitted])


def chain_keys(keys):
    """Turn the keys of the levels into whole paths: each keeps the levels above it."""
    return tuple(None if key is None else tuple(keys[: depth + 1]) for depth, key in enumerate(keys))


@st.composite
def trees(draw, size):
    """Draw three columns; each value may come under several parents."""
    one = st.lists(st.sampled_from("xyz"), min_size=size, max_size=size)
    return [draw(one), draw(one), draw(one)]


def hierarchy_frame(columns):
    top, middle, leaf = columns
    frame = encoding.key_frame(leaf).assign(middle=middle, top=top)
    return frame[["key", "middle", "top", "group", "time"]]


@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@pytest.mark.parametrize("scheme", ["k-fold", "holdout", "leave-one-out", "ordered", "ordered-time"])
@examples(2)
@given(data=st.data())
def test_each_level_is_the_prior_of_the_next(scheme, smoothing, data):
    kind = data.draw(st.sampled_from(strategies.KINDS))
    drawn = data.draw(encoding.sized_rows(kind))
    columns = data.draw(trees(drawn.size))
    drawn.keys = np.array(columns[2], dtype=object)
    paths = [chain_keys(keys) for keys in zip(*columns, strict=True)]
    least = data.draw(st.sampled_from([0, 2]))
    definition = {"smoothing": encoding.DEFINITIONS[smoothing], "paths": paths, "min_count": least}
    expected = encoding.expected_encodings(scheme, drawn, **definition)
    choices = {"columns": ["key"], "hierarchy": {"key": ["middle", "top"]}, "min_count": least}
    encoding.check_encodings(expected, hierarchy_frame(columns), drawn, encoding.SCHEMES[scheme], smoothing, **choices)


def leading(*lengths):
    return lambda key: [*(key[:length] if len(key) > length else None for length in lengths), key]


def split_key(key):
    parts = key.split(".")
    return [*(".".join(parts[-count:]) if len(parts) > count else None for count in (1, 2)), key]


@pytest.mark.parametrize(
    ("levels", "pool", "path"),
    [
        (lambda: gpu_encode.Prefixes(2, 1), ["aab", "aac", "abb", "b", "baa", "ba", ""], leading(1, 2)),
        (lambda: gpu_encode.Parts(".", from_end=True), ["a.x.com", "b.x.com", "x.com", "a.org", "org"], split_key),
        (
            lambda: gpu_encode.Bits(24, 16),
            [0x0A010203, 0x0A010204, 0x0A010305, 0x0B010203, 7],
            lambda key: [key >> 16, key >> 8, key],
        ),
    ],
)
@pytest.mark.parametrize("smoothing", ["m-estimate", "between", "james-stein"])
@examples(5)
@given(data=st.data())
def test_levels_cut_from_the_value(levels, pool, path, smoothing, data):
    drawn = data.draw(strategies.drawn_rows("continuous", 16))
    values = data.draw(st.lists(st.sampled_from(pool), min_size=16, max_size=16))
    folds = data.draw(strategies.fold_numbers(16))
    paths = [chain_keys(path(value)) for value in values]
    (problem,) = encoding.problems(drawn, smoothing=encoding.DEFINITIONS[smoothing], paths=paths)
    expected, frame = problem.codes(naive.fold_visibility(folds)), pd.DataFrame({"key": values})
    encoding.check_encodings(expected, frame, drawn, np.array(folds), smoothing, hierarchy={"key": levels()})
