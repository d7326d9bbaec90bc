"""More than 2**31 rows, and more than 2**31 cells: results are compared with arithmetic."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.gpu.bits import backends
from benchmarks.gpu.comparison import difference
from benchmarks.gpu.drawn import CHUNK, fill
from benchmarks.gpu.report import Run
from cpu_fallback.row_numbers import FoldPattern, Permutation
from cpu_fallback.types import Array, Carry, Layout, Rows, SumShape, Window
from gpu_encode.cuda.memory import to_host
from gpu_encode.cuda.runtime import xp
from gpu_encode.seam.ops import Ops

COUNT = Layout()
N_FOLDS = 5


class Size(NamedTuple):
    """Numbers of rows and cells, and a small and a large number of categories."""

    rows: int = (1 << 31) + (1 << 20)
    cells: int = (1 << 31) + (1 << 10)
    few: int = 1000
    many: int = 1_000_000


TINY = Size(rows=200, cells=300, few=22, many=60)
# A function of the operations on the device, the operations on the CPU, and the size.
Check = Callable[[Ops, Ops, Size], str]


def number(start: int, stop: int) -> Array:
    """Give the row numbers."""
    return xp.arange(start, stop, dtype=np.int64)


def modulo(n_rows: int, divisor: int, dtype: str = "int32", divide: int = 1) -> Array:
    """Give the row numbers, divided by a number, modulo another one."""
    return fill(n_rows, dtype, lambda start, stop: number(start, stop) // divide % divisor)


def count_remainders(n_rows: int, divisor: int) -> Array:
    """Count the rows with each remainder."""
    return n_rows // divisor + (np.arange(divisor) < n_rows % divisor)


def compare_everywhere(result: Array, expected: Callable[[int, int], Array]) -> str:
    """Compare all rows on their device, one chunk at a time."""
    for start in range(0, len(result), CHUNK):
        part = result[start : start + CHUNK]
        wanted = expected(start, start + len(part)).astype(result.dtype)
        if not bool((part == wanted).all()):
            return difference(part, to_host(wanted)) + f" from row {start} on"
    return ""


def counts(many: bool) -> Check:
    """Check counts by category and class."""

    def check(ops: Ops, _: Ops, size: Size) -> str:
        n_rows, n = size.rows, size.many if many else size.few
        rows = Rows(modulo(n_rows, n), modulo(n_rows, 2, "int8", divide=n))
        expected = np.zeros((n + 2, 1, 2, 1), np.int64)
        expected[:-2, 0, :, 0] = count_remainders(n_rows, 2 * n).reshape(2, n).T
        return difference(ops.accumulate(rows, SumShape(n, 1, 2, COUNT)), expected)

    return check


def folds(order: str) -> Check:
    """Check counts by category and fold, if both follow from the row number, and the fold numbers of the last rows."""

    def check(ops: Ops, cpu: Ops, size: Size) -> str:
        # This number has no factor in common with the number of folds.
        n_rows, n = size.rows, size.few - 1
        pattern = FoldPattern(order, N_FOLDS, seed=3, n_rows=n_rows)
        cells = to_host(ops.accumulate(Rows(modulo(n_rows, n)), SumShape(n, N_FOLDS, 1, COUNT), pattern))[:, :, 0, 0]
        last = (pattern, max(n_rows - CHUNK, 0), n_rows)
        said = difference(ops.fold_numbers(*last), cpu.fold_numbers(*last))
        if order != "interleaved":
            return said or difference(cells.sum(axis=1), np.append(count_remainders(n_rows, n), [0, 0]))
        residue, expected = np.arange(n * N_FOLDS), np.zeros((n + 2, N_FOLDS), np.int64)
        expected[residue % n, residue % N_FOLDS] = count_remainders(n_rows, len(residue))
        return said or difference(cells, expected)

    return check


def integers(ops: Ops, _: Ops, size: Size) -> str:
    """Check sums of row numbers, which are arithmetic series."""
    rows = Rows(modulo(size.rows, size.few), None, fill(size.rows, np.int64, number))
    cells = ops.accumulate(rows, SumShape(size.few, layout=Layout(Window(), Window())))
    count = np.append(count_remainders(size.rows, size.few), [0, 0])
    sums = count * np.arange(size.few + 2) + size.few * (count * (count - 1) // 2)
    return difference(to_host(cells)[:, 0, 0], np.stack([count, sums], axis=1))


def gather(ops: Ops, _: Ops, size: Size) -> str:
    """Check look-ups of the number of each row's category."""
    codes, out = modulo(size.rows, size.few), ops.empty((size.rows, 1), np.float32)
    ops.gather(xp.arange(size.few + 2, dtype=np.float32).reshape(-1, 1, 1), codes, None, out)
    return compare_everywhere(out[:, 0], lambda start, stop: codes[start:stop])


def leave_one_out(ops: Ops, _: Ops, size: Size) -> str:
    """Check that each row sees one row less than its category has."""
    codes, cells = modulo(size.rows, size.few), xp.arange(size.few + 2, dtype=np.int64).reshape(-1, 1, 1)
    result = ops.leave_one_out(cells, Rows(codes), COUNT)
    return compare_everywhere(result[:, 0, 0], lambda start, stop: codes[start:stop].astype(np.int64) - 1)


def ordered(ops: Ops, _: Ops, size: Size) -> str:
    """Check that the i-th row of a category, counted from 0, sees i rows."""
    carry = Carry.empty(size.few, 1, 1, False, xp)
    result = ops.ordered(Rows(modulo(size.rows, size.few)), None, COUNT, carry)
    said = compare_everywhere(result[:, 0, 0], lambda start, stop: number(start, stop) // size.few)
    return said or difference(carry.sums[:-2, 0, 0], count_remainders(size.rows, size.few))


def factorize(ops: Ops, _: Ops, size: Size) -> str:
    """Check codes of bytes."""
    result, distinct = ops.factorize(modulo(size.rows, 251, "uint8"))
    said = compare_everywhere(result, lambda start, stop: number(start, stop) % 251)
    return said or difference(distinct, np.arange(min(251, size.rows), dtype=np.uint8))


def permute(ops: Ops, cpu: Ops, size: Size) -> str:
    """Compare the rows of the last ranks with the CPU's."""
    last = (Permutation(size.rows, seed=5), max(size.rows - 1000, 0), size.rows)
    return difference(ops.rows_at(*last), cpu.rows_at(*last))


def cells(ops: Ops, _: Ops, size: Size) -> str:
    """Check counts and look-ups in a table whose last cells are beyond 2**31, from the last category downwards."""
    n_folds = 4
    n = size.cells // n_folds - 2
    n_rows = min(size.many, n)
    codes, pattern = (n - 1 - xp.arange(n_rows)).astype(np.int32), FoldPattern("interleaved", n_folds)
    result = ops.accumulate(Rows(codes), SumShape(n, n_folds, 1, COUNT), pattern).reshape(-1)
    last = result[-n_folds * (n_rows + 2) : -n_folds * 2].reshape(n_rows, n_folds)[::-1]
    said = difference(last, (np.arange(n_rows)[:, None] % n_folds == np.arange(n_folds)).astype(np.int64))
    out = ops.empty((n_rows, 1), np.float32)
    ops.gather(result.astype(np.float32).reshape(-1, n_folds, 1), codes, pattern, out)
    said = said or difference(out, np.ones((n_rows, 1), np.float32))
    return said or difference(int(result.sum()), n_rows)


CASES: dict[str, Check] = {
    "counts, few categories": counts(many=False),
    "counts, many categories": counts(many=True),
    **{f"{order} folds": folds(order) for order in ("interleaved", "random", "contiguous")},
    "orders": permute,
    "sums of row numbers": integers,
    "gather": gather,
    "leave one out": leave_one_out,
    "ordered": ordered,
    "factorize": factorize,
    "cells": cells,
}


def run(step: Run) -> None:
    """Run all checks that fit on the device."""
    for name, check in CASES.items():
        with step.room_for("beyond 2**31", what=name):
            size = step.size(Size(), TINY)
            said = check(*backends(step), size)
            step.row("beyond 2**31", what=name, rows=size.rows, same=not said)
            if said:
                step.fail(f"{name}: {said}")
