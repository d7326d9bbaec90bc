"""Kernels in CUDA C++ on a machine without a GPU: compiled by NVRTC, and run on the CPU by emulator.h."""

import re

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback.row_numbers import FoldPattern
from tests.cuda.emulated import RAW, emulated, kernels_of

# The emulator is a CPU.
pytestmark = pytest.mark.host

SOURCES = sorted(RAW.glob("*.cu"))
OPTIONS = ("--std=c++17", "--fmad=false")
# The emulator's grids: whole warps, several blocks.
BLOCKS, THREADS = 3, 64
TURN = 4 * THREADS
NO_FOLDS, GIVEN, INTERLEAVED, CONTIGUOUS, RANDOM = range(5)
ORDERS = {"interleaved": INTERLEAVED, "contiguous": CONTIGUOUS, "random": RANDOM}


def compiled(code, architecture):
    """PTX of a source, and what the compiler and the assembler say."""
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
    _, program = nvrtc.nvrtcCreateProgram(code.encode(), b"source.cu", 0, [], [])
    options = [*OPTIONS, f"--gpu-architecture={architecture}", "--ptxas-options=-v"]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b" " * size
    nvrtc.nvrtcGetProgramLog(program, log)
    if error != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise ValueError(log.decode())
    _, size = nvrtc.nvrtcGetPTXSize(program)
    ptx = b" " * size
    nvrtc.nvrtcGetPTX(program, ptx)
    return ptx.decode(), log.decode()


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_sources_compile(source, architecture):
    ptx, log = compiled(source.read_text(), architecture)
    assert re.findall(r"\.entry (\w+)\(", ptx) == kernels_of(source)
    assert "fma" not in ptx
    assert "warning" not in log
    # 1,024 threads share 65,536 registers.
    registers = [int(number) for number in re.findall(r"Used (\d+) registers", log)]
    assert len(registers) == len(kernels_of(source))
    assert max(registers) <= 64
    assert set(re.findall(r"(\d+) bytes spill stores", log)) == {"0"}


def test_wrong_sources_do_not_compile():
    with pytest.raises(ValueError, match="wrong_name"):
        compiled('extern "C" __global__ void kernel(int *at) { *at = wrong_name; }', "sm_90")


def test_options_are_those_of_the_package():
    assert f"OPTIONS = {OPTIONS!r}".replace("'", '"') in (RAW / "__init__.py").read_text()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return emulated("counting.cu", tmp_path_factory.mktemp("raw"))


def source_of(folds):
    """Launch arguments that describe folds."""
    none, one = np.zeros(1, np.int32), np.ones(1, np.int64)
    if folds is None:
        return NO_FOLDS, none, 1, 0, 0, 0, one
    if isinstance(folds, np.ndarray):
        return GIVEN, folds, 1, 0, 0, 0, one
    return ORDERS[folds.order], none, folds.n_splits, folds.seed, folds.n_rows, folds.first_row, folds.units


def numbers_of(folds, n_rows):
    """Fold numbers by the definition."""
    if folds is None:
        return np.zeros(n_rows, np.int64)
    return folds if isinstance(folds, np.ndarray) else cpu_fallback.fold_numbers(folds, 0, n_rows)


def arguments_of(codes, classes, folds, n_lines, n_folds, n_classes):
    labels = (codes, 0) if classes is None else (classes, 1)
    return codes, *labels, *source_of(folds), n_lines, n_folds, n_classes


def expected_cells(codes, classes, folds, n_lines, n_folds, n_classes):
    line = np.where(codes < 0, codes + n_lines, codes).astype(np.int64)
    cell = (line * n_folds + numbers_of(folds, len(codes))) * n_classes + (0 if classes is None else classes)
    return cell, np.bincount(cell, minlength=n_lines * n_folds * n_classes)


def drawn(n_rows, n_lines, n_classes, hot, seed=0):
    random = np.random.default_rng(seed)
    codes = random.integers(-2, n_lines - 2, n_rows).astype(np.int32)
    codes[random.random(n_rows) < hot] = n_lines // 2
    return codes, random.integers(0, n_classes, n_rows).astype(np.int32) if n_classes > 1 else None


def folds_of_rows(run, folds, n_rows, n_folds):
    """Fold of every row, from the cells of rows that each have a category of their own."""
    codes, accumulators = np.arange(n_rows, dtype=np.int32), np.zeros(n_rows * n_folds, np.int64)
    run("count_in_memory", BLOCKS, THREADS, *arguments_of(codes, None, folds, n_rows, n_folds, 1), accumulators)
    assert np.array_equal(accumulators.reshape(n_rows, n_folds).sum(1), np.ones(n_rows))
    return accumulators.reshape(n_rows, n_folds).argmax(1).tolist()


# First and last rows of growing blocks (units 0, 1, 3, 7, ...), of the first blocks that are all alike, and far on.
UNITS = [0, 1, 2, 3, 6, 7, 511, 1022, 1023, 2046, 2047, 5000, 2**40]


@pytest.mark.parametrize("n_splits", [1, 2, 3, 5, 64, 9973, 65535, 65536, 100_003])
@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_random_folds(run, n_splits, seed):
    for unit in UNITS:
        for before in (0, 1, 2, 3, 4) if n_splits < 100 else (2, 3):
            pattern = FoldPattern("random", n_splits, seed, first_row=max(unit * n_splits - before, 0))
            assert folds_of_rows(run, pattern, 9, n_splits) == cpu_fallback.fold_numbers(pattern, 0, 9).tolist()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n_splits", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("first_row", [0, 1, 2**32 - 7, 2**32 + 5, 2**62])
def test_folds_of_many_rows(run, order, n_splits, first_row):
    pattern = FoldPattern(order, n_splits, 5, n_rows=first_row + 1100, first_row=first_row)
    assert folds_of_rows(run, pattern, 1100, n_splits) == cpu_fallback.fold_numbers(pattern, 0, 1100).tolist()


@pytest.mark.parametrize(("n_rows", "n_splits"), [(3, 5), (10, 3), (9, 3), (5, 5), (2**40 + 1, 2)])
def test_edges_of_contiguous_folds(run, n_rows, n_splits):
    for first_row in {0, max(n_rows // n_splits - 4, 0), max(n_rows - 8, 0)}:
        pattern = FoldPattern("contiguous", n_splits, n_rows=n_rows, first_row=first_row)
        n_here = min(8, n_rows)
        assert folds_of_rows(run, pattern, n_here, n_splits) == cpu_fallback.fold_numbers(pattern, 0, n_here).tolist()


SIZES = [1, 3, 4, 5, TURN - 1, TURN, TURN + 1, BLOCKS * TURN - 1, BLOCKS * TURN, BLOCKS * TURN + 1, 5000]
FOLDS = [None, np.arange(5000, dtype=np.int32) % 3, FoldPattern("random", 3, 1), FoldPattern("interleaved", 3)]


@pytest.mark.parametrize("n_rows", SIZES)
@pytest.mark.parametrize("hot", [0.0, 0.9])
@pytest.mark.parametrize(("halves", "piece"), [(0, 256), (0, 5000), (1, 8), (1, 1024)])
def test_count_rows(run, n_rows, hot, halves, piece):
    for n_classes, source in zip((1, 2, 3, 1), FOLDS, strict=True):
        folds = source[:n_rows].copy() if isinstance(source, np.ndarray) else source
        n_folds = 1 if folds is None else 3
        accumulators = np.full(41 * n_folds * n_classes, 5)
        given = (*drawn(n_rows, 41, n_classes, hot), folds, 41, n_folds, n_classes)
        shared = 4 * ((len(accumulators) + halves) >> halves)
        run("count_rows", BLOCKS, THREADS, *arguments_of(*given), piece, halves, accumulators, shared=shared)
        assert np.array_equal(accumulators - 5, expected_cells(*given)[1])


@pytest.mark.parametrize("n_rows", SIZES)
@pytest.mark.parametrize("hot", [0.0, 0.9, 1.0])
def test_count_in_memory(run, n_rows, hot):
    given = (*drawn(n_rows, 41, 3, hot), FoldPattern("random", 3, 1), 41, 3, 3)
    accumulators = np.full(41 * 9, 5)
    run("count_in_memory", BLOCKS, THREADS, *arguments_of(*given), accumulators)
    assert np.array_equal(accumulators - 5, expected_cells(*given)[1])


@pytest.mark.parametrize("offsets", [(0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3), (3, 2, 1)])
def test_arrays_that_begin_between_vectors(run, offsets):
    # A vector read from elsewhere than from a multiple of its size would stop the program here, as it does a GPU.
    codes, classes, folds = (np.arange(offset, offset + 500, dtype=np.int32) % 3 for offset in range(3))
    parts = [moved(part, offset) for part, offset in zip((codes, classes, folds), offsets, strict=True)]
    accumulators = np.zeros(45, np.int64)
    run("count_rows", BLOCKS, THREADS, *arguments_of(*parts, 5, 3, 3), 256, 0, accumulators, shared=180)
    assert np.array_equal(accumulators, expected_cells(codes, classes, folds, 5, 3, 3)[1])


def moved(part, offset):
    """Copy an array to where it begins so many numbers after a multiple of four."""
    room = np.zeros(len(part) + 8, np.int32)
    start = -(room.ctypes.data // 4) % 4 + offset
    room[start : start + len(part)] = part
    return room[start : start + len(part)]


def test_cells_beyond_32_bits(run):
    n_lines, n_folds, n_classes = 3, 2**31 - 1, 2
    codes, labels, folds = np.ones(5, np.int32), np.ones(5, np.int32), np.full(5, 2**31 - 2, np.int32)
    cell = (n_folds + 2**31 - 2) * n_classes + 1
    # Of all the cells only those around this one are there.
    room = np.zeros(5, np.int64)
    address = room.ctypes.data - 8 * (cell - 2)
    given = arguments_of(codes, labels, folds, n_lines, n_folds, n_classes)
    run("count_in_memory", 1, 32, *given, address, n_lines * n_folds * n_classes)
    assert room.tolist() == [0, 0, 5, 0, 0]


@pytest.mark.parametrize("n_rows", SIZES)
@pytest.mark.parametrize("hot", [0.0, 0.9])
@pytest.mark.parametrize("shift", [1, 4])
@pytest.mark.parametrize("piece", [7, 100, 65_532])
def test_buckets(run, n_rows, hot, shift, piece):
    n_lines, start = 75, n_rows // 8 * 4
    given = (*drawn(n_rows, n_lines, 1, hot), FoldPattern("random", 3, 1), n_lines, 3, 1)
    cell, _ = expected_cells(*given)
    n_buckets, share = -(-n_lines * 3 >> shift), -(-(n_rows - start) // (4 * BLOCKS)) * 4
    slab, sizes = np.zeros(n_rows - start, np.uint32), np.zeros(n_buckets * BLOCKS, np.int64)
    words = arguments_of(*given)
    run("measure_buckets", BLOCKS, THREADS, *words, start, share, shift, slab, sizes, shared=4 * n_buckets)
    assert np.array_equal(slab, cell[start:])
    ends, sorted_cells = np.cumsum(sizes), np.zeros_like(slab)
    run("fill_buckets", BLOCKS, THREADS, slab, share, shift, sizes, ends, sorted_cells, shared=4 * n_buckets)
    assert np.array_equal(np.sort(sorted_cells), np.sort(slab))
    assert (np.diff(sorted_cells.astype(np.int64) >> shift) >= 0).all()
    bucket_sizes, accumulators = sizes.reshape(n_buckets, BLOCKS).sum(1), np.zeros(n_lines * 3, np.int64)
    pieces = np.cumsum(-(-bucket_sizes // piece))
    arguments = sorted_cells, np.cumsum(bucket_sizes), pieces, piece, shift, accumulators
    run("count_buckets", BLOCKS, THREADS, *arguments, shared=2 << shift)
    assert np.array_equal(accumulators, np.bincount(cell[start:], minlength=n_lines * 3))
