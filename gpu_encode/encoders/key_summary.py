"""A fitted encoder's facts about the categories of a key: number of rows, mean of the target, and encoding."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpu_encode.fitting.model import Model
from gpu_encode.formulas.encoding_rule import EncodingTable
from gpu_encode.seam.ops import host
from gpu_encode.sums.moments import Moments
from gpu_encode.tables.categories.keys import CategoryIndex, categories_as_numpy
from gpu_encode.words.errors.tables import not_encoded


@dataclass(frozen=True, eq=False)
class KeySummary:
    """Categories of one column or joint key; a missing value is the last category.

    Parameters
    ----------
    weights : float64 array (categories,)
        Number of rows, or their summed weight.
    means : float64 array (categories,)
        Mean of the target; with several targets or classes, of the first one that has a column.
    encodings : float64 array (categories,)
    prior : float
        Encoding of a category that fit did not see.
    """

    key: CategoryIndex
    weights: NDArray[np.float64]
    means: NDArray[np.float64]
    encodings: NDArray[np.float64]
    prior: float

    @classmethod
    def of(cls, model: Model, number: int, table: EncodingTable) -> Self:
        """Summarize a key by its number and its table of encodings."""
        key, sums = model.keys[number], model.statistics[number][0]
        moments = Moments.of(host(len(sums.accumulators)), sums.accumulators, sums.spec)
        # In the table, the missing category is the last row, after the unknown one.
        rows = [*range(key.n_categories), *([-1] if key.has_missing else [])]
        columns = (moments.n[rows, 0, 0], moments.mean[rows, 0, 0], table.values[rows, 0, 0])
        return cls(key, *columns, float(table.values[-2, 0, 0]))

    @property
    def name(self) -> str:
        """Name of the key."""
        return self.key.entry.name

    @property
    def moves(self) -> NDArray[np.float64]:
        """The distances by which smoothing has moved categories from their means."""
        return self.encodings - self.means

    def categories(self, rows: ArrayLike | None = None) -> list[Any]:
        """Give the values of some categories, or of all: None for the missing one, tuples for a joint key."""
        indices = np.arange(len(self.weights)) if rows is None else np.asarray(rows)
        present = np.unique(indices[indices < self.key.n_categories])
        values = categories_as_numpy(replace(self.key.pick(present), has_missing=False)).tolist()
        by_index = dict(zip(present.tolist(), values, strict=True))
        return [by_index.get(index) for index in indices.tolist()]


def key_names(model: Model) -> list[str]:
    """Name the keys of a model."""
    return [str(key.entry.name) for key in model.keys]


def summarize(model: Model, column: Any = None) -> KeySummary:
    """Summarize the key that `column` names, by its name or by the tuple of its columns; by default the first key.

    Raises
    ------
    ValueError
        If the key is not encoded.

    Examples
    --------
    >>> from gpu_encode import TargetEncoder
    >>> encoder = TargetEncoder(smooth=1.0).fit([["a"], ["a"], ["b"], [None]], [0, 1, 1, 0])
    >>> summary = summarize(encoder._model)
    >>> summary.categories(), summary.weights.tolist(), summary.means.tolist(), summary.encodings.tolist()
    (['a', 'b', None], [2.0, 1.0, 1.0], [0.5, 1.0, 0.0], [0.5, 0.75, 0.25])
    """
    names = key_names(model)
    name = names[0] if column is None else "_x_".join(map(str, column)) if isinstance(column, tuple) else str(column)
    if name not in names:
        raise not_encoded("column", column, [])
    number = names.index(name)
    return KeySummary.of(model, number, model.tables[number][0])
