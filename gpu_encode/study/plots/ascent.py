"""The score of weights that are tuned one at a time, rise by rise."""

from dataclasses import dataclass
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from gpu_encode.study.plots.display import BLUE, Display, shorten


@dataclass(eq=False)
class AscentDisplay(Display):
    """The score on training rows after each step that raised a weight, a line for each class.

    It shows when a search could have stopped: figure 3 of D'yakonov's comparison.

    Parameters
    ----------
    scores : list of list of float
        Score after each rise: the area under the ROC curve, or minus the mean squared error.
    labels : list
        The class of each line; one None if there is a single line.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import VoteClassifier
    >>> from gpu_encode.plots import AscentDisplay
    >>> X = np.array([["a", "x"], ["a", "y"], ["b", "x"], ["b", "y"]] * 10, dtype=object)
    >>> voter = VoteClassifier(rule="weighted_mean").fit(X, [0, 0, 0, 1] * 10)
    >>> AscentDisplay.from_estimator(voter).scores[0][-1] == voter.training_auc_
    True
    """

    scores: list[list[float]]
    labels: list[Any]

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: object = None) -> Self:
        """Draw the path of an estimator.

        Parameters
        ----------
        estimator : VoteClassifier, VoteRegressor, ProximityEncoder, ProximityClassifier or ProximityRegressor
            Fitted, with weights that were tuned.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        AscentDisplay
            It is drawn if axes are given; otherwise call `plot`.

        Raises
        ------
        ValueError
            If no weight was tuned, or if no step raised one.
        """
        check_is_fitted(estimator)
        path = getattr(getattr(estimator, "encoder_", None), "path_", None) or getattr(estimator, "path_", None) or []
        if not any(path):
            raise ValueError(
                f"{type(estimator).__name__} has tuned no weights, or none improved the score. AscentDisplay draws "
                'VoteClassifier and VoteRegressor with rule="weighted_mean", and the estimators of proximity with '
                'weights="tune".'
            )
        # Of several classes each has a path, which may be empty.
        several = any(not rise or isinstance(rise[0], list) for rise in path)
        scores = [[rise[-1] for rise in of_class] for of_class in (path if several else [path])]
        display = cls(scores, list(estimator.classes_) if several else [None])
        return display if ax is None else display.plot(ax)

    def _draw(self, ax: Any) -> None:
        for scores, label in zip(self.scores, self.labels, strict=True):
            line = {"color": BLUE} if len(self.scores) == 1 else {"label": shorten(label)}
            ax.plot(range(1, len(scores) + 1), scores, marker="o", markersize=3, **line)
        if len(self.scores) > 1:
            ax.legend(frameon=False)
        ax.set(xlabel="weights raised", ylabel="score on training rows")
