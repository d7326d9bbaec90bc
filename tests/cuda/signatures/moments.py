"""Types that the kernels of moments are launched with."""

from numba import types as t

from cpu_fallback.compiled.moments import Shape
from gpu_encode.cuda.moments import average, average_whole, count_less_one, spread_narrow, spread_wide

SHAPE = t.NamedTuple((t.int64,) * 7 + (t.boolean,), Shape)
CELLS = (t.int64, t.int64[::1], SHAPE)
SPREAD = (t.float64[::1], t.int64[::1])

SIGNATURES = [
    (average, (*CELLS, t.int64, t.float64[::1], t.float64[::1])),
    (average_whole, (*CELLS, t.int64, t.float64[::1], t.float64[::1])),
    (count_less_one, (*CELLS, t.float64[::1])),
    (spread_narrow, (*CELLS, t.int64, t.boolean, *SPREAD)),
    (spread_wide, (*CELLS, t.int64, t.boolean, t.int64[::1], t.int64, *SPREAD)),
]
