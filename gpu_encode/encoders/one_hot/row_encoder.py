"""Zeros and ones of one row at a time."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cpu_fallback.types import MISSING, UNKNOWN
from gpu_encode.encoders.one_hot.columns import OneHotColumns
from gpu_encode.encoders.one_hot.encoder import OneHotEncoder
from gpu_encode.encoders.one_hot.matrices import checked_type, dense
from gpu_encode.encoders.row_encoder import Answers, RowEncoder
from gpu_encode.fitting.model import Model


class OneHotRowEncoder(RowEncoder):
    """A row encoder that knows, of each category, where its one stands.

    Parameters
    ----------
    encoder : OneHotEncoder
        Fitted.
    """

    _encoder: OneHotEncoder

    def _answers(self, model: Model) -> list[Answers]:
        columns = OneHotColumns.of(model)
        dtype = checked_type(self._encoder.dtype)
        self._zeros: list[Any] = np.zeros(columns.n_columns, dtype).tolist()
        self._one: Any = np.ones(1, dtype).tolist()[0]
        # Unknown values are refused, or warned of.
        told = columns.statistic.handle_unknown in ("error", "warn") or columns.drops
        return [(places, places) for places in (places_of(columns, model, n, told) for n in range(len(model.keys)))]

    def _look_up(self, row: Mapping[str, Any]) -> list[Any]:
        values = self._zeros.copy()
        for label, types, known, lookup in self._lookups:
            value = row[label]
            place = known.get(value) if type(value) in types else None
            if place is None:
                place = lookup.of(row)
            if place >= 0:
                values[place] = self._one
        return values

    def _finish(self, arrays: Any) -> list[Any]:
        return list(dense(arrays, checked_type(self._encoder.dtype)).T)


def places_of(columns: OneHotColumns, model: Model, number: int, unknown_is_told: bool) -> list[Any]:
    """Give the column of a one by the code of one key, negative where there is none, and None where policies speak."""
    key, statistic = model.keys[number], columns.statistic
    places: list[Any] = columns.table(number, key.n_categories, np.int64).tolist()
    if key.missing_is_unknown and model.rules[number].missing == "category":
        places[MISSING] = places[UNKNOWN]
    of_unknown = None if unknown_is_told else columns.place_of_unknown(number)
    places = [of_unknown if place == UNKNOWN else place for place in places]
    if statistic.handle_missing == "error":
        places[MISSING] = None
    return places
