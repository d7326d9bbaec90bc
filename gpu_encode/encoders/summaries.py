"""What a fitted encoder knows of a key's categories, side by side: how many rows, their mean, and the encoding."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_encode.categories.keys import categories_as_numpy
from gpu_encode.encoders.base import Encoder
from gpu_encode.errors.tables import not_encoded
from gpu_encode.ops import host
from gpu_encode.sums.moments import Moments


@dataclass(frozen=True, eq=False)
class KeySummary:
    """Categories of one column or joint key.

    Parameters
    ----------
    name : str
    categories : list
        Values, None for the missing one; tuples of a joint key.
    weights : float64 array (categories,)
        Rows, or their weight.
    means : float64 array (categories,)
        Of the target, or of its first class that has a column, as it is.
    encodings : float64 array (categories,)
    prior : float
        What a category has that fit did not see.
    """

    name: str
    categories: list[Any]
    weights: NDArray[np.float64]
    means: NDArray[np.float64]
    encodings: NDArray[np.float64]
    prior: float

    @property
    def moves(self) -> NDArray[np.float64]:
        """How far smoothing has moved each category from its mean."""
        return self.encodings - self.means


def key_names(encoder: Encoder) -> list[str]:
    """Name the keys of a fitted encoder."""
    return [str(key.entry.name) for key in encoder._fitted().keys]


def summarize(encoder: Encoder, column: Any = None) -> KeySummary:
    """Summarize one key, by its name, or by the tuple of its columns; the first unless given.

    Raises
    ------
    ValueError
        If it is not encoded.

    Examples
    --------
    >>> from gpu_encode import TargetEncoder
    >>> encoder = TargetEncoder(smooth=1.0).fit([["a"], ["a"], ["b"], [None]], [0, 1, 1, 0])
    >>> summary = summarize(encoder)
    >>> summary.categories, summary.weights.tolist(), summary.means.tolist(), summary.encodings.tolist()
    (['a', 'b', None], [2.0, 1.0, 1.0], [0.5, 1.0, 0.0], [0.5, 0.75, 0.25])
    """
    model, names = encoder._fitted(), key_names(encoder)
    name = names[0] if column is None else "_x_".join(map(str, column)) if isinstance(column, tuple) else str(column)
    if name not in names:
        raise not_encoded("column", column, [])
    place = names.index(name)
    key, sums, table = model.keys[place], model.statistics[place][0], model.tables[place][0]
    moments = Moments.of(host(0), sums.accumulators, sums.spec, variances=False)
    # The missing category is the last row, behind the unknown one.
    rows = [*range(key.n_categories), *([-1] if key.has_missing else [])]
    return KeySummary(
        name,
        [None if value is None or value != value else value for value in categories_as_numpy(key).tolist()],  # noqa: PLR0124
        moments.n[rows, 0, 0],
        moments.mean[rows, 0, 0],
        table.values[rows, 0, 0],
        float(table.values[-2, 0, 0]),
    )
