"""The same bits: every operation, many layouts and numbers of categories, against the compiled backend of the CPU."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.gpu.comparison import difference
from benchmarks.gpu.drawn import DRAWN, Columns, codes
from benchmarks.gpu.kinds import KINDS, Kind
from benchmarks.gpu.run import Run
from cpu_fallback.row_numbers import FoldPattern, Permutation
from cpu_fallback.types import Array, Carry, Layout, Rows
from gpu_encode.cuda.memory import to_host
from gpu_encode.cuda.runtime import xp
from gpu_encode.ops import Ops, resolve, use_backend

# Enough for buckets, the way of counting that wants most rows.
N_ROWS = (1 << 21) + 37
# Rows of which digits are kept one by one.
N_SEEN = (1 << 18) + 5
MOST_CELLS = 1 << 25
CATEGORIES = (1, 2, 127, 128, 129, 4096, 1_000_000, N_ROWS)
TINY_CATEGORIES = (9,)
ORDERS = ("random", "interleaved", "contiguous")
Found = Iterator[tuple[str, Any]]


def of_sums(ops: Ops, rows: Rows, kind: Kind, layout: Layout, n: int, folds: Array) -> Found:
    """Operations on sums of all rows."""
    n_rows = len(rows)
    patterns = {order: FoldPattern(order, 5, seed=3, n_rows=n_rows + 11, first_row=11) for order in ORDERS}
    for name, given in {"alone": None, "given": folds, **patterns}.items():
        n_folds = 1 if given is None else 5
        if (n + 2) * n_folds * kind.n_classes > MOST_CELLS:
            continue
        cells = ops.accumulate(rows, n, given, n_folds, kind.n_classes, layout)
        yield f"accumulate, folds {name}", cells
        if name not in ("alone", "random"):
            continue
        squares = rows.target is None or layout.square is not None
        found = ops.moments(cells, layout, int(kind.n_classes > 1), squares)
        yield f"moments, folds {name}", found
        for dtype in ("float32", "float64"):
            out = ops.empty((n_rows, found.mean.shape[-1]), dtype)
            ops.gather(found.mean, rows.codes, given, out)
            yield f"gather, folds {name}, {dtype}", out
    yield "extents", ops.extents(rows.target, rows.weight, (0, 1, 2)) if rows.target is not None else None


def of_rows(ops: Ops, rows: Rows, kind: Kind, layout: Layout, n: int, ties: Array) -> Found:
    """Operations that give digits of every row."""
    cells = ops.accumulate(rows, n, None, 1, kind.n_classes, layout)[:, 0]
    yield "leave_one_out", ops.leave_one_out(cells, rows, layout)
    for tied in (False, True):
        carry, middle = Carry.empty(n, kind.n_classes, layout.width, tied, ops.xp), len(rows) // 3
        for start, stop in ((0, middle), (middle, len(rows))):
            given = ties[start:stop] if tied else None
            yield f"ordered, ties {tied}", ops.ordered(rows.block(start, stop), given, layout, carry)
        yield f"carry, ties {tied}", [carry.sums, carry.at_tie, carry.last_tie]


def of_values(ops: Ops, numbers: Array, folds: Array) -> Found:
    """Operations that turn values into codes."""
    known = numbers >= 0
    codes_known = numbers[known]
    for name, values in (
        ("int64", codes_known.astype(np.int64) - 3),
        ("int32", codes_known),
        ("uint8", codes_known.astype(np.uint8)),
        ("far apart", codes_known.astype(np.int64) * (2**40 + 1)),
        ("float64", codes_known * 0.37 - 5.0),
        ("float32", codes_known.astype(np.float32) * np.float32(0.5)),
        ("bool", codes_known % 2 == 1),
    ):
        found, distinct = ops.factorize(values)
        yield f"factorize {name}", [found, distinct]
        yield f"lookup {name}", ops.lookup(values, distinct[::2].copy())
    yield "combine", ops.combine(codes_known, folds[known], 5)


def of_numbers(ops: Ops, n_rows: int) -> Found:
    """Operations on row numbers."""
    for order in ORDERS:
        for n_splits in (1, 2, 5, 64):
            pattern = FoldPattern(order, n_splits, seed=9, n_rows=n_rows + 7)
            yield f"fold_numbers {order} {n_splits}", ops.fold_numbers(pattern, 7, n_rows + 7)
    order_ = Permutation(n_rows, seed=5)
    yield "places_of", ops.places_of(order_, 0, n_rows)
    yield "rows_at", ops.rows_at(order_, 0, n_rows)


def compare(step: Run, row: dict[str, Any], ours: Found, theirs: Found) -> None:
    """Compare what two backends give, one after the other, and write down what differs."""
    with step.attempt(str(row)):
        compared, wrong = 0, []
        for (name, found), (_, expected) in zip(ours, theirs, strict=True):
            compared += 1
            if said := difference(found, expected):
                wrong.append(f"{name}: {said}")
        step.row("operations", **row, compared=compared, same=not wrong)
        if wrong:
            step.fail(f"{row}\n" + "\n".join(wrong))


def off(rows: Rows) -> Rows:
    """Rows on the host."""
    parts = (rows.codes, rows.classes, rows.target, rows.weight)
    return Rows(*(None if part is None else to_host(part) for part in parts))


def run_kind(step: Run, pair: tuple[Ops, Ops], kind: Kind, drawn: Array, columns: Columns, row: dict[str, Any]) -> None:
    """Compare all operations on one kind of rows."""
    ours, theirs = pair
    n, layout = row["categories"], kind.layout(ours, columns)
    rows = kind.rows(drawn, columns)
    few = rows.block(0, step.size(N_SEEN, 14))
    n_few = min(n, len(few))
    few = few.with_codes(xp.where(few.codes < 0, few.codes, few.codes % n_few))
    named = {"kind": kind.name, **row}
    compare(
        step,
        named,
        of_sums(ours, rows, kind, layout, n, columns.folds),
        of_sums(theirs, off(rows), kind, layout, n, to_host(columns.folds)),
    )
    compare(
        step,
        {**named, "kind": f"{kind.name}, by row"},
        of_rows(ours, few, kind, layout, n_few, columns.ties),
        of_rows(theirs, off(few), kind, layout, n_few, to_host(columns.ties)),
    )


def run(step: Run) -> None:
    """Compare all operations."""
    with use_backend("compiled"):
        theirs = resolve(0)
    with use_backend(step.backend):
        ours = resolve(0)
    columns = Columns(step.size(N_ROWS, 16))
    host_folds = to_host(columns.folds)
    n_rows = len(columns.folds)
    compare(step, {"kind": "row numbers"}, of_numbers(ours, n_rows), of_numbers(theirs, n_rows))
    for n in step.size(CATEGORIES, TINY_CATEGORIES):
        for how in DRAWN[: 1 if step.tiny else None]:
            drawn = codes(n_rows, n, how, nulls=True)
            row = {"categories": n, "drawn": how}
            found = of_values(ours, drawn, columns.folds)
            compare(step, {"kind": "values", **row}, found, of_values(theirs, to_host(drawn), host_folds))
            for kind in KINDS.values():
                run_kind(step, (ours, theirs), kind, drawn, columns, row)
