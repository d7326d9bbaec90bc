"""Two columns of numbers against each other: encodings of an encoder, or predictions of two models."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gpu_encode.study.plots.display import BLUE, GREEN, GREY, ORANGE, Display, shorten
from gpu_encode.study.plots.training import MOST_POINTS, read_numbers
from gpu_encode.tables import frames
from gpu_encode.words.annotations import Estimator, Table, Vector

# With more labels, the target is a quantity, and colours come from a scale.
MOST_LABELS = 8
COLOURS = [BLUE, ORANGE, GREEN, GREY]


@dataclass(eq=False)
class ScatterDisplay(Display):
    """A point for each row, coloured by its target. Rows with NaN have no point.

    Parameters
    ----------
    names : tuple of str
        Names of both columns.
    first, second : float64 array (rows,)
    target : array (rows,), optional
        Labels of at most 8 classes, or numbers.

    Examples
    --------
    >>> from gpu_encode.plots import ScatterDisplay
    >>> display = ScatterDisplay.from_predictions([0.1, 0.9], [0.2, 0.7], [0, 1], names=("forest", "linear"))
    >>> display.first.tolist(), display.second.tolist(), display.names
    ([0.1, 0.9], [0.2, 0.7], ('forest', 'linear'))
    """

    names: tuple[str, str]
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    target: Any = None

    @classmethod
    def from_predictions(
        cls,
        first: Vector,
        second: Vector,
        y: Vector | None = None,
        *,
        names: Sequence[str] = ("first model", "second model"),
        ax: object = None,
    ) -> Self:
        """Draw the predictions of two models for the same rows: where they agree, and where a blend can gain.

        Parameters
        ----------
        first, second : array of shape (n_rows,)
            Scores, probabilities or quantities.
        y : array of shape (n_rows,), optional
            The target of these rows, for the colours.
        names : tuple of str
            Names of both models.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ScatterDisplay
            It is drawn if axes are given; otherwise call `plot`.

        Raises
        ------
        ValueError
            If lengths differ, if a prediction is no number, if there are not two names, or if y has more than 8 labels
            that are no numbers.
        """
        columns = [
            frames.on_host([(None, frames.read_vector(values, role))])
            for role, values in (("first", first), ("second", second))
        ]
        if any(column.dtype.kind not in "biuf" for column in columns):
            raise ValueError("The picture needs numbers as predictions: convert labels to scores or probabilities.")
        return cls._make(names, columns, y, ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: Table,
        y: Vector | None = None,
        *,
        outputs: tuple[str, str] | None = None,
        ax: object = None,
    ) -> Self:
        """Draw two encodings of rows, such as the first two columns of `SpectralEncoder`.

        Parameters
        ----------
        estimator : estimator
            A fitted transformer with scikit-learn's interface.
        X, y
            Rows in the form that the encoder takes; y, if it is given, is for the colours.
        outputs : tuple of str, optional
            Two columns of the output; by default the first two.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ScatterDisplay
            It is drawn if axes are given; otherwise call `plot`.

        Raises
        ------
        ValueError
            If the output has no two columns of numbers, or lacks one of `outputs`, or if y does not suit, as in
            `from_predictions`.
        """
        if outputs is not None and (isinstance(outputs, str) or len(outputs) != 2):
            raise ValueError(f"outputs of ScatterDisplay are two names of columns. Got {outputs!r} instead.")
        fitted: Any = estimator
        encoded = frames.read(fitted.transform(X))
        if outputs is None and encoded.n_columns < 2:
            raise ValueError(f"The picture needs two columns, and {type(estimator).__name__} gives one.")
        read = [read_numbers([encoded], output) for output in outputs or (0, 1)]
        return cls._make([name for name, _ in read], [values for _, (values,) in read], y, ax)

    @classmethod
    def _make(cls, names: Sequence[str], columns: Sequence[Any], y: Any, ax: Any) -> Self:
        if isinstance(names, str) or len(names) != 2:
            raise ValueError(f"names of ScatterDisplay are two names. Got {names!r} instead.")
        target = None if y is None else frames.on_host([(None, frames.read_vector(y, "y"))])
        if target is not None and target.dtype.kind not in "biuf" and len(set(target.tolist())) > MOST_LABELS:
            raise ValueError(
                f"ScatterDisplay has colours for {MOST_LABELS} labels, or for a quantity. y has "
                f"{len(set(target.tolist()))} labels that are no numbers: join some, or leave y out."
            )
        lengths = [len(each) for each in (*columns, target) if each is not None]
        if len(set(lengths)) > 1:
            raise ValueError(
                f"ScatterDisplay draws a point for each row, and got {lengths} rows: both columns, then y."
            )
        one, other = (column.astype(np.float64) for column in columns)
        display = cls((names[0], names[1]), one, other, target)
        return display if ax is None else display.plot(ax)

    def _draw(self, ax: Any) -> None:
        rows = np.random.default_rng(0).permutation(len(self.first))[:MOST_POINTS]
        first, second, points = self.first[rows], self.second[rows], {"s": 8, "alpha": 0.5}
        target: Any = None if self.target is None else self.target[rows]
        labels = [] if target is None else sorted(set(target.tolist()), key=str)
        if len(labels) > MOST_LABELS:
            drawn = ax.scatter(first, second, c=target.astype(np.float64), cmap="viridis", **points)
            ax.figure.colorbar(drawn, ax=ax, label="target")
        elif labels:
            colours = COLOURS if len(labels) <= len(COLOURS) else [None] * len(labels)
            for label, colour in zip(labels, colours, strict=False):
                of_label = target == label
                ax.scatter(first[of_label], second[of_label], color=colour, label=f"target {shorten(label)}", **points)
            ax.legend(fontsize="small")
        else:
            ax.scatter(first, second, color=BLUE, **points)
        ax.set(xlabel=shorten(self.names[0], 40), ylabel=shorten(self.names[1], 40))
