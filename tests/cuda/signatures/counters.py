"""Types that the kernels of counters are launched with."""

from numba import types as t

from gpu_encode.cuda import counters
from tests.cuda.signatures.folds import FOLDS

CELLS, SIZES = t.uint32[::1], t.int64[::1]
ROWS = (t.int32[::1], t.int32[::1], t.int64, *FOLDS, t.int64, t.int64, t.int64)

SIGNATURES = [
    (counters.count_rows, (*ROWS, t.int64, t.int64, SIZES)),
    (counters.count_in_memory, (*ROWS, SIZES)),
    (counters.measure_buckets, (*ROWS, t.int64, t.int64, t.int64, CELLS, SIZES)),
    (counters.fill_buckets, (CELLS, t.int64, t.int64, SIZES, SIZES, CELLS)),
    (counters.count_buckets, (CELLS, SIZES, SIZES, t.int64, t.int64, SIZES)),
]
