"""Targets that are not finite numbers give an error that names the first such row, as on a CPU."""

from importlib import import_module

import numpy as np
import pytest

from gpu_encode import KFold, LeaveOneOut, Ordered, TargetEncoder
from gpu_encode.seam.ops import use_backend
from tests.backends import ON_CUDA, memory
from tests.family.drawn import quietly

pytestmark = pytest.mark.cuda

N = 60
X = (np.arange(N, dtype=np.int32) % 5)[:, None]


@pytest.fixture(params=ON_CUDA)
def device(request):
    with use_backend(request.param):
        yield import_module("gpu_encode.cuda")


def said(device, X, y, cv, **given):
    """What an encoder says of a target."""
    with pytest.raises(ValueError, match="y") as raised:
        TargetEncoder(cv=cv, target_type="continuous", device=device, **given).fit_transform(X, y)
    return type(raised.value), str(raised.value)


@pytest.mark.parametrize("cv", [KFold(3), LeaveOneOut(), Ordered(shuffle=False)], ids=repr)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_what_is_no_finite_number_is_refused(device, number, dtype, cv):
    y = np.random.default_rng(0).standard_normal(N).astype(dtype)
    # In a whole vector, in the rows behind all of these, and in several rows.
    for rows in ([0], [N - 1], [7, 30]):
        wrong = y.copy()
        wrong[rows] = number
        # A row whose target is not known may be left out; one whose target is infinite may not.
        for keep in ("error", "keep") if np.isinf(number) else ("error",):
            ours = said("cuda", memory.to_device(X), memory.to_device(wrong), cv, missing_target=keep)
            with use_backend("numpy"):
                assert ours == said("cpu", X, wrong, cv, missing_target=keep)
            assert f"row {rows[0]}" in ours[1]


@pytest.mark.parametrize("cv", [KFold(3), LeaveOneOut(), Ordered(shuffle=False)], ids=repr)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_largest_numbers_are_not_refused(device, dtype, cv):
    y = np.random.default_rng(1).standard_normal(N).astype(dtype)
    y[[3, 4, 50]] = np.finfo(dtype).max, -np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    given = {"cv": cv, "target_type": "continuous", "dtype": "float64"}
    found = quietly(TargetEncoder(device="cuda", **given).fit_transform, memory.to_device(X), memory.to_device(y))
    with use_backend("numpy"):
        expected = quietly(TargetEncoder(device="cpu", **given).fit_transform, X, y)
    assert memory.to_host(found).tobytes() == expected.tobytes()
