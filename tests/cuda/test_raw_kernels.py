"""Kernels in CUDA C++ compile with NVRTC on a machine without a GPU; other tests of this folder run them."""

import os
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import gpu_encode
from cpu_fallback.compiled.border import GIVEN
from tests.cases import EVERY_COMBINATION
from tests.cuda.emulated import RawModule, kernels_of

# The emulator runs on the CPU.
pytestmark = pytest.mark.host

pytest.importorskip("cupy")
raw = import_module("gpu_encode.cuda.raw")

SOURCES = sorted(path.name for path in (Path(gpu_encode.__file__).parent / "cuda" / "raw").glob("*.cu"))
VARIANTS = [(source, variant) for source in SOURCES for variant in raw.VARIANTS.get(source, [{}])]
# NVRTC takes seconds for each: `make ptx` has every variant for one architecture, and some of them for the others; the
# suite has the first and the last of each source.
ENDS = [(source, raw.VARIANTS.get(source, [{}])[end]) for source in SOURCES for end in (0, -1)]
COMPILED = [
    (source, variant, architecture)
    for architecture in ("sm_80", "sm_90", "sm_100")
    for source, variant in VARIANTS[:: 1 if EVERY_COMBINATION or architecture == "sm_90" else 5]
    if EVERY_COMBINATION or os.environ.get("PTX") or (architecture == "sm_90" and (source, variant) in ENDS)
]
# Registers are chosen for one architecture: the compiler of another may put a word or two of a thread aside, or some
# more where sums of squares have nine words: 28 bytes of `walk_pieces` by a newer NVRTC than that of these tests.
MOST_SPILLED = {"ordered_sums.cu": 32}
# That newer NVRTC puts a word of `walk_pieces` and of `mark_numbers` aside, where that of these tests puts none.
SPILLED_ON_SM_90 = 4
# CuPy adds this to what it is given: whatever computes or converts floats takes the smallest ones for zero.
OF_CUPY = "-ftz=true"
# Arguments after the codes, if codes are written and not looked up.
NO_INDEX = 0, 0, 0, np.zeros(0, np.int32)


def bounds_of(ptx):
    """Return the largest number of threads in a block for which each kernel is compiled."""
    entries = re.findall(r"\.entry (\w+)\(.*?\.maxntid (\d+)", ptx, re.DOTALL)
    return {name: int(threads) for name, threads in entries}


def compile_source(code, architecture, variant=None):
    """PTX of a source, and the messages of the compiler and the assembler."""
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
    _, program = nvrtc.nvrtcCreateProgram(code.encode(), b"source.cu", 0, [], [])
    options = [*raw.options_of(variant or {}), OF_CUPY, f"--gpu-architecture={architecture}", "--ptxas-options=-v"]
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


@pytest.mark.parametrize(("source", "variant", "architecture"), COMPILED, ids=str)
def test_sources_compile(source, variant, architecture):
    text = raw.source_of(source)
    ptx, log = compile_source(text, architecture, variant)
    assert sorted(re.findall(r"\.entry (\w+)\(", ptx)) == sorted(kernels_of(text))
    # Only what a kernel asks for is fused; and what it rounds to floats, or widens, it knows to be no small ones.
    assert ("fma" in ptx) <= ("__fma_rn(" in text)
    known = {"cvt.rn.ftz.f32.f64": "__double2float_rn(", "cvt.ftz.f64.f32": "is_double(", "abs.ftz.f32": "is_double("}
    assert set(re.findall(r"\S+\.ftz\S*", ptx)) <= {name for name, check in known.items() if check in text}
    assert "warning" not in log
    # A block's threads share 65,536 registers.
    entries = dict(re.findall(r"Compiling entry function '(\w+)'.*?Used (\d+) registers", log, re.DOTALL))
    assert sorted(entries) == sorted(kernels_of(text))
    assert all(int(registers) <= 65_536 // bounds_of(ptx)[name] for name, registers in entries.items())
    most = SPILLED_ON_SM_90 if architecture == "sm_90" else MOST_SPILLED.get(source, 8)
    assert max(map(int, re.findall(r"(\d+) bytes spill stores", log))) <= most


def test_every_kernel_has_its_file():
    found = {name: source for source in SOURCES for name in kernels_of(raw.source_of(source))}
    assert found == raw.FILES
    assert raw.VARIANTS.keys() <= set(SOURCES)


def test_sources_hold_what_they_include_once():
    for source in SOURCES:
        text = raw.source_of(source)
        assert '#include "' not in text
        assert text.count("typedef long long Long;") == 1


def test_wrong_sources_do_not_compile():
    with pytest.raises(ValueError, match="wrong_name"):
        compile_source('extern "C" __global__ void kernel(int *at) { *at = wrong_name; }', "sm_90")


def run(name, blocks, threads, *arguments, variant=None, shared=0):
    """Launch a kernel on the CPU; an array is its address and its length."""
    words = [word for each in arguments for word in ((each, each.size) if isinstance(each, np.ndarray) else (each,))]
    module = RawModule(raw.source_of(raw.FILES[name]), raw.options_of(variant or {}))
    module.get_function(name)((blocks,), (threads,), tuple(words), shared_mem=shared)


def test_cells_beyond_32_bits():
    n_lines, n_folds, n_classes = 3, 2**31 - 1, 2
    codes, labels, folds = np.ones(5, np.int32), np.ones(5, np.int32), np.full(5, 2**31 - 2, np.int32)
    cell = (n_folds + 2**31 - 2) * n_classes + 1
    # Only the cells around this one are in memory.
    room = np.zeros(5, np.int64)
    address = room.ctypes.data - 8 * (cell - 2)
    source = GIVEN, folds, 1, 0, 0, 0, np.ones(1, np.int64)
    extents = n_lines, n_folds, n_classes
    run(
        "count_in_memory", 1, 32, codes, *NO_INDEX, labels, 1, *source, *extents, address, n_lines * n_folds * n_classes
    )
    assert room.tolist() == [0, 0, 5, 0, 0]


@pytest.mark.parametrize("bits", [32, 64])
def test_entries_beyond_32_bits(bits):
    n_lines, n_folds, n_outputs = 3, 2**31 - 1, 3
    codes, folds = np.array([1, -2, 1, -2] * 1030, np.int32), np.full(4120, 2**31 - 2, np.int32)
    entry = (n_folds + 2**31 - 2) * n_outputs
    # Only the last entries of this line are in memory.
    held, out = np.arange(5, 8).astype(f"u{bits // 8}"), np.zeros((3, 4120), f"u{bits // 8}")
    table = held.ctypes.data - held.itemsize * entry, n_lines * n_folds * n_outputs
    slots = codes, 2**64 - 2, n_lines + 1, 1, np.zeros(0, np.int32), n_lines
    source = GIVEN, folds, 1, 0, 0, 0, np.ones(1, np.int64)
    variant = {
        "KEY": "unsigned",
        "ENTRY": {32: "unsigned", 64: "Word"}[bits],
        "OUTPUTS": "0",
        "SOURCE": "StraightFolds",
    }
    given = *slots, *source, n_folds, n_outputs, 0, *table, 1, 4120, out
    run("gather_rows", 1, 64, *given, variant=variant, shared=256)
    assert (out == np.array([[5], [6], [7]])).all()


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ("if (threadIdx.x < 40) __syncthreads();", "a barrier that not all threads reach"),
        ("if (threadIdx.x & 1) __syncwarp();", "a barrier that not all threads reach"),
        ("table[2] = 1;", "writes beyond the shared memory asked for"),
    ],
)
def test_the_emulator_sees_what_a_gpu_would_not_forgive(body, wrong):
    text = f'extern "C" __global__ void kernel() {{ extern __shared__ unsigned table[]; {body} (void)table; }}'
    with pytest.raises(AssertionError, match=wrong):
        RawModule(text).get_function("kernel")((1,), (64,), (), shared_mem=8)


def test_the_emulator_lets_what_lacks_a_barrier_go_wrong():
    text = """
    extern "C" __global__ void shift(const int *from, long long from_size, int *to, long long to_size) {
        extern __shared__ unsigned table[];
        for (int turn = 0; turn < 3; ++turn) {
            table[threadIdx.x] = from[threadIdx.x] + turn;
            __syncthreads();
            to[threadIdx.x] += table[(threadIdx.x + 1) % blockDim.x];
            BARRIER
        }
    }"""
    numbers, expected = np.arange(64, dtype=np.int32), 3 * ((np.arange(64) + 1) % 64 + 1)
    for barrier, right in (("__syncthreads();", True), ("", False)):
        found = np.zeros(64, np.int32)
        kernel = RawModule(text.replace("BARRIER", barrier)).get_function("shift")
        kernel((1,), (64,), (numbers, 64, found, 64), shared_mem=256)
        assert np.array_equal(found, expected) == right


def test_an_atomic_lets_others_go_on():
    # What is read and written apart loses some of what others add.
    text = """
    extern "C" __global__ void add(unsigned *at, long long size) {
        atomicAdd(at, 1u);
        unsigned before = at[1];
        atomicAdd(at + 2, 1u);
        at[1] = before + 1;
    }"""
    sums = np.zeros(3, np.uint32)
    RawModule(text).get_function("add")((2,), (64,), (sums, 3))
    assert sums[0] == sums[2] == 128
    assert sums[1] < 128
