"""Kernels contain stages and no other kernels; all arrays are counted, and each is freed in time and not early."""

import gc
import os

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from cpu_fallback.compiled.border import counting, kernel, stage
from gpu_encode import KFold, LeaveOneOut, Ordered, TargetEncoder
from gpu_encode.seam.ops import use_backend

pytestmark = [pytest.mark.host, pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="no kernels")]

KEYS = (np.arange(6000) % 7).reshape(-1, 1)
TARGETS = KEYS[:, 0] % 2, KEYS[:, 0] % 3, np.sin(np.arange(6000.0))


@pytest.fixture
def counted():
    """Count what kernels allocate."""
    _nrt_python.memsys_enable_stats()
    yield rtsys.get_allocation_stats
    _nrt_python.memsys_disable_stats()


@pytest.mark.parametrize("scheme", [KFold(), LeaveOneOut(), Ordered()], ids=["folds", "leave-one-out", "ordered"])
@pytest.mark.parametrize("smooth", ["auto", 10.0])
def test_all_arrays_of_kernels_are_freed(scheme, smooth, counted):
    gc.collect()
    before = counted()
    with use_backend("compiled"):
        for y in TARGETS:
            TargetEncoder(cv=scheme, smooth=smooth).fit_transform(KEYS, y)
    gc.collect()
    after = counted()
    assert after.mi_alloc > before.mi_alloc
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free


def test_a_part_that_would_leave_arrays_behind_is_refused():
    @counting
    def give(numbers):
        return numbers[1:], 1

    @stage
    def lose(numbers):
        return give(numbers)[1]

    @kernel
    def count(numbers):
        return lose(numbers)

    with pytest.raises(TypeError, match="lose gives arrays, or calls a function that does: decorate"):
        count(np.zeros(3))


def test_a_kernel_that_calls_a_kernel_is_refused():
    @kernel
    def inner(numbers):
        return numbers[0]

    @stage
    def between(numbers):
        return inner(numbers)

    @kernel
    def outer(numbers):
        return inner(numbers)

    @kernel
    def through_a_part(numbers):
        return between(numbers)

    assert inner(np.ones(3)) == 1
    for calls in (outer, through_a_part):
        with pytest.raises(TypeError, match=r"calls .*inner, which is a kernel: decorate that with `stage`"):
            calls(np.ones(3))


def test_code_for_read_only_arrays_serves_writable_ones():
    @stage
    def first_of(numbers):
        return numbers[0]

    @stage
    def write(numbers, value):
        numbers[0] = value

    @counting
    def all_of(numbers):
        return numbers[:]

    @kernel
    def read(numbers):
        return first_of(all_of(numbers))

    @kernel
    def write_and_read(numbers):
        write(all_of(numbers), 7.0)
        return first_of(numbers)

    given = np.ones(3)
    frozen = given.view()
    frozen.flags.writeable = False
    assert read(frozen) == 1.0
    assert write_and_read(given) == 7.0
    assert [len(part.signatures) for part in (first_of, write, all_of)] == [1, 1, 2]
