"""Training encodings against the encodings that new rows with the same values get."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from gpu_encode.study.plots.display import BLUE, Display, shorten
from gpu_encode.tables import frames
from gpu_encode.words.annotations import Estimator, Table, Vector

MOST_POINTS = 5000


@dataclass(eq=False)
class TrainingDisplay(Display):
    """A point for each row, by its two encodings; on the diagonal they are equal. Rows with NaN have no point.

    Parameters
    ----------
    name : str
        Name of the output column.
    training, new : float64 array (rows,)
        Encodings of the same rows, as training rows and as new rows.

    Examples
    --------
    >>> from gpu_encode import LeaveOneOut, TargetEncoder
    >>> from gpu_encode.plots import TrainingDisplay
    >>> encoder = TargetEncoder(smooth=None, cv=LeaveOneOut())
    >>> display = TrainingDisplay.from_estimator(encoder, [["a"], ["a"], ["a"]], [0, 1, 1])
    >>> display.training.tolist()
    [1.0, 0.5, 0.5]
    """

    name: str
    training: NDArray[np.float64]
    new: NDArray[np.float64]

    @classmethod
    def from_estimator(
        cls, estimator: Estimator, X: Table, y: Vector, *, output: str | None = None, ax: object = None
    ) -> Self:
        """Fit a copy of an encoder, and draw one of its columns.

        Parameters
        ----------
        estimator : estimator
            Any transformer with scikit-learn's interface.
        X, y
            In the form that the encoder takes.
        output : str, optional
            Column of the output; by default the first one.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        TrainingDisplay
            It is drawn if axes are given; otherwise call `plot`.
        """
        copy: Any = clone(estimator)
        training, new = frames.read(copy.fit_transform(X, y)), frames.read(copy.transform(X))
        name, values = read_numbers([training, new], 0 if output is None else output)
        display = cls(name, *values)
        return display if ax is None else display.plot(ax)

    def _draw(self, ax: Any) -> None:
        rows = np.random.default_rng(0).permutation(len(self.new))[:MOST_POINTS]
        middle = float(np.nanmean(self.new))
        ax.axline((middle, middle), slope=1, color="black", linestyle="--", linewidth=1, label="the same")
        ax.scatter(self.new[rows], self.training[rows], s=8, color=BLUE, alpha=0.4, label="a training row")
        ax.set(
            xlabel=f"{shorten(self.name, 40)}: encoding of a new row",
            ylabel=f"{shorten(self.name, 40)}: training encoding",
        )
        ax.legend(fontsize="small")


def read_numbers(encoded: Sequence[Any], output: str | int) -> tuple[str, list[NDArray[np.float64]]]:
    """Give the name and the values of a column, by its name or position, in each of several outputs of an encoder."""
    names = [str(name) for name in encoded[0].names or [f"x{number}" for number in range(encoded[0].n_columns)]]
    name = names[output] if isinstance(output, int) else output
    if name not in names:
        raise ValueError(f"There is no output {name!r}: there are {', '.join(names[:10])}.")
    values = [frame.values(names.index(name)) for frame in encoded]
    if any(column.dtype.kind not in "biuf" for column in values):
        raise ValueError(f"The picture needs numbers, but {name!r} has others: name another column as output.")
    return name, [column.astype(np.float64) for column in values]
