"""Served calls give scikit-learn's numbers, types, attributes, names, warnings and messages."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, StratifiedKFold
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, TargetEncoder

from gpu_encode.serve import accel
from gpu_encode.serve.accel.distinct_values import read

pytestmark = pytest.mark.host

N_ROWS = 60
SMALL = 1e-12


OF_ARRAYS = {
    "integers": lambda rng: rng.integers(-5, 5, N_ROWS),
    "small integers": lambda rng: rng.integers(0, 5, N_ROWS).astype(np.int8),
    "floats": lambda rng: rng.choice([1.5, -0.25, 3.0, np.nan], N_ROWS),
    "float32": lambda rng: rng.choice([1.5, 0.1, 3.0], N_ROWS).astype(np.float32),
    "booleans": lambda rng: rng.integers(0, 2, N_ROWS).astype(bool),
    "fixed text": lambda rng: rng.choice(["a", "bcd", "ef"], N_ROWS),
}
OF_OBJECTS = {
    "text": ["b", "ab", "", "ü", "z"],
    "text and None": ["b", "a", None],
    "text and NaN": ["b", "a", float("nan")],
    "text, None and NaN": ["b", "a", None, np.nan],
    "numbers as objects": [3, 1, 2.5, np.nan],
    "bytes": [b"b", b"a"],
}
FRAMES = ("objects", "str", "category", "Int64", "mixed", "polars")
KINDS = (*OF_ARRAYS, *OF_OBJECTS, *FRAMES)


def draw_column(rng, kind):
    if kind in OF_ARRAYS:
        return OF_ARRAYS[kind](rng)
    values = OF_OBJECTS[kind]
    column = np.empty(N_ROWS, dtype=object)
    column[:] = [values[number] for number in rng.integers(0, len(values), N_ROWS)]
    return column


def draw_table(rng, kind):
    if kind not in (*FRAMES, "lists"):
        return np.column_stack([draw_column(rng, kind), draw_column(rng, kind)])
    if kind == "lists":
        return [[str(text), int(number)] for text, number in zip("abcab" * 12, rng.integers(0, 4, N_ROWS), strict=True)]
    text = draw_column(rng, "text and None")
    if kind == "polars":
        return pl.DataFrame({"a": text.tolist(), "b": rng.integers(0, 3, N_ROWS)})
    if kind == "Int64":
        numbers = pd.Series(rng.integers(0, 4, N_ROWS), dtype="Int64")
        return pd.DataFrame({"a": numbers, "b": numbers.mask(numbers == 1)})
    frame = pd.DataFrame({"a": text, "b": draw_column(rng, "text")}, index=rng.permutation(N_ROWS))
    if kind == "mixed":
        return frame.assign(c=draw_column(rng, "floats"), d=rng.integers(0, 9, N_ROWS), e=frame["a"].astype("category"))
    return frame if kind == "objects" else frame.astype(kind)


def run(encoder, X, y, new_rows, **named):
    """Return everything that a user sees of an encoder: outputs, attributes, messages, warnings."""
    seen = {}
    encoder = clone(encoder)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for name, call in {
            "fit_transform": lambda: encoder.fit_transform(X, y, **named),
            "new rows": lambda: encoder.transform(new_rows),
            "fit": lambda: clone(encoder).fit(X, y).transform(new_rows),
            "names": encoder.get_feature_names_out,
            "infrequent": lambda: encoder.infrequent_categories_,
            "inverse": lambda: encoder.inverse_transform(encoder.transform(X)),
        }.items():
            try:
                seen[name] = call()
            except Exception as error:
                seen[name] = (type(error), str(error))
    public = {name: value for name, value in vars(encoder).items() if name not in encoder.get_params()}
    return {**seen, **public, "warnings": sorted({(each.category, str(each.message)) for each in said}, key=str)}


def assert_same(one, other, what):
    assert type(one) is type(other), what
    if isinstance(one, pd.DataFrame | pl.DataFrame):
        assert list(one.columns) == list(other.columns)
        assert not isinstance(one, pd.DataFrame) or one.index.equals(other.index)
        assert_same(one.to_numpy(), other.to_numpy(), what)
    elif sparse.issparse(one):
        assert one.shape == other.shape
        for name in ("data", "indices", "indptr"):
            assert_same(getattr(one, name), getattr(other, name), f"{what}.{name}")
    elif isinstance(one, np.ndarray):
        assert (one.dtype, one.shape, one.flags.c_contiguous) == (other.dtype, other.shape, other.flags.c_contiguous), (
            what
        )
        if one.dtype.kind == "f":
            # Tolerance relative to the largest number: sums are added in another order.
            np.testing.assert_allclose(one, other, rtol=0, atol=SMALL * max(1, np.nanmax(np.abs(one), initial=0)))
        else:
            assert list(map(repr, one.ravel())) == list(map(repr, other.ravel())), what
    elif isinstance(one, list):
        assert len(one) == len(other), what
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            assert_same(left, right, f"{what}[{number}]")
    elif isinstance(one, float):
        assert one == pytest.approx(other, abs=SMALL)
    else:
        assert repr(one) == repr(other), what


def compare(encoder, X, y, new_rows, served_by="cpu", **named):
    expected = run(encoder, X, y, new_rows, **named)
    accel.install(fewest_rows=0)
    given = run(encoder, X, y, new_rows, **named)
    assert {line.served_by for line in accel.report().lines} == (
        {served_by} if isinstance(served_by, str) else served_by
    )
    accel.uninstall()
    assert expected.keys() == given.keys()
    for name in expected:
        assert_same(expected[name], given[name], name)


ENCODERS = [
    OrdinalEncoder(),
    OrdinalEncoder(min_frequency=10, encoded_missing_value=-1, dtype=np.int32),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan, max_categories=2),
    OneHotEncoder(),
    OneHotEncoder(drop="first", sparse_output=False, handle_unknown="ignore", dtype=np.float32),
    OneHotEncoder(drop="if_binary", min_frequency=0.2, handle_unknown="infrequent_if_exist"),
    OneHotEncoder(max_categories=2, handle_unknown="warn"),
    OrdinalEncoder().set_output(transform="pandas"),
    OneHotEncoder(sparse_output=False).set_output(transform="polars"),
    OneHotEncoder().set_output(transform="pandas"),
]


@pytest.mark.parametrize("kind", [*KINDS, "lists"])
@pytest.mark.parametrize("encoder", ENCODERS, ids=str)
def test_encoders_without_a_target(encoder, kind):
    rng = np.random.default_rng(len(kind))
    X = draw_table(rng, kind)
    compare(encoder, X, None, draw_table(rng, kind))


def draw_target(rng, kind):
    return {
        "real": rng.normal(size=N_ROWS) * 1000 + 1e5,
        "whole": rng.integers(0, 30, N_ROWS) * 1.0 + 0.5,
        "binary": rng.integers(0, 2, N_ROWS),
        "text": rng.choice(["no", "yes"], N_ROWS),
        "classes": rng.choice(["low", "mid", "high"], N_ROWS),
        "constant": np.full(N_ROWS, 0.1),
    }[kind]


SPLITTERS = [
    KFold(4, shuffle=True, random_state=3),
    StratifiedKFold(3),
    PredefinedSplit(np.arange(N_ROWS) % 3),
    [
        (np.arange(0, 40), np.arange(40, 60)),
        (np.arange(20, 60), np.arange(0, 20)),
        (np.arange(0, 20), np.arange(20, 40)),
    ],
]


@pytest.mark.parametrize("target", ["real", "whole", "binary", "text", "classes", "constant"])
@pytest.mark.parametrize("smooth", ["auto", 0.0, 7.5])
@pytest.mark.parametrize("number", range(6))
def test_target_encoder(target, smooth, number):
    rng = np.random.default_rng([number, len(target)])
    for kind in rng.choice(KINDS, 2, replace=False):
        X, y = draw_table(rng, kind), draw_target(rng, target)
        encoder = TargetEncoder(smooth=smooth, cv=3, shuffle=bool(number % 2), random_state=5 if number % 2 else None)
        if number >= 2 and (target in ("binary", "classes", "text") or number != 3):
            encoder = TargetEncoder(smooth=smooth, cv=SPLITTERS[number - 2])
        compare(encoder, X, y, draw_table(rng, kind))


def test_values_come_in_the_order_of_their_rows():
    # Sets that were filled in other orders list the same texts in other orders, for some seeds of Python's hashes.
    X = np.array([["d", "x"], ["a", "x"], ["c", "w"], ["a", "x"], ["b", "x"]], object)
    distinct = read(np.vstack([X, X]), lambda table: list(table.T))
    assert [values.tolist() for values in distinct.values] == [["d", "a", "c", "b"], ["x", "w"]]
    assert [codes.tolist() for codes in distinct.codes] == [2 * [0, 1, 2, 1, 3], 2 * [0, 0, 1, 0, 0]]


@pytest.mark.parametrize("target", ["real", "binary", "classes"])
def test_rows_of_values_that_are_not_listed(target):
    # scikit-learn 1.9 counts them in the first category, and gives them the mean of the last fold: so does this.
    rng = np.random.default_rng(0)
    X, y = rng.choice(["a", "b", "c", "d"], (N_ROWS, 2)).astype(object), draw_target(rng, target)
    encoder = TargetEncoder(categories=[["b", "a", "never"], ["c", "d"]], cv=KFold(3))
    compare(encoder, X, y, rng.choice(["a", "z"], (5, 2)).astype(object))
    for other in (
        OneHotEncoder(categories=[["a"], ["c", "d"]], handle_unknown="ignore", min_frequency=20),
        OneHotEncoder(categories=[["a"], ["c"]]),
    ):
        compare(other, X, None, X[:7])


def test_groups_are_routed():
    rng = np.random.default_rng(0)
    X, y, groups = draw_table(rng, "text"), draw_target(rng, "real"), rng.integers(0, 6, N_ROWS)
    with config_context(enable_metadata_routing=True):
        compare(TargetEncoder(cv=GroupKFold(3).set_split_request(groups=True)), X, y, X, groups=groups)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.array([[1.0], [np.inf]] * 30), None),
        (np.arange(60), None),
        (np.zeros((0, 2)), None),
        (sparse.csr_matrix(np.eye(60)), None),
        (np.array([["a"], [1]] * 30, dtype=object), None),
        (np.array([["a"], ["b"]] * 30, dtype=object), np.arange(3)),
        (pd.DataFrame({"a": pd.date_range("2024", periods=60)}), np.arange(60.0)),
        (np.array([["a"], ["b"]] * 30, dtype=object), np.full(60, np.nan)),
    ],
    ids=["infinite", "vector", "no rows", "sparse", "mixed", "short target", "dates", "no target"],
)
def test_what_is_refused_is_refused_in_the_same_words(X, y):
    for encoder in (OrdinalEncoder(), OneHotEncoder(), TargetEncoder()):
        served_by = {"cpu", "scikit-learn"}
        expected = run(encoder, X, y, X)
        accel.install(fewest_rows=0)
        given = run(encoder, X, y, X)
        assert {line.served_by for line in accel.report().lines} <= served_by
        accel.uninstall()
        for name in ("fit", "fit_transform", "new rows"):
            assert_same(expected[name], given[name], name)


@pytest.mark.parametrize(
    "encoder",
    [
        *(TargetEncoder(smooth="much"), TargetEncoder(smooth=-1), TargetEncoder(cv="x")),
        *(
            TargetEncoder(cv=[(np.arange(5), np.arange(4))]),
            OneHotEncoder(drop="last"),
            OrdinalEncoder(unknown_value=1),
        ),
    ],
    ids=str,
)
def test_parameters_are_refused_in_the_same_words(encoder):
    X = np.array([["a"], ["b"]] * 5, dtype=object)
    compare(encoder, X, np.arange(10) % 2, X)


def test_a_random_state_is_drawn_from_once():
    X, y = np.arange(60).reshape(-1, 1) % 7, np.arange(60.0) ** 2
    expected, given = np.random.RandomState(0), np.random.RandomState(0)
    theirs = TargetEncoder(cv=KFold(3, shuffle=True, random_state=expected)).fit_transform(X, y)
    accel.install(fewest_rows=0)
    ours = TargetEncoder(cv=KFold(3, shuffle=True, random_state=given)).fit_transform(X, y)
    np.testing.assert_allclose(theirs, ours, rtol=1e-12)
    assert expected.randint(1 << 30) == given.randint(1 << 30)


def test_estimators_that_use_encoders_are_served(served):
    X = np.random.default_rng(0).normal(size=(50, 2))
    bins = KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf")
    ours = bins.fit(X).transform(X)
    assert accel.report().n_served
    accel.uninstall()
    assert_same(bins.fit(X).transform(X), ours, "bins")
