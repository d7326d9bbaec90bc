"""Kernels in CUDA C++ on a machine without a GPU: compiled by NVRTC.  Tests beside this one run them all."""

import re

import numpy as np
import pytest

from cpu_fallback.compiled.border import GIVEN
from tests.cuda.emulated import RAW, emulate, kernels_of, text_of, threads_of

# The emulator is a CPU.
pytestmark = pytest.mark.host

SOURCES = sorted(RAW.glob("*.cu"))
OPTIONS = ("--std=c++17", "--fmad=false")
# CuPy adds this to what it is given: whatever computes or converts floats takes the smallest ones for zero.
OF_CUPY = "-ftz=true"
# What follows codes that are written.
NO_INDEX = 0, 0, 0, np.zeros(0, np.int32)


def compile_source(code, architecture):
    """PTX of a source, and what the compiler and the assembler say."""
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
    _, program = nvrtc.nvrtcCreateProgram(code.encode(), b"source.cu", 0, [], [])
    options = [*OPTIONS, OF_CUPY, f"--gpu-architecture={architecture}", "--ptxas-options=-v"]
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
    ptx, log = compile_source(text_of(source), architecture)
    assert re.findall(r"\.entry (\w+)\(", ptx) == kernels_of(source)
    assert "fma" not in ptx
    assert ".ftz" not in ptx
    assert "warning" not in log
    # A block's threads share 65,536 registers.
    registers = [int(number) for number in re.findall(r"Used (\d+) registers", log)]
    assert len(registers) == len(kernels_of(source))
    assert max(registers) <= 65_536 // max(threads_of(source))
    assert set(re.findall(r"(\d+) bytes spill stores", log)) == {"0"}


def test_wrong_sources_do_not_compile():
    with pytest.raises(ValueError, match="wrong_name"):
        compile_source('extern "C" __global__ void kernel(int *at) { *at = wrong_name; }', "sm_90")


def test_options_are_those_of_the_package():
    assert f"OPTIONS = {OPTIONS!r}".replace("'", '"') in (RAW / "__init__.py").read_text()


def test_cells_beyond_32_bits(tmp_path):
    run = emulate("counting.cu", tmp_path)
    n_lines, n_folds, n_classes = 3, 2**31 - 1, 2
    codes, labels, folds = np.ones(5, np.int32), np.ones(5, np.int32), np.full(5, 2**31 - 2, np.int32)
    cell = (n_folds + 2**31 - 2) * n_classes + 1
    # Of all the cells only those around this one are there.
    room = np.zeros(5, np.int64)
    address = room.ctypes.data - 8 * (cell - 2)
    source = GIVEN, folds, 1, 0, 0, 0, np.ones(1, np.int64)
    extents = n_lines, n_folds, n_classes
    run(
        "count_in_memory", 1, 32, codes, *NO_INDEX, labels, 1, *source, *extents, address, n_lines * n_folds * n_classes
    )
    assert room.tolist() == [0, 0, 5, 0, 0]


@pytest.mark.parametrize("bits", [32, 64])
def test_entries_beyond_32_bits(tmp_path, bits):
    run = emulate("gather.cu", tmp_path)
    n_lines, n_folds, n_outputs = 3, 2**31 - 1, 3
    codes, folds = np.array([1, -2, 1, -2], np.int32), np.full(4, 2**31 - 2, np.int32)
    entry = (n_folds + 2**31 - 2) * n_outputs
    # Of all the entries only the last ones of this line are there.
    held, out = np.arange(5, 8).astype(f"u{bits // 8}"), np.zeros((3, 4), f"u{bits // 8}")
    table = held.ctypes.data - held.itemsize * entry, n_lines * n_folds * n_outputs
    source = GIVEN, folds, 1, 0, 0, 0, np.ones(1, np.int64)
    run(f"gather_several_{bits}", 1, 32, *table, n_lines, n_folds, n_outputs, codes, *NO_INDEX, *source, 1, 4, out)
    assert out.tolist() == [[5] * 4, [6] * 4, [7] * 4]
