"""Hundreds of joint keys in one call: all combinations of a table's columns, five folds, a 0/1 target."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cpu.contenders.ours import matrix, own_folds
from benchmarks.cpu.grid import SMOOTH
from benchmarks.cpu.judge import Rule
from benchmarks.harness.grid import Cell, Contender, Grid, Prepared
from benchmarks.harness.judge import Answer
from benchmarks.harness.rows import Array

FOLDS, SIZES = 5, (3, 60)
# Rows, columns, and how many columns a key has at most.
CELLS = ((20_000, 25, 2), (250_000, 12, 3), (1_000_000, 12, 2))
QUICK_CELLS = ((500, 6, 3),)


def list_cells(quick: bool) -> list[Cell]:
    """Every table."""
    return [
        {"rows": rows, "columns": columns, "order": order} for rows, columns, order in (QUICK_CELLS if quick else CELLS)
    ]


@dataclass(frozen=True)
class Table:
    """The columns of a table as numbers from zero on, its target, and the keys that are asked for."""

    cell: Cell

    @cached_property
    def sizes(self) -> Array:
        """Values of each column."""
        return np.random.default_rng(self.cell["columns"]).integers(*SIZES, self.cell["columns"])

    @cached_property
    def columns(self) -> Array:
        """Values (rows, columns)."""
        random = np.random.default_rng(1)
        return np.stack([random.integers(0, size, self.cell["rows"]) for size in self.sizes], axis=1)

    @cached_property
    def target(self) -> Array:
        """0 or 1 of each row."""
        return (np.random.default_rng(2).random(self.cell["rows"]) < 0.3).astype(np.int64)

    @cached_property
    def keys(self) -> list[tuple[int, ...]]:
        """Columns of each key."""
        numbers = range(self.cell["columns"])
        return list(chain.from_iterable(combinations(numbers, size + 1) for size in range(self.cell["order"])))

    def codes(self, key: tuple[int, ...]) -> tuple[Array, int]:
        """Mixed-radix number of each row's values, and how many numbers there are."""
        codes = self.columns[:, key[0]]
        for column in key[1:]:
            codes = codes * self.sizes[column] + self.columns[:, column]
        return codes, int(np.prod(self.sizes[list(key)]))

    def expected(self, folds: Array) -> Answer:
        """Give the encodings by an independent definition, key after key."""
        rule = Rule("by_fold", folds=folds, visible_prior=True)

        def encode() -> Iterator[Array]:
            return (rule.encode(self.codes(key)[0], self.target) for key in self.keys)

        return Answer(encode, len(self.keys))


def draw_nothing(root: Path, _: Cell) -> Path:
    """Give the folder: the rows are made where they are read."""
    return root


def open_table(_: Path, cell: Cell, first: int | None = None) -> Table:
    """Open a table, or its first rows."""
    return Table({**cell, "rows": cell["rows"] if first is None else min(first, cell["rows"])})


def prepare_ours(table: Table) -> Prepared:
    """All keys in one encoder."""
    from gpu_encode import TargetEncoder

    keys: list[Any] = [key if len(key) > 1 else key[0] for key in table.keys]
    encoder = TargetEncoder(columns=keys, smooth=SMOOTH, cv=FOLDS, target_type="binary", device="cpu")
    folds = own_folds(len(table.target), FOLDS)
    return Prepared(lambda: matrix(encoder.fit_transform(table.columns, table.target)), table.expected(folds))


def prepare_numpy(table: Table) -> Prepared:
    """Give what one writes by hand: mixed-radix numbers, two counts by number and fold, a table, and a look-up."""
    folds = np.arange(len(table.target)) % FOLDS
    by_fold = np.bincount(folds, minlength=FOLDS), np.bincount(folds, table.target, minlength=FOLDS)
    n_all, s_all = (of_folds.sum() - of_folds for of_folds in by_fold)

    def encode() -> Array:
        out = np.empty((len(table.target), len(table.keys)))
        for number, key in enumerate(table.keys):
            codes, size = table.codes(key)
            if size > 4 * len(codes):
                codes = np.unique(codes, return_inverse=True)[1]
                size = int(codes.max()) + 1
            cell = codes * FOLDS + folds
            n = np.bincount(cell, minlength=size * FOLDS).reshape(size, FOLDS)
            s = np.bincount(cell, table.target, minlength=size * FOLDS).reshape(size, FOLDS)
            n, s = n.sum(axis=1, keepdims=True) - n, s.sum(axis=1, keepdims=True) - s
            out[:, number] = ((s + SMOOTH * s_all / n_all) / (n + SMOOTH)).ravel()[cell]
        return out

    return Prepared(encode, table.expected(folds))


def prepare_polars(table: Table) -> Prepared:
    """Windows over each key, and over each key and fold."""
    import polars as pl

    folds = np.arange(len(table.target)) % FOLDS
    frame = pl.DataFrame({f"c{i}": column for i, column in enumerate(table.columns.T)})
    frame = frame.with_columns(y=pl.Series(table.target), fold=pl.Series(folds))
    n_all, s_all = pl.len() - pl.len().over("fold"), pl.col("y").sum() - pl.col("y").sum().over("fold")

    def encode() -> Array:
        encoded = []
        for key in table.keys:
            names = [f"c{column}" for column in key]
            n = pl.len().over(names) - pl.len().over([*names, "fold"])
            s = pl.col("y").sum().over(names) - pl.col("y").sum().over([*names, "fold"])
            encoded.append(((s + SMOOTH * s_all / n_all) / (n + SMOOTH)).alias("_".join(names)))
        return frame.lazy().select(encoded).collect().to_numpy()

    return Prepared(encode, table.expected(folds))


WIDE = Grid(
    "wide",
    {},
    (
        Contender("ours", "ours", prepare_ours, compiles=True),
        Contender("numpy", "NumPy by hand", prepare_numpy),
        Contender("polars", "polars", prepare_polars, needs=("polars",)),
    ),
    listed=list_cells,
    draw=draw_nothing,
    open=open_table,
    most_turns=7,
)
