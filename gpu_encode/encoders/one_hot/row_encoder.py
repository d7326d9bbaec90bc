"""The zeros and ones of single rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cpu_fallback.types import MISSING, UNKNOWN
from gpu_encode.encoders.one_hot.columns import OneHotColumns
from gpu_encode.encoders.one_hot.encoder import OneHotEncoder
from gpu_encode.encoders.one_hot.matrices import checked_type, dense
from gpu_encode.encoders.row_encoder import Answers, RowEncoder
from gpu_encode.fitting.model import Model
from gpu_encode.tables.categories.row_lookups import Told


class OneHotRowEncoder(RowEncoder):
    """A row encoder that knows for each category the column of its 1.

    Parameters
    ----------
    encoder : OneHotEncoder
        A fitted encoder.
    """

    _encoder: OneHotEncoder

    def _answers(self, model: Model) -> list[Answers]:
        columns = OneHotColumns.of(model)
        dtype = checked_type(self._encoder.dtype)
        self._zeros: list[Any] = np.zeros(columns.n_columns, dtype).tolist()
        self._one: Any = np.ones(1, dtype).tolist()[0]
        # Unknown values are refused, or cause a warning.
        told = columns.statistic.handle_unknown in ("error", "warn") or columns.drops
        return [(ones, ones) for ones in (columns_by_code(columns, model, n, told) for n in range(len(model.keys)))]

    def _look_up(self, row: Mapping[str, Any], told: Told) -> list[Any]:
        values = self._zeros.copy()
        for label, types, known, lookup in self._lookups:
            value = row[label]
            column = known.get(value) if type(value) in types else None
            if column is None:
                column = lookup.of(row, told)
            if column >= 0:
                values[column] = self._one
        return values

    def _finish(self, arrays: Any) -> list[Any]:
        return list(dense(arrays, checked_type(self._encoder.dtype)).T)


def columns_by_code(columns: OneHotColumns, model: Model, number: int, unknown_is_told: bool) -> list[Any]:
    """Give the column of the 1 for each code: negative if there is no 1, None if a policy refuses or warns."""
    key, statistic = model.keys[number], columns.statistic
    ones: list[Any] = columns.table(number, key.n_categories, np.int64).tolist()
    if key.missing_is_unknown and model.rules[number].missing == "category":
        ones[MISSING] = ones[UNKNOWN]
    of_unknown = None if unknown_is_told else columns.column_of_unknown(number)
    ones = [of_unknown if column == UNKNOWN else column for column in ones]
    if statistic.handle_missing == "error":
        ones[MISSING] = None
    return ones
