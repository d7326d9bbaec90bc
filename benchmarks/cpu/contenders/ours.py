"""TargetEncoder and CountEncoder as users call them; "codes" is the numbering of values, with which encoders begin."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.cpu.grid import FOLD_WORKS, MEANS, SMOOTH, WORKS
from benchmarks.cpu.judge import expected_of
from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.rows import N_FOLDS, Array, Rows
from cpu_fallback.row_numbers import FoldPattern, Permutation, fold_numbers, rows_at
from gpu_encode import CountEncoder, Greedy, LeaveOneOut, Ordered, TargetEncoder
from gpu_encode.schemes.plans import seed_of
from gpu_encode.seam.ops import resolve
from gpu_encode.tables.categories.keys import CategoryIndex, KeySpec
from gpu_encode.tables.frames import read

TOLERANCE = {"float64": 1e-12, "float32": 2.0**-22}


def table_of(rows: Rows) -> Any:
    """Give the keys in a container that users have."""
    return pa.table({"key": rows.text}) if rows.keys == "text" else rows.codes.reshape(-1, 1)


def own_folds(n_rows: int, n_folds: int = N_FOLDS) -> Array:
    """Give the fold numbers that our encoders draw."""
    return fold_numbers(FoldPattern("random", n_folds, seed_of(0, "KFold")), 0, n_rows)


def matrix(table: Any) -> Array:
    """Convert a table of encodings to a NumPy array, as cheaply as its library allows."""
    if isinstance(table, np.ndarray):
        return table
    if isinstance(table, pa.Table):
        columns = [column.to_numpy() for column in table.columns]
        if len(columns) == 1:
            return columns[0]
        stacked = np.empty((len(columns[0]), len(columns)), columns[0].dtype, order="F")
        for number, column in enumerate(columns):
            stacked[:, number] = column
        return stacked
    return table.to_numpy()


def encoding(rows: Rows, dtype: str, X: Any, form: str) -> Callable[[], Array]:
    """Give the call of the encoder; "one call" numbers the rows once, while fit and transform number them twice."""
    options = {"smooth": SMOOTH, "target_type": rows.kind, "device": "cpu", "dtype": dtype}
    y = rows.target
    if form == "one call":
        return lambda: matrix(TargetEncoder(cv=Greedy(), **options).fit_transform(X, y))
    if rows.work.startswith("mean"):
        return lambda: matrix(TargetEncoder(**options).fit(X, y).transform(X))
    cv = {"ordered": Ordered(shuffle=form == "shuffled"), "leave-one-out": LeaveOneOut()}.get(rows.work, N_FOLDS)
    return lambda: matrix(TargetEncoder(cv=cv, **options).fit_transform(X, y))


def codes_of(X: Any) -> Array:
    """Give the category numbers of a table with one column."""
    frame = read(X)
    return CategoryIndex.fit(KeySpec("key", (0,)), frame, resolve(frame.n_rows), True)[1]


def prepare(rows: Rows, dtype: str = "float64", form: str = "") -> Prepared:
    """Our encoder, judged with its own folds, order and priors."""
    X, n_rows = rows.matrix if form == "objects" else table_of(rows), rows.n_rows
    if rows.work == "codes":
        return Prepared(partial(codes_of, X), expected_of(rows))
    own: dict[str, Any] = {"tolerance": TOLERANCE[dtype], "visible_prior": True}
    if rows.work == "count":
        encoder = CountEncoder(device="cpu", dtype=dtype)
        return Prepared(lambda: matrix(encoder.fit_transform(X)), expected_of(rows, **own))
    if form == "shuffled":
        own["order"] = rows_at(Permutation(n_rows, seed_of(0, "Ordered")), 0, n_rows)
    if rows.work in FOLD_WORKS:
        own["folds"] = own_folds(n_rows)
    return Prepared(encoding(rows, dtype, X, form), expected_of(rows, **own))


FLOATS = tuple(work for work in WORKS if work != "codes")
FLOAT32, ONE_CALL, OBJECTS, SHUFFLED = "ours-float32", "ours-one-call", "ours-objects", "ours-shuffled"
CONTENDERS = (
    Contender("ours", "ours", prepare, compiles=True),
    Contender(FLOAT32, "ours", partial(prepare, dtype="float32"), {"work": FLOATS}, compiles=True),
    Contender(ONE_CALL, "ours", partial(prepare, form="one call"), {"work": MEANS}, compiles=True),
    Contender(
        OBJECTS, "ours", partial(prepare, form="objects"), {"work": ("mean", "folds"), "keys": ("text",)}, compiles=True
    ),
    Contender(SHUFFLED, "ours", partial(prepare, form="shuffled"), {"work": ("ordered",)}, compiles=True),
)
# Families for each of our contenders: those that look up values as often, and read the same kind of objects.
VIEWS = {
    "ours": None,
    FLOAT32: (),
    ONE_CALL: ("engine", "hand-written", "limit"),
    OBJECTS: ("scikit-learn", "library"),
    SHUFFLED: (),
}
