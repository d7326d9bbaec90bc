"""How fast every operation is: rows and bytes a second, as a share of what a copy moves."""

from benchmarks.gpu.drawn import DRAWN, Columns
from benchmarks.gpu.operations import ANYHOW, BY_CATEGORY, Data, Operation
from benchmarks.gpu.paths import forced, paths, traced
from benchmarks.gpu.run import Run
from benchmarks.gpu.tables import against_uniform
from benchmarks.gpu.timing import free_memory, measure, seconds_of
from gpu_encode.ops import Ops, resolve, use_backend

N_ROWS = 1 << 28
# Columns, operands and results of the widest operation take about this much a row.
ROW_BYTES = 160
FEWEST_ROWS = 1 << 20
CATEGORIES = (128, 4096, 65_536, 1_000_000, 100_000_000)
# Above these, cells of several folds and classes, or digits of sums, would not fit beside the rows.
MOST_CATEGORIES = {"accumulate, 10 classes, 5 folds": 10**7, "gather, float32, 10 outputs, 5 folds": 10**7}
MOST_OF_REALS = 10**7
TABLE = "operations"


def rows_that_fit(most: int) -> int:
    """Give a power of two of rows, for which there is room."""
    n_rows = most
    while n_rows * ROW_BYTES > free_memory() and n_rows > FEWEST_ROWS:
        n_rows //= 2
    return n_rows


def bench(step: Run, title: str, named: dict[str, object], operation: Operation, data: Data) -> None:
    """Measure one operation, and write down which kernels it launched."""
    with step.attempt(str(named)):
        try:
            work = operation(data)
            with traced() as launched:
                seconds = seconds_of(work.call)
            seconds = seconds if step.simulated else measure(work.call)
        except MemoryError as error:
            step.row(title, **named, skipped=str(error).splitlines()[0])
            return
        kernels = ", ".join(dict.fromkeys(launched))
        found = step.figures(seconds, work.items, sum(work.moves.values()))
        step.row(title, **named, **found, rule=work.rule(), kernels=kernels)


def by_category(step: Run, ops: Ops, columns: Columns) -> None:
    """Measure what the number of categories, and how rows spread over them, matters to."""
    for n_categories in step.size(CATEGORIES, (5,)):
        for drawn in DRAWN[: 1 if step.tiny else None]:
            data = Data(ops, columns, n_categories, drawn)
            for name, operation in BY_CATEGORY.items():
                most = MOST_CATEGORIES.get(name, MOST_OF_REALS if "real" in name else n_categories)
                if n_categories <= most:
                    named = {"operation": name, "categories": n_categories, "drawn": drawn}
                    bench(step, TABLE, named, operation, data)
            del data


def run(step: Run) -> None:
    """Measure everything, then every way that another threshold would choose."""
    with use_backend(step.backend):
        ops = resolve(0)
    n_rows = step.size(rows_that_fit(N_ROWS), 24)
    columns = Columns(n_rows)
    data = Data(ops, columns, min(n_rows, 4096))
    for name, operation in ANYHOW.items():
        bench(step, "operations of any rows", {"operation": name}, operation, data)
    by_category(step, ops, columns)
    for way in paths():
        for drawn in DRAWN[: 1 if step.tiny else None]:
            with forced(way.settings):
                named = {"way": way.name, "categories": way.n_categories, "drawn": drawn}
                bench(step, "ways, forced", named, way.operation, Data(ops, columns, way.n_categories, drawn))
    for row in against_uniform(step.report.rows(step.step, TABLE), "operation"):
        step.row("Zipf 1.5 against uniform", **row)
