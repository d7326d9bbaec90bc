"""Tables in pieces: every bit that an encoder gives or keeps is that of the one table that they make up."""

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
from gpu_encode.frames import NumberedLabels
from gpu_encode.frames.pieces import join_vectors
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
FOR_LABELS = some(STRATIFIED, "stratified") | {"splitter": StratifiedKFold(3)}


def alike(cv, y, weight, cuts, folder, **parameters):
    """Compare `fit_transform` of pieces, and what is learned, with that of the whole."""
    groups = WHOLE["shop"].to_numpy() if isinstance(cv, GroupKFold) and cv.groups is None else None
    whole = encoder(cv=cv, **parameters)
    expected = whole.fit_transform(WHOLE, y, sample_weight=weight, groups=groups)
    each = {
        name: None if data is None else cut(data, cuts)
        for name, data in (("y", y), ("sample_weight", weight), ("groups", groups))
    }
    pieces = encoder(cv=cv, **parameters)
    found = pieces.fit_transform(cut(WHOLE, cuts), **each)
    assert [len(table) for table in found] == [len(table) for table in cut(WHOLE, cuts)]
    pd.testing.assert_frame_equal(pd.concat(found), expected, check_exact=True)
    assert_same_model(pieces, whole, folder)
    for one, other in zip(pieces.transform(cut(WHOLE, cuts)), cut(whole.transform(WHOLE), cuts), strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


# Every target with and without weights, in one number of pieces each.
CASES = list(zip(itertools.product(TARGETS, WEIGHTS), itertools.cycle(CUTS)))


@pytest.mark.long
@pytest.mark.parametrize(("data", "cuts"), CASES, ids=[f"{'-'.join(data)}-{cuts}" for data, cuts in CASES])
@pytest.mark.parametrize("cv", named(SCHEMES))
def test_every_scheme(cv, data, cuts, tmp_path):
    target, weight = data
    alike(cv, TARGETS[target], WEIGHTS[weight], CUTS[cuts], tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS.keys())
@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS.keys())
@pytest.mark.parametrize("y", [TARGETS["binary"], TARGETS["classes"]], ids=["binary", "classes"])
@pytest.mark.parametrize("cv", named(FOR_LABELS))
def test_schemes_of_labels(cv, y, weight, cuts, tmp_path):
    alike(cv, y, weight, cuts, tmp_path)


@pytest.mark.parametrize("cv", named(some(SCHEMES, "k-fold", "ordered-time", "groups-beside", "leave-one-out")))
def test_some_schemes_everywhere(cv, tmp_path):
    alike(cv, TARGETS["quantity"], WEIGHTS["weighted"], CUTS[7], tmp_path)


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
    alike(KFold(3), TARGETS["quantity"], None, CUTS[7], tmp_path, **parameters)


@pytest.mark.host
@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS.keys())
@pytest.mark.parametrize("makers", LIBRARIES.values(), ids=LIBRARIES.keys())
def test_every_library(makers, cuts, tmp_path):
    named = makers != [objects]
    columns = {} if named else {"columns": [0, 1, (0, 1), 2]}
    whole = encoder(**columns)
    expected = whole.fit_transform(WHOLE if named else objects(WHOLE), TARGETS["quantity"])
    pieces = encoder(**columns)
    tables = in_libraries(cut(WHOLE, cuts), makers)
    found = pieces.fit_transform(iter(tables), iter(cut(TARGETS["quantity"], cuts)))
    assert [type(table) for table in found] == [type(table) for table in tables]
    assert_same_rows(found, expected)
    assert_same_model(pieces, whole, tmp_path)
    again = pieces.transform(tuple(tables))
    assert [type(table) for table in again] == [type(table) for table in tables]
    assert_same_rows(again, whole.transform(WHOLE if named else objects(WHOLE)))


def test_index_and_columns_that_pass_through_are_each_tables_own():
    tables = cut(WHOLE, CUTS[7])
    fitted = TargetEncoder(columns=["city"])
    for found in (fitted.fit_transform(tables, TARGETS["binary"]), fitted.transform(tables)):
        for table, out in zip(tables, found, strict=True):
            pd.testing.assert_frame_equal(out.drop(columns="city"), table.drop(columns="city"))


@pytest.mark.parametrize(("wanted", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_the_container_asked_for(wanted, kind):
    tables = in_libraries(cut(WHOLE, CUTS[7]), LIBRARIES["mixed"])
    fitted = encoder().set_output(transform=wanted)
    for found in (fitted.fit_transform(tables, TARGETS["quantity"]), fitted.transform(tables)):
        assert {type(table) for table in found} == {kind}
        assert [list(table.columns) for table in found] == [list(fitted.get_feature_names_out())] * 7
    arrays = TargetEncoder().set_output(transform=wanted).fit_transform(cut(objects(WHOLE), [50]), TARGETS["binary"])
    assert [list(table.columns) for table in arrays] == [[f"x{i}" for i in range(7)]] * 2


def test_names_are_those_of_the_first_table():
    fitted = TargetEncoder().fit(in_libraries(cut(WHOLE, CUTS[2]), LIBRARIES["mixed"]), TARGETS["binary"])
    assert fitted.feature_names_in_.tolist() == list(WHOLE.columns)
    assert fitted.n_features_in_ == 7
    with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
        fitted.transform([WHOLE.rename(columns={"city": "town"})])


VECTORS = {
    "one array": lambda y: y,
    "one series": pd.Series,
    "one list": list,
    "lists": lambda y: [list(part) for part in cut(y, CUTS[7])],
    "series of two libraries": lambda y: in_libraries(cut(y, CUTS[7]), [pd.Series, pl.Series]),
    "tables of one column": lambda y: [pd.DataFrame({"y": part}) for part in cut(y, CUTS[7])],
    "columns": lambda y: [part.reshape(-1, 1) for part in cut(y, CUTS[7])],
    "iterator": lambda y: iter(cut(y, CUTS[7])),
    "iterator of values": iter,
}


@pytest.mark.host
@pytest.mark.parametrize("make", VECTORS.values(), ids=VECTORS.keys())
def test_vectors_for_all_rows_or_for_each_table(make):
    y, weight, groups = TARGETS["quantity"], WEIGHTS["weighted"], ROWS * 3 % 8
    expected = encoder(cv=GroupKFold(3)).fit_transform(WHOLE, y, sample_weight=weight, groups=groups)
    found = encoder(cv=GroupKFold(3)).fit_transform(
        cut(WHOLE, CUTS[7]), make(y), sample_weight=make(weight), groups=make(groups)
    )
    pd.testing.assert_frame_equal(pd.concat(found), expected, check_exact=True)


def test_several_targets():
    y = pd.DataFrame({"q": TARGETS["quantity"], "b": TARGETS["binary"]}, index=WHOLE.index)
    parameters = {"target_type": ["continuous", "auto"], "cv": SplitKFold(3)}
    expected = encoder(**parameters).fit_transform(WHOLE, y)
    for each in (cut(y, CUTS[7]), in_libraries(cut(y, CUTS[7]), LIBRARIES["mixed"])):
        found = encoder(**parameters).fit_transform(cut(WHOLE, CUTS[7]), each)
        pd.testing.assert_frame_equal(pd.concat(found), expected, check_exact=True)


# What no single table shows: the labels and the type of all of them.
JOINT_TARGETS = {
    "two labels": ([0] * 50, [1] * 34, "binary"),
    "three labels": ([0, 1] * 25, [1, 2] * 17, "multiclass"),
    "a fraction": ([0, 1] * 25, [0.5] * 34, "continuous"),
    "text of two widths": (np.array(["a"] * 50), np.array(["bcd"] * 34), "binary"),
}


@pytest.mark.parametrize(("one", "other", "kind"), JOINT_TARGETS.values(), ids=JOINT_TARGETS.keys())
def test_type_and_labels_are_those_of_all_tables(one, other, kind, tmp_path):
    y = np.concatenate([one, other])
    whole, pieces = encoder().fit(WHOLE, y), encoder().fit(cut(WHOLE, CUTS[2]), [one, other])
    assert pieces.target_type_ == kind
    assert_same_model(pieces, whole, tmp_path)


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
    found = fitted.transform([WHOLE[:0], pl.from_pandas(WHOLE[:0])])
    assert [table.shape for table in found] == [(0, len(fitted.get_feature_names_out()))] * 2
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\) \(shape=\(0, 7\)\)"):
        encoder().fit([WHOLE[:0]] * 2, [[], []])


def test_new_rows_in_pieces_of_an_encoder_fitted_on_one_table():
    fitted = encoder(cv=GroupKFold(3, groups="shop")).fit(WHOLE, TARGETS["quantity"])
    new = WHOLE.drop(columns="shop").assign(city=WHOLE["city"].str.upper())
    expected = fitted.transform(new)
    pd.testing.assert_frame_equal(pd.concat(fitted.transform(cut(new, CUTS[7]))), expected, check_exact=True)


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
SHORT = [[1] * 50, [1]]


def refused(message, X=PAIR, y=Y, error=ValueError, **more):
    return X, y, more, error, message


FIT_ERRORS = {
    "nothing": refused("X is an empty list", []),
    "no tables": refused("X is an empty iterator", iter(())),
    "rows": refused(r"X\[0\] is no table: a list", iter([["a"]]), error=TypeError),
    "not a table": refused(r"X\[1\] is no table: a str", [PAIR[0], "b"], error=TypeError),
    "columns": refused(
        r"X\[1\] lacks 'zip', 'size', 'day', 'shop', 'fold', \.\.\. \(6 in", [PAIR[0], PAIR[1][["city"]]]
    ),
    "kinds": refused(r"column 'city' mixes text and number \(in X\[1\]\)", [PAIR[0], NUMBERS], error=TypeError),
    "infinity": refused(
        r"^Input X contains infinity: column 'size', the first in row 50 \(row 0 of X\[1\]\)\.",
        [PAIR[0], PAIR[1].assign(size=np.inf)],
    ),
    "vectors": refused("y holds 1 vectors for the 2 tables of X", y=[Y_PAIR[0]]),
    "length": refused(r"X\[0\] has 50 rows and y\[0\] 34", y=Y_PAIR[::-1]),
    "all rows": refused(r"inconsistent numbers of samples: \[84, 83\]", y=Y[:-1]),
    "weights": refused(r"X\[1\] has 34 rows and sample_weight\[1\] 1", sample_weight=SHORT),
    "groups": refused(r"X\[1\] has 34 rows and groups\[1\] 1", groups=SHORT),
    "null": refused(r"y has 1 missing value, in row 60 \(row 10 of y\[1\]\)\.", y=NULL),
    "infinite target": refused(r"Input y contains infinity .* row 60 \(row 10 of y\[1\]\)\.", y=INFINITE),
    "labels": refused("y mixes labels that cannot be compared: int, str", y=[["a"] * 50, [1] * 34], error=TypeError),
    "negative": refused(
        r"sample_weight holds 34 negative weights, the first in row 50 \(row 0 of sample_weight\[1\]\) \(-1\.0\)",
        sample_weight=[np.ones(50), -np.ones(34)],
    ),
    "negative of all": refused(
        r"sample_weight holds 1 negative weights, the first in row 50 \(-1\)", sample_weight=np.where(ROWS == 50, -1, 1)
    ),
    "null of all": refused(r"y has 1 missing value, in row 60\. Drop", y=[*NULL[0], *NULL[1]]),
    "null group": refused(
        r"The array given as groups holds 31 missing values, the first in row 53 \(row 3 of groups\[1\]\)\.",
        groups=[["a"] * 50, ["a"] * 3 + [None] * 31],
    ),
    "infinite group": refused(
        r"column 'groups\[1\]', the first in row 50 \(row 0 of groups\[1\]\)\.",
        groups=[np.zeros(50), np.full(34, np.inf)],
    ),
    "series": refused(
        r"X\[0\] is a series \(Series\).*\[part\.to_frame\(\) for part in X\]",
        [PAIR[0]["city"], PAIR[1]["city"]],
        Y_PAIR,
        TypeError,
    ),
    "one table": refused(
        r"numbers of samples: \[84, 2\]\. X is one table of 84 rows, and y holds 2 vectors", WHOLE, Y_PAIR
    ),
    "one table, weights": refused(
        "X is one table of 84 rows, and sample_weight holds 2 vectors", WHOLE, sample_weight=Y_PAIR
    ),
}


@pytest.mark.host
@pytest.mark.parametrize(("X", "y", "more", "error", "message"), FIT_ERRORS.values(), ids=FIT_ERRORS.keys())
def test_errors_of_a_fit(X, y, more, error, message):
    with Unchanged(encoder(cv=GroupKFold(2)).fit(WHOLE, Y), WHOLE) as fitted, pytest.raises(error, match=message):
        fitted.fit_transform(X, y, **({"groups": ROWS} | more))


def test_an_iterator_that_fails_changes_nothing():
    def reader():
        yield WHOLE
        message = "the disk is gone"
        raise OSError(message)

    with Unchanged(encoder().fit(WHOLE, Y), WHOLE) as fitted:
        with pytest.raises(OSError, match="the disk is gone"):
            fitted.fit(reader(), Y)
        with pytest.raises(OSError, match="the disk is gone"):
            fitted.partial_fit(reader(), Y)


def test_rows_that_a_policy_refuses_are_found_in_their_table():
    new = cut(WHOLE.assign(city=WHOLE["city"].fillna("a")), CUTS[2])
    new[1] = new[1].assign(city=np.where(ROWS[50:] == 53, "new", new[1]["city"]))
    fitted = encoder(handle_unknown="error").fit(WHOLE, Y)
    message = r"Found unknown categories in column 'city': 1 rows, the first in row 53 \(row 3 of X\[1\]\) \('new'\)"
    with Unchanged(fitted, WHOLE), pytest.raises(ValueError, match=message):
        fitted.transform(new)
    new[1] = new[1].assign(city=np.where(ROWS[50:] == 53, None, "a"))
    message = r"Column 'city' holds 1 missing values, the first in row 53 \(row 3 of X\[1\]\)"
    with pytest.raises(ValueError, match=message):
        encoder(handle_missing="error").fit(new, Y)
    given = TargetEncoder(columns=["city"], categories=[["a"]], handle_unknown="error")
    new[1] = new[1].assign(city="a")
    with pytest.raises(ValueError, match=r"'city' during fit: 1 rows, the first in row 35 \(row 1 of X\[1\]\)"):
        given.fit([new[1], new[1][:3].assign(city=["a", "b", "a"])], Y[:37])


def test_columns_of_a_scheme_name_the_table_of_a_missing_value():
    with pytest.raises(
        ValueError, match=r"The time column 'size' holds 9 missing values, .* row 4 \(row 3 of X\[1\]\)"
    ):
        TargetEncoder(columns=["city"], cv=Ordered(time="size")).fit_transform(cut(WHOLE, CUTS[7]), Y)


def test_fold_numbers_name_the_table_of_a_wrong_one():
    tables = cut(WHOLE.assign(fold=np.where(ROWS == 25, -1, ROWS % 3)), CUTS[7])
    with pytest.raises(ValueError, match=r"must not be negative\. Row 25 \(row 5 of X\[2\]\) has -1\."):
        TargetEncoder(columns=["city"], cv="fold").fit_transform(tables, Y)


@pytest.mark.host
@pytest.mark.parametrize("make", [np.array, list, pd.Series])
def test_fold_numbers_are_one_array_for_all_rows(make):
    folds = [make(part) for part in cut(ROWS % 3, CUTS[2])]
    with pytest.raises(ValueError, match=r"cv holds several vectors of fold numbers\..* one array for all rows"):
        encoder(cv=folds).fit_transform(PAIR, Y)


def test_any_collection_of_tables_and_vectors():
    expected = encoder().fit_transform(PAIR, Y_PAIR)
    for many in (collections.deque, lambda parts: dict(enumerate(parts)).values()):
        found = encoder().fit_transform(many(PAIR), many(Y_PAIR))
        pd.testing.assert_frame_equal(pd.concat(found), pd.concat(expected), check_exact=True)


def test_an_error_that_names_a_row_travels_between_processes():
    with pytest.raises(ValueError, match="row 60") as found:
        encoder().fit(PAIR, NULL)
    again = pickle.loads(pickle.dumps(found.value))
    assert (type(again), str(again), again.row) == (type(found.value), str(found.value), 60)


def test_rows_stay_rows():
    rows = [["a", 1], ["b", 2], ["a", 2], ["b", 1]]
    expected = TargetEncoder(cv=2).fit_transform(np.array(rows, object), [1.5, 2, 3, 4])
    for same in (rows, tuple(map(tuple, rows)), [np.array(row, object) for row in rows]):
        np.testing.assert_array_equal(TargetEncoder(cv=2).fit_transform(same, [1.5, 2, 3, 4]), expected)


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
    each = {name: there(cut(data, CUTS[7])) for name, data in vectors.items()}
    found = fitted.fit_transform(there(cut(DEVICE, CUTS[7])), **each)
    assert fitted.device_ == "cuda"
    assert [isinstance(table, np.ndarray) for table in found] == [mixed and i % 2 == 1 for i in range(7)]
    on_host = [table if isinstance(table, np.ndarray) else table.get() for table in found]
    np.testing.assert_array_equal(np.concatenate(on_host), expected, strict=True)


LABELS = [([0, 1, 0], ["b", "d"]), ([0, -1, 1], ["a", "c"])]


@pytest.mark.cuda
def test_labels_that_are_numbered_on_a_device_stay_there(xp):
    def numbered(codes, labels):
        return NumberedLabels(xp.asarray(np.array(codes, np.int32)), np.array(labels, object))

    parts = [numbered(codes, labels) for codes, labels in LABELS]
    found = join_vectors([*parts, numbered([], [])])
    assert isinstance(found.codes, xp.ndarray)
    assert found.labels.tolist() == ["a", "b", "c", "d"]
    assert found.codes.get().tolist() == [1, 3, 1, 0, -1, 2]
    whole = ["b", "d", "b", "a", None, "c"]
    assert join_vectors([*parts, np.array(["e"], object)]).tolist() == [*whole, "e"]
    with pytest.raises(TypeError, match="y mixes labels that cannot be compared: bytes, str"):
        join_vectors([*parts, numbered([0], [b"x"])])
