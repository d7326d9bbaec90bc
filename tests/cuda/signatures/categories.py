"""Types that the kernels of categories are launched with."""

from itertools import product

from numba import types as t

from gpu_encode.cuda import categories

# Raw words of whole numbers and booleans.
WORDS = (t.uint8[::1], t.uint16[::1], t.uint32[::1], t.uint64[::1])
CODES = (t.int32[::1], t.int64[::1])

SIGNATURES = [
    *((categories.mark_rows, (words, t.uint64, t.uint64, t.uint8[::1])) for words in WORDS),
    *((categories.mark_categories, (words, t.uint64, t.uint64, t.int32[::1])) for words in WORDS),
    *((categories.rank_rows, (words, t.uint64, t.uint64, t.int32[::1], t.int32[::1])) for words in WORDS),
    *((categories.combine_rows, (left, right, t.int64, t.int64[::1])) for left, right in product(CODES, CODES)),
]
