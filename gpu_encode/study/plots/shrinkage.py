"""Encodings against counts: how far smoothing moved each category's mean towards the prior."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gpu_encode.encoders.key_summary import summarize
from gpu_encode.encoders.target import TargetEncoder
from gpu_encode.study.plots.display import BLUE, GREY, ORANGE, Display, shorten
from gpu_encode.words.annotations import Key

# With more categories, those that smoothing moved the most are drawn, and an even selection of the others.
MOST_PATHS = 500


@dataclass(eq=False)
class ShrinkageDisplay(Display):
    """For each category its number of rows, and a line from the mean of its rows to its encoding.

    Parameters
    ----------
    name : str
        Name of the column.
    weights : float64 array (categories,)
        Number of rows of each category, or the sum of their weights.
    means, encodings : float64 array (categories,)
        Mean target of these rows; encoding for new rows.
    prior : float
        The value towards which categories are shrunk.

    Examples
    --------
    >>> from gpu_encode import TargetEncoder
    >>> from gpu_encode.plots import ShrinkageDisplay
    >>> encoder = TargetEncoder(smooth=1.0).fit([["a"], ["a"], ["b"]], [0, 1, 1])
    >>> display = ShrinkageDisplay.from_estimator(encoder)
    >>> display.weights.tolist(), display.means.tolist()
    ([2.0, 1.0], [0.5, 1.0])
    """

    name: str
    weights: NDArray[np.float64]
    means: NDArray[np.float64]
    encodings: NDArray[np.float64]
    prior: float

    @classmethod
    def from_estimator(cls, estimator: TargetEncoder, *, column: Key | None = None, ax: object = None) -> Self:
        """Draw a fitted `TargetEncoder`; with several targets or classes, the first one.

        Parameters
        ----------
        estimator : TargetEncoder
            Fitted.
        column : str or tuple, optional
            Column or joint key; by default the first one.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ShrinkageDisplay
            It is drawn if axes are given; otherwise call `plot`.
        """
        check_means(estimator)
        summary = summarize(estimator._fitted(), column)
        display = cls(summary.name, summary.weights, summary.means, summary.encodings, summary.prior)
        return display if ax is None else display.plot(ax)

    def _draw(self, ax: Any) -> None:
        chosen = np.argsort(-np.abs(self.encodings - self.means), kind="stable")
        if len(chosen) > MOST_PATHS:
            half = MOST_PATHS // 2
            others = np.linspace(half, len(chosen) - 1, half).astype(int)
            chosen = np.concatenate([chosen[:half], chosen[others]])
        x, means, encodings = self.weights[chosen], self.means[chosen], self.encodings[chosen]
        ax.vlines(x, means, encodings, color=GREY, linewidth=0.8, alpha=0.6)
        ax.scatter(x, means, s=22, facecolors="none", edgecolors=ORANGE, label="mean of the category's rows")
        ax.scatter(x, encodings, s=14, color=BLUE, label="encoding", zorder=3)
        ax.axhline(self.prior, color="black", linestyle="--", linewidth=1, label=f"prior, {self.prior:.3g}")
        ax.set(
            xscale="log",
            xlabel=f"rows of a category of {shorten(self.name, 40)} (log scale)",
            ylabel="target, in its units",
        )
        if len(self.weights):
            number_axis(ax.xaxis, float(self.weights.min()), float(self.weights.max()))
        ax.legend(fontsize="small")


def number_axis(axis: Any, low: float, high: float) -> None:
    """Write a few numbers on a logarithmic axis; matplotlib writes so many powers that they overlap."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    few = high < 10 * low
    axis.set_major_locator(MaxNLocator(4) if few else LogLocator(subs=(1.0, 3.0) if high < 1e4 * low else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.15g}"))
    axis.set_minor_formatter(NullFormatter())


def check_means(estimator: object) -> None:
    """Raise TypeError unless encodings are shrunk means, and NotFittedError before fit."""
    if not isinstance(estimator, TargetEncoder):
        raise TypeError(
            f"The picture needs shrunk means, such as those of TargetEncoder. Got {type(estimator).__name__}."
        )
    check_is_fitted(estimator)
