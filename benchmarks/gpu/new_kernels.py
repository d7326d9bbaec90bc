"""Kernels that changed since a GPU last ran them: first their bits, then the time of each beside a bare primitive."""

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.gpu.bits_of_encoders import KINDS
from benchmarks.gpu.comparison import difference
from benchmarks.gpu.drawn import COLUMNS, DRAWN, codes
from benchmarks.gpu.encoders import CASES, MORE_CASES, Case, call_of, table_of
from benchmarks.gpu.kernels import rows_that_fit
from benchmarks.gpu.paths import set_thresholds
from benchmarks.gpu.predicted import kernel_ms, off
from benchmarks.gpu.report import Run
from benchmarks.gpu.timing import measure, wait
from benchmarks.harness.machine import ROOT
from cpu_fallback.types import Array
from gpu_encode import TargetEncoder
from gpu_encode.cuda import raw
from gpu_encode.cuda.memory import to_host
from gpu_encode.cuda.runtime import xp
from gpu_encode.seam.ops import use_backend


class Use(NamedTuple):
    """A case of `benchmarks.gpu.encoders` that launches a kernel, and its number of categories.

    The primitive is a bare kernel that does only the necessary work: "copy", "gather" or "shared atomics".
    """

    case: str
    n_categories: int = 4096
    primitive: str = "copy"


# For each kernel in CUDA C++, a case that launches it.  A test names missing kernels.
USES = {
    "number_cells": Use("ordered-rows-int"),
    "count_chunks": Use("ordered-rows-int"),
    "scan_chunks": Use("ordered-rows-int"),
    "walk_chunks": Use("ordered-int"),
    "mark_numbers_by_block": Use("folds-int"),
    "mark_numbers": Use("folds-int", 1 << 21),
    "measure_range": Use("folds-int"),
    "measure_extents": Use("folds-f32"),
    "count_rows": Use("folds-int", 4096, "shared atomics"),
    "gather_rows": Use("folds-int", 4096, "gather"),
    "leave_out_estimate": Use("loo-f32", 4096, "gather"),
    "leave_out_blend": Use("loo-f64-auto", 4096, "gather"),
    "add_in_windows": Use("mean-f64", 4096, "shared atomics"),
    "partition_rows": Use("folds-int", 10**6),
    "sort_places": Use("ordered-f32"),
    "sum_pieces": Use("ordered-f32"),
    "scan_pieces": Use("ordered-f32"),
    "walk_pieces": Use("ordered-f64-auto"),
    "walk_rows_32": Use("ordered-int"),
    "count_buckets": Use("folds-int", 10**6, "shared atomics"),
    "partition_pairs_32": Use("folds-f32", 10**6),
    "partition_pairs_64": Use("folds-f64-auto", 10**6),
    "add_buckets": Use("folds-f64-auto", 10**6, "shared atomics"),
    "measure_columns": Use("wide", 50),
    "mark_columns": Use("wide", 50),
    "narrow_columns": Use("wide", 50),
    "number_rows": Use("wide", 50),
    "count_keys": Use("wide", 50, "shared atomics"),
    "encode_keys": Use("wide", 50),
    "gather_keys": Use("wide", 50, "gather"),
    "spread_keys": Use("wide-transform", 50),
    "count_unknown": Use("wide-transform", 50),
}
# Kernels without a known case: on a GPU, only the test suites run them.
BY_SUITES = {"count_in_memory", "number_folds", "walk_rows_64", "walk_blocks", "shuffle_blocks"}
BY_SUITES |= {"add_in_cells", "add_in_tables", "add_hot_in_tables"}
N_ROWS = 1 << 28
# Numbers of rows for comparisons of bits: around multiples of the sizes of blocks and tiles.
LENGTHS = (7, 1023, 5119, 5121, 98_304, (1 << 18) + 37, (1 << 22) + 37)
TINY_LENGTHS = (13,)
RESULTS = ROOT / "benchmarks/results"
CELLS = 1 << 14
PRIMITIVES = """
extern "C" __global__ void add(const unsigned *words, long long n, unsigned *out) {
    extern __shared__ unsigned table[];
    for (int k = threadIdx.x; k < 16384; k += blockDim.x) table[k] = 0;
    __syncthreads();
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x)
        atomicAdd(&table[words[i] & 16383], 1u);
    __syncthreads();
    for (int k = threadIdx.x; k < 16384; k += blockDim.x) if (table[k]) atomicAdd(&out[k], table[k]);
}
extern "C" __global__ void gather(const unsigned *words, long long n, const unsigned *table, unsigned *out) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x)
        out[i] = __ldg(&table[words[i] & 16383]);
}
"""


def text_of(kernel: str) -> str:
    """Give a digest of a kernel's source, which changes with the source."""
    return hashlib.sha256(raw.source_of(raw.FILES[kernel]).encode()).hexdigest()[:12]


def texts_on_a_gpu(results: Path = RESULTS) -> set[str]:
    """Give the digests of the kernels that results on a GPU have checked."""
    reports = [json.loads(path.read_text()) for path in sorted(results.glob("*/report.json"))]
    tables = [report.get("steps", {}).get("new bits", {}).get("tables", {}) for report in reports]
    return {row["text"] for table in tables for row in table.get("kernels", []) if row.get("same")}


def changed(step: Run) -> dict[str, Use]:
    """Give the kernels whose source no GPU has run yet; in the simulator, all kernels."""
    known = set() if step.simulated else texts_on_a_gpu()
    return {name: use for name, use in USES.items() if name in raw.FILES and text_of(name) not in known}


def encode(backend: str, device: str, case: Case, X: Array, y: Array) -> Array:
    """Give the encodings of training rows; for cases of means those of new rows, which are the same here."""
    kind = {"float32": "real", "binary64": "binary"}.get(case.target, case.target)
    encoder = TargetEncoder(target_type=KINDS[kind], dtype="float32", device=device, **case.options)
    with use_backend(backend):
        return encoder.fit_transform(X, y) if case.work == "fit_transform" else encoder.fit(X, y).transform(X)


def tables(case: Case, n_rows: int, n_categories: int) -> Iterator[tuple[str, Array]]:
    """Yield keys that are difficult in different ways."""
    most = min(n_categories, 2 * n_rows)
    for drawn in DRAWN:
        yield drawn, table_of(case, n_rows, most, drawn)
    numbers = xp.arange(n_rows, dtype=np.int64).astype(case.keys).reshape(-1, 1)
    width = 1 + len(case.more)
    yield "one category", xp.concatenate([numbers * 0] * width, axis=1)
    yield "all different", xp.concatenate([numbers] * width, axis=1)


def compare(step: Run) -> None:
    """Compare the encodings of all cases that launch a changed kernel with the CPU's encodings, bit by bit."""
    wrong: dict[Use, list[str]] = {}
    uses = changed(step)
    for use in dict.fromkeys(use for use in uses.values()):
        case, wrong[use], n_broken = (CASES | MORE_CASES)[use.case], [], len(step.broken)
        for n_rows in step.size(LENGTHS, TINY_LENGTHS):
            y = COLUMNS[case.target](n_rows)
            for how, X in tables(case, n_rows, use.n_categories):
                with step.attempt(f"{use.case}, {n_rows} rows, {how}"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ours = encode(step.backend, "cuda", case, X, y)
                    said = difference(ours, encode("compiled", "cpu", case, to_host(X), to_host(y)))
                    wrong[use] += [f"{use.case}, {n_rows} rows, {how}: {said}"] if said else []
        same = not wrong[use] and len(step.broken) == n_broken
        for name in [name for name, each in uses.items() if each == use]:
            step.row("kernels", kernel=name, text=text_of(name), case=use.case, same=same)
        if wrong[use]:
            step.fail("\n".join(wrong[use]))


@contextmanager
def time_kernels() -> Iterator[Callable[[], dict[str, float]]]:
    """Time each launch inside the block; give a function that waits for the device and tells milliseconds by kernel."""
    noted: list[tuple[str, Any, Any]] = []
    run = raw.run

    def timed(name: str, *arguments: Any, **more: Any) -> None:
        events = xp.cuda.Event(), xp.cuda.Event()
        events[0].record()
        run(name, *arguments, **more)
        events[1].record()
        noted.append((name, *events))

    def by_kernel() -> dict[str, float]:
        wait()
        found: dict[str, float] = {}
        for name, begun, ended in noted:
            found[name] = found.get(name, 0.0) + float(xp.cuda.get_elapsed_time(begun, ended))
        return found

    with set_thresholds({"raw.run": timed}):
        yield by_kernel


def primitive_ms(name: str, n_rows: int) -> float:
    """Measure the milliseconds of a bare primitive on this number of 32-bit words."""
    words, out = codes(n_rows, CELLS, DRAWN[0]).view(np.uint32), xp.zeros(max(n_rows, CELLS), np.uint32)
    module, n = xp.RawModule(code=PRIMITIVES, options=("--std=c++17",)), np.int64(n_rows)
    if name == "copy":
        return 1e3 * measure(lambda: out.__setitem__(slice(n_rows), words))
    if name == "gather":
        look_up, table = module.get_function("gather"), xp.zeros(CELLS, np.uint32)
        return 1e3 * measure(lambda: look_up((raw.BLOCKS,), (raw.THREADS,), (words, n, table, out)))
    add, room = module.get_function("add"), 4 * CELLS
    add.max_dynamic_shared_size_bytes = room
    return 1e3 * measure(lambda: add((raw.BLOCKS,), (raw.THREADS,), (words, n, out), shared_mem=room))


def run(step: Run) -> None:
    """Time each changed kernel alone, inside of the call that launches it, and a bare primitive for comparison."""
    n_rows, uses = step.size(min(N_ROWS, rows_that_fit()), 16), changed(step)
    bare = {name: primitive_ms(name, n_rows) for name in {use.primitive for use in uses.values()}}
    for use in dict.fromkeys((use.case, use.n_categories) for use in uses.values()):
        found = times_of(step, *use, n_rows)
        for name in [name for name, each in uses.items() if (each.case, each.n_categories) == use]:
            named = {"kernel": name, "case": use[0], "categories": use[1], "rows": n_rows}
            if step.simulated:
                step.row("kernels", **named, ran=True)
            elif name not in found:
                step.fail(f"{name} was not launched by {use[0]} with {use[1]:,} categories: mend its line in USES")
            else:
                primitive, predicted = uses[name].primitive, kernel_ms(name, *use, n_rows)
                figures = {"ms": found[name], "G rows/s": n_rows / found[name] / 1e6, "predicted ms": predicted}
                figures |= {"primitive": primitive, "its ms": bare[primitive]}
                step.row("kernels", **named, **figures, off=off(found[name], predicted))


def times_of(step: Run, name: str, n_categories: int, n_rows: int) -> dict[str, float]:
    """Measure the milliseconds of each CUDA C++ kernel in a call: the least of several, after a call that compiles."""
    case, found = (CASES | MORE_CASES)[name], []
    with step.room_for("kernels", case=name, categories=n_categories, rows=n_rows):
        n_categories = step.size(n_categories, 5)
        call = call_of(step, case, table_of(case, n_rows, n_categories), COLUMNS[case.target](n_rows))
        call()
        for _ in range(0 if step.simulated else step.options.repeats):
            with time_kernels() as by_kernel:
                call()
                found.append(by_kernel())
    return {kernel: min(times[kernel] for times in found) for kernel in (found[0] if found else {})}
