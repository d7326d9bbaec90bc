"""The number of rows from which the compiled backend is faster than NumPy, cold and loaded, for `seam/ops.py`.

    python -m benchmarks.backends [--rows 1000,10000] [--only cold] [--quick]

"cold" is the first call of a new process whose kernels are cached on disk; the time of loading them counts.
"""

import sys
from collections.abc import Iterator
from functools import partial

from benchmarks.harness.grid import Contender, Grid, Prepared, Topic
from benchmarks.harness.judge import Answer
from benchmarks.harness.program import main
from benchmarks.harness.rows import Array, Rows
from gpu_encode import TargetEncoder
from gpu_encode.seam.ops import use_backend


def prepare(rows: Rows, backend: str) -> Prepared:
    """Prepare `fit_transform` on a backend, which must give the bits of NumPy."""
    X, y = rows.matrix, rows.target

    def call(backend: str) -> Array:
        with use_backend(backend):
            return TargetEncoder().fit_transform(X, y)

    def columns() -> Iterator[Array]:
        # NumPy's result is computed after the timed call: modules that it loaded before would not count in that time.
        yield call("numpy").ravel()

    return Prepared(partial(call, backend), Answer(columns, 1, 0.0))


CONTENDERS = (
    Contender("compiled", "ours", partial(prepare, backend="compiled"), compiles=True),
    Contender("numpy", "NumPy", partial(prepare, backend="numpy")),
)
AXES = {
    "rows": (300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000),
    "categories": (1_000,),
    "keys": ("int",),
    "target": ("continuous",),
}
QUICK = {"rows": (300, 1_000)}
TOPIC = Topic(
    "benchmarks.backends",
    "The compiled backend beside NumPy",
    (
        Grid("loaded", AXES, CONTENDERS, QUICK),
        Grid("cold", AXES, CONTENDERS, QUICK, fresh=True),
    ),
    packages=("gpu-encode", "numpy", "numba", "pyarrow", "scikit-learn"),
)

if __name__ == "__main__":
    sys.exit(main(TOPIC, __doc__))
