"""How time grows with rows, categories, folds, columns and threads, each varied by itself from one point."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cpu.contenders.ours import own_folds
from benchmarks.cpu.grid import SMOOTH
from benchmarks.cpu.judge import Rule
from benchmarks.harness.grid import Cell, Contender, Grid, Prepared, Seconds
from benchmarks.harness.judge import Answer, Unjudged
from benchmarks.harness.rows import Array

# Rows above this come in pieces of so many, and none of them stays.
STREAMED_ABOVE, PIECE = 20_000_000, 4_000_000
WORKS = ("mean", "folds", "folds-real", "ordered")
BASE = {"rows": 1_000_000, "categories": 100_000, "folds": 5, "columns": 1, "threads": 0}
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
    """Every point of every axis; what has folds is varied by folds, and means alone are streamed."""
    base, cells = QUICK_ROWS if quick else BASE["rows"], []
    for axis, values in (QUICK_AXES if quick else AXES).items():
        for work, value in product(WORKS, values):
            rows = value if axis == "rows" else base
            if (axis != "folds" or work.startswith("folds")) and (rows <= STREAMED_ABOVE or work == "mean"):
                cells.append({"axis": axis, "value": value, "work": work, "rows": rows})
    return cells


@dataclass(frozen=True)
class Point:
    """The rows of a point, drawn in arithmetic that needs no memory of its own: nearly 1/k shares of the categories."""

    folder: Path
    cell: Cell
    first: int | None = None

    def __getattr__(self, axis: str) -> Any:
        """Give an axis of the point."""
        return (BASE | {self.cell["axis"]: self.cell["value"]} | {"rows": self.cell["rows"]})[axis]

    @property
    def work(self) -> str:
        """What is to be done."""
        return str(self.cell["work"])

    def piece(self, number: int, size: int) -> tuple[Array, Array]:
        """Keys and targets of one piece."""
        random = np.random.default_rng([30, number, self.categories])
        ranks = np.power(float(self.categories), random.random((size, self.columns))).astype(np.int64) - 1
        X = np.asfortranarray(ranks * 2_654_435_761 % self.categories)
        y = random.standard_normal(size) if self.work.endswith("real") else (random.random(size) < 0.3).astype(np.int64)
        return X, y

    def pieces(self) -> Iterator[tuple[Array, Array]]:
        """All pieces."""
        for number, start in enumerate(range(0, self.rows, PIECE)):
            yield self.piece(number, min(PIECE, self.rows - start))


def make(point: Point) -> Any:
    """Encoder of a point."""
    from gpu_encode import Ordered, TargetEncoder

    cv: Any = Ordered(shuffle=False) if point.work == "ordered" else point.folds
    kind = "continuous" if point.work.endswith("real") else "binary"
    return TargetEncoder(cv=cv, smooth=SMOOTH, target_type=kind, device="cpu")


def rule_of(point: Point, n_rows: int) -> Rule:
    """Who sees whom."""
    folds = own_folds(n_rows, point.folds) if point.work.startswith("folds") else None
    return Rule("ordered" if point.work == "ordered" else "by_fold", folds=folds, visible_prior=True)


def stream(point: Point) -> Seconds:
    """Seconds of fit and transform piece by piece; drawing the rows is not counted."""
    encoder, clock = make(point), SCALING.time_call
    seconds = sum(clock(partial(encoder.partial_fit, X, y))[0] for X, y in point.pieces())
    return Seconds(seconds + sum(clock(partial(encoder.transform, X))[0] for X, _ in point.pieces()))


def prepare(point: Point) -> Prepared:
    """Our encoder at a point."""
    if point.rows > STREAMED_ABOVE and point.first is None:
        return Prepared(partial(stream, point), Unjudged())
    X, y = point.piece(0, point.first or point.rows)
    rule = rule_of(point, len(y))
    expected = Answer(lambda: (rule.encode(column, y) for column in X.T), point.columns)
    if point.work == "mean":
        return Prepared(lambda: make(point).fit(X, y).transform(X), expected)
    return Prepared(lambda: make(point).fit_transform(X, y), expected)


def set_threads(cell: Cell, _: Path) -> dict[str, str]:
    """Threads of a process."""
    return {"GPU_ENCODE_THREADS": str(cell["value"])} if cell["axis"] == "threads" else {}


def slope(points: list[tuple[float, float]]) -> float:
    """Exponent of the power law that is nearest to points, by least squares of logarithms."""
    x, y = np.log(np.array(points)).T
    return float(np.polyfit(x, y, 1)[0])


def tell_exponents(cells: list[Cell]) -> list[str]:
    """Power with which the time of each kind of work grows along an axis; rows in pieces are another thing."""
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for cell in cells:
        seconds = cell["contenders"].get("ours", {}).get("seconds")
        if seconds and cell["rows"] <= STREAMED_ABOVE:
            points.setdefault((cell["work"], cell["axis"]), []).append((cell["value"], seconds))
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
    draw=lambda root, _: root,
    open=Point,
    environment=set_threads,
    remark=tell_exponents,
)
