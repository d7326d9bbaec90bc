"""Types that the kernels of ordered are launched with."""

from numba import types as t

from gpu_encode.cuda import chunks, segments
from tests.cuda.signatures.leave_one_out import PARTS

CODES, INTEGERS = t.int32[::1], t.int64[::1]
# What `sort_by_code` gives.
SORTED = (INTEGERS, CODES, INTEGERS, t.int64, t.int64, t.int64, t.int64)

SIGNATURES = [
    (chunks.walk_chunks, (*PARTS, t.int64, t.int64, t.int64, t.int64, INTEGERS, INTEGERS)),
    (chunks.add_chunks, (CODES, t.int64, t.int64, t.int64, t.int64, INTEGERS, INTEGERS, INTEGERS)),
    (segments.sort_classes, (INTEGERS, CODES, CODES, INTEGERS, CODES)),
    (segments.sort_digits, (INTEGERS, *PARTS, t.int64, t.int64, INTEGERS, CODES)),
    (segments.see_sorted, (*SORTED, INTEGERS, INTEGERS)),
    (segments.see_tied, (*SORTED, INTEGERS, INTEGERS, INTEGERS, INTEGERS, INTEGERS)),
    (segments.carry_ties, (INTEGERS, CODES, INTEGERS, t.int64, t.int64, INTEGERS, INTEGERS, INTEGERS)),
    (segments.carry_sums, (*SORTED, INTEGERS)),
]
