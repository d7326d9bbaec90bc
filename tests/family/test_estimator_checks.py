"""scikit-learn's checks of any estimator, for each public one with default parameters."""

import inspect
from typing import Any

import pytest

import gpu_encode as ge
from tests.estimator_checks import unexpected

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore")]

ESTIMATORS = [name for name in ge.__all__ if inspect.isclass(getattr(ge, name)) and hasattr(getattr(ge, name), "fit")]
APART = "training encodings are not those of new rows, on purpose"
APART_CHECKS = dict.fromkeys(["check_transformer_general", "check_transformer_data_not_an_array"], APART)
WEIGHTS = "check_sample_weight_equivalence_on_dense_data"
EQUAL_VALUES = (
    "of rows that are all different, singular values are equal, and only the space of their vectors is defined"
)
LEFT_OUT = "a row that weighs two is left out whole, of two equal ones one: tuned weights differ"
# Every check that fails, and why. Whoever fails none is not named.
EXPECTED: dict[str, dict[str, str]] = {
    "CatBoostEncoder": APART_CHECKS,
    "FactorizationEncoder": APART_CHECKS,
    "ImpactEncoder": APART_CHECKS,
    "WeightOfEvidenceEncoder": APART_CHECKS,
    "ConvexBlend": {"check_dtype_object": "scores are numbers"},
    "CooccurrenceEncoder": {WEIGHTS: EQUAL_VALUES},
    "OneHotEncoder": {WEIGHTS: "a value that only rows of weight zero have is unknown, and unknown values are refused"},
    "ProximityClassifier": {WEIGHTS: LEFT_OUT},
    "ProximityRegressor": {WEIGHTS: LEFT_OUT},
    "SpectralEncoder": {WEIGHTS: EQUAL_VALUES},
    "SquaredErrorBlend": {"check_dtype_object": "predictions are numbers"},
    "VoteRegressor": {
        WEIGHTS: "folds are of rows, so a row that weighs two is in one fold, and two rows may be in two"
    },
}
# Whole estimators that the checks cannot fit, and what their errors say.
NOT_CHECKED = {
    "GradientEncoder": "needs y of two columns",
    "NumberFiller": "takes frames in memory, whose columns have names",
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_public_estimator_passes(name: str) -> None:
    """Each passes all checks but those of the list, and none of the list passes."""
    made: Any = getattr(ge, name)()
    if name in NOT_CHECKED:
        with pytest.raises((TypeError, ValueError), match=NOT_CHECKED[name]):
            made.fit([["a"], ["b"]], [0.0, 1.0])
        return
    assert unexpected(made, EXPECTED.get(name)) == {}


def test_the_lists_name_public_estimators() -> None:
    """No name stands in a list that is no estimator."""
    assert {*EXPECTED, *NOT_CHECKED} <= {*ESTIMATORS}
    assert len(ESTIMATORS) >= 21
