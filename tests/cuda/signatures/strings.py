"""Types that the kernels of strings are launched with."""

from itertools import product

from numba import types as t

from gpu_encode.cuda import strings

OFFSETS = (t.int32[::1], t.int64[::1])
# Starts, ends and characters, the offsets of either width; and which rows are null.
ROWS = tuple((offsets, offsets, t.uint8[::1]) for offsets in OFFSETS)
NULLS = (t.boolean[::1], t.int64)

SIGNATURES = [
    *((strings.hash_rows, (*rows, *NULLS, t.uint64, t.uint64[::1])) for rows in ROWS),
    (strings.keep_rows, (t.int32[::1], t.int32[::1])),
    *((strings.compare_rows, (*rows, *NULLS, t.int32[::1], t.int32[::1], t.int32[::1])) for rows in ROWS),
    *((strings.check_rows, (*rows, *NULLS, *others, t.int32[::1])) for rows, others in product(ROWS, ROWS)),
    *((strings.cut_rows, (*rows, t.int64[::1], t.int64, t.uint64[::1])) for rows in ROWS),
    *((strings.copy_rows, (*rows, t.int64[::1], t.uint8[::1])) for rows in ROWS),
]
