"""Levels of a hierarchy, as a tree: from the prior through coarser categories to the finest."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gpu_encode.encoders.key_summary import key_names, summarize
from gpu_encode.encoders.target import TargetEncoder
from gpu_encode.study.plots.display import BLUE, GREY, ORANGE, Display, shorten
from gpu_encode.study.plots.shrinkage import check_means
from gpu_encode.words.annotations import Key

# Most categories that are shown, and the share of the height that a name needs.
MOST_PATHS, ROOM_OF_NAME = 60, 0.035


@dataclass(eq=False)
class HierarchyDisplay(Display):
    """The categories with the most rows, each as a path of encodings from the prior to its own encoding.

    Parameters
    ----------
    name : str
        Name of the column.
    categories : list
        Those with the most rows.
    weights : float64 array (categories,)
        Number of rows of each, or the sum of their weights.
    paths : float64 array (categories, levels + 2)
        The prior, the encodings of the levels above the category from the coarsest on, and its own encoding.

    Examples
    --------
    >>> from gpu_encode import Prefixes, TargetEncoder
    >>> from gpu_encode.plots import HierarchyDisplay
    >>> encoder = TargetEncoder(smooth=1.0, hierarchy={0: Prefixes(1)}, columns=[0])
    >>> encoder = encoder.fit([["ab"], ["ac"], ["ac"], ["bb"]], [0, 1, 1, 0])
    >>> HierarchyDisplay.from_estimator(encoder).paths.round(3).tolist()
    [[0.5, 0.625, 0.875], [0.5, 0.625, 0.312], [0.5, 0.25, 0.125]]
    """

    name: str
    categories: list[Any]
    weights: NDArray[np.float64]
    paths: NDArray[np.float64]

    @classmethod
    def from_estimator(cls, estimator: TargetEncoder, *, column: Key | None = None, ax: object = None) -> Self:
        """Draw a column with a hierarchy of a fitted `TargetEncoder`.

        Parameters
        ----------
        estimator : TargetEncoder
            Fitted.
        column : str or tuple, optional
            By default the first one.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        HierarchyDisplay
            It is drawn if axes are given; otherwise call `plot`.
        """
        check_means(estimator)
        summary = summarize(estimator._fitted(), column)
        number = key_names(estimator._fitted()).index(summary.name)
        key, table = estimator._model.keys[number], estimator._model.tables[number][0].values[:, 0, 0]
        if not key.levels:
            raise ValueError(f"{summary.name!r} has no hierarchy: give one to the encoder, hierarchy={{...}}.")
        chosen = np.argsort(-summary.weights[: key.n_categories], kind="stable")[:MOST_PATHS]
        above = [table[start + level.of_leaf[chosen]] for start, level in zip(key.starts[1:], key.levels, strict=False)]
        paths = np.column_stack([np.full(len(chosen), summary.prior), *above, summary.encodings[chosen]])
        display = cls(summary.name, summary.categories(chosen), summary.weights[chosen], paths)
        return display if ax is None else display.plot(ax)

    def _draw(self, ax: Any) -> None:
        steps = range(self.paths.shape[1])
        widths = 0.5 + 2.5 * np.sqrt(self.weights / self.weights.max())
        for path, width in zip(self.paths, widths.tolist(), strict=True):
            ax.plot(steps, path, color=GREY, linewidth=width, alpha=0.5, zorder=1)
        for step in steps:
            color = ORANGE if step < steps[-1] else BLUE
            ax.scatter(np.full(len(self.paths), step), self.paths[:, step], color=color, s=20, zorder=2)
        named: list[float] = []
        for category, end in zip(self.categories, self.paths[:, -1].tolist(), strict=True):
            # The categories with most rows are labelled first; a name that would cover another one is left out.
            if all(abs(end - other) > ROOM_OF_NAME * np.ptp(self.paths) for other in named):
                named.append(end)
                beside = {"xytext": (6, 0), "textcoords": "offset points", "va": "center", "fontsize": 7}
                ax.annotate(shorten(category, 12), (steps[-1], end), **beside)
        levels = [f"level {step}" for step in steps[1:-1]]
        ax.set_xticks(steps, ["prior", *map(shorten, [*levels, self.name])])
        ax.set(xlim=(-0.2, steps[-1] + 0.6), ylabel="encoding, in units of the target", xlabel="coarse to fine")
