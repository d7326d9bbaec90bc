"""Codes that are not written: kernels and callers read from them the codes that `factorize` gives."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback.row_numbers import FoldPattern, Permutation
from cpu_fallback.types import Layout, Rows, SumShape, UnwrittenCodes
from gpu_encode import Bits, KFold, LeaveOneOut, Ordered, TargetEncoder
from tests.backends import memory
from tests.bits import assert_same_bits
from tests.family.drawn import quietly

pytestmark = pytest.mark.cuda

N = 300
DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
GAPS = np.array([0, 1, 2, 5, 60, 61, 99])


@pytest.fixture
def categories(monkeypatch):
    """Guess ranges from every eighteenth row or so."""
    module = import_module("gpu_encode.cuda.categories")
    monkeypatch.setattr(module, "GUESSED_FROM", 16)
    return module


def draw(dtype, place="low", n_rows=N):
    """Return numbers of a small range with gaps: at the lowest number of the type, around zero, or at the highest."""
    held = np.iinfo(dtype)
    lowest = {"low": held.min, "zero": max(held.min, -50), "high": held.max - 99}[place]
    chosen = np.random.default_rng(n_rows).choice(GAPS, n_rows)
    return np.array([lowest + int(number) for number in chosen], dtype)


def hide_one(numbers):
    """Put a number far from all others in a row that no guess reads."""
    hidden = numbers.copy()
    hidden[1] = int(numbers.min()) + 5000 if numbers.max() < np.iinfo(numbers.dtype).max - 5000 else 0
    return hidden


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("place", ["low", "zero", "high"])
def test_codes_and_categories_are_those_of_factorize(categories, dtype, place):
    numbers = draw(dtype, place)
    expected, distinct = cpu_fallback.factorize(numbers)
    codes, found = categories.index_numbers(memory.to_device(numbers))
    assert isinstance(codes, UnwrittenCodes)
    assert memory.to_host(found).dtype == numbers.dtype
    assert memory.to_host(found).tolist() == distinct.tolist()
    assert (len(codes), codes.shape, codes.ndim) == (N, (N,), 1)
    # Some rows, before and after all of them have been written.
    chosen = memory.to_device(np.array([5, 0, 299, 5]))
    for _ in range(2):
        assert memory.to_host(codes[chosen]).tolist() == expected[[5, 0, 299, 5]].tolist()
        assert memory.to_host(codes[3:200]).tolist() == expected[3:200].tolist()
        assert memory.to_host(codes).tolist() == expected.tolist()
    assert memory.to_host(memory.to_device(codes)).dtype == np.int32


def test_longer_indexes_have_their_codes_written(categories, monkeypatch):
    indexed = import_module("gpu_encode.cuda.indexed")
    codes, _ = categories.index_numbers(memory.to_device(draw(np.int32)))
    for most in (len(codes.numbers.ranks) + 1, len(codes.numbers.ranks)):
        monkeypatch.setattr(indexed, "MOST_OFFSETS", most)
        assert indexed.source_of(codes).size == (most - 1 if most > len(codes.numbers.ranks) else 0)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_a_number_outside_of_the_guess_is_found(categories, dtype):
    numbers = hide_one(draw(dtype))
    assert 0 < len(list(categories.spans_of(memory.to_device(numbers), 1 << 20))) <= 2
    lowest, size = next(categories.spans_of(memory.to_device(numbers), 1 << 20))
    assert not lowest <= int(numbers[1]) < lowest + size
    expected, distinct = cpu_fallback.factorize(numbers)
    codes, found = categories.index_numbers(memory.to_device(numbers))
    assert memory.to_host(found).tolist() == distinct.tolist()
    assert memory.to_host(codes).tolist() == expected.tolist()


@pytest.mark.parametrize(
    "numbers", [np.zeros(0, np.int32), np.array([7, 7]), np.arange(N) * 2**40, np.array([-(2**63), 2**63 - 1] * 90)]
)
def test_no_numbers_few_and_those_far_apart(categories, numbers):
    expected, distinct = cpu_fallback.factorize(numbers)
    codes, found = categories.index_numbers(memory.to_device(numbers))
    assert memory.to_host(found).tolist() == distinct.tolist()
    assert memory.to_host(codes).tolist() == expected.tolist()


@pytest.mark.parametrize("longest", [98, 99, 100])
def test_codes_of_long_ranges_are_written(categories, monkeypatch, longest):
    monkeypatch.setattr(categories, "SHORT_INDEX", longest)
    numbers = np.append(np.arange(50), [99, 3]).astype(np.int32)
    codes, found = categories.index_numbers(memory.to_device(numbers))
    assert isinstance(codes, UnwrittenCodes) == (longest == 100)
    assert memory.to_host(codes).tolist() == [*range(50), 50, 3]
    assert memory.to_host(found).tolist() == [*range(50), 99]


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "uint64"])
@pytest.mark.parametrize("table_bytes", [2048, 64])
@pytest.mark.parametrize("folds", [None, FoldPattern("random", 3, 5)])
@pytest.mark.parametrize("n_rows", [1, 2, 3, 5, 61, N])
def test_counts_by_unwritten_codes(categories, counting, kernels, monkeypatch, dtype, table_bytes, folds, n_rows):
    numbers = draw(dtype, n_rows=n_rows)
    classes = (np.arange(n_rows) % 2).astype(np.int32)
    codes, distinct = cpu_fallback.factorize(numbers)
    n_folds = 3 if folds else 1
    monkeypatch.setattr(counting, "engine", lambda: replace(kernels, table_bytes=table_bytes))
    accumulators = memory.zeros((len(distinct) + 2) * n_folds * 2, np.int64)
    unwritten, _ = categories.index_numbers(memory.to_device(numbers))
    counting.count(unwritten, memory.to_device(classes), folds, (len(distinct) + 2, n_folds, 2), accumulators)
    expected = cpu_fallback.accumulate(Rows(codes, classes), SumShape(len(distinct), n_folds, 2), folds)
    assert np.array_equal(memory.to_host(accumulators), expected.ravel())
    # Nothing has asked for the codes yet.
    assert ("written" in vars(unwritten)) == (dtype == "int16")


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("place", ["low", "zero", "high"])
@pytest.mark.parametrize("gap", [None, 1, 98])
def test_numbers_that_are_neighbours_need_no_index(categories, counting, dtype, place, gap):
    # Almost as many categories as the guess allows, or with one missing.
    held = np.iinfo(dtype)
    lowest = {"low": held.min, "zero": max(held.min, -50), "high": held.max - 99}[place]
    offsets = np.random.default_rng(2).permutation(3 * N) % 100
    numbers = np.array([lowest + int(offset) for offset in offsets[offsets != gap]], dtype)
    codes, distinct = cpu_fallback.factorize(numbers)
    unwritten, _ = categories.index_numbers(memory.to_device(numbers))
    source = unwritten.source
    assert len(source.ranks) == 0 if gap is None else len(source.ranks) >= 100
    accumulators = memory.zeros(len(distinct) + 2, np.int64)
    counting.count(unwritten, None, None, (len(distinct) + 2, 1, 1), accumulators)
    assert memory.to_host(accumulators).tolist() == [*np.bincount(codes, minlength=len(distinct)), 0, 0]
    found, table = memory.zeros((len(codes), 1), np.float32), np.arange(len(distinct) + 2, dtype=np.float32)
    import_module("gpu_encode.cuda.gather").gather(memory.to_device(table[:, None, None]), unwritten, None, found)
    assert memory.to_host(found)[:, 0].tolist() == codes.tolist()
    assert "written" not in vars(unwritten)
    assert memory.to_host(unwritten).tolist() == codes.tolist()


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "uint64"])
@pytest.mark.parametrize("out", ["f4", "f8", "i4"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_look_ups_by_unwritten_codes(categories, gathering, dtype, out, n_outputs):
    for n_rows in (1, 3, 4, 9, 61, N):
        numbers, folds = draw(dtype, n_rows=n_rows), FoldPattern("random", 2, 9)
        codes, distinct = cpu_fallback.factorize(numbers)
        shape = len(distinct) + 2, 2, n_outputs
        table = np.arange(np.prod(shape)).astype(out).reshape(shape)
        expected = np.zeros((n_rows, n_outputs), out)
        cpu_fallback.gather(table, codes, folds, expected)
        found = memory.zeros((n_rows, n_outputs), np.dtype(out))
        unwritten, _ = categories.index_numbers(memory.to_device(numbers))
        gathering.gather(memory.to_device(table), unwritten, folds, found)
        assert memory.to_host(found).tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("n_classes", [1, 2, 3])
@pytest.mark.parametrize("hidden", [False, True])
def test_numbers_are_counted_before_they_are_known(
    categories, counting, kernels, monkeypatch, dtype, n_classes, hidden
):
    monkeypatch.setattr(counting, "engine", lambda: kernels)
    numbers = draw(dtype)
    numbers = hide_one(numbers) if hidden else numbers
    classes = None if n_classes == 1 else (np.arange(N) % n_classes).astype(np.int32)
    device_classes = None if classes is None else memory.to_device(classes)
    found = import_module("gpu_encode.cuda.sums").accumulate_numbers(
        Rows(memory.to_device(numbers), device_classes), n_classes, Layout()
    )
    codes, distinct = cpu_fallback.factorize(numbers)
    expected = cpu_fallback.accumulate(Rows(codes, classes), SumShape(len(distinct), 1, n_classes))
    assert memory.to_host(found.numbers).tolist() == distinct.tolist()
    assert memory.to_host(found.accumulators).tolist() == expected.tolist()
    assert memory.to_host(found.codes).tolist() == codes.tolist()


@pytest.mark.parametrize("block", [2, 3, 16, 255, 256])
@pytest.mark.parametrize("n_rows", [2, 256, 257, 511, 900])
def test_rows_of_blocks(block, n_rows):
    permutations = import_module("gpu_encode.cuda.permutations")
    for seed in range(4):
        order = Permutation(n_rows, seed, min(block, n_rows))
        for start, stop in ((0, n_rows), (0, 1), (n_rows // 3, n_rows), (n_rows // 2, n_rows // 2 + 1)):
            blocks, inside = permutations.walk_in_blocks(order, start, stop)
            at = np.arange(start, stop)
            at += blocks.lacking * (at >= blocks.turn)
            numbers = memory.to_host(blocks.numbers)[at // blocks.size - blocks.first]
            rows = numbers * blocks.size + memory.to_host(inside)
            assert rows.tolist() == cpu_fallback.rows_at(order, start, stop).tolist()


SCHEMES = {
    "folds": KFold(3),
    "leave-one-out": LeaveOneOut(),
    "ordered": Ordered(),
    "blocks": Ordered(n_permutations=2, block=16),
    "as they stand": Ordered(shuffle=False, burn_in=4),
}
FEW = 80
ROWS = np.arange(FEW)
OPTIONS = {
    "plain": {},
    "indicators": {"indicators": ["unseen", "missing"], "min_count": 9, "smooth": "auto"},
    "refused": {"handle_missing": "error", "handle_unknown": "error"},
    "joint": {"columns": [(0, 1), 0]},
    "levels": {"columns": [0], "hierarchy": {0: Bits(3)}},
    "given": {"categories": [[int(number) for number in range(-50, 60)]] * 2},
    "weighted": {"weight": ROWS % 3 / 2},
    "quantity": {"y": np.sin(ROWS), "target_type": "continuous"},
    "classes": {"y": ROWS % 3, "target_type": "multiclass"},
    "two targets": {"y": np.column_stack([ROWS % 7, np.cos(ROWS)]), "target_type": "continuous"},
}


def encode(place, scheme, options, X, y, weight, **parameters):
    """Return all results of an encoder for rows in this place: fit_transform, transform, and fitted attributes."""
    encoder = TargetEncoder(**({"target_type": "binary"} | options | parameters), cv=SCHEMES[scheme])
    X, y, weight = (None if array is None else place(array) for array in (X, y, weight))
    results = [quietly(encoder.fit_transform, X, y, sample_weight=weight), *encoder.encodings_]
    return [*results, encoder.fit(X, y, sample_weight=weight).transform(X)]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", OPTIONS)
def test_encodings_are_those_of_the_cpu(categories, runtime, scheme, name):
    # Rows of some columns are not contiguous.
    X = np.column_stack([draw("int32", "zero", FEW), ROWS % 5 - 2]).astype(np.int32) + (50 if name == "levels" else 0)
    options = dict(OPTIONS[name])
    y, weight = options.pop("y", (ROWS * 5 % 3 == 0).astype(np.int32)), options.pop("weight", None)
    given = scheme, options, X[:, :1] if name == "plain" else X, y, weight
    found, expected = encode(memory.to_device, *given, device="cuda"), encode(np.asarray, *given, device="cpu")
    for mine, theirs in zip(found, expected, strict=True):
        assert_same_bits(memory.to_host(mine) if runtime.is_device_array(mine) else mine, theirs)
