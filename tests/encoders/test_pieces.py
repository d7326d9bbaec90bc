"""Tables in pieces: every bit that an encoder returns or stores is that of one table."""

import collections
import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import KFold as SplitKFold
from sklearn.model_selection import StratifiedKFold

from gpu_encode import GroupKFold, KFold, MEstimate, Ordered, Prefixes, TargetEncoder
from gpu_encode.tables.frames import NumberedLabels
from gpu_encode.tables.frames.pieces import join_vectors
from tests.cases import STRATIFIED, fold_schemes, named, ordered_schemes, some
from tests.encoders.pieces import (
    CUTS,
    LIBRARIES,
    ROWS,
    TARGETS,
    WEIGHTS,
    WHOLE,
    assert_same_model,
    assert_same_rows,
    cut,
    encoder,
    in_libraries,
    objects,
)
from tests.encoders.unchanged import Unchanged

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

SCHEMES = (
    fold_schemes()
    | some(ordered_schemes(), "averaged", "apart", "ordered-time")
    | {
        "groups-beside": GroupKFold(3),
        "fold-numbers": ROWS * 3 % 4,
        "splitter": SplitKFold(3),
        "splits": list(SplitKFold(3).split(ROWS)),
    }
)
FOR_LABELS = some(STRATIFIED, "stratified") | {"stratified-splitter": StratifiedKFold(3)}


def assert_alike(cv, y, weight, cuts, folder, **parameters):
    """Compare `fit_transform` of pieces, and the fitted attributes, with those of the whole table."""
    groups = WHOLE["shop"].to_numpy() if isinstance(cv, GroupKFold) and cv.groups is None else None
    vectors = {"y": y, "sample_weight": weight, "groups": groups}
    whole, pieces, tables = encoder(cv=cv, **parameters), encoder(cv=cv, **parameters), cut(WHOLE, cuts)
    expected = whole.fit_transform(WHOLE, **vectors)
    encoded = pieces.fit_transform(
        tables, **{name: data if data is None else cut(data, cuts) for name, data in vectors.items()}
    )
    assert [len(table) for table in encoded] == [len(table) for table in tables]
    pd.testing.assert_frame_equal(pd.concat(encoded), expected, check_exact=True)
    assert_same_model(pieces, whole, folder)
    for one, other in zip(pieces.transform(tables), cut(whole.transform(WHOLE), cuts), strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


# Every target with and without weights, in one number of pieces each.
CASES = [
    (name, *data, cuts)
    for data, cuts in zip(itertools.product(TARGETS, WEIGHTS), itertools.cycle(CUTS))
    for name in (SCHEMES if data[0] == "quantity" else SCHEMES | FOR_LABELS)
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "target", "weight", "cuts"), CASES)
def test_every_scheme(name, target, weight, cuts, tmp_path):
    assert_alike((SCHEMES | FOR_LABELS)[name], TARGETS[target], WEIGHTS[weight], CUTS[cuts], tmp_path)


@pytest.mark.parametrize("cv", named(some(SCHEMES, "k-fold", "ordered-time", "groups-beside", "leave-one-out")))
def test_some_schemes_everywhere(cv, tmp_path):
    assert_alike(cv, TARGETS["quantity"], WEIGHTS["weighted"], CUTS[7], tmp_path)


OPTIONS = {
    "joint keys": {"columns": [("city", "zip"), ("zip", "city", "shop"), "shop"]},
    "hierarchy": {
        "columns": ["zip", ("zip", "city")],
        "hierarchy": {"zip": ["size", "shop"], ("zip", "city"): ["day"]},
    },
    "prefixes": {"columns": ["city"], "hierarchy": {"city": Prefixes(3, 1)}, "handle_missing": "prior"},
    "missing and rare": {"handle_missing": "nan", "handle_unknown": "nan", "min_count": 3},
    "given": {"columns": ["city", "zip"], "categories": [["zz", "a", None], "auto"]},
    "priors": {"smooth": MEstimate(3), "prior": {"city": 0.25}, "dtype": "float32"},
    "empirical": {"smooth": "auto", "prior": "category_mean"},
}


@pytest.mark.parametrize("parameters", OPTIONS.values(), ids=OPTIONS.keys())
def test_options(parameters, tmp_path):
    assert_alike(KFold(3), TARGETS["quantity"], None, CUTS[7], tmp_path, **parameters)


@pytest.mark.host
@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS.keys())
@pytest.mark.parametrize("makers", LIBRARIES.values(), ids=LIBRARIES.keys())
def test_every_library(makers, cuts, tmp_path):
    columns, table = ({}, WHOLE) if makers != [objects] else ({"columns": [0, 1, (0, 1), 2]}, objects(WHOLE))
    whole, pieces, tables = encoder(**columns), encoder(**columns), in_libraries(cut(WHOLE, cuts), makers)
    expected = whole.fit_transform(table, TARGETS["quantity"])
    encoded = pieces.fit_transform(iter(tables), iter(cut(TARGETS["quantity"], cuts)))
    assert_same_model(pieces, whole, tmp_path)
    for pair in ((encoded, expected), (pieces.transform(tuple(tables)), whole.transform(table))):
        assert list(map(type, pair[0])) == list(map(type, tables))
        assert_same_rows(*pair)


@pytest.mark.parametrize(("wanted", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_the_container_asked_for(wanted, kind):
    tables = in_libraries(cut(WHOLE, CUTS[7]), LIBRARIES["mixed"])
    fitted = encoder().set_output(transform=wanted)
    for encoded in (fitted.fit_transform(tables, TARGETS["quantity"]), fitted.transform(tables)):
        assert {type(table) for table in encoded} == {kind}
        assert [list(table.columns) for table in encoded] == [list(fitted.get_feature_names_out())] * 7
    arrays = TargetEncoder().set_output(transform=wanted).fit_transform(cut(objects(WHOLE), [50]), TARGETS["binary"])
    assert [list(table.columns) for table in arrays] == [[f"x{i}" for i in range(7)]] * 2


VECTORS = {
    "one array": lambda y: y,
    "one list": list,
    "lists": lambda y: [list(part) for part in cut(y, CUTS[7])],
    "series of two libraries": lambda y: in_libraries(cut(y, CUTS[7]), [pd.Series, pl.Series]),
    "tables of one column": lambda y: [pd.DataFrame({"y": part}) for part in cut(y, CUTS[7])],
    "columns": lambda y: [part.reshape(-1, 1) for part in cut(y, CUTS[7])],
    "iterator": lambda y: iter(cut(y, CUTS[7])),
    "deque": lambda y: collections.deque(cut(y, CUTS[7])),
    "iterator of values": iter,
}


@pytest.mark.host
@pytest.mark.parametrize("make", VECTORS.values(), ids=VECTORS.keys())
def test_vectors_for_all_rows_or_for_each_table(make):
    y, weight, groups = TARGETS["quantity"], WEIGHTS["weighted"], ROWS * 3 % 8
    expected = encoder(cv=GroupKFold(3)).fit_transform(WHOLE, y, sample_weight=weight, groups=groups)
    vectors = {"y": make(y), "sample_weight": make(weight), "groups": make(groups)}
    encoded = encoder(cv=GroupKFold(3)).fit_transform(cut(WHOLE, CUTS[7]), **vectors)
    pd.testing.assert_frame_equal(pd.concat(encoded), expected, check_exact=True)


def test_several_targets():
    y = pd.DataFrame({"q": TARGETS["quantity"], "b": TARGETS["binary"]}, index=WHOLE.index)
    parameters = {"target_type": ["continuous", "auto"], "cv": SplitKFold(3)}
    expected = encoder(**parameters).fit_transform(WHOLE, y)
    for targets in (cut(y, CUTS[7]), in_libraries(cut(y, CUTS[7]), LIBRARIES["mixed"])):
        encoded = encoder(**parameters).fit_transform(cut(WHOLE, CUTS[7]), targets)
        pd.testing.assert_frame_equal(pd.concat(encoded), expected, check_exact=True)


def test_partial_fit_of_pieces(tmp_path):
    y = TARGETS["classes"]
    whole = encoder().partial_fit(WHOLE[:30], y[:30]).partial_fit(WHOLE[30:], y[30:])
    pieces = encoder()
    for tables, targets in ((WHOLE[:30], y[:30]), (WHOLE[30:], y[30:])):
        pieces.partial_fit(cut(tables, [4, 9]), cut(targets, [4, 9]))
    assert_same_model(pieces, whole, tmp_path)
    assert_same_model(pieces, encoder().fit(WHOLE, y), tmp_path)


def test_no_rows_in_any_table():
    fitted = encoder(hierarchy={"city": Prefixes(2)}).fit(WHOLE, TARGETS["binary"])
    encoded = fitted.transform([WHOLE[:0], pl.from_pandas(WHOLE[:0])])
    assert [table.shape for table in encoded] == [(0, len(fitted.get_feature_names_out()))] * 2
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\) \(shape=\(0, 7\)\)"):
        encoder().fit([WHOLE[:0]] * 2, [[], []])


def test_tables_are_not_written_to():
    tables = in_libraries(cut(WHOLE, CUTS[7]), LIBRARIES["mixed"])
    y = cut(TARGETS["quantity"].copy(), CUTS[7])
    for out in encoder().fit_transform(tables, y):
        if isinstance(out, pd.DataFrame):
            out["city"] = 0.0
    for table, same in zip(tables, in_libraries(cut(WHOLE, CUTS[7]), LIBRARIES["mixed"]), strict=True):
        assert table.equals(same)
    assert np.concatenate(y).tolist() == TARGETS["quantity"].tolist()


PAIR = cut(WHOLE, CUTS[2])
Y = TARGETS["quantity"]
Y_PAIR = cut(Y, CUTS[2])
NULL = [Y_PAIR[0], np.where(ROWS[50:] == 60, np.nan, Y_PAIR[1])]
INFINITE = [Y_PAIR[0], np.where(ROWS[50:] == 60, np.inf, Y_PAIR[1])]
NUMBERS = PAIR[1].assign(city=1.0)
NEGATIVE = [np.ones(50), -np.ones(34)]
GROUPS = [["a"] * 50, ["a"] * 3 + [None] * 31]
INFINITE_GROUPS = [np.zeros(50), np.full(34, np.inf)]
FOLDS = cut(WHOLE.assign(fold=np.where(ROWS == 58, -1, ROWS % 3)), CUTS[2])


def refused(message, X=PAIR, y=Y, error=ValueError, **choices):
    """Return a wrong call: tables, vectors, parameters, and the expected error."""
    vectors = {name: choices.pop(name) for name in ("sample_weight", "groups") if name in choices}
    return X, y, vectors, choices, error, message


# What `tests/tables` has not: the rest of what is wrong with tables and vectors is refused where they are read.
FIT_ERRORS = {
    "not a table": refused(r"X\[1\] is no table: a str", [PAIR[0], "b"], error=TypeError),
    "kinds": refused(r"column 'city' mixes text and number \(in X\[1\]\)", [PAIR[0], NUMBERS], error=TypeError),
    "length": refused(r"X\[0\] has 50 rows and y\[0\] 34", y=Y_PAIR[::-1]),
    "all rows": refused(r"inconsistent numbers of samples: \[84, 83\]", y=Y[:-1]),
    "weights": refused(r"X\[1\] has 34 rows and sample_weight\[1\] 1", sample_weight=[[1] * 50, [1]]),
    "null": refused(r"y has 1 missing value, in row 60 \(row 10 of y\[1\]\)\.", y=NULL),
    "infinite target": refused(r"Input y contains infinity .* row 60 \(row 10 of y\[1\]\)\.", y=INFINITE),
    "labels": refused("y mixes labels that cannot be compared: int, str", y=[["a"] * 50, [1] * 34], error=TypeError),
    "negative": refused(r"34 negative .* row 50 \(row 0 of sample_weight\[1\]\) \(-1\.0\)", sample_weight=NEGATIVE),
    "negative of all": refused(r"the first in row 50 \(-1\.0\)", sample_weight=np.concatenate(NEGATIVE)),
    "null of all": refused(r"y has 1 missing value, in row 60\. Drop", y=np.concatenate(NULL).tolist()),
    "null group": refused(r"given as groups holds 31 missing .* row 53 \(row 3 of groups\[1\]\)\.", groups=GROUPS),
    "infinite group": refused(r"column 'groups\[1\]', .* row 50 \(row 0 of groups\[1\]\)\.", groups=INFINITE_GROUPS),
    "null time": refused(
        r"The time column 'size' holds 9 missing values, .* row 4 \(row 3 of X\[1\]\)",
        cut(WHOLE, CUTS[7]),
        cv=Ordered(time="size"),
        columns=["city"],
    ),
    "negative fold": refused(r"must not be negative\. Row 58 \(row 8 of X\[1\]\) has -1\.", FOLDS, cv="fold"),
    "folds of each table": refused("cv holds several vectors of fold numbers.* one array for all rows", cv=GROUPS),
}


@pytest.mark.host
@pytest.mark.parametrize(("X", "y", "vectors", "parameters", "error", "message"), FIT_ERRORS.values(), ids=FIT_ERRORS)
def test_errors_of_a_fit(X, y, vectors, parameters, error, message):
    with Unchanged(encoder(cv=GroupKFold(2)).fit(WHOLE, Y), WHOLE) as fitted, pytest.raises(error, match=message):
        fitted.set_params(**parameters).fit_transform(X, y, **({"groups": ROWS} | vectors))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_an_iterator_that_fails_changes_nothing(method):
    def reader():
        yield WHOLE
        message = "the disk is gone"
        raise OSError(message)

    with Unchanged(encoder().fit(WHOLE, Y), WHOLE) as fitted, pytest.raises(OSError, match="the disk is gone"):
        getattr(fitted, method)(reader(), Y)


def test_rows_that_a_policy_refuses_are_found_in_their_table():
    new = [PAIR[0].assign(city="a"), PAIR[1].assign(city=np.where(ROWS[50:] == 53, "new", "a"))]
    fitted = encoder(handle_unknown="error").fit(WHOLE, Y)
    message = r"Found unknown categories in column 'city': 1 rows, the first in row 53 \(row 3 of X\[1\]\) \('new'\)"
    with pytest.raises(ValueError, match=message):
        fitted.transform(new)
    given = TargetEncoder(columns=["city"], categories=[["a"]], handle_unknown="error")
    with pytest.raises(ValueError, match=r"'city' during fit: 1 rows, the first in row 53 \(row 3 of X\[1\]\)"):
        given.fit(new, Y)
    new[1] = PAIR[1].assign(city=np.where(ROWS[50:] == 53, None, "a"))
    message = r"Column 'city' holds 1 missing values, the first in row 53 \(row 3 of X\[1\]\)"
    with pytest.raises(ValueError, match=message):
        encoder(handle_missing="error").fit(new, Y)


def test_an_error_that_names_a_row_travels_between_processes():
    with pytest.raises(ValueError, match="row 60") as caught:
        encoder().fit(PAIR, NULL)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.row) == (type(caught.value), str(caught.value), 60)


DEVICE = np.column_stack([ROWS * 7 % 5, ROWS * 11 % 13, ROWS % 3 - 1])
DEVICE_SCHEMES = {
    "k-fold": KFold(3),
    "groups": GroupKFold(3),
    "ordered-time": Ordered(time=2),
    "splitter": SplitKFold(3),
}


@pytest.mark.cuda
@pytest.mark.parametrize("mixed", [False, True], ids=["device", "device and host"])
@pytest.mark.parametrize("cv", named(DEVICE_SCHEMES))
def test_arrays_in_the_memory_of_a_device(xp, cv, mixed):
    def there(parts):
        return [part if mixed and i % 2 else xp.asarray(part) for i, part in enumerate(parts)]

    vectors = {"y": Y, "sample_weight": WEIGHTS["weighted"], "groups": ROWS // 4}
    if not isinstance(cv, GroupKFold):
        del vectors["groups"]
    columns = [0, (0, 1)]
    expected = TargetEncoder(cv=cv, columns=columns, device="cpu").fit_transform(DEVICE, **vectors)
    fitted = TargetEncoder(cv=cv, columns=columns)
    on_device = {name: there(cut(data, CUTS[7])) for name, data in vectors.items()}
    encoded = fitted.fit_transform(there(cut(DEVICE, CUTS[7])), **on_device)
    assert fitted.device_ == "cuda"
    assert [isinstance(table, np.ndarray) for table in encoded] == [mixed and i % 2 == 1 for i in range(7)]
    on_host = [table if isinstance(table, np.ndarray) else table.get() for table in encoded]
    np.testing.assert_array_equal(np.concatenate(on_host), expected, strict=True)


LABELS = [([0, 1, 0], ["b", "d"]), ([0, -1, 1], ["a", "c"])]


@pytest.mark.cuda
def test_labels_that_are_numbered_on_a_device_stay_there(xp):
    def numbered(codes, labels):
        return NumberedLabels(xp.asarray(np.array(codes, np.int32)), np.array(labels, object))

    parts = [numbered(codes, labels) for codes, labels in LABELS]
    labels = join_vectors([*parts, numbered([], [])])
    assert isinstance(labels.codes, xp.ndarray)
    assert labels.labels.tolist() == ["a", "b", "c", "d"]
    assert labels.codes.get().tolist() == [1, 3, 1, 0, -1, 2]
    whole = ["b", "d", "b", "a", None, "c"]
    assert join_vectors([*parts, np.array(["e"], object)]).tolist() == [*whole, "e"]
    with pytest.raises(TypeError, match="y mixes labels that cannot be compared: bytes, str"):
        join_vectors([*parts, numbered([0], [b"x"])])


@pytest.mark.parametrize("array_first", [True, False])
def test_an_array_and_a_frame_of_numbered_columns_come_back_as_they_are(array_first):
    tables = [np.array([[1], [2], [1]]), pd.DataFrame([[1], [2]])]
    tables = tables if array_first else tables[::-1]
    encoder = TargetEncoder(target_type="continuous", smooth=0.0).fit(tables[0], np.arange(1.0, len(tables[0]) + 1))
    for given, encoded in zip(tables, encoder.transform(tables), strict=True):
        assert type(encoded) is type(given)
        np.testing.assert_array_equal(np.asarray(encoded), encoder.transform(np.asarray(given)))
