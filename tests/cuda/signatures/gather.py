"""Types that the kernels of gather are launched with."""

from numba import types as t

from gpu_encode.cuda.gather import gather_one, gather_several
from tests.cuda.signatures.folds import FOLDS

SIGNATURES = [
    signature
    for code in (t.float32[::1], t.float64[::1])
    for signature in (
        (gather_one, (code, t.int64, t.int64, t.int32[::1], *FOLDS, code)),
        (gather_several, (code, t.int64, t.int64, t.int64, t.int32[::1], *FOLDS, t.int64, t.int64, code)),
    )
]
