"""Types that the kernels of casting are launched with."""

from numba import types as t

from gpu_encode.cuda.casting import narrow, widen

SIGNATURES = [
    (narrow, (t.float64[::1], t.uint64[::1], t.float32[::1], t.uint32[::1])),
    (widen, (t.float32[::1], t.uint32[::1], t.float64[::1], t.uint64[::1])),
]
