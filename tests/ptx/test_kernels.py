"""Every kernel compiles for every architecture and every type it is launched with, and rounds as the CPU does."""

import json
import os
import platform
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from numba import cuda, types
from numba.cuda import dispatcher
from numba.cuda.core.errors import TypingError

from gpu_encode.cuda import runtime
from tests.cuda.ptx import ARCHITECTURES, find_contractions, link, ptx_of, variants

VARIANTS = variants()
TABLE = Path(os.environ.get("KERNEL_TABLE", "build/kernels.md"))
LAUNCHES = Path("build/launches")


@pytest.fixture(scope="module")
def table() -> Iterator[list[dict[str, Any]]]:
    """Collect what every kernel takes, and write it down."""
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


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda version: f"sm_{version[0]}{version[1]}")
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_kernel_compiles_and_rounds_every_step(variant, architecture, table):
    start = time.perf_counter()
    text = ptx_of(variant.kernel, variant.signature, architecture)
    seconds = time.perf_counter() - start
    assert find_contractions(text) == []
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


def test_a_small_grid_warns_of_nothing(monkeypatch):
    monkeypatch.setattr(dispatcher.driver, "_to_core_stream", lambda stream: stream)
    assert runtime.configure(runtime.KERNELS[0], 4, 256, 0, 0).griddim == (4, 1, 1)


def test_a_product_that_may_be_fused_is_seen():
    @cuda.jit
    def fused(x, y):
        y[0] = x[0] * x[1] + y[0]

    assert find_contractions(ptx_of(fused, (types.float64[::1], types.float64[::1])))
    # ptxas may fuse a plain product with a sum that it feeds, even where the PTX has none.
    plain = "mul.f64 \t%fd3, %fd1, %fd2;"
    assert find_contractions(f"\t{plain}\n\tmul.rn.f64 %fd1, %fd2, %fd3;\n\tmul.lo.s64 %rd1, %rd2, 3;") == [plain]


def test_a_wrong_type_is_caught():
    @cuda.jit
    def wrong(x):
        x[0] = x.no_such_attribute

    with pytest.raises(TypingError):
        ptx_of(wrong, (types.float64[::1],))
