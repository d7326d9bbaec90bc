"""factorize, lookup and combine on the GPU: both ways, tables that grow, equal hashes, limits of every type."""

import threading
from importlib import import_module

import numpy as np
import pytest

import cpu_fallback
from tests.backends import memory

pytestmark = pytest.mark.cuda

GOLDEN = 0x9E3779B97F4A7C15
WORD = (1 << 64) - 1


@pytest.fixture(scope="module")
def hashing():
    return import_module("gpu_encode.cuda.hashing")


@pytest.fixture(params=["direct", "hashed"])
def way(request, monkeypatch):
    """Send whole numbers of a small range through each method in turn."""
    categories = import_module("gpu_encode.cuda.categories")
    if request.param == "hashed":
        monkeypatch.setattr(categories, "bounds", lambda *given, **options: None)
    return request.param


@pytest.fixture
def small_tables(hashing, monkeypatch):
    """Begin with so few slots that tables must grow, again and again."""
    monkeypatch.setattr(hashing, "FIRST_SLOTS", 2)
    monkeypatch.setattr(hashing, "MOST_PROBES", 2)


def words_of_hashes(hashes):
    """Return words with given hashes: the inverse of `slot_of`."""
    inverse = pow(GOLDEN, -1, 1 << 64)
    words = []
    for wanted in hashes:
        mixed = wanted * inverse & WORD
        mixed ^= mixed >> 29 ^ mixed >> 58
        word = mixed * inverse & WORD
        words.append(word ^ word >> 32)
    return np.array(words, np.uint64)


def check_factorize(ops, values):
    codes, distinct = ops.factorize(values.copy())
    assert codes.dtype == np.int32
    assert distinct.dtype == values.dtype
    expected_codes, expected = cpu_fallback.factorize(values)
    assert distinct.tolist() == expected.tolist()
    assert codes.tolist() == expected_codes.tolist()


def check_lookup(ops, values, categories):
    codes = ops.lookup(values.copy(), categories.copy())
    assert codes.dtype == np.int32
    assert codes.tolist() == cpu_fallback.lookup(values, categories).tolist()


def ends_of(dtype):
    """Numbers at both ends of a type and around zero."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([True, False])
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        ends = [limits.max, limits.min, limits.tiny, limits.smallest_subnormal, np.inf, -np.inf, 0, -0.0, 1, -1, 1.5]
        return np.array(ends, dtype)
    limits = np.iinfo(dtype)
    around = [-2, -1, 0, 1, 2] if dtype.kind == "i" else [0, 1, 2]
    return np.array([limits.max, limits.min, limits.max - 1, limits.min + 1, *around], dtype)


DTYPES = "?bhilBHILefd"


@pytest.mark.parametrize("dtype", DTYPES)
def test_ends_of_every_type(ops, way, dtype):
    ends = ends_of(dtype)
    values = np.random.default_rng(0).permutation(np.repeat(ends, 3))
    check_factorize(ops, values)
    known = cpu_fallback.factorize(ends)[1]
    for chosen in (known, known[::2].copy(), known[1::2].copy(), known[:1].copy(), known[-1:].copy()):
        check_lookup(ops, values, chosen)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint64, np.float32, np.float64])
def test_all_distinct(ops, way, small_tables, dtype):
    check_factorize(ops, np.random.default_rng(1).permutation(700).astype(dtype))


def test_half_floats(ops):
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)[::23].copy()
    numbers = every[~np.isnan(every)]
    check_factorize(ops, numbers)
    # Few values like these are looked up by bisection.
    check_lookup(ops, np.array([np.nan, np.inf, -0.0, 1, numbers[5]], np.float16), np.unique(numbers))


@pytest.mark.parametrize("lowest", [-(2**63), -(2**62), -500, 2**63 - 1000, 2**64 - 1000])
def test_small_ranges_anywhere(ops, way, lowest):
    dtype = np.uint64 if lowest > 2**63 else np.int64
    values = np.random.default_rng(2).integers(0, 999, 300).astype(dtype) + dtype(lowest)
    check_factorize(ops, values)
    known, limits = cpu_fallback.factorize(values)[1], np.iinfo(dtype)
    beyond = np.array([known[0], known[-1], limits.min, limits.max, limits.max // 2, limits.max // 2 + 65_536], dtype)
    check_lookup(ops, np.append(values + 0, beyond), known[::2].copy())


@pytest.mark.parametrize("beyond", [0, 1])
def test_the_longest_direct_index(ops, beyond):
    limit = import_module("gpu_encode.cuda.categories").SMALL_RANGE
    values = np.array([0, limit + 2 + beyond, 5, 5], np.int32)
    check_factorize(ops, values)
    check_lookup(ops, values, np.array([0, 5, limit + 3 + beyond], np.int32))


@pytest.mark.parametrize("distinct", [2, 3, 40, 400])
def test_tables_grow(ops, small_tables, distinct):
    values = np.random.default_rng(4).integers(0, distinct, 500) * 10**14
    check_factorize(ops, values)
    check_factorize(ops, values / 3)


@pytest.mark.parametrize("hashes", [range(300), range(WORD, WORD - 300, -1)])
def test_words_of_one_slot(ops, small_tables, hashing, hashes):
    words = words_of_hashes(hashes)
    assert len({int(hashing.slot_of(word, np.uint64(64 - 40))) for word in words}) == 1
    values = np.random.default_rng(5).permutation(np.repeat(words, 2))
    check_factorize(ops, values)
    check_factorize(ops, values.view(np.int64))
    known = np.sort(words)[::2].copy()
    check_lookup(ops, values, known)


@pytest.fixture
def taking_turns(ops, runtime, monkeypatch):
    """Make the simulator's threads switch at every call and return, so that everything that may interleave does."""
    # Numba compiles its CPU functions first: with switching threads that would take long.
    ops.factorize(words_of_hashes(range(3)))
    if runtime.SIMULATED:
        turns = import_module("tests.cuda.turns")
        monkeypatch.setattr(turns, "has_barrier", lambda kernel: True)

        def give_way(_frame, event, _given):
            if turns.DEVICE.block and event in ("call", "return"):
                turns.DEVICE.block.give_way()

        threading.setprofile(give_way)
    yield
    threading.setprofile(None)


def test_threads_that_want_one_place_get_one_each(ops, taking_turns):
    for _ in range(3):
        check_factorize(ops, words_of_hashes(range(12)))


@pytest.mark.parametrize("dtype", [np.uint64, np.int64])
def test_the_word_that_marks_free_slots(ops, hashing, small_tables, dtype):
    marker = np.array([hashing.FREE]).view(dtype)
    others = np.arange(50).astype(dtype) * dtype(10**15)
    check_factorize(ops, marker)
    check_factorize(ops, np.repeat(marker, 20))
    check_factorize(ops, np.concatenate([others, marker, others, marker]))
    for known in (marker, others, np.sort(np.append(others, marker))):
        check_lookup(ops, np.concatenate([marker, others, marker]), known)


def test_the_marker_of_free_places_is_no_number(ops, hashing):
    values = np.append(np.array([hashing.FREE]).view(np.float64), [np.nan, 1.5, -np.nan, np.inf])
    check_lookup(ops, values, np.array([1.5, 2.5]))


def test_a_table_that_can_grow_no_more_is_filled_and_then_refused(ops, hashing, monkeypatch, small_tables):
    monkeypatch.setattr(hashing, "MOST_SLOTS", 8)
    check_factorize(ops, np.arange(8) * 10**15)
    with pytest.raises(NotImplementedError):
        ops.factorize(np.arange(9) * 10**15)


@pytest.mark.parametrize("slots", [1 << 8, 1 << 31])
def test_tables_are_half_empty(hashing, slots):
    assert hashing.slots_for(slots // 2) == slots
    assert hashing.slots_for(slots // 2 + 1) == min(2 * slots, 1 << 31)
    assert hashing.slots_for(1) == 2


def test_both_zeros_are_zero(ops):
    for dtype in (np.float16, np.float32, np.float64):
        codes, distinct = ops.factorize(np.array([-0.0, 0.0, -1, -0.0], dtype))
        assert codes.tolist() == [1, 1, 0, 1]
        assert not np.signbit(distinct[1])
        for zero in (-0.0, 0.0):
            assert ops.lookup(np.array([-0.0, 0.0, 1] * 9, dtype), np.array([zero], dtype)).tolist() == [0, 0, -2] * 9


@pytest.mark.parametrize(("one", "other"), [(np.int32, np.int64), (np.int8, np.float64), (np.float32, np.float64)])
def test_values_and_categories_of_two_types(ops, one, other):
    values = np.array([0, 1, 2, 3, 100] * 3)
    known = np.array([-5, 1, 3])
    check_lookup(ops, values.astype(one), known.astype(other))
    check_lookup(ops, values.astype(other), known.astype(one))
    check_lookup(ops, values.astype(one), known.astype(other) * 1000)


def test_host_arrays_pieces_of_arrays_and_arrays_of_the_device(runtime):
    categories = import_module("gpu_encode.cuda.categories")
    values, known = (np.arange(40) * 10**13)[::-2], np.arange(10) * 10**14
    expected = cpu_fallback.factorize(values)
    for given in (values, memory.to_device(values)):
        codes, distinct = categories.factorize(given)
        assert runtime.is_device_array(codes)
        assert runtime.is_device_array(distinct)
        assert memory.to_host(codes).tolist() == expected[0].tolist()
        assert memory.to_host(distinct).tolist() == expected[1].tolist()
        for table in (known, memory.to_device(known)):
            slots = memory.to_host(categories.lookup(given, table))
            assert slots.tolist() == cpu_fallback.lookup(values, known).tolist()


@pytest.mark.parametrize("narrow", ["int8", "int16", "int32", "uint8", "uint16", "uint32"])
@pytest.mark.parametrize("beyond", [False, True], ids=["held", "beyond"])
def test_narrow_rows_are_looked_up_among_wide_categories_of_the_host(ops, narrow, beyond):
    """Rows are compared in their own width if that width holds the categories, which are few."""
    ends = np.iinfo(narrow)
    wide = np.dtype("uint64" if narrow[0] == "u" else "int64")
    categories = np.array([ends.min, 3, ends.max, *([int(ends.max) + 4] if beyond else [])], wide)
    values = np.array([3, ends.max, ends.min, 4, 0], narrow)
    codes = memory.to_host(import_module("gpu_encode.cuda.categories").lookup(memory.to_device(values), categories))
    assert codes.tolist() == cpu_fallback.lookup(values, categories).tolist()


@pytest.mark.parametrize(("short", "n_kept"), [(100, 1), (99, 0)])
def test_short_indexes_are_kept_as_long_as_their_numbers(ops, monkeypatch, short, n_kept):
    categories = import_module("gpu_encode.cuda.categories")
    monkeypatch.setattr(categories, "SHORT_INDEX", short)
    monkeypatch.setattr(categories, "KEPT", {})
    known, dtype = np.arange(3, 103, 3), np.dtype(np.int64)
    first, again = (categories.index_for(known, dtype, 50) for _ in range(2))
    assert (first is again) == (len(categories.KEPT) == 1) == bool(n_kept)
    assert memory.to_host(again.ranks).tolist() == memory.to_host(first.ranks).tolist()
    del known
    assert not categories.KEPT


@pytest.mark.parametrize("given", [np.arange(8)[::2], np.zeros((2, 2), np.int64)])
def test_kernels_take_arrays_of_one_axis_in_one_piece(given):
    runtime, categories = import_module("gpu_encode.cuda.runtime"), import_module("gpu_encode.cuda.categories")
    if not runtime.SIMULATED:
        pytest.skip("a launch on a GPU does not look: it would read other numbers")
    with pytest.raises(ValueError, match="in one piece"):
        runtime.launch_rows(categories.combine_rows, 4, given, given, 3, np.zeros(4, np.int64))
