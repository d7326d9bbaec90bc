"""GLMM as a smoothing: fitted once for each fold to the visible rows, and refused if rows see sums of their own."""

import numpy as np
import pytest

from gpu_encode import GLMM, TargetEncoder
from tests.family.members import AMOUNT, KIND, ROWS, SOLD, N, same

pytestmark = pytest.mark.filterwarnings("ignore:Greedy")
KINDS = {"binary": SOLD, "continuous": AMOUNT, "multiclass": KIND}


@pytest.mark.parametrize(("kind", "y"), KINDS.items(), ids=KINDS)
def test_where_no_category_counts_codes_are_the_mean(kind, y):
    plain = TargetEncoder(smooth=None, min_count=1e9, target_type=kind).fit(ROWS, y)
    model = TargetEncoder(smooth=GLMM(), min_count=1e9, target_type=kind).fit(ROWS, y)
    same(model.transform(ROWS), plain.transform(ROWS))


def test_a_constant_target_gives_that_constant():
    codes = TargetEncoder(smooth=GLMM(), target_type="continuous").fit_transform(ROWS, np.full(N, 0.1))
    assert (codes == 0.1).all(axis=None)
