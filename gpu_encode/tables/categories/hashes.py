"""A hash of values that any engine can compute: XXH64 of each value's bytes."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.types import MISSING, Array
from gpu_encode.seam.ops import tiles
from gpu_encode.tables.categories import strings
from gpu_encode.tables.categories.canonical_bytes import spell
from gpu_encode.tables.categories.keys import CategoryIndex
from gpu_encode.tables.categories.values import TEMPORAL, Values, as_dtype, rescale

Words = NDArray[np.uint64]

# Constants of XXH64 (Collet, github.com/Cyan4973/xxHash, doc/xxhash_spec.md).
PRIME_1, PRIME_2 = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F)
PRIME_3, PRIME_4 = np.uint64(0x165667B19E3779F9), np.uint64(0x85EBCA77C2B2AE63)
PRIME_5 = np.uint64(0x27D4EB2F165667C5)
STRIPE, WORD = 32, 8
# Number of values that are hashed at a time.
TILE = 1 << 16


def hash_categories(key: CategoryIndex, seed: int) -> Words:
    """Give a hash (uint64) of each category of a key; the last hash is that of a missing value.

    Parameters
    ----------
    key : CategoryIndex
        A key of one or several columns; with several, the hash of each value is the seed for the next column.
    seed : int
        The seed; only its last 64 bits count.

    Notes
    -----
    The hash of a value is XXH64 of its bytes.  A whole number that fits 64 bits, even as a float or a decimal, is 8
    bytes in two's complement, the lowest first.  A date is its number of microseconds since 1970, a time of day the
    number since midnight, a duration the number of all its microseconds.  Any other number that a 64-bit float holds
    exactly is the bytes of this float.  Text is its UTF-8, and bytes are themselves.  Any other value is spelled as
    `HashingEncoder` spells it.  The hash of a missing value is the seed.  With the seed 42, and read as a signed
    number, these are the hashes of Spark's ``xxhash64`` for text, bigint, timestamp and NULL.

    Examples
    --------
    >>> from gpu_encode.tables.categories.keys import KeySpec
    >>> from gpu_encode.tables.categories.vocabulary import Vocabulary
    >>> key = CategoryIndex(KeySpec("name", (0,)), [Vocabulary.from_values(["abc"], None)[0]])
    >>> [hex(number) for number in hash_categories(key, 0).tolist()]
    ['0x44bc2cf5ad770999', '0x0']
    """
    members = np.arange(key.n_categories)[:, None] if key.tuples is None else key.tuples.members
    hashes = np.full(len(members) + 1, seed % 2**64, np.uint64)
    for vocabulary, codes in zip(key.vocabularies, members.T, strict=True):
        present = np.flatnonzero(codes != MISSING)
        for start, stop in tiles(len(present), TILE):
            rows = present[start:stop]
            hashes[rows] = hash_values(vocabulary.values.take(codes[rows].astype(np.int64)), hashes[rows])
    return hashes


def hash_values(values: Values, seeds: Words) -> Words:
    """Give the hash (uint64) of each value; each value has its own seed."""
    if values.kind in ("text", "bytes"):
        return hash_rows(*strings.buffers_of(values.array), seeds)
    if values.kind not in ("number", *TEMPORAL):
        return hash_bytes(spell(values), seeds)
    if values.kind == "number":
        numbers, known = as_dtype(values.array, np.dtype(np.int64))
    else:
        numbers, known = rescale(values.array, values.unit or "us", "us")
    if values.kind == "number" and not known.all():
        floats, is_float = as_dtype(values.array, np.dtype(np.float64))
        numbers, known = np.where(known, numbers, floats.view(np.int64)), known | is_float
    hashes = hash_words(numbers.view(np.uint64), seeds)
    others = np.flatnonzero(~known)
    if len(others):
        hashes[others] = hash_bytes(spell(values.take(others)), seeds[others])
    return hashes


def hash_bytes(texts: Sequence[bytes], seeds: Words) -> Words:
    """Give the hash of each of several strings of bytes."""
    offsets = np.cumsum([0, *map(len, texts)])
    return hash_rows(offsets, np.frombuffer(b"".join(texts), np.uint8), seeds)


def hash_words(words: Words, seeds: Words) -> Words:
    """Give the hash of words of 64 bits; each word is the 8 bytes of a value."""
    return finish(add_word(seeds + (PRIME_5 + np.uint64(WORD)), words))


def hash_rows(offsets: Array, characters: Array, seeds: Words) -> Words:
    """Give the hash of each row of bytes; all rows take each step together."""
    lengths, at, held, words = words_at_bytes(offsets, characters)
    halves = np.ndarray((len(words),), "<u4", held, strides=(1,))
    hashes = seeds + PRIME_5
    long = np.flatnonzero(lengths >= STRIPE)
    if len(long):
        hashes[long] = hash_stripes(words, at[long], lengths[long] // STRIPE, seeds[long])
    hashes += lengths.astype(np.uint64)
    at, left = at + lengths // STRIPE * STRIPE, lengths % STRIPE
    for size, most, add in ((WORD, 3, add_word), (WORD // 2, 1, add_half), (1, 3, add_byte)):
        source = {WORD: words, WORD // 2: halves, 1: held}[size]
        for _ in range(most):
            rows = np.flatnonzero(left >= size)
            hashes[rows] = add(hashes[rows], source[at[rows]].astype(np.uint64))
            at[rows] += size
            left[rows] -= size
    return finish(hashes)


def words_at_bytes(offsets: Array, characters: Array) -> tuple[Array, Array, Array, Words]:
    """Give length and beginning of each row of bytes, the bytes with a word of zeros, and the word at each byte."""
    lengths, at = np.diff(offsets).astype(np.int64), offsets[:-1].astype(np.int64) - offsets[0]
    held = np.zeros(int(offsets[-1] - offsets[0]) + WORD, np.uint8)
    held[:-WORD] = characters[offsets[0] : offsets[-1]]
    return lengths, at, held, np.ndarray((len(held) - WORD + 1,), "<u8", held, strides=(1,))


def hash_stripes(words: Words, at: Array, stripes: Array, seeds: Words) -> Words:
    """Hash the whole stripes of 32 bytes of each row; every row has at least one."""
    lanes = [seeds + PRIME_1 + PRIME_2, seeds + PRIME_2, seeds.copy(), seeds - PRIME_1]
    rows, number = np.arange(len(at)), 0
    while len(rows):
        for index, lane in enumerate(lanes):
            lane[rows] = stir(lane[rows], words[at[rows] + number * STRIPE + index * WORD])
        number += 1
        rows = rows[stripes[rows] > number]
    hashes = rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) + rotate(lanes[3], 18)
    for lane in lanes:
        hashes = (hashes ^ stir(np.zeros_like(lane), lane)) * PRIME_1 + PRIME_4
    return hashes


def rotate(numbers: Words, by: int) -> Words:
    """Rotate the bits of numbers to the left."""
    return numbers << np.uint64(by) | numbers >> np.uint64(64 - by)


def stir(lane: Words, words: Words) -> Words:
    """Mix words into a lane."""
    return rotate(lane + words * PRIME_2, 31) * PRIME_1


def add_word(hashes: Words, words: Words) -> Words:
    """Mix 8 bytes into hashes."""
    return rotate(hashes ^ stir(np.zeros_like(words), words), 27) * PRIME_1 + PRIME_4


def add_half(hashes: Words, halves: Words) -> Words:
    """Mix 4 bytes into hashes."""
    return rotate(hashes ^ halves * PRIME_1, 23) * PRIME_2 + PRIME_3


def add_byte(hashes: Words, numbers: Words) -> Words:
    """Mix a byte into hashes."""
    return rotate(hashes ^ numbers * PRIME_5, 11) * PRIME_1


def finish(hashes: Words) -> Words:
    """Spread the bits of hashes over all 64."""
    hashes = (hashes ^ hashes >> np.uint64(33)) * PRIME_2
    hashes = (hashes ^ hashes >> np.uint64(29)) * PRIME_3
    return hashes ^ hashes >> np.uint64(32)
