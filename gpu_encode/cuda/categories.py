"""Values to codes: by a direct index if their range is small, else by hashing; codes are always in sorted order."""

from collections.abc import Iterator
from weakref import finalize

import numpy as np

from cpu_fallback.compiled.border import Array
from cpu_fallback.compiled.categories import VALUES_PER_CATEGORY
from cpu_fallback.compiled.ranges import range_around
from cpu_fallback.types import written
from gpu_encode.cuda import raw
from gpu_encode.cuda.casting import cast
from gpu_encode.cuda.hashing import UNKNOWN, Words, codes_in, distinct, enter_words, number_slots, rank_slots
from gpu_encode.cuda.indexed import MOST_OFFSETS, CodeSource, Index, codes_by, offset_at, rank_rows, subtract_base
from gpu_encode.cuda.memory import empty, to_device, to_host, wait_for_stream, zeros
from gpu_encode.cuda.runtime import SIMULATED, cuda, current_device, is_device_array, kernel, launch_rows, xp

# A direct index may be longer by this than the number of its rows.  Each of its offsets takes nine bytes for a moment.
SMALL_RANGE = 1 << 16
# Most offsets of an index that every pass over the rows reads, and that the host reads: an estimate from the part of a
# GPU's cache that other tables leave free.
SHORT_INDEX = 1 << 20
# If there are this many rows for each number of a range, each block has marks of its own and merges them once.  This is
# an estimate.
ROWS_A_MARK = 1 if SIMULATED else 16
# The range is guessed from a sample of this many numbers, if there are several times as many.
GUESSED_FROM = 1 << 14
SEVERAL = 4
# Short direct indexes of models' categories, by the array of the categories, the device and the type of the rows.
KEPT: "dict[tuple[int, int, np.dtype[np.generic]], Index]" = {}


def unsigned_type(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """Type of the raw words of numbers."""
    return np.dtype(f"u{dtype.itemsize}")


def words_of(numbers: Array) -> Words:
    """Raw words of numbers, without a copy."""
    minus_zero = 1 << (8 * numbers.dtype.itemsize - 1) if numbers.dtype.kind == "f" else 0
    return Words(numbers.view(unsigned_type(numbers.dtype)), np.uint64(minus_zero))


def numbers_of(words: Array, dtype: np.dtype[np.generic]) -> Array:
    """Give the numbers with these raw words, in their own width or a wider one."""
    return words.astype(unsigned_type(dtype), copy=False).view(dtype)


def bounds(numbers: Array, n_rows: int, *, is_sorted: bool) -> tuple[int, int] | None:
    """Lowest number and length of a direct index; None if the index would be too long for the rows."""
    dtype = numbers.dtype
    if dtype.kind == "f":
        return None
    if dtype.itemsize <= 2:
        # An index of all values of the type is small, so there is no need to wait for bounds.
        return (int(np.iinfo(dtype).min) if dtype.kind == "i" else 0), 1 << 8 * dtype.itemsize
    low, high = (int(numbers[0]), int(numbers[-1])) if is_sorted else ends_of(numbers)
    size = high - low + 1
    return (low, size) if size <= n_rows + SMALL_RANGE else None


def ends_of(numbers: Array) -> tuple[int, int]:
    """Give the smallest and the largest of some integers, in one pass; the host waits for them."""
    flipped = sign_bit(numbers.dtype)
    ends, words = empty(2 * raw.BLOCKS, np.uint64), words_of(numbers).words
    n_blocks = raw.run_over("measure_range", words, np.uint64(flipped), ends, variant=raw.key_of(words))
    found = to_host(ends[: 2 * n_blocks])
    return int(found[::2].min()) - flipped, int(found[1::2].max()) - flipped


def sign_bit(dtype: np.dtype[np.generic]) -> int:
    """Bit of a word that, if it is flipped, lets signed words compare like unsigned ones; 0 for unsigned types."""
    return 1 << (8 * dtype.itemsize - 1) if dtype.kind == "i" else 0


def base_and_mask(lowest: int, dtype: np.dtype[np.generic]) -> tuple[np.uint64, np.uint64]:
    """Word of the lowest number in a direct index, and the bits of a word: differences wrap around in this width."""
    mask = (1 << 8 * dtype.itemsize) - 1
    return np.uint64(lowest & mask), np.uint64(mask)


@kernel
def mark_categories(words: Array, base: np.uint64, mask: np.uint64, ranks: Array) -> None:
    """Write the index plus one of each distinct number at its offset."""
    for i in range(cuda.grid(1), len(words), cuda.gridsize(1)):
        ranks[np.int64(offset_at(words, i, base, mask))] = i + 1


def factorize(values: Array, /) -> tuple[Array, Array]:
    """Codes of numbers without null, and their sorted distinct values, which may be on the host."""
    numbers = to_device(values)
    if not len(numbers):
        return empty(0, np.int32), numbers
    span = bounds(numbers, len(numbers), is_sorted=False)
    if span is None:
        return factorize_hashed(numbers)
    if span[1] <= 2:
        return factorize_ends(numbers, *span)
    codes, distinct = index_range(numbers, *span) or factorize_hashed(numbers)
    # Consecutive numbers from zero on are their own codes.
    are_codes = numbers.dtype == np.int32 and span == (0, len(distinct))
    return (numbers if are_codes else written(codes)), distinct


def index_numbers(values: Array, /) -> tuple[Array, Array]:
    """Like `factorize`, for whole numbers; if their range is short, codes are `UnwrittenCodes`."""
    numbers = to_device(values)
    for span in spans_of(numbers, SHORT_INDEX):
        if (found := index_range(numbers, *span)) is not None:
            return found
    return factorize(numbers)


def spans_of(numbers: Array, most: int) -> Iterator[tuple[int, int]]:
    """Yield a guess of the result of `bounds`, which may save a pass, then the result; skip too long ranges."""
    guess = guess_bounds(numbers) if len(numbers) else None
    if guess is None or guess[1] > most:
        return
    yield guess
    exact = bounds(numbers, len(numbers), is_sorted=False)
    if exact is not None and exact[1] <= most:
        yield exact


def guess_bounds(numbers: Array) -> tuple[int, int] | None:
    """Guess the result of `bounds` from a sample of many numbers, with a margin; for few numbers, compute it."""
    step = len(numbers) // GUESSED_FROM
    if step < SEVERAL or numbers.dtype.itemsize <= 2 or numbers.dtype.kind == "f":
        return bounds(numbers, len(numbers), is_sorted=False)
    # An odd step is unlikely to match periods of the data.
    step = (step - 1) | 1
    some = xp.ascontiguousarray(numbers[: step * GUESSED_FROM : step])
    lowest, size = range_around(*ends_of(some), numbers.dtype)
    return (lowest, size) if size <= len(numbers) + SMALL_RANGE else None


def index_range(numbers: Array, lowest: int, size: int) -> tuple[Array, Array] | None:
    """Number the values of a range of whole numbers; None if some numbers are outside of the range."""
    words, (base, mask) = words_of(numbers).words, base_and_mask(lowest, numbers.dtype)
    present = mark(words, base, size)
    ranks = xp.cumsum(present, dtype=np.int32)
    # The host gets the numbers from a short index sooner than from a list that is made of it.
    marks = to_host(present) if size <= SHORT_INDEX else present
    if marks[-1]:
        return None
    offsets = marked(marks[:-1])
    return codes_by(words, Index(base, mask, ranks[:-1]), offsets), numbers_at(offsets, base, numbers.dtype)


def marked(marks: Array) -> "range | Array":
    """Offsets with a mark; as a range if they are consecutive, since NumPy would take long to list them."""
    if not isinstance(marks, np.ndarray):
        return np.flatnonzero(marks)
    present = marks.view(np.bool_)
    first, n = int(present.argmax()), np.count_nonzero(present)
    return range(first, first + n) if n and present[first : first + n].all() else np.flatnonzero(present)


def mark(words: Array, base: np.uint64, size: int) -> Array:
    """Mark which numbers of a range occur; the last mark is for all numbers outside of the range."""
    present, bits = zeros(size + 1, np.uint8), 4 * -(-(size + 1) // 32)
    by_block = bits <= raw.table_bytes() and len(words) >= ROWS_A_MARK * len(present)
    name, shared = ("mark_numbers_by_block", bits) if by_block else ("mark_numbers", 0)
    raw.run_over(name, words, base, present, shared=shared, variant=raw.key_of(words))
    return present


def numbers_at(offsets: "range | Array", base: np.uint64, dtype: np.dtype[np.generic]) -> Array:
    """Give the numbers at some offsets from the base of a direct index."""
    words = unsigned_type(dtype)
    if isinstance(offsets, range):
        offsets = np.arange(offsets.start, offsets.stop, dtype=np.uint32)
    found: Array = (offsets.astype(words) + words.type(base)).view(dtype)
    return found


def factorize_ends(numbers: Array, lowest: int, size: int) -> tuple[Array, Array]:
    """Give the codes of whole numbers from a range of one or two numbers, each of which occurs."""
    distinct = np.arange(lowest, lowest + size, dtype=np.int64 if lowest < 0 else np.uint64).astype(numbers.dtype)
    if lowest == 0 and numbers.dtype == np.int32:
        return numbers, distinct
    codes = empty(len(numbers), np.int32)
    launch_rows(subtract_base, len(codes), words_of(numbers).words, *base_and_mask(lowest, numbers.dtype), codes)
    return codes, distinct


def factorize_hashed(numbers: Array) -> tuple[Array, Array]:
    """Number the values with a hash table, then its slots in the order of their values."""
    codes, slots = enter_words(words_of(numbers))
    occupied, words = distinct(slots)
    found = numbers_of(words, numbers.dtype)
    order = xp.argsort(found.astype(np.float32) if numbers.dtype == np.float16 else found)
    ranks = empty(len(slots), np.int32)
    launch_rows(rank_slots, len(order), occupied[order], ranks)
    launch_rows(number_slots, len(codes), codes, ranks)
    return codes, found[order]


def lookup(values: Array, categories: Array, /) -> Array:
    """Code of each value in sorted distinct `categories` of the same dtype; -2 for an absent value."""
    if not len(values) or not len(categories):
        return unknown_codes(len(values))
    common = common_type(values, categories)
    known = cast(categories, common) if is_device_array(categories) else categories.astype(common, copy=False)
    # This must come before the categories are copied to the device, where their bounds would have to be waited for.
    ends = bounds(known, len(values), is_sorted=True)
    given, known = cast(to_device(values), common), to_device(known)
    # CuPy would compare small float32 numbers as if they were zero.
    if known.dtype != np.float32 and len(given) < len(known) // VALUES_PER_CATEGORY:
        return bisect(given, known)
    if ends is None:
        return codes_in(words_of(given), words_of(known))
    index, codes = index_of(known, *ends), empty(len(given), np.int32)
    launch_rows(rank_rows, len(given), words_of(given).words, *index, codes)
    return codes


def index_of(known: Array, lowest: int, size: int) -> Index:
    """Make the direct index of sorted distinct numbers."""
    (base, mask), ranks = base_and_mask(lowest, known.dtype), zeros(size, np.int32)
    launch_rows(mark_categories, len(known), words_of(known).words, base, mask, ranks)
    return Index(base, mask, ranks)


def source_by(categories: Array, values: Array) -> CodeSource | None:
    """Say where kernels read the codes of numbers among categories on the host; None if an index would be too long.

    Consecutive numbers need no index, and nothing is copied to the device.
    """
    dtype, n = values.dtype, len(categories)
    if not n or common_type(np.empty(0, dtype), categories) != dtype:
        return None
    are_neighbours = dtype.kind in "iu" and int(categories[-1]) - int(categories[0]) + 1 == n
    if are_neighbours:
        index: Index | None = Index(*base_and_mask(int(categories[0]), dtype), empty(0, np.int32))
    else:
        index = index_for(categories, dtype, len(values))
    if index is None or n >= MOST_OFFSETS or len(index.ranks) >= MOST_OFFSETS:
        return None
    size = n if are_neighbours else len(index.ranks)
    return CodeSource(words_of(to_device(values)).words, index.base, index.mask, np.uint64(size), index.ranks)


def index_for(categories: Array, dtype: np.dtype[np.generic], n_rows: int) -> Index | None:
    """Give the direct index of numbers on the host; None if it is too long for the rows.

    A short index is made once, and kept as long as the numbers exist.
    """
    key = id(categories), current_device(), dtype
    if key in KEPT:
        return KEPT[key]
    known = categories.astype(dtype, copy=False)
    ends = bounds(known, n_rows, is_sorted=True)
    if ends is None:
        return None
    index = index_of(to_device(known), *ends)
    if ends[1] <= SHORT_INDEX:
        wait_for_stream()
        KEPT[key] = index
        finalize(categories, KEPT.pop, key, None)
    return index


def common_type(values: Array, categories: Array) -> np.dtype[np.generic]:
    """Type in which values and categories are compared: that of the many values, if it can hold the categories."""
    wide: np.dtype[np.generic] = np.result_type(values.dtype, categories.dtype)
    if is_device_array(categories) or wide.kind not in "iu" or values.dtype.itemsize >= wide.itemsize:
        return wide
    held = np.iinfo(values.dtype)
    return values.dtype if held.min <= categories[0] and categories[-1] <= held.max else wide


def unknown_codes(n_rows: int) -> Array:
    """Codes of rows whose values are all unknown."""
    codes = empty(n_rows, np.int32)
    codes[...] = UNKNOWN
    return codes


def bisect(given: Array, known: Array) -> Array:
    """Look up few values among many categories."""
    if known.dtype == np.float16:
        given, known = given.astype(np.float32), known.astype(np.float32)
    index = xp.minimum(xp.searchsorted(known, given), len(known) - 1)
    return xp.where(known[index] == given, index, UNKNOWN).astype(np.int32)


@kernel
def combine_rows(left: Array, right: Array, n_right: int, keys: Array) -> None:
    """Join two codes into one."""
    for i in range(cuda.grid(1), len(keys), cuda.gridsize(1)):
        keys[i] = np.int64(left[i]) * n_right + np.int64(right[i])


def combine(left: Array, right: Array, n_right: int, /) -> Array:
    """Joint int64 key of two columns of codes that are not negative: exact while n_left * n_right < 2**63."""
    keys = empty(len(left), np.int64)
    first, second = (to_device(side) for side in (left, right))
    first, second = (side if side.dtype == np.int32 else side.astype(np.int64, copy=False) for side in (first, second))
    launch_rows(combine_rows, len(keys), first, second, n_right, keys)
    return keys
