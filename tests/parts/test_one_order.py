"""Codes of one order are those of that order, and no average: infinite ones and negative zero as well."""

import numpy as np
import pytest

from gpu_encode import Ordered, WeightOfEvidenceEncoder
from gpu_encode.training.ordered import average
from tests.parts.in_parts import parts_of
from tests.parts.test_orders import WAYS, encoded


@pytest.mark.filterwarnings("ignore:.*see no rows")
def test_infinite_evidence():
    X, y = np.array([list("aaabbbab")]).T, np.array([1, 1, 1, 0, 0, 1, 1, 0])
    make = lambda: WeightOfEvidenceEncoder(regularization=0, cv=Ordered(shuffle=False))  # noqa: E731
    expected = make().fit_transform(X, y)
    assert np.isinf(expected).sum() > 2
    found = encoded(make(), parts_of(X, y, None, None, [3, 4]), 1, next(iter(WAYS)))
    assert np.concatenate(found).tobytes() == expected.tobytes()


def test_orders_that_agree_on_infinity():
    inf, nan = np.inf, np.nan
    found = average(np.array([[inf, -inf, nan, -0.0, 1.0], [inf, -inf, inf, -0.0, 3.0], [inf, nan, inf, -0.0, 2.0]]))
    assert found.tolist() == [inf, -inf, inf, 0.0, 2.0]
    assert np.signbit(average(np.array([[-0.0]]))[0])
