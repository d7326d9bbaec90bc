"""Every kernel compiles for every type with which it is launched, and rounds as the CPU does."""

import json
import os
import platform
import re
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from numba import cuda, types
from numba.cuda import dispatcher
from numba.cuda.core.errors import TypingError
from numba.np.numpy_support import as_dtype

from cpu_fallback import kernel_folder
from gpu_encode.cuda import runtime
from gpu_encode.cuda.runtime import xp
from tests.cases import EVERY_COMBINATION
from tests.cuda.ptx import ARCHITECTURES, asks_for_fused, find_contractions, library_of, link, ptx_of, variants

VARIANTS = variants()
# All kernels for the GPU of the measurements; daily every fifth kernel for the others.
COMPILED = [
    (variant, architecture)
    for architecture in ARCHITECTURES
    for variant in VARIANTS[:: 1 if EVERY_COMBINATION or architecture == (9, 0) else 5]
]
TABLE = Path(os.environ.get("KERNEL_TABLE", "build/kernels.md"))
LAUNCHES = Path("build/launches")


@pytest.fixture(scope="module")
def table() -> Iterator[list[dict[str, Any]]]:
    """Collect the resources that every kernel takes, and write them down."""
    rows: list[dict[str, Any]] = []
    yield rows
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    TABLE.write_text(as_markdown(rows))


def as_markdown(rows: list[dict[str, Any]]) -> str:
    tools = ", ".join(f"{name} {version(name)}" for name in ("numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink"))
    columns = ["kernel", "sm", "registers", "stack", "spilled", "shared", "compile", "link"]
    lines = [
        "# Kernels",
        "",
        "Registers of a thread, bytes of its stack and of spilled registers, bytes of static shared memory of a block,",
        f"seconds to compile to PTX and to link. {tools}. By `make ptx` on {platform.machine()}, without a GPU.",
        "",
        "| " + " | ".join(columns) + " |",
        "|" + "---|" * len(columns),
    ]
    lines += ["| " + " | ".join(str(row[column]) for column in columns) + " |" for row in rows]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("variant", "architecture"), COMPILED, ids=lambda each: getattr(each, "name", None) or "sm_{}{}".format(*each)
)
def test_a_kernel_compiles_and_rounds_every_step(variant, architecture, table):
    start = time.perf_counter()
    library = library_of(variant.kernel, variant.signature, architecture)
    text = str(library.get_asm_str(cc=architecture))
    seconds = time.perf_counter() - start
    assert find_contractions(text, asks_for_fused(library)) == []
    used = link(text, architecture)
    assert used["spilled"] == 0
    table.append(
        {"kernel": f"`{variant.name}`", "sm": architecture[0] * 10 + architecture[1], "compile": f"{seconds:.2f}"}
        | {name: used[name] for name in ("registers", "stack", "spilled", "shared")}
        | {"link": f"{used['seconds']:.2f}"}
    )


def test_every_kernel_is_compiled():
    listed = {id(variant.kernel) for variant in VARIANTS}
    assert [kernel.py_func.__qualname__ for kernel in runtime.KERNELS if id(kernel) not in listed] == []


def test_every_launch_of_the_simulated_suite_is_compiled():
    """`make sim` writes down the types of every launch: one that is not listed here has not been compiled."""
    records = list(LAUNCHES.glob("*.json"))
    if not records:
        pytest.skip("make sim has not run here")
    launched = {launch for record in records for launch in json.loads(record.read_text())}
    assert sorted(launched - {variant.name for variant in VARIANTS}) == []


def argument_of(kind: Any) -> Any:
    """Make an argument of one of numba's types; an array has no memory, and five numbers."""
    if isinstance(kind, types.Array):
        dtype = as_dtype(kind.dtype)
        memory = xp.cuda.MemoryPointer(xp.cuda.UnownedMemory(1 << 20, 5 * dtype.itemsize, None, 0), 0)
        return xp.ndarray(5, dtype, memory)
    if isinstance(kind, types.NamedTuple):
        return kind.instance_class(*map(argument_of, kind.types))
    return {types.boolean: True, types.uint64: np.uint64(7), types.uint32: np.uint32(7), types.float64: 0.5}.get(
        kind, 7
    )


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_launch_gives_a_kernel_what_it_takes(variant):
    arguments = tuple(map(argument_of, variant.signature))
    kinds = [runtime.type_of(argument) for argument in arguments]
    assert tuple(map(runtime.numba_type, kinds)) == variant.signature
    taken = re.findall(
        r"\.param \.(\w)(\d+)[^,)]*_param_\d+\b", ptx_of(variant.kernel, variant.signature).split(")")[0]
    )
    # CuPy passes Python's numbers to a kernel as these types.
    given = list(map(np.asarray, runtime.pack(arguments)))
    assert [int(bits) for _, bits in taken] == [8 * number.itemsize for number in given]
    assert [kind == "f" for kind, _ in taken] == [number.dtype.kind == "f" for number in given]


class Loaded:
    """Stand-in for CuPy's loader of machine code, without a device: it records the launch arguments."""

    launches: ClassVar[list[Any]] = []

    def load(self, machine_code):
        assert machine_code.startswith(b"\x7fELF")

    def get_function(self, name):
        return lambda *given, **named: self.launches.append((name, given, named))


@pytest.fixture
def device(monkeypatch, tmp_path):
    """Replace the device by a stand-in that accepts launches, with an empty folder of kernels."""
    monkeypatch.setattr(xp.cuda, "Module", Loaded)
    monkeypatch.setattr(runtime, "current_device", lambda: 0)
    monkeypatch.setattr(runtime, "architecture_of", lambda _: (9, 0))
    monkeypatch.setattr(runtime.cuda, "gpus", [nullcontext()])
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: SimpleNamespace(compute_capability=(9, 0)))
    monkeypatch.setattr(kernel_folder, "folder", lambda: tmp_path)
    Loaded.launches.clear()
    runtime.function_of.cache_clear()
    yield
    runtime.function_of.cache_clear()


@pytest.fixture
def wide():
    """Return a kernel with many arguments, and its arguments."""
    variant = next(variant for variant in VARIANTS if variant.name.startswith("moments.spread_wide("))
    return variant.kernel, tuple(map(argument_of, variant.signature))


def test_a_second_process_compiles_nothing(device, monkeypatch, wide):
    kernel, arguments = wide
    runtime.launch(kernel, 3, 256, *arguments, shared=8)
    runtime.function_of.cache_clear()
    monkeypatch.setattr(runtime, "compile_kernel", None)
    runtime.launch(kernel, 3, 256, *arguments, shared=8)
    first, second = Loaded.launches
    assert first == second == (first[0], ((3,), (256,), first[1][2]), {"shared_mem": 8})
    assert "spread_wide" in first[0]


def test_a_launch_is_short(device, wide):
    """A launch makes about as many Python calls as it takes microseconds: numba's own makes 300 and more."""
    kernel, arguments = wide
    runtime.launch(kernel, 3, 256, *arguments)
    calls = 0

    def count(_frame, event, _given):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        runtime.launch(kernel, 3, 256, *arguments)
    finally:
        sys.setprofile(None)
    assert calls < 95


def test_a_product_that_may_be_fused_is_seen():
    @cuda.jit
    def fused(x, y):
        y[0] = x[0] * x[1] + y[0]

    text, _ = cuda.compile_ptx(fused.py_func, (types.float64[::1], types.float64[::1]), cc=(9, 0))
    assert find_contractions(text)
    # ptxas may fuse a plain product with a sum that uses it, even if the PTX does not.
    plain = "mul.f64 \t%fd3, %fd1, %fd2;"
    assert find_contractions(f"\t{plain}\n\tmul.rn.f64 %fd1, %fd2, %fd3;\n\tmul.lo.s64 %rd1, %rd2, 3;") == [plain]


def test_a_wrong_type_is_caught():
    @cuda.jit
    def wrong(x):
        x[0] = x.no_such_attribute

    with pytest.raises(TypingError):
        ptx_of(wrong, (types.float64[::1],))
