"""How time grows with rows, categories, folds, columns and threads, each varied by itself from one point."""

from functools import partial
from itertools import product, repeat
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cpu.contenders.ours import own_folds
from benchmarks.cpu.grid import FOLD_WORKS, REAL_WORKS, SMOOTH, open_cell
from benchmarks.cpu.judge import Rule
from benchmarks.harness.grid import Cell, Contender, Grid, Prepared, Seconds
from benchmarks.harness.judge import Answer, Unjudged
from benchmarks.harness.rows import Array, Rows, draw

# More rows than this come in pieces, each with the same rows, so that the memory of a call does not grow.
STREAMED_ABOVE, PIECE = 20_000_000, 4_000_000
WORKS = ("mean", "folds", "folds-real", "ordered")
BASE = {"rows": 1_000_000, "categories": 100_000, "folds": 5, "columns": 1, "threads": 0, "keys": "int"}
AXES: dict[str, tuple[int, ...]] = {
    "rows": (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 100_000_000),
    "categories": (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000),
    "folds": (2, 4, 8, 16, 32, 64),
    "columns": (1, 2, 4, 8, 16, 32),
    "threads": (1, 2),
}
QUICK_AXES = {"rows": (1_000, 2_000), "categories": (10, 100), "folds": (2, 4), "columns": (1, 2), "threads": (2,)}
QUICK_ROWS = 2_000


def list_cells(quick: bool) -> list[Cell]:
    """List every point of every axis; only schemes with folds vary the folds, and only means are streamed."""
    base, cells = BASE | ({"rows": QUICK_ROWS} if quick else {}), []
    for axis, values in (QUICK_AXES if quick else AXES).items():
        for work, value in product(WORKS, values):
            cell = base | {axis: value, "axis": axis, "work": work}
            if (axis != "folds" or work in FOLD_WORKS) and (cell["rows"] <= STREAMED_ABOVE or work == "mean"):
                cells.append(cell)
    return cells


def draw_piece(root: Path, cell: Cell) -> Path:
    """Draw the rows of a point, or of one piece of it."""
    return draw(root, cell | {"rows": PIECE} if cell["rows"] > STREAMED_ABOVE else cell)


def make(rows: Rows) -> Any:
    """Make the encoder of a point."""
    from gpu_encode import Ordered, TargetEncoder

    cv: Any = Ordered(shuffle=False) if rows.work == "ordered" else rows.cell["folds"]
    kind = "continuous" if rows.work in REAL_WORKS else "binary"
    return TargetEncoder(cv=cv, smooth=SMOOTH, target_type=kind, device="cpu")


def stream(rows: Rows, X: Array) -> Seconds:
    """Measure the seconds of fit and transform, piece by piece."""
    encoder, pieces = make(rows), range(rows.cell["rows"] // PIECE)
    seconds = sum(SCALING.time_call(partial(encoder.partial_fit, X, rows.target))[0] for _ in pieces)
    return Seconds(seconds + sum(SCALING.time_call(partial(encoder.transform, X))[0] for _ in pieces))


def prepare(rows: Rows) -> Prepared:
    """Prepare our encoder at a point."""
    columns = rows.cell["columns"]
    X, y = np.asfortranarray(np.repeat(rows.matrix, columns, axis=1)), rows.target
    if rows.cell["rows"] > STREAMED_ABOVE and rows.first is None:
        return Prepared(partial(stream, rows, X), Unjudged())
    folds = own_folds(rows.n_rows, rows.cell["folds"]) if rows.work in FOLD_WORKS else None
    rule = Rule("ordered" if rows.work == "ordered" else "by_fold", folds=folds, visible_prior=True)
    expected = Answer(lambda: repeat(rule.encode(rows.codes, y), columns), columns)
    if rows.work == "mean":
        return Prepared(lambda: make(rows).fit(X, y).transform(X), expected)
    return Prepared(lambda: make(rows).fit_transform(X, y), expected)


def set_threads(cell: Cell, _: Path) -> dict[str, str]:
    """Give the environment variable with the number of threads."""
    return {"GPU_ENCODE_THREADS": str(cell["threads"])} if cell["threads"] else {}


def slope(points: list[tuple[float, float]]) -> float:
    """Give the exponent of the power law that is nearest to points, by least squares of logarithms."""
    x, y = np.log(np.array(points)).T
    return float(np.polyfit(x, y, 1)[0])


def tell_exponents(cells: list[Cell]) -> list[str]:
    """Give the exponents with which the time of each kind of work grows along each axis, without rows in pieces."""
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for cell in cells:
        seconds = cell["contenders"].get("ours", {}).get("seconds")
        if seconds and cell["rows"] <= STREAMED_ABOVE:
            points.setdefault((cell["work"], cell["axis"]), []).append((cell[cell["axis"]], seconds))
    return [
        f"- {work}: time grows with the power {slope(of_axis):.2f} of {axis}."
        for (work, axis), of_axis in points.items()
        if len(of_axis) > 1
    ]


SCALING = Grid(
    "scaling",
    AXES,
    (Contender("ours", "ours", prepare, compiles=True),),
    listed=list_cells,
    draw=draw_piece,
    open=open_cell,
    environment=set_threads,
    remark=tell_exponents,
)
