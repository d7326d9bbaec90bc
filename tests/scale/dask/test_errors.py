"""Errors name the partition, the row among all rows, and what to do; the encoder does not change."""

import pickle
import subprocess
import sys

import dask
import dask.dataframe as dd
import numpy as np
import pytest
from dask import delayed
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold

from gpu_encode import Greedy, KFold, LeaveOneOut, TargetEncoder
from gpu_encode.scale.messages import RowInPartitionError
from tests.scale.dask.cases import KEYS, partitioned, pieces, rows

WHOLE = rows(60)
CUT = partitioned(WHOLE, 3, seed=8)
LENGTHS = [len(part) for part in pieces(WHOLE, 3, seed=8)]
X, Y = CUT[KEYS], CUT["amount"]
assert min(LENGTHS) > 5
pytestmark = pytest.mark.usefixtures("synchronous")


def with_wrong(column, row, value):
    """Give the rows with one wrong value, counted over all rows."""
    frame = WHOLE.copy()
    frame.loc[frame.index[row], column] = value
    return partitioned(frame, 3, seed=8)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [("amount", np.nan, "missing value"), ("amount", np.inf, "inf"), ("weight", -1.0, "negative")],
)
def test_a_bad_row_is_counted_over_all_rows_and_in_its_partition(column, value, message):
    row = LENGTHS[0] + LENGTHS[1] + 3
    cut = with_wrong(column, row, value)
    encoder = TargetEncoder().fit(WHOLE[["city"]], WHOLE["amount"])
    before = encoder.encodings_[0].tobytes()
    with pytest.raises(ValueError, match=rf"(?i){message}.* row {row} \(row 3 of partition 2\)"):
        encoder.fit_transform(cut[KEYS], cut["amount"], sample_weight=cut["weight"])
    assert (encoder.encodings_[0].tobytes(), encoder.n_features_in_) == (before, 1)


@pytest.mark.parametrize("in_list", [False, True], ids=["frame", "list"])
def test_a_missing_category_that_is_refused(in_list):
    row = LENGTHS[0] + 4
    cut = with_wrong("city", row, np.nan)
    X, y = cut[["city"]], cut["amount"]
    with pytest.raises(ValueError, match=rf"city.* row {row} \(row 4 of partition 1\)"):
        TargetEncoder(handle_missing="error").fit(*((X.to_delayed(), y.to_delayed()) if in_list else (X, y)))


def test_a_new_row_is_counted_in_its_partition():
    encoder = TargetEncoder(handle_unknown="error").fit(WHOLE[["city"]], WHOLE["amount"])
    lazy = encoder.transform(with_wrong("city", LENGTHS[0] + 1, 12345)[["city"]])
    with pytest.raises(ValueError, match=r"row 1 of partition 1\b"):
        lazy.compute()


def test_values_of_another_kind_are_refused_before_anything_is_computed():
    with pytest.raises(ValueError, match="city"):
        TargetEncoder().fit(WHOLE[["city"]], WHOLE["amount"]).transform(CUT[["shop"]])


def test_a_partition_of_another_kind_is_named():
    parts = [delayed(WHOLE[["city"]]), delayed(WHOLE[["city"]].astype("string"))]
    encoder = TargetEncoder().fit(WHOLE[["city"]], WHOLE["amount"])
    with pytest.raises((ValueError, TypeError), match=r"^partition 1: "):
        dask.compute(*encoder.transform(parts))
    with pytest.raises((ValueError, TypeError), match="city"):
        TargetEncoder().fit(parts, [delayed(WHOLE["amount"])] * 2)


def test_lengths_differ_in_a_partition():
    y = [delayed(part["amount"].iloc[: len(part) - (number == 1)]) for number, part in enumerate(pieces(WHOLE, 3, 8))]
    with pytest.raises(ValueError, match=rf"^partition 1: .*\[{LENGTHS[1]}, {LENGTHS[1] - 1}\]"):
        TargetEncoder().fit(X, y)


TWO_CHUNKS = CUT[["amount", "price"]].to_dask_array(lengths=LENGTHS).rechunk({1: 1})
VECTORS = [
    (WHOLE["amount"], TypeError, "^X is in partitions of Dask, and y is a Series. Give y as a Dask frame, series"),
    ([1, 2, 3], TypeError, r"^y\[0\] is a int, among Delayed objects of Dask. .*dask.delayed\(y\[0\]\)"),
    (Y.repartition(npartitions=2), ValueError, "^X has 3 partitions, and y has 2. Rows match by position"),
    (Y.to_delayed()[:2], ValueError, "^X has 3 partitions, and y has 2"),
    (None, ValueError, "requires y to be passed, but the target y is None"),
    (Y.to_delayed()[0], TypeError, "and y is a Delayed"),
    (TWO_CHUNKS, ValueError, r"^y is a Dask array with 2 chunks of columns.*y.rechunk\(\{1: -1\}\)"),
]
TABLES = [
    (CUT["shop"], ValueError, r"^X is a Series of Dask, which is no table. Make one of it: X.to_frame\(\)"),
    (X.to_delayed()[0], TypeError, r"^X is one Delayed of Dask. Give a list of them"),
    ([delayed(WHOLE), WHOLE], TypeError, r"^X\[1\] is a DataFrame, among Delayed objects of Dask"),
    ([X, X], TypeError, r"^X\[0\] is a DataFrame of Dask, without rows yet"),
]
PARAMETERS = [
    ({"cv": np.arange(59) % 3}, ValueError, r"inconsistent numbers of samples: \[60, 59\]"),
    ({"cv": StratifiedKFold(3)}, ValueError, 'looks at all rows at once, but these come in parts.* cv="fold"'),
    ({"columns": ["nowhere"]}, ValueError, "nowhere"),
    ({"columns": ["shop"], "cv": "nowhere"}, ValueError, "nowhere"),
]
BESIDE = r"^y is a Delayed\w* of Dask, without rows yet, but other data is not of Dask"
CALLS = [
    (WHOLE[KEYS], Y.to_delayed()[0], {}, TypeError, BESIDE),
    *((X, y, {}, *wrong) for y, *wrong in VECTORS),
    *((table, Y, {}, *wrong) for table, *wrong in TABLES),
    *((X, Y, *wrong) for wrong in PARAMETERS),
]


@pytest.mark.parametrize(("X", "y", "parameters", "error", "message"), CALLS, ids=[call[4][:40] for call in CALLS])
def test_data_and_parameters_that_do_not_fit(X, y, parameters, error, message):
    with pytest.raises(error, match=message):
        TargetEncoder(**parameters).fit_transform(X, y)


def test_calls_that_wait_for_rows():
    with pytest.raises(TypeError, match=r"encoder.merge\(clone\(encoder\).fit\(X, y\)\)"):
        TargetEncoder().partial_fit(X, Y)
    with pytest.raises(NotFittedError):
        TargetEncoder().transform(X)
    with pytest.raises(ValueError, match=r"set_output\(transform='polars'\) is impossible in a Dask frame"):
        TargetEncoder().set_output(transform="polars").fit_transform(X, Y)


def test_bad_parameters_are_found_before_rows_are_read():
    def touched():
        pytest.fail("a partition was read")

    lazy = dd.from_delayed([delayed(touched)()] * 2, meta=WHOLE.iloc[:0], verify_meta=False)
    for parameters in ({"handle_missing": "no"}, {"cv": 1}, {"smooth": -1.0}):
        with pytest.raises(ValueError, match=r"must be|should be"):
            TargetEncoder(**parameters).fit(lazy[KEYS], lazy["amount"])


def test_what_is_warned_of_elsewhere_is_warned_of_here():
    with pytest.warns(UserWarning, match="contain each row's own target") as caught:
        TargetEncoder(cv=Greedy()).fit_transform(X, Y)
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(UserWarning, match="The least populated class in y has only 1 members"):
        TargetEncoder(cv=4).fit_transform(X, with_wrong("grade", 5, "superb")["grade"])


def test_an_error_travels_whole():
    error = pickle.loads(pickle.dumps(RowInPartitionError("in row ", 3, ".", 2)))
    assert (str(error), error.partition) == ("in row 3.", 2)
    assert str(error.counted([10, 20])) == "in row 33."


def test_dask_is_not_loaded_for_other_data():
    code = "from gpu_encode import TargetEncoder; TargetEncoder(cv=2).fit_transform([['a'], ['b']] * 2, [0, 1] * 2)"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print('dask' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"


@pytest.mark.parametrize("scheme", [KFold(3), LeaveOneOut()])
def test_no_rows_at_all(scheme):
    nothing = partitioned(WHOLE.iloc[:0], 2)
    with pytest.raises(ValueError, match="None of the parts has rows"):
        TargetEncoder(cv=scheme).fit(nothing[KEYS], nothing["amount"])
