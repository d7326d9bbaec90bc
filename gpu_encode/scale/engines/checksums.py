"""A checksum of the rows that a pass has read: passes over the same rows, in any order and division, have the same."""

from collections.abc import Sequence
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cpu_fallback.types import Array
from gpu_encode.tables.categories.hashes import PRIME_1, PRIME_2, PRIME_3, WORD, Words, finish, words_at_bytes
from gpu_encode.tables.categories.strings import buffers_of

# Rows whose words fit a cache.
TILE = 1 << 14
# Texts of more bytes than this are summed by a function of the C library.
LONG = 256
LARGEST_EXACT = 2**53


def checksum(columns: Sequence[pa.ChunkedArray], ordered: bool = False) -> int:
    """Give the sum of a hash of each row, modulo 2**64.

    Parameters
    ----------
    columns : list of pyarrow.ChunkedArray
    ordered : bool, default=False
        Whether the number of a row counts, too.

    Examples
    --------
    >>> one, other = pa.chunked_array([[1, 2], [3]]), pa.chunked_array([["a", "b", None]])
    >>> back = [column.take(pa.array([2, 0, 1])) for column in (one, other)]
    >>> checksum([one, other]) == checksum(back), checksum([one, other], True) == checksum(back, True)
    (True, False)
    """
    total = start = 0
    table = pa.Table.from_arrays(list(columns), [str(number) for number in range(len(columns))])
    for batch in table.to_batches(max_chunksize=TILE):
        hashes = np.arange(start, start + len(batch), dtype=np.uint64) * np.uint64(ordered)
        for column in batch.columns:
            hashes = hashes * PRIME_1 + words_of(column)
        total += int(finish(hashes).sum(dtype=np.uint64))
        start += len(batch)
    return total % 2**64


def words_of(column: pa.Array) -> Words:
    """Give a word of 64 bits for each value; equal values have equal words, whatever their type."""
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), PRIME_3)
    if pa.types.is_dictionary(kind):
        words = np.append(words_of(column.dictionary), PRIME_3)
        return words[pc.fill_null(column.indices.cast(pa.int64()), len(words) - 1).to_numpy(zero_copy_only=False)]
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        column = column.cast(pa.int64() if kind.bit_width == 64 else pa.int32())
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        column = column.cast(pa.large_binary())
    elif not (is_number(column.type) or is_text(column.type)):
        column = pa.array([None if value is None else repr(value) for value in column.to_pylist()], pa.large_string())
    if is_text(column.type):
        words = words_of_texts(*buffers_of(column))
    else:
        words = words_of_numbers((column.fill_null(0) if column.null_count else column).to_numpy(zero_copy_only=False))
    if column.null_count or pa.types.is_floating(column.type):
        missing = column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        words = np.where(missing, PRIME_3, words) if missing.any() else words
    return words


def is_number(kind: pa.DataType) -> bool:
    """Tell whether a type holds numbers of at most 64 bits."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a type holds text or bytes between offsets."""
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def words_of_numbers(numbers: Array) -> Words:
    """Give the bits of numbers as floats; whole numbers that are no floats also count what a float leaves over."""
    # A zero has one sign.
    words = (numbers.astype(np.float64) + 0.0).view(np.uint64)
    if numbers.dtype in (np.int64, np.uint64) and len(numbers):
        most, least = int(numbers.max()), int(numbers.min())
        if most > LARGEST_EXACT or least < -LARGEST_EXACT:
            large = (numbers > LARGEST_EXACT) | (numbers < -LARGEST_EXACT)
            words = words ^ np.where(large, numbers.astype(np.uint64) * PRIME_2, np.uint64(0))
    return words


def words_of_texts(offsets: Array, characters: Array) -> Words:
    """Mix the bytes of each text, eight at a time, into a word."""
    lengths, at, held, eights = words_at_bytes(offsets, characters)
    hashes = lengths.astype(np.uint64) * PRIME_2
    for begin in range(0, min(int(lengths.max(initial=0)), LONG), WORD):
        rows = np.flatnonzero(lengths > begin)
        beyond = np.maximum(WORD - (lengths[rows] - begin), 0).astype(np.uint64) * np.uint64(8)
        hashes[rows] = (hashes[rows] ^ (eights[at[rows] + begin] << beyond)) * PRIME_1
        hashes[rows] ^= hashes[rows] >> np.uint64(32)
    for row in np.flatnonzero(lengths > LONG):
        hashes[row] ^= np.uint64(crc32(held[at[row] : at[row] + lengths[row]].data) * 2**32)
    return hashes
