"""Types that the kernels of folds are launched with."""

from numba import types as t

from gpu_encode.cuda import folds

# What `fold_source` gives.
FOLDS = (t.int64, t.int32[::1], t.int64, t.uint64, t.int64, t.int64, t.int64[::1])

SIGNATURES = [
    (folds.number_folds, (t.int64, *FOLDS, t.int32[::1])),
    (folds.walk, (t.int64, t.uint64, t.uint64, t.uint64[::1], t.boolean, t.int64[::1])),
]
