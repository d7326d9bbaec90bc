"""Holdout by a mask: the rows that each row sees, by plain loops, for all forms of rows and masks."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gpu_encode as ge
from gpu_encode.seam.ops import use_backend
from tests.bits import assert_same_bits
from tests.encoders.visibility import FRAME, ROW, SIZE, seen_by_new_rows, visible

MASK = ROW % 3 == 1
FORMS = {
    "booleans": MASK,
    "a list": MASK.tolist(),
    "zeros and ones": MASK.astype(np.int8),
    "floats": MASK.astype(float),
    "pandas": pd.Series(MASK, index=ROW[::-1], dtype="boolean"),
    "polars": pl.Series(MASK),
    "arrow": pa.array(MASK),
    "objects": MASK.astype(object),
}


@pytest.mark.host
@pytest.mark.parametrize("mask", FORMS.values(), ids=FORMS)
def test_each_side_sees_the_other_and_new_rows_the_calibration_side(mask):
    np.testing.assert_array_equal(visible(ge.Holdout(mask=mask)), MASK[:, None] != MASK)
    np.testing.assert_array_equal(seen_by_new_rows(ge.Holdout(mask=mask)), MASK)
    assert seen_by_new_rows(ge.Holdout(mask=mask, new_rows="all")).all()


@pytest.mark.host
def test_a_random_subset_takes_the_same_choices():
    calibration = seen_by_new_rows(ge.Holdout(0.4))
    sees = visible(ge.Holdout(0.4, calibration_rows="nan"))
    np.testing.assert_array_equal(sees, calibration & ~calibration[:, None])
    assert seen_by_new_rows(ge.Holdout(0.4, new_rows="all")).all()


def means(keys, target, mask, row):
    """Return the mean of the row's category on the other side, or of the whole other side if it has no such row."""
    other = [place for place in range(len(keys)) if mask[place] != mask[row]]
    own = [target[place] for place in other if keys[place] == keys[row]]
    own = own or [target[place] for place in other]
    return sum(own) / len(own)


KEYS = ["a", "b", "a", "c", "b", "a", "c", "a"]
TARGET = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]
HELD = [True, False, True, False, False, False, True, False]


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
@pytest.mark.parametrize("prior", ["mean", 7.0])
@pytest.mark.parametrize("calibration_rows", ["other", "nan"])
def test_by_definition(backend, prior, calibration_rows):
    X = pd.DataFrame({"key": KEYS, "held": HELD})
    cv = ge.Holdout(mask="held", calibration_rows=calibration_rows)
    encoder = ge.TargetEncoder(
        columns=["key"], cv=cv, smooth=None, prior=prior, handle_unknown=9.0, indicators=True, target_type="continuous"
    )
    with use_backend(backend):
        encoded = encoder.fit_transform(X, TARGET)
    for row, held in enumerate(HELD):
        seen = any(KEYS[place] == KEYS[row] and HELD[place] != held for place in range(len(KEYS)))
        expected = means(KEYS, TARGET, HELD, row) if seen else 9.0
        blind = held and calibration_rows == "nan"
        assert_same_bits(encoded["key"][row], np.float64(np.nan if blind else expected))
        assert encoded["key_unseen"][row] == (not seen)


@pytest.mark.filterwarnings("error::UserWarning")
def test_calibration_rows_are_nan_without_a_warning_in_every_encoder():
    X, y = pd.DataFrame({"key": KEYS, "held": HELD}), [0, 1, 0, 1, 1, 0, 1, 1]
    cv = ge.Holdout(mask="held", calibration_rows="nan")
    for encoder in (
        ge.StatisticEncoder(["count", "median"], columns=["key"], cv=cv, handle_unknown=0.0),
        ge.WeightOfEvidenceEncoder(columns=["key"], cv=cv),
        ge.ImpactEncoder(columns=["key"], cv=cv),
        ge.OrdinalEncoder(columns=["key"], cv=cv, order="target"),
        ge.ClusterEncoder(2, columns=["key"], cv=cv),
    ):
        encoded = encoder.fit_transform(X, y).drop(columns="held").to_numpy(float)
        np.testing.assert_array_equal(np.isnan(encoded).all(axis=1), HELD)
        np.testing.assert_array_equal(np.isnan(encoded).any(axis=1), HELD)


@pytest.mark.host
@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"mask": ROW % 3}, "The array given as mask must be of booleans, or 0 and 1. Row 2 has 2"),
        ({"mask": "group"}, "The mask column 'group' must be of booleans, or 0 and 1. Row 1 has 5"),
        ({"mask": "nowhere"}, "nowhere"),
        ({"mask": MASK[:-1]}, f"{SIZE - 1}"),
        ({"mask": [None, *MASK[1:].tolist()]}, "mask"),
        ({"mask": np.ones(SIZE, bool)}, "The mask of Holdout is the same for all rows"),
        ({"new_rows": "some"}, "'new_rows' parameter of Holdout must be one of 'calibration', 'all'"),
        ({"calibration_rows": 0}, "'calibration_rows' parameter of Holdout must be one of 'other', 'nan'"),
    ],
)
def test_errors(choices, message):
    with pytest.raises(ValueError, match=message):
        visible(ge.Holdout(**choices))


@pytest.mark.host
def test_a_mask_of_an_array_is_not_saved(tmp_path):
    encoder = ge.TargetEncoder(columns=["one"], cv=ge.Holdout(mask=MASK)).fit(FRAME, ROW / 2)
    with pytest.warns(UserWarning, match="is not saved: it only matters for training"):
        encoder.save(tmp_path / "model")
    assert_same_bits(ge.load(tmp_path / "model").transform(FRAME)["one"], encoder.transform(FRAME)["one"])
