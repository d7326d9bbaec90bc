"""More than 2**31 rows, and more than 2**31 cells, against what arithmetic says they are."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.gpu.comparison import difference
from benchmarks.gpu.drawn import CHUNK, filled
from benchmarks.gpu.run import Run
from benchmarks.gpu.timing import free_memory
from cpu_fallback.row_numbers import FoldPattern, Permutation
from cpu_fallback.types import Array, Carry, Layout, Rows, Window
from gpu_encode.cuda.memory import to_host
from gpu_encode.cuda.runtime import xp
from gpu_encode.ops import Ops, resolve, use_backend

COUNT = Layout()
N_FOLDS = 5


class Size(NamedTuple):
    """How many rows and cells there are, and few and many categories."""

    rows: int = (1 << 31) + (1 << 20)
    cells: int = (1 << 31) + (1 << 10)
    few: int = 1000
    many: int = 1_000_000


TINY = Size(rows=200, cells=300, few=22, many=60)
Check = Callable[[Ops, Size], str]


def modulo(n_rows: int, divisor: int, dtype: str, divide: int = 1) -> Array:
    """Row number, divided, modulo a number."""
    return filled(n_rows, dtype, lambda start, stop: xp.arange(start, stop, dtype=np.int64) // divide % divisor)


def rows_left(n_rows: int, divisor: int) -> Array:
    """How many of the rows have each remainder."""
    return n_rows // divisor + (np.arange(divisor) < n_rows % divisor)


def everywhere(found: Array, expected: Callable[[int, int], Array]) -> str:
    """Compare all rows where they are, a chunk at a time."""
    for start in range(0, len(found), CHUNK):
        stop = min(start + CHUNK, len(found))
        if not bool((found[start:stop] == expected(start, stop)).all()):
            return difference(found[start:stop], to_host(expected(start, stop))) + f" from row {start} on"
    return ""


def counts(ops: Ops, n_rows: int, n_categories: int) -> str:
    """Rows per category and class."""
    rows = Rows(modulo(n_rows, n_categories, "int32"), modulo(n_rows, 2, "int8", divide=n_categories))
    cells = ops.accumulate(rows, n_categories, None, 1, 2, COUNT)
    expected = np.zeros((n_categories + 2, 1, 2, 1), np.int64)
    expected[:-2, 0, :, 0] = rows_left(n_rows, 2 * n_categories).reshape(2, n_categories).T
    return difference(cells, expected)


def folds(order: str) -> Check:
    """Rows per category and fold, where the row number gives both; and the last rows' fold numbers."""

    def check(ops: Ops, size: Size) -> str:
        # It has no factor in common with the number of folds.
        n_rows, n_categories = size.rows, size.few - 1
        pattern = FoldPattern(order, N_FOLDS, seed=3, n_rows=n_rows)
        cells = ops.accumulate(Rows(modulo(n_rows, n_categories, "int32")), n_categories, pattern, N_FOLDS, 1, COUNT)
        last = max(n_rows - CHUNK, 0)
        with use_backend("compiled"):
            said = difference(ops.fold_numbers(pattern, last, n_rows), resolve(0).fold_numbers(pattern, last, n_rows))
        if order == "interleaved":
            residue = np.arange(n_categories * N_FOLDS)
            expected = np.zeros((n_categories + 2, N_FOLDS, 1, 1), np.int64)
            expected[residue % n_categories, residue % N_FOLDS, 0, 0] = rows_left(n_rows, len(residue))
            return said or difference(cells, expected)
        per_category = np.append(rows_left(n_rows, n_categories), [0, 0])
        return said or difference(to_host(cells).sum(axis=(1, 2, 3)), per_category)

    return check


def integers(ops: Ops, size: Size) -> str:
    """Sums of row numbers: arithmetic series."""
    target = filled(size.rows, np.int64, lambda start, stop: xp.arange(start, stop, dtype=np.int64))
    rows = Rows(modulo(size.rows, size.few, "int32"), None, target)
    cells = ops.accumulate(rows, size.few, None, 1, 1, Layout(Window(), Window()))
    count = rows_left(size.rows, size.few)
    expected = np.zeros((size.few + 2, 1, 1, 2), np.int64)
    expected[:-2, 0, 0, 0] = count
    expected[:-2, 0, 0, 1] = count * np.arange(size.few) + size.few * (count * (count - 1) // 2)
    return difference(cells, expected)


def gather(ops: Ops, size: Size) -> str:
    """Look up the number of each row's category."""
    codes = modulo(size.rows, size.few, "int32")
    out = ops.empty((size.rows, 1), np.float32)
    ops.gather(xp.arange(size.few + 2, dtype=np.float32).reshape(-1, 1, 1), codes, None, out)
    return everywhere(out[:, 0], lambda start, stop: codes[start:stop].astype(np.float32))


def left_out(ops: Ops, size: Size) -> str:
    """Each row sees one row less than its category has."""
    codes = modulo(size.rows, size.few, "int32")
    cells = xp.arange(size.few + 2, dtype=np.int64).reshape(-1, 1, 1)
    found = ops.leave_one_out(cells, Rows(codes), COUNT)
    return everywhere(found[:, 0, 0], lambda start, stop: codes[start:stop].astype(np.int64) - 1)


def in_order(ops: Ops, size: Size) -> str:
    """The i-th row of a category sees i rows."""
    carry = Carry.empty(size.few, 1, 1, False, xp)
    found = ops.ordered(Rows(modulo(size.rows, size.few, "int32")), None, COUNT, carry)
    said = everywhere(found[:, 0, 0], lambda start, stop: xp.arange(start, stop, dtype=np.int64) // size.few)
    return said or difference(carry.sums[:-2, 0, 0], rows_left(size.rows, size.few))


def values(ops: Ops, size: Size) -> str:
    """Codes of bytes."""
    found, distinct = ops.factorize(modulo(size.rows, 251, "uint8"))
    said = everywhere(found, lambda start, stop: xp.arange(start, stop, dtype=np.int64) % 251)
    return said or difference(distinct, np.arange(min(251, size.rows), dtype=np.uint8))


def permuted(ops: Ops, size: Size) -> str:
    """The rows at the last places, as the CPU finds them."""
    order, last = Permutation(size.rows, seed=5), max(size.rows - 1000, 0)
    with use_backend("compiled"):
        return difference(ops.rows_at(order, last, size.rows), resolve(0).rows_at(order, last, size.rows))


def many_cells(ops: Ops, size: Size) -> str:
    """Counts in, and look-ups from, a table whose last cells lie beyond 2**31: from the last category downwards."""
    n_folds = 4
    n_categories = size.cells // n_folds - 2
    n_rows = min(size.many, n_categories)
    codes = (n_categories - 1 - xp.arange(n_rows)).astype(np.int32)
    pattern = FoldPattern("interleaved", n_folds)
    cells = ops.accumulate(Rows(codes), n_categories, pattern, n_folds, 1, COUNT).reshape(-1)
    last = cells[-n_folds * (n_rows + 2) : -n_folds * 2].reshape(n_rows, n_folds)[::-1]
    said = difference(last, (np.arange(n_rows)[:, None] % n_folds == np.arange(n_folds)).astype(np.int64))
    out = ops.empty((n_rows, 1), np.float32)
    ops.gather(cells.astype(np.float32).reshape(-1, n_folds, 1), codes, pattern, out)
    said = said or difference(out, np.ones((n_rows, 1), np.float32))
    total = int(cells.sum())
    return said or ("" if total == n_rows else f"{total} rows counted, not {n_rows}")


class Case(NamedTuple):
    """A check, and the bytes that it needs for each row, or for each cell."""

    name: str
    check: Check
    row_bytes: int = 0
    cell_bytes: int = 0


CASES = (
    Case("counts, few categories", lambda ops, size: counts(ops, size.rows, size.few), 10),
    Case("counts, many categories", lambda ops, size: counts(ops, size.rows, size.many), 10),
    Case("interleaved folds", folds("interleaved"), 5),
    Case("random folds", folds("random"), 5),
    Case("contiguous folds", folds("contiguous"), 5),
    Case("orders", permuted),
    Case("sums of row numbers", integers, 13),
    Case("gather", gather, 9),
    Case("leave one out", left_out, 13),
    Case("ordered", in_order, 14),
    Case("factorize", values, 7),
    Case("cells", many_cells, cell_bytes=13),
)


def run(step: Run) -> None:
    """Check what fits the device."""
    with use_backend(step.backend):
        ops = resolve(0)
    size = step.size(Size(), TINY)
    for case in CASES:
        needed, free = size.rows * case.row_bytes + size.cells * case.cell_bytes, free_memory()
        if needed > free:
            sizes = f"needs {needed / 2**30:.0f} GiB, {free / 2**30:.0f} are free"
            step.row("beyond 2**31", what=case.name, skipped=sizes)
            continue
        with step.attempt(case.name):
            said = case.check(ops, size)
            number = {"cells": size.cells} if case.cell_bytes else {"rows": size.rows}
            step.row("beyond 2**31", what=case.name, **number, same=not said)
            if said:
                step.fail(f"{case.name}: {said}")
