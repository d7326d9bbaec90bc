"""Types that the kernels of sums are launched with."""

from importlib import import_module

from numba import types as t

from gpu_encode.cuda import sum_kernels
from tests.cuda.signatures.folds import FOLDS

# In the package, the name of this module is that of the operation.
extents = import_module("gpu_encode.cuda.extents")

ROWS = (t.int32[::1], t.int32[::1], t.uint64[::1], t.uint64[::1], *FOLDS, t.int64[::1], t.int64[::1])

SIGNATURES = [
    (sum_kernels.add_in_cells, ROWS),
    (sum_kernels.add_in_tables, ROWS),
    (sum_kernels.add_hot_in_tables, (*ROWS, t.int64[::1], t.uint8[::1])),
    (
        extents.measure_blocks,
        (t.int64, t.uint64[::1], t.int64, t.uint64[::1], t.int64, t.int64[::1], t.int64[::1]),
    ),
]
