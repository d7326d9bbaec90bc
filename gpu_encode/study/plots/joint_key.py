"""Encodings of a joint key of two columns, as a heat map."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gpu_encode.encoders.base import Encoder
from gpu_encode.encoders.key_summary import summarize
from gpu_encode.study.plots.display import Display, shorten
from gpu_encode.words.annotations import Column

# Most values of each column that are shown, and most cells in which numbers are written.
MOST_VALUES, MOST_WRITTEN = 20, 80


@dataclass(eq=False)
class JointKeyDisplay(Display):
    """Values of the first column as rows and of the second as columns; white if fit has seen no row.

    Parameters
    ----------
    names : tuple of str
        Names of both columns.
    values : tuple of list
        The values with the most rows, for each column.
    encodings : float64 array (values of the first, values of the second)
        NaN if fit has seen no row.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpu_encode import TargetEncoder
    >>> from gpu_encode.plots import JointKeyDisplay
    >>> X = pd.DataFrame({"city": ["a", "a", "b"], "day": [1, 2, 1]})
    >>> encoder = TargetEncoder(columns=[("city", "day")], smooth=None).fit(X, [0, 1, 1])
    >>> JointKeyDisplay.from_estimator(encoder, column=("city", "day")).encodings.tolist()
    [[0.0, 1.0], [1.0, nan]]
    """

    names: tuple[str, str]
    values: tuple[list[Any], list[Any]]
    encodings: NDArray[np.float64]

    @classmethod
    def from_estimator(cls, estimator: Encoder, *, column: tuple[Column, Column], ax: object = None) -> Self:
        """Draw a joint key of a fitted encoder.

        Parameters
        ----------
        estimator : encoder
            Fitted.
        column : tuple
            Both columns.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        JointKeyDisplay
            It is drawn if axes are given; otherwise call `plot`.
        """
        if not isinstance(column, tuple) or len(column) != 2:
            raise ValueError(f"column must be a joint key of two columns, such as ('city', 'day'). Got {column!r}.")
        summary = summarize(estimator._fitted(), column)
        categories = summary.categories()
        values = tuple(most_frequent([key[side] for key in categories], summary.weights) for side in range(2))
        encodings = np.full((len(values[0]), len(values[1])), np.nan)
        for (one, other), encoding in zip(categories, summary.encodings, strict=True):
            if one in values[0] and other in values[1]:
                encodings[values[0].index(one), values[1].index(other)] = encoding
        display = cls((str(column[0]), str(column[1])), (values[0], values[1]), encodings)
        return display if ax is None else display.plot(ax)

    def _draw(self, ax: Any) -> None:
        image = ax.imshow(self.encodings, cmap="cividis", aspect="auto")
        ax.figure.colorbar(image, ax=ax, label="encoding")
        for axis, name, values in zip((ax.yaxis, ax.xaxis), self.names, self.values, strict=True):
            axis.set_ticks(range(len(values)), [shorten(value) for value in values])
            axis.set_label_text(shorten(name, 40))
        ax.tick_params(axis="x", rotation=90 if len(self.values[1]) > 8 else 0)
        if self.encodings.size > MOST_WRITTEN:
            return
        middle = (np.nanmin(self.encodings) + np.nanmax(self.encodings)) / 2
        for (row, column), value in np.ndenumerate(self.encodings):
            if not np.isnan(value):
                color = "white" if value < middle else "black"
                ax.text(column, row, f"{value:#.2g}".rstrip("."), ha="center", va="center", color=color, fontsize=8)


def most_frequent(values: list[Any], weights: NDArray[np.float64]) -> list[Any]:
    """Give the values with the most weight, in their original order."""
    total: dict[Any, float] = {}
    for value, weight in zip(values, weights.tolist(), strict=True):
        total[value] = total.get(value, 0.0) + weight
    kept = set(sorted(total, key=lambda value: -total[value])[:MOST_VALUES])
    return [value for value in total if value in kept]
