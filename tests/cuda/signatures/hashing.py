"""Types that the kernels of hash tables are launched with."""

from numba import types as t

from gpu_encode.cuda import hashing

# Raw words; those of one byte the suite alone hashes.
WORDS = (t.uint8[::1], t.uint16[::1], t.uint32[::1], t.uint64[::1])
TABLE = (t.uint64[::1], t.uint64)

SIGNATURES = [
    *((hashing.place_rows, (words, t.uint64, *TABLE, t.int64, t.int32[::1], t.int32[::1])) for words in WORDS),
    *((hashing.find_rows, (words, t.uint64, *TABLE, t.int32[::1], t.int32[::1])) for words in WORDS),
    (hashing.read_places, (t.int64[::1], t.uint64[::1], t.uint64[::1])),
    (hashing.rank_places, (t.int64[::1], t.int32[::1])),
    (hashing.rank_places, (t.int32[::1], t.int32[::1])),
    (hashing.number_places, (t.int32[::1], t.int32[::1])),
]
