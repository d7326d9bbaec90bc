"""Compare new rows with training rows: shares of unknown and missing values, and how far shares of categories moved."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from cpu_fallback.types import MISSING, UNKNOWN, Array
from gpu_encode.fitting.columns import locate_columns
from gpu_encode.fitting.model import Model, weights_of
from gpu_encode.fitting.tasks import missing_rows
from gpu_encode.formulas.stability import index_by_chance, stability_index
from gpu_encode.seam.ops import Ops
from gpu_encode.tables.frames import Frame, Pieces


@dataclass(frozen=True, eq=False)
class RowCounts:
    """Numbers of rows by category; the counts of several parts can be added.

    Parameters
    ----------
    n_rows : int
    counts : list of int64 array (categories + 2,)
        For each key: rows of each category, then of unknown and of missing values.
    lacking : list of int
        For each key: rows without a value, even if a missing value is a category.
    """

    n_rows: int = 0
    counts: list[Array] = field(default_factory=list)
    lacking: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, model: Model, frame: Frame | Pieces, ops: Ops, owner: str) -> Self:
        """Count the rows of a table."""
        # Columns that pass through are not compared.
        read = replace(model.selection, passed=[])
        columns = locate_columns(frame, read, model.feature_names, model.n_features, owner)
        columns = columns.remember([key.entry for key in model.keys])
        counts, lacking = [], []
        for key, rule in zip(model.keys, model.rules, strict=True):
            as_category = rule.missing == "category"
            codes = key.lookup(columns, ops, as_category)
            lacking.append(int(missing_rows(key, codes, columns, ops, as_category).sum()))
            codes = ops.to_host(codes).astype(np.int64)
            # A row with an unknown value below a known level has the code of the level, which is no category.
            known = (codes < key.n_categories) & (codes != UNKNOWN)
            codes = np.where(codes == MISSING, key.n_categories + 1, np.where(known, codes, key.n_categories))
            counts.append(np.bincount(codes, minlength=key.n_categories + 2))
        return cls(frame.n_rows, counts, lacking)

    def __add__(self, other: Self) -> Self:
        if not self.counts or not other.counts:
            return self if self.counts else other
        counts = [one + two for one, two in zip(self.counts, other.counts, strict=True)]
        lacking = [one + two for one, two in zip(self.lacking, other.lacking, strict=True)]
        return type(self)(self.n_rows + other.n_rows, counts, lacking)

    def beside(self, model: Model) -> list[dict[str, Any]]:
        """Compare the counts with the counts of the rows from which a model has learned: one row for each key."""
        if not self.n_rows:
            raise ValueError("drift compares new rows with the training rows, but was given no rows.")
        names, rows = model.selection.names(model.feature_names or [f"x{i}" for i in range(model.n_features)]), []
        for number, (name, counts, lacking) in enumerate(zip(names, self.counts, self.lacking, strict=True)):
            expected, found = weights_of(model, number), counts.astype(np.float64)
            rows.append(
                {
                    "key": name,
                    "rows": self.n_rows,
                    "unknown": int(counts[UNKNOWN]) / self.n_rows,
                    "missing": lacking / self.n_rows,
                    "psi": stability_index(expected, found),
                    "psi_by_chance": index_by_chance(expected, found),
                }
            )
        return rows
