"""The same bits: every operation and every encoder, compared with the compiled backend of the CPU."""

from typing import Any

import numpy as np

from benchmarks.gpu import bits_of_encoders
from benchmarks.gpu.comparison import difference
from benchmarks.gpu.drawn import DRAWN, Columns, codes
from benchmarks.gpu.operations import KINDS, OF_CODES, OF_ROW_NUMBERS, Data, Operation, of_rows, of_sums
from benchmarks.gpu.report import Run
from gpu_encode.cuda.memory import to_host
from gpu_encode.seam.ops import Ops, resolve, use_backend

# Enough rows for buckets, the way of counting that needs most rows.
N_ROWS = (1 << 21) + 37
# Number of rows whose digits are compared row by row.
N_SEEN = (1 << 18) + 5
MOST_CELLS = 1 << 25
CATEGORIES = (1, 2, 127, 128, 129, 4096, 1_000_000, N_ROWS)
TINY_CATEGORIES = (9,)


def compare(step: Run, named: dict[str, Any], operations: dict[str, Operation], both: tuple[Data, Data]) -> None:
    """Compare the results of two backends, one operation after the other, and record differences."""
    with step.attempt(str(named)):
        wrong = []
        for name, operation in operations.items():
            said = difference(*(operation(data).result() for data in both))
            wrong += [f"{name}: {said}"] if said else []
        step.row("operations", **named, compared=len(operations), same=not wrong)
        if wrong:
            step.fail(f"{named}\n" + "\n".join(wrong))


def backends(step: Run) -> tuple[Ops, Ops]:
    """Give the operations on the device, and the operations of the compiled backend."""
    with use_backend("compiled"):
        return step.ops, resolve(0)


def run(step: Run) -> None:
    """Compare all encoders, then all operations, with several numbers of categories, distributions, kinds of rows."""
    bits_of_encoders.run(step)
    n_rows, n_seen = step.size((N_ROWS, N_SEEN), (16, 14))
    all_rows, few_rows = (
        [(ops, Columns(n, held)) for ops, held in zip(backends(step), (lambda array: array, to_host), strict=True)]
        for n in (n_rows, n_seen)
    )
    for n in step.size(CATEGORIES, TINY_CATEGORIES):
        for how in DRAWN[: 1 if step.tiny else None]:
            drawn, n_few = codes(n_rows, n, how, nulls=True), min(n, n_seen)
            few = codes(n_seen, n_few, how, nulls=True)
            both = data_of(all_rows, drawn, n)
            named = {"categories": n, "drawn": how}
            compare(step, {"kind": "codes", **named}, OF_CODES, both)
            for kind in KINDS.values():
                sums = of_sums(kind.name)
                if (n + 2) * 5 * kind.n_classes > MOST_CELLS:
                    sums = {name: work for name, work in sums.items() if "folds" not in name or "none" in name}
                compare(step, {"kind": kind.name, **named}, sums, both)
                of_few = data_of(few_rows, few, n_few)
                compare(step, {"kind": f"{kind.name}, by row", **named}, of_rows(kind.name), of_few)
    compare(step, {"kind": "row numbers"}, OF_ROW_NUMBERS, both)


def data_of(backends: list[tuple[Ops, Columns]], codes: Any, n_categories: int) -> tuple[Data, Data]:
    """Give the same rows on the device and on the host."""
    (ours, columns), (theirs, others) = backends
    return Data(ours, columns, codes, n_categories), Data(theirs, others, np.asarray(to_host(codes)), n_categories)
