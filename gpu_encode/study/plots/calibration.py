"""Mean targets of held-out rows against their encodings."""

from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from gpu_encode.encoders.key_summary import key_names, summarize
from gpu_encode.encoders.target import TargetEncoder
from gpu_encode.study.plots.display import BLUE, Display, shorten
from gpu_encode.study.plots.shrinkage import check_means
from gpu_encode.tables import frames
from gpu_encode.words.annotations import Key, Table, Vector
from gpu_encode.words.errors.parameters import check_count
from gpu_encode.words.errors.targets import missing_targets


@dataclass(eq=False)
class CalibrationDisplay(Display):
    """Rows in bins of about equal size by their encoding: the mean of each bin, and twice its standard error.

    Rows of one encoding are in one bin, so a common category can make a bin larger, and other bins fewer. Rows whose
    encoding is NaN are left out.

    Parameters
    ----------
    name : str
        Name of the column.
    encodings, means, errors : float64 array (bins,)
        Mean encoding, mean target and its standard error.

    Examples
    --------
    >>> from gpu_encode import TargetEncoder
    >>> from gpu_encode.plots import CalibrationDisplay
    >>> encoder = TargetEncoder(smooth=None).fit([["a"], ["a"], ["b"], ["b"]], [0, 1, 1, 1])
    >>> display = CalibrationDisplay.from_estimator(encoder, [["a"], ["b"]], [0, 1], n_bins=2)
    >>> display.encodings.tolist(), display.means.tolist()
    ([0.5, 1.0], [0.0, 1.0])
    """

    name: str
    encodings: NDArray[np.float64]
    means: NDArray[np.float64]
    errors: NDArray[np.float64]

    @classmethod
    def from_estimator(
        cls,
        estimator: TargetEncoder,
        X: Table,
        y: Vector,
        *,
        column: Key | None = None,
        n_bins: int = 10,
        ax: object = None,
    ) -> Self:
        """Encode rows that a fitted encoder has not seen, and compare the encodings with their targets.

        Parameters
        ----------
        estimator : TargetEncoder
            A fitted encoder with one target, of numbers or of two classes.
        X, y
            Held-out rows.
        column : str or tuple, optional
            Column or joint key; by default the first one.
        n_bins : int, default=10
            Largest number of bins, with about equally many rows.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        CalibrationDisplay
            It is drawn if axes are given; otherwise call `plot`.
        """
        check_means(estimator)
        check_count("CalibrationDisplay", "n_bins", n_bins, low=2)
        kind, classes = estimator.target_type_, cast(Any, estimator.classes_)
        if kind not in ("binary", "continuous"):
            raise ValueError(f"The picture needs one target, of numbers or of two classes. Got {kind!r}.")
        name = summarize(estimator._fitted(), column).name
        encoded = (
            frames.read(cast(Any, estimator.transform(X)))
            .values(key_names(estimator._fitted()).index(name))
            .astype(np.float64)
        )
        target = frames.on_host(frames.read_targets(y, len(encoded)))
        if len(missing := np.flatnonzero([value != value for value in target.tolist()])):  # noqa: PLR0124
            raise missing_targets("y", missing, ". Drop these rows first.")
        if kind == "binary" and not np.isin(target, classes).all():
            other = target[~np.isin(target, classes)].tolist()[0]
            raise ValueError(f"y has labels that fit has not seen, such as {other!r}; fit has seen {classes.tolist()}.")
        numbers = (target == classes[1]) if kind == "binary" else target
        known = ~np.isnan(encoded)
        if not known.any():
            raise ValueError(f"All {len(encoded)} rows have NaN as their encoding of {name!r}: nothing to draw.")
        encoded, numbers = encoded[known], numbers[known]
        bins = bin_rows(encoded, n_bins)
        values = [numbers[rows].astype(np.float64) for rows in bins]
        errors = [value.std(ddof=1) / np.sqrt(len(value)) if len(value) > 1 else 0.0 for value in values]
        # A mean of equal numbers may be rounded away from them.
        encodings = np.array([np.clip(encoded[rows].mean(), encoded[rows[0]], encoded[rows[-1]]) for rows in bins])
        display = cls(name, encodings, np.array([value.mean() for value in values]), np.array(errors))
        return display if ax is None else display.plot(ax)

    def _draw(self, ax: Any) -> None:
        middle = float(self.encodings.mean())
        ax.axline((middle, middle), slope=1, color="black", linestyle="--", linewidth=1, label="perfectly calibrated")
        points = {"fmt": "o", "color": BLUE, "capsize": 3, "label": "rows in bins, ± 2 standard errors"}
        ax.errorbar(self.encodings, self.means, yerr=2 * self.errors, **points)
        ax.set(xlabel=f"mean encoding of {shorten(self.name, 40)} in a bin", ylabel="mean of the target, in its units")
        ax.legend(fontsize="small")


def bin_rows(encoded: NDArray[np.float64], n_bins: int) -> list[NDArray[np.intp]]:
    """Divide rows into bins by rank; rows of one encoding follow the one in their middle."""
    order = np.argsort(encoded, kind="stable")
    _, starts, counts = np.unique(encoded[order], return_index=True, return_counts=True)
    middles = starts + (counts - 1) // 2
    ends = np.cumsum([len(rows) for rows in np.array_split(order, n_bins)])
    of_row = np.repeat(np.searchsorted(ends, middles, side="right"), counts)
    return np.split(order, np.flatnonzero(np.diff(of_row)) + 1)
