"""The errors and warnings of OneHotEncoder and their words; after an error the encoder is unchanged."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from gpu_encode import OneHotEncoder, OrdinalEncoder

pytestmark = pytest.mark.host
X = pd.DataFrame({"town": pd.Series(["Oslo", "Lima", None, "Oslo"], dtype=object), "size": [1, 2, 2, 3]})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"handle_unknown": "zero"}, "'handle_unknown' parameter of OneHotEncoder must be one of 'error', 'ignore'"),
        ({"handle_missing": "nan"}, "'handle_missing' parameter of OneHotEncoder must be one of 'category', 'zero'"),
        ({"drop": "second"}, "'drop' parameter of OneHotEncoder must be one of None, 'first', 'if_binary', a list"),
        ({"min_frequency": 0}, "'min_frequency' parameter of OneHotEncoder must be one of None, an integer of at"),
        ({"max_categories": 0}, "'max_categories' parameter of OneHotEncoder must be an integer of at least 1"),
        ({"sparse_output": "yes"}, "'sparse_output' parameter of OneHotEncoder must be one of True, False"),
        ({"dtype": "U3"}, "'dtype' parameter of OneHotEncoder must be one of a NumPy type of numbers, bool"),
        ({"dtype": "no type"}, "'dtype' parameter"),
        ({"feature_name_combiner": "join"}, "'feature_name_combiner' parameter .* must be one of 'concat', a callable"),
        ({"categories": "all"}, "'categories' parameter"),
        ({"drop": {"town": "Rome"}}, "not found in the training data.\nCategory: 'Rome', Feature: 'town'"),
        ({"drop": {"twon": "Oslo"}}, "drop: 'twon' is not a column of X. Did you mean 'town'"),
        ({"drop": {"town": "Oslo", 0: "Oslo"}}, "drop names 0 twice, once by its position"),
        ({"drop": ["Oslo"]}, r"`drop` should have length equal to the number of features \(2\), got 1"),
        ({"drop": ["Rome", 9]}, r"not found in the training data.\nCategory: 'Rome', Feature: 'town'\nCategory: 9,"),
        ({"drop": ["Oslo", "1"]}, "not found in the training data.\nCategory: '1', Feature: 'size', which"),
        ({"drop": {"size": "1"}}, "Category: '1', Feature: 'size', which holds number values$"),
        ({"drop": {"size": 7}}, "Category: 7, Feature: 'size'$"),
        ({"drop": ["Lima", 2], "min_frequency": 2}, "Unable to drop category 'Lima' from feature 'town' because it is"),
        ({"handle_missing": "error"}, "Column 'town' holds 1 missing values, the first in row 2. Fill them, or choose"),
        ({"categories": [["Oslo", "Lima"], [1, 2, 3]]}, r"unknown categories \[None\] in column 'town' during fit: 1 "),
        ({"categories": [["Oslo", None], [1, 2, 3]]}, r"\['Lima'\] in column 'town' during fit: 1 rows, the first"),
        ({"columns": ["town"]}, r"Columns that are not encoded \('size'\) pass through.*Set sparse_output=False"),
    ],
)
def test_refused_by_a_fit(parameters, message):
    """A parameter that does not exist, or does not fit the rows, is refused; what was fitted stays."""
    encoder = OneHotEncoder().fit(X[["size"]])
    before = encoder._model
    encoder.set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        encoder.fit_transform(X)
    assert encoder._model is before
    assert encoder.n_features_in_ == 1


def test_what_is_set_later_is_checked_too():
    """`transform` refuses an output type that does not exist."""
    encoder = OneHotEncoder().fit(X).set_params(dtype="U3")
    with pytest.raises(ValueError, match="'dtype' parameter"):
        encoder.transform(X)


NEW = "in column 'town' during transform"
REFUSED = [
    ({}, X.assign(town=["Oslo", "Rome", "Bari", "Rome"]), rf"\['Rome', 'Bari'\] {NEW}: 3 rows, the first in row 1."),
    ({}, X.assign(size=[1, 9, 2, 8]), r"unknown categories \[9, 8\] in column 'size' during transform: 2 rows"),
    ({}, X.assign(size=[1.5, 1, 2, np.nan]), r"unknown categories \[1.5, nan\] in column 'size'"),
    ({}, [X[:3], X[3:].assign(town="Rome")], r"\['Rome'\].*the first in row 3 \(row 0 of X\[1\]\)"),
    ({"columns": [("town", "size")]}, X.assign(size=[2, 2, 2, 3]), r"\[\('Oslo', 2\)\] in column \('town', 'size'\)"),
]


@pytest.mark.parametrize(("parameters", "new", "message"), REFUSED)
def test_values_that_are_refused_are_named(parameters, new, message):
    """The message names the values, the column, the rows, and the remedy."""
    encoder = OneHotEncoder(**parameters).fit(X)
    with pytest.raises(ValueError, match=message):
        encoder.transform(new)


def test_missing_values_that_are_refused_are_named():
    with pytest.raises(ValueError, match=rf"Found unknown categories \[None\] {NEW}"):
        OneHotEncoder().fit(X[:2]).transform(X[2:3])
    encoder = OneHotEncoder(handle_missing="error")
    with pytest.raises(ValueError, match=r"holds 1 missing .* row 0. Fill them, or choose handle_missing="):
        encoder.fit(X[:2]).transform(X[2:3])
    with pytest.raises(ValueError, match=r"'town' holds 1 missing .*row 2 \(row 0 of X\[1\]\)"):
        encoder.fit([X[:2], X[2:]])


def test_many_unknown_values_are_cut():
    with pytest.raises(ValueError, match=r"\[1, 2, 3, 4, 5, ...\] in column 0 during transform: 9 rows"):
        OneHotEncoder().fit([[0]]).transform([[number] for number in range(1, 10)])


def test_missing_values_of_new_rows():
    """Missing values are a category, zeros, or unknown."""
    seen, new = X.iloc[:2], X.iloc[2:3]
    for parameters in ({"handle_missing": "zero"}, {"handle_unknown": "ignore"}):
        assert OneHotEncoder(**parameters).fit(seen).transform(new).toarray().tolist() == [[0, 0, 0, 1]]
    # Zeros by choice are no unknown values, so that no warning comes.
    assert OneHotEncoder(handle_missing="zero", handle_unknown="warn").fit(seen).transform(new).nnz == 1


def test_weights_of_zero_leave_no_column():
    """A value that occurs only in such rows is unknown; a value among given categories stays known."""
    with pytest.raises(ValueError, match=r"Found unknown categories \['Lima'\]"):
        OneHotEncoder().fit_transform(X, sample_weight=[1, 0, 1, 1])
    given = OneHotEncoder(categories=[["Lima", "Oslo", None], [1, 2, 3]])
    assert given.fit_transform(X, sample_weight=[1, 0, 1, 1]).shape == (4, 6)


@pytest.mark.parametrize(
    ("policy", "drop", "words"),
    [
        ("warn", None, "the infrequent category."),
        ("ignore", "first", "all zeros"),
        ("infrequent_if_exist", "if_binary", "the infrequent category."),
    ],
)
def test_warned_of_unknown_values(policy, drop, words):
    """A warning comes if the policy demands it or a dropped category looks the same; it names all columns at once."""
    encoder = OneHotEncoder(handle_unknown=policy, drop=drop).fit(X)
    with pytest.warns(UserWarning, match=rf"columns \['town', 'size'\] during transform.*encoded as {words}"):
        encoder.transform(pd.DataFrame({"town": ["Rome"], "size": [9]}))


def test_containers_of_sparse_matrices():
    """A frame cannot hold a sparse matrix."""
    encoder = OneHotEncoder().set_output(transform="polars")
    with pytest.raises(ValueError, match=r"Polars output does not support sparse data. Set sparse_output=False"):
        encoder.fit_transform(X)
    assert not hasattr(encoder, "n_features_in_")
    encoder.fit(X)
    with pytest.raises(ValueError, match="Polars output does not support sparse data"):
        encoder.transform(X)


@pytest.mark.parametrize("kind", [partial(OneHotEncoder, sparse_output=False), OrdinalEncoder], ids=["ones", "codes"])
@pytest.mark.parametrize(
    "passed", [pd.to_datetime(["2026-01-01"] * 4), ["2026-01-01"] * 4, [1] * 4], ids=["dates", "text", "numbers"]
)
def test_passed_columns_are_not_inverted(kind, passed):
    """They are refused whatever they hold, in a frame and in lists of rows."""
    encoder = kind(columns=["size"])
    codes = encoder.fit_transform(pd.DataFrame({"size": X["size"], "passed": passed}))
    for given in (codes, codes.to_numpy().tolist()):
        with pytest.raises(ValueError, match=r"Expected \d columns, got \d\. Give only the encoded columns"):
            encoder.inverse_transform(given)


def test_dask_frames_are_not_sparse():
    """The partitions of lazy tables are frames."""
    dd = pytest.importorskip("dask.dataframe")
    encoder = OneHotEncoder().fit(X)
    with pytest.raises(ValueError, match=r"A Dask frame has no sparse partitions. Set sparse_output=False"):
        encoder.transform(dd.from_pandas(X, npartitions=2))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_one_name_of_two_columns():
    """An array has no names; a frame needs different ones."""
    rows = pd.DataFrame({"a": ["b_c", "x"], "a_b": ["c", "y"]})
    encoder = OneHotEncoder(sparse_output=False)
    assert encoder.fit(rows).transform(rows.to_numpy()).shape == (2, 4)
    assert encoder.get_feature_names_out().tolist() == ["a_b_c", "a_x", "a_b_c", "a_b_y"]
    with pytest.raises(ValueError, match="Two output columns would be called 'a_b_c'"):
        encoder.transform(rows)


def test_a_combiner_is_not_saved(tmp_path):
    """A function has no place in a file."""
    encoder = OneHotEncoder(feature_name_combiner=lambda name, value: f"{name}={value}").fit(X)
    assert encoder.get_feature_names_out()[0] == "town=Lima"
    with pytest.raises(TypeError, match="feature_name_combiner cannot be saved"):
        encoder.save(tmp_path / "encoder")


def test_partial_fit_refuses_as_fit_does():
    """A refused call leaves the known categories as they were."""
    encoder = OneHotEncoder(categories=[["Oslo", "Lima", None], [1, 2, 3]]).partial_fit(X)
    before = encoder._model
    with pytest.raises(ValueError, match=r"\[9\] in column 'size' during fit"):
        encoder.partial_fit(X.assign(size=9))
    assert encoder._model is before


def test_rows_that_are_not_at_hand():
    """Categories that were counted elsewhere are refused by their counts."""
    from gpu_encode.encoders.one_hot import OneHotColumns

    given = OneHotEncoder(categories=[["Oslo", None], [1, 2]], handle_unknown="ignore").fit(X)
    given._model.rules[0].statistic.handle_unknown = "error"
    with pytest.raises(ValueError, match=r"Found unknown categories in column 'town' during fit. Add them"):
        OneHotColumns.of(given._model)
    zero = OneHotEncoder(handle_missing="zero").fit(X)
    zero._model.rules[0].statistic.handle_missing = "error"
    with pytest.raises(ValueError, match=r"Column 'town' holds missing values. Fill them, or choose handle_missing"):
        OneHotColumns.of(zero._model)


def test_types_of_sparse_matrices_on_a_device():
    """CuPy's sparse matrices hold only a few types."""
    from gpu_encode.encoders.one_hot.matrices import sparse_matrix
    from gpu_encode.seam import ops

    with pytest.raises(ValueError, match="Sparse matrices on a GPU hold bool, float32 or float64, not int32"):
        sparse_matrix(np.zeros((1, 1), np.int32), 1, "int32", True, ops.host(0))
