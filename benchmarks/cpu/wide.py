"""Hundreds of joint keys in one call: all combinations of a table's columns, in five folds."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.cpu.contenders.libraries import sklearn_encoder, splitter
from benchmarks.cpu.contenders.ours import matrix, own_folds
from benchmarks.cpu.grid import SMOOTH
from benchmarks.cpu.judge import Rule
from benchmarks.harness.grid import Cell, Contender, Grid, Prepared
from benchmarks.harness.judge import Answer
from benchmarks.harness.rows import N_CLASSES, Array

FOLDS, SIZES = 5, (3, 60)
# Rows, columns, the most columns of a key, the target, and the kind of values.
CELLS = (
    (20_000, 25, 2, "binary", "int"),
    (250_000, 12, 3, "binary", "int"),
    (1_000_000, 12, 2, "binary", "int"),
    (20_000, 6, 2, "binary", "text"),
    (250_000, 12, 2, "binary", "text"),
    (250_000, 12, 2, "continuous", "int"),
    (50_000, 12, 2, "multiclass", "int"),
)
QUICK_CELLS = ((500, 5, 2, "binary", "int"), (500, 4, 2, "continuous", "text"), (500, 4, 2, "multiclass", "int"))
AXES = ("rows", "columns", "order", "target", "keys")
NUMBERS = {"target": ("binary", "continuous")}
# Libraries that need a column of joined text for each key take minutes for hundreds of keys.
FEW_KEYS = {**NUMBERS, "columns": (4, 6)}


def list_cells(quick: bool) -> list[Cell]:
    """List all tables."""
    return [dict(zip(AXES, cell, strict=True)) for cell in (QUICK_CELLS if quick else CELLS)]


@dataclass(frozen=True)
class Table:
    """The columns of a table as numbers from zero on, its target, and the keys to encode."""

    cell: Cell

    @cached_property
    def sizes(self) -> Array:
        """Number of values of each column."""
        return np.random.default_rng(self.cell["columns"]).integers(*SIZES, self.cell["columns"])

    @cached_property
    def columns(self) -> Array:
        """Values (rows, columns)."""
        random = np.random.default_rng(1)
        # Columns are contiguous, as in frames and in code by hand.
        return np.stack([random.integers(0, size, self.cell["rows"]) for size in self.sizes]).T

    @cached_property
    def target(self) -> Array:
        """The target of each row: 0 or 1, a number, or one of ten classes."""
        random, rows = np.random.default_rng(2), self.cell["rows"]
        if self.cell["target"] == "continuous":
            return random.normal(size=rows)
        if self.cell["target"] == "multiclass":
            return random.integers(0, N_CLASSES, rows)
        return (random.random(rows) < 0.3).astype(np.int64)

    @cached_property
    def targets(self) -> list[Array]:
        """The numbers to average: the target, or for each class whether a row belongs to it."""
        if self.cell["target"] != "multiclass":
            return [self.target]
        return [(self.target == label).astype(np.int64) for label in range(N_CLASSES)]

    @cached_property
    def texts(self) -> list[Array]:
        """The columns as text."""
        return [np.char.add("value ", column.astype(str)).astype(object) for column in self.columns.T]

    @property
    def held(self) -> Any:
        """The table in a user's container: a matrix of numbers, or a table of text."""
        if self.cell["keys"] == "int":
            return self.columns
        return pa.table({f"c{number}": column for number, column in enumerate(self.texts)})

    @property
    def numbers(self) -> Array:
        """The columns as numbers (rows, columns); text is numbered."""
        if self.cell["keys"] == "int":
            return self.columns
        return np.stack([pd.factorize(column)[0] for column in self.texts], axis=1)

    @property
    def joined(self) -> Array:
        """Joined text for each key, in one column, for libraries without joint keys."""
        columns = [[f"c{number}={value}" for value in column] for number, column in enumerate(self.columns.T)]
        keys = [["|".join(parts) for parts in zip(*(columns[i] for i in key), strict=True)] for key in self.keys]
        return np.array(keys, dtype=object).T

    @cached_property
    def keys(self) -> list[tuple[int, ...]]:
        """The columns of each key."""
        numbers = range(self.cell["columns"])
        return list(chain.from_iterable(combinations(numbers, size + 1) for size in range(self.cell["order"])))

    def codes(self, key: tuple[int, ...], numbers: Array) -> tuple[Array, int]:
        """Give the mixed-radix number of each row's values, and how many such numbers there are."""
        codes = numbers[:, key[0]]
        for column in key[1:]:
            codes = codes * self.sizes[column] + numbers[:, column]
        return codes, int(np.prod(self.sizes[list(key)]))

    def expected(self, folds: Array) -> Answer:
        """Give the encodings by an independent definition, key after key."""
        rule = Rule("by_fold", folds=folds, visible_prior=True)

        def encode() -> Iterator[Array]:
            for key in self.keys:
                codes = self.codes(key, self.columns)[0]
                yield from (rule.encode(codes, target) for target in self.targets)

        return Answer(encode, len(self.keys) * len(self.targets))


def draw_nothing(root: Path, _: Cell) -> Path:
    """Give the folder, without files: each process makes the rows itself."""
    return root


def open_table(_: Path, cell: Cell, first: int | None = None) -> Table:
    """Open a table, or its first rows."""
    return Table({**cell, "rows": cell["rows"] if first is None else min(first, cell["rows"])})


def prepare_ours(table: Table) -> Prepared:
    """Prepare one encoder of all keys."""
    from gpu_encode import TargetEncoder

    keys: list[Any] = [key if len(key) > 1 else key[0] for key in table.keys]
    kind, X, y = table.cell["target"], table.held, table.target
    encoder = TargetEncoder(columns=keys, smooth=SMOOTH, cv=FOLDS, target_type=kind, device="cpu")
    return Prepared(lambda: matrix(encoder.fit_transform(X, y)), table.expected(own_folds(len(y), FOLDS)))


def prepare_numpy(table: Table) -> Prepared:
    """Prepare code as written by hand: mixed-radix numbers, two counts by number and fold, a table, and a look-up."""
    folds, targets = np.arange(len(table.target)) % FOLDS, table.targets
    n_of_folds = np.bincount(folds, minlength=FOLDS)
    n_all = n_of_folds.sum() - n_of_folds

    def encode() -> Array:
        numbers = table.numbers
        out = np.empty((len(folds), len(table.keys) * len(targets)))
        for number, key in enumerate(table.keys):
            codes, size = table.codes(key, numbers)
            if size > 4 * len(codes):
                codes = np.unique(codes, return_inverse=True)[1]
                size = int(codes.max()) + 1
            cell = codes * FOLDS + folds
            n = np.bincount(cell, minlength=size * FOLDS).reshape(size, FOLDS)
            n = n.sum(axis=1, keepdims=True) - n
            for label, target in enumerate(targets):
                s_of_folds = np.bincount(folds, target, minlength=FOLDS)
                prior = (s_of_folds.sum() - s_of_folds) / n_all
                s = np.bincount(cell, target, minlength=size * FOLDS).reshape(size, FOLDS)
                s = s.sum(axis=1, keepdims=True) - s
                out[:, number * len(targets) + label] = ((s + SMOOTH * prior) / (n + SMOOTH)).ravel()[cell]
        return out

    return Prepared(encode, table.expected(folds))


def prepare_polars(table: Table) -> Prepared:
    """Prepare windows over each key, and over each key and fold."""
    import polars as pl

    folds = np.arange(len(table.target)) % FOLDS
    columns = table.columns.T if table.cell["keys"] == "int" else table.texts
    frame = pl.DataFrame({f"c{number}": column for number, column in enumerate(columns)})
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


def folds_of_sklearn(table: Table) -> Array:
    """Give the fold numbers that scikit-learn's splitter draws."""
    folds = np.empty(len(table.target), dtype=np.int32)
    for number, (_, own) in enumerate(splitter(table.cell["target"]).split(np.empty((len(folds), 1)), table.target)):
        folds[own] = number
    return folds


def prepare_sklearn(table: Table) -> Prepared:
    """Prepare scikit-learn's encoder on columns of joined text."""
    kind, X, y = table.cell["target"], table.joined, table.target
    return Prepared(lambda: sklearn_encoder(kind).fit_transform(X, y), table.expected(folds_of_sklearn(table)))


def prepare_category_encoders(table: Table) -> Prepared:
    """Prepare m-estimates of category_encoders on columns of joined text, fold by fold."""
    import category_encoders

    frame, y = pd.DataFrame(table.joined), table.target
    folds = np.arange(len(y)) % FOLDS

    def encode() -> Array:
        out = np.empty(frame.shape)
        for fold in range(FOLDS):
            own = folds == fold
            encoder = category_encoders.MEstimateEncoder(m=SMOOTH, cols=[*frame.columns])
            out[own] = encoder.fit(frame[~own], y[~own]).transform(frame[own]).to_numpy()
        return out

    return Prepared(encode, table.expected(folds))


def prepare_catstat(table: Table) -> Prepared:
    """catstat's encoder, whose interactions are joint keys, with scikit-learn's folds."""
    import catstat

    kind, y = table.cell["target"], table.target
    names = [f"c{number}" for number in range(table.cell["columns"])]
    X = pd.DataFrame(dict(zip(names, table.columns.T if table.cell["keys"] == "int" else table.texts, strict=True)))
    joint = [[names[number] for number in key] for key in table.keys if len(key) > 1]
    choices = {"cols": names, "interactions": joint, "smooth": SMOOTH, "output": "numpy"}
    encoder = catstat.TargetEncoder(target_type=kind, cv=splitter(kind), **choices)
    return Prepared(lambda: encoder.fit_transform(X, y), table.expected(folds_of_sklearn(table)))


def prepare_limit(table: Table) -> Prepared:
    """Prepare bare loops on two threads: dense cells, counts of 0/1 targets, no checks."""
    from benchmarks.cpu.contenders.wide_loops import encode_keys

    folds = (np.arange(len(table.target)) % FOLDS).astype(np.uint8)
    columns, target = np.ascontiguousarray(table.columns.T.astype(np.int32)), table.target.astype(np.uint8)
    call = partial(encode_keys, columns, table.sizes, table.keys, folds, target, SMOOTH)
    return Prepared(call, table.expected(folds))


INTEGERS = {"keys": ("int",), "target": ("binary",)}
WIDE = Grid(
    "wide",
    {},
    (
        Contender("ours", "ours", prepare_ours, compiles=True),
        Contender("numpy", "NumPy by hand", prepare_numpy),
        Contender("polars", "polars", prepare_polars, NUMBERS, ("polars",)),
        Contender("sklearn", "scikit-learn", prepare_sklearn, FEW_KEYS, ("sklearn",)),
        Contender("ce", "category_encoders", prepare_category_encoders, FEW_KEYS, ("category_encoders",)),
        Contender("catstat", "catstat", prepare_catstat, NUMBERS, ("catstat",)),
        Contender("limit", "bare loop", prepare_limit, INTEGERS, ("numba",), compiles=True),
    ),
    listed=list_cells,
    draw=draw_nothing,
    open=open_table,
    most_turns=7,
)
