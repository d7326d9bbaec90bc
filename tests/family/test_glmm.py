"""GLMM as a smoothing: fitted once a fold to what the fold sees, and refused where rows see sums of their own."""

import numpy as np
import pytest

from gpu_encode import GLMM, Greedy, KFold, LeaveOneOut, Ordered, TargetEncoder
from tests.family.members import AMOUNT, KIND, ROWS, SOLD, WEIGHTS, N, same

pytestmark = pytest.mark.filterwarnings("ignore:Greedy")
KINDS = {"binary": SOLD, "continuous": AMOUNT, "multiclass": KIND}


@pytest.mark.parametrize(("kind", "y"), KINDS.items(), ids=KINDS)
def test_each_fold_has_a_model_of_the_other_folds(kind, y):
    encoder = TargetEncoder(smooth=GLMM(), cv=KFold(3, order="interleaved"), target_type=kind)
    found = encoder.fit_transform(ROWS[["zip"]], y, sample_weight=WEIGHTS + 1)
    for fold in range(3):
        rows = np.arange(N) % 3 == fold
        own = TargetEncoder(smooth=GLMM(), cv=Greedy(), target_type=kind)
        own.fit(ROWS[["zip"]][~rows], y[~rows], sample_weight=WEIGHTS[~rows] + 1)
        same(found[rows], own.transform(ROWS[["zip"]][rows]))


@pytest.mark.parametrize(("kind", "y"), KINDS.items(), ids=KINDS)
def test_where_no_category_counts_codes_are_the_mean(kind, y):
    plain = TargetEncoder(smooth=None, min_count=1e9, target_type=kind).fit(ROWS, y)
    model = TargetEncoder(smooth=GLMM(), min_count=1e9, target_type=kind).fit(ROWS, y)
    same(model.transform(ROWS), plain.transform(ROWS))


def test_a_constant_target_gives_that_constant():
    codes = TargetEncoder(smooth=GLMM(), target_type="continuous").fit_transform(ROWS, np.full(N, 0.1))
    assert (codes == 0.1).all(axis=None)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"cv": LeaveOneOut()}, "GLMM of TargetEncoder looks at all categories at once, which LeaveOneOut would"),
        ({"cv": Ordered()}, "which Ordered would ask for every row"),
        ({"prior": 0.5}, r"estimates the common value of the categories: leave out prior=0.5"),
        ({"prior": "category_mean"}, "leave out prior='category_mean'"),
        ({"hierarchy": {"city": ["zip"]}}, "takes no hierarchy"),
        ({"smooth": GLMM(0)}, "'points' parameter of GLMM must be an integer of at least 1 and at most 100"),
        ({"smooth": GLMM(101)}, "at most 100"),
    ],
)
def test_what_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        TargetEncoder(**{"smooth": GLMM()} | parameters).fit_transform(ROWS, SOLD)
