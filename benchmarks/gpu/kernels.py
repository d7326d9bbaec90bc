"""The speed of every operation: rows and bytes a second, as a share of the bytes a second of a copy."""

from benchmarks.gpu.drawn import DRAWN, Columns, codes
from benchmarks.gpu.operations import BY_CATEGORY, OF_ANY_ROWS, Data, Operation
from benchmarks.gpu.paths import list_paths, set_thresholds, trace_launches
from benchmarks.gpu.report import Run
from benchmarks.gpu.timing import free_memory, measure, seconds_of

N_ROWS = 1 << 28
# Columns, operands and results of the widest operation take about this much a row.
ROW_BYTES = 160
FEWEST_ROWS = 1 << 20
CATEGORIES = (128, 4096, 65_536, 1_000_000, 100_000_000)
# With more categories, cells of several folds and classes, or digits of sums, would not fit beside the rows.
MOST_CATEGORIES_OF_WIDE = 10**7
WIDE = ("real", "10 classes", "10 outputs")


def rows_that_fit() -> int:
    """Give the largest power of two of rows that fits into memory."""
    n_rows = N_ROWS
    while n_rows * ROW_BYTES > free_memory() and n_rows > FEWEST_ROWS:
        n_rows //= 2
    return n_rows


def bench(step: Run, table: str, named: dict[str, object], operation: Operation, data: Data) -> None:
    """Measure one operation, and record the kernels that it launched."""
    with step.room_for(table, **named):
        work = operation(data)
        with trace_launches() as launched:
            seconds = seconds_of(work.call)
        seconds = seconds if step.simulated else measure(work.call)
        moves = " + ".join(f"{name} {size}" for name, size in work.moves.items())
        figures = step.figures(seconds, work.items, sum(work.moves.values()))
        step.row(table, **named, **figures, moves=moves, kernels=", ".join(dict.fromkeys(launched)))


def run(step: Run) -> None:
    """Measure every operation, then every way that another threshold would choose."""
    columns = Columns(step.size(rows_that_fit(), 24))

    def data(n_categories: int, drawn: str) -> Data:
        return Data(step.ops, columns, codes(columns.n_rows, n_categories, drawn), n_categories)

    any_rows = data(min(columns.n_rows, 4096), DRAWN[0])
    for name, operation in OF_ANY_ROWS.items():
        bench(step, "operations of any rows", {"operation": name}, operation, any_rows)
    for drawn in DRAWN[: 1 if step.tiny else None]:
        for n_categories in step.size(CATEGORIES, (5,)):
            rows = data(n_categories, drawn)
            for name, operation in BY_CATEGORY.items():
                if n_categories <= MOST_CATEGORIES_OF_WIDE or not any(word in name for word in WIDE):
                    named = {"operation": name, "categories": n_categories, "drawn": drawn}
                    bench(step, "operations", named, operation, rows)
        for way in list_paths():
            named = {"way": way.name, "categories": way.n_categories, "drawn": drawn}
            with set_thresholds(way.settings):
                bench(step, "ways, forced", named, way.operation, data(way.n_categories, drawn))
