"""Types that the kernel of leave_one_out is launched with."""

from numba import types as t

from gpu_encode.cuda.leave_one_out import leave_row_out

# What `parts_of` gives: codes, classes, whether there are any, target and weight with their kinds, measures.
PARTS = (t.int32[::1], t.int32[::1], t.boolean, t.uint64[::1], t.int64, t.uint64[::1], t.int64, t.int64[::1])

SIGNATURES = [(leave_row_out, (*PARTS, t.int64[::1], t.int64, t.int64, t.int64, t.int64[::1]))]
