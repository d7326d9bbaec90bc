"""Which rows each row sees, computed without the library: the number and the sizes of folds, and the visible rows.

The oracle asks the library which rows a row sees; these tests check the library's answer.
"""

import numpy as np
import pytest

from tests.encoders.visibility import folds_of
from tests.laws.encoding import SIZES, key_frame, new_row_sees, random_order, sees

FOLDS = {"number": 3, "k-fold": 3, "contiguous": 4, "interleaved": 3}


def room(size, splits):
    """Find by how many rows random folds may differ: the stride of the block that the rows end in, none at its end."""
    stride = 1
    while size >= splits * stride:
        size, stride = size - splits * stride, 2 * stride
    return stride if size else 0


@pytest.mark.parametrize("size", [*SIZES, 21, 45])
@pytest.mark.parametrize("scheme", FOLDS)
def test_a_row_sees_all_folds_but_its_own_and_folds_are_even(scheme, size):
    sizes = np.bincount(folds_of(sees(scheme, size)))
    assert len(sizes) == FOLDS[scheme]
    assert max(sizes) - min(sizes) <= (room(size, 3) if scheme in {"number", "k-fold"} else size % FOLDS[scheme] > 0)


@pytest.mark.parametrize("size", SIZES)
def test_contiguous_folds_are_runs_and_interleaved_ones_take_turns(size):
    contiguous = folds_of(sees("contiguous", size))
    assert np.count_nonzero(np.diff(contiguous)) == 3
    row = np.arange(size)
    np.testing.assert_array_equal(sees("interleaved", size), row[:, None] % 3 != row % 3)


@pytest.mark.parametrize("size", SIZES)
def test_groups_are_never_split_and_folds_have_as_many_of_them(size):
    groups = key_frame(["a"] * size)["group"].to_numpy()
    folds = folds_of(sees("groups", size))
    folds_of_groups = [set(folds[groups == group]) for group in range(4)]
    assert sorted(map(len, folds_of_groups)) == [1] * 4
    assert sorted(np.bincount([min(own) for own in folds_of_groups])) == [1, 1, 2]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("scheme", "splits", "gap"), [("time-folds", 4, 1), ("time-folds-no-gap", 3, 0)])
def test_time_folds_see_all_earlier_folds_but_for_the_gap(scheme, splits, gap, size):
    times = key_frame(["a"] * size)["time"].to_numpy()
    folds = (times < times[:, None]).sum(axis=1) * splits // size
    np.testing.assert_array_equal(sees(scheme, size), folds < folds[:, None] - gap)


def test_time_folds_are_of_equal_size_where_times_allow():
    # Six times of four rows each in three folds.
    assert np.bincount(sees("time-folds-no-gap", 24).sum(axis=1)).nonzero()[0].tolist() == [0, 8, 16]


@pytest.mark.parametrize("size", [*SIZES, 5, 35])
def test_holdout_shows_each_side_the_other_and_new_rows_the_calibration_side(size):
    calibration = new_row_sees("holdout", size)
    np.testing.assert_array_equal(sees("holdout", size), calibration[:, None] != calibration)
    # Two of the five folds of a random pattern.
    assert abs(calibration.sum() - 0.4 * size) <= 2 * room(size, 5)


@pytest.mark.parametrize("size", SIZES)
def test_leave_one_out_hides_the_row_alone_and_greedy_nothing(size):
    np.testing.assert_array_equal(sees("leave-one-out", size), ~np.eye(size, dtype=bool))
    assert sees("greedy", size).all()


@pytest.mark.parametrize("size", SIZES)
def test_at_each_place_of_a_random_order_a_row_sees_those_before_it(size):
    seen, order = sees("ordered", size), random_order("ordered", size)
    # The first row, before which there is none, sees all others.
    assert sorted(seen.sum(axis=1)) == [*range(1, size), size - 1]
    for place, row in enumerate(order[1:], start=1):
        assert set(np.flatnonzero(seen[row])) == set(order[:place])


@pytest.mark.parametrize("size", SIZES)
def test_an_order_by_time_shows_all_that_is_strictly_earlier(size):
    times = key_frame(["a"] * size)["time"].to_numpy()
    np.testing.assert_array_equal(sees("ordered-time", size), times < times[:, None])


@pytest.mark.parametrize("scheme", ["greedy", "k-fold", "leave-one-out", "ordered", "groups", "time-folds"])
def test_new_rows_see_all_training_rows(scheme):
    # Grouping and time matter in training only.
    assert new_row_sees(scheme, 16).all()
