"""Many conjunctions in one call of the backend: sums by fold and cell, and their gains, from small codes of columns."""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from cpu_fallback.cached import cached_property
from cpu_fallback.exact import Floats
from cpu_fallback.types import Codes, FoldedResponses, KeyColumns
from gpu_encode.encoders.codes import CodedRows
from gpu_encode.study.tuning.steps import fused_operation, numbers_of, surprise_of
from gpu_encode.study.tuning.working_response import WorkingResponse

# Most sums of a conjunction (one for each fold and cell): this number for each row, but at least FEW_SUMS and at most
# MOST_SUMS.  With more, joining the rows is faster.  A thread holds the sums of one conjunction, 16 bytes each.
SUMS_PER_ROW, FEW_SUMS, MOST_SUMS = 4, 1 << 16, 1 << 21


class Effect(NamedTuple):
    """The effect that a conjunction would have on the model of one outcome.

    Parameters
    ----------
    n_categories : int
        Number of categories that have rows.
    gains : float64 array (folds,)
        The rise of the score of each fold, as in `Steps`.
    surprise : float
        As in `Steps`, from the rows that each fold sees.
    chance : float
        The same from all rows, without held-out folds.
    """

    n_categories: int
    gains: Floats
    surprise: float
    chance: float


class ConjunctionBatches:
    """Small codes of all columns, from which the backend scores conjunctions.

    Parameters
    ----------
    rows : CodedRows
    folds : int32 array (rows,)
    n_folds : int
    """

    def __init__(self, rows: CodedRows, folds: Codes, n_folds: int) -> None:
        self._rows, self._folds, self._n_folds = rows, folds, n_folds
        # A code below 0 is a value without a category; it is replaced by one more code, the last.
        self._lacks = [bool(len(codes)) and int(codes.min()) < 0 for codes in rows.codes]
        self._sizes = [n_folds, *(size + lacks for size, lacks in zip(rows.sizes, self._lacks, strict=True))]
        self._most = min(max(SUMS_PER_ROW * rows.n_rows, FEW_SUMS), MOST_SUMS)

    def has_few_cells(self, key: Sequence[int]) -> bool:
        """Say whether a conjunction has so few possible cells that each can have a sum."""
        return prod((self._n_folds, *(self._sizes[column + 1] for column in key))) <= self._most

    def effects(self, working: WorkingResponse, keys: Sequence[tuple[int, ...]], m: float | None) -> list[Effect]:
        """Give the effects of conjunctions of equally many columns; empty if the backend scores only one at a time."""
        fused = fused_operation(working, "score_conjunctions")
        information = working.information
        if fused is None or (information is not None and int(information.min()) <= 0):
            return []
        absent = [-1, *(size - 1 if lacks else -1 for size, lacks in zip(self._sizes[1:], self._lacks, strict=True))]
        members = [(0, *(column + 1 for column in key)) for key in keys]
        rows = FoldedResponses(working.response, information, working.rows.visibility)
        columns = KeyColumns(self._codes, self._sizes, members)
        views, sizes = fused(columns, absent, rows, *numbers_of(working, len(keys[0]), m))
        return [
            Effect(
                size,
                of_key[:-1, 0],
                surprise_of(of_key[:-1, 1].tolist(), of_key[:-1, 2].tolist()),
                surprise_of(of_key[-1:, 1].tolist(), of_key[-1:, 2].tolist()),
            )
            for of_key, size in zip(views, sizes.tolist(), strict=True)
        ]

    @cached_property
    def _codes(self) -> Codes:
        """Folds and codes (columns + 1, rows) in a small type; zeros for columns that alone have too many cells."""
        few = [self.has_few_cells((column,)) for column in range(len(self._lacks))]
        largest = max(size for size, is_few in zip(self._sizes, [True, *few], strict=True) if is_few)
        codes = np.zeros((len(self._sizes), self._rows.n_rows), np.uint8 if largest <= 1 << 8 else np.int32)
        codes[0] = self._folds
        for column, lacks in enumerate(self._lacks):
            if few[column]:
                np.copyto(codes[column + 1], self._rows.codes[column], casting="unsafe")
                if lacks:
                    codes[column + 1, self._rows.codes[column] < 0] = self._sizes[column + 1] - 1
        return codes
