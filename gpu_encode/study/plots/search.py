"""The scores of a grid search by a parameter."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gpu_encode.study.plots.display import Display, shorten

# Values that are at least so many times apart are drawn on a logarithmic scale.
LOGARITHMIC = 20
# So many values of a parameter have a tick each.
MOST_TICKS = 8


@dataclass(eq=False)
class SearchDisplay(Display):
    """Mean scores of validation folds by one parameter, a line for each value of another one.

    Parameters
    ----------
    parameters : tuple of str or None
        The parameter of the axis, and that of the lines; None: a single line.
    values, labels : list
        The values of both.
    means, deviations : float64 array (labels, values)
        Mean and standard deviation of the scores of the folds; NaN where the search tried no such pair.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> from gpu_encode.plots import SearchDisplay
    >>> search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2).fit([[0], [1]] * 4, [0, 1] * 4)
    >>> display = SearchDisplay.from_search(search, "C")
    >>> display.values, display.means.tolist()
    ([0.1, 1.0], [[1.0, 1.0]])
    """

    parameters: tuple[str, str | None]
    values: list[Any]
    labels: list[Any]
    means: NDArray[np.float64]
    deviations: NDArray[np.float64]

    @classmethod
    def from_search(cls, search: Any, parameter: str, *, lines: str | None = None, ax: object = None) -> Self:
        """Draw what a search of scikit-learn has found.

        Parameters
        ----------
        search : GridSearchCV, RandomizedSearchCV or another with `cv_results_`
            Fitted, with one metric.
        parameter : str
            The parameter of the axis, such as ``"spectralencoder__n_components"``.
        lines : str, optional
            The parameter that has a line for each value.  If others vary, too, the best of them counts.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        SearchDisplay
            It is drawn if axes are given; otherwise call `plot`.

        Raises
        ------
        ValueError
            If the search did not vary these parameters, if both are the same, or if it has several metrics.
        """
        check_is_fitted(search, "cv_results_")
        found, tried = search.cv_results_, search.cv_results_["params"]
        varied = list(dict.fromkeys(name for each in tried for name in each))
        for name in [parameter] if lines is None else [parameter, lines]:
            if name not in varied:
                raise ValueError(f"The search has not varied {name!r}, but {', '.join(varied)}.")
        if parameter == lines:
            raise ValueError(f"lines names the parameter of the axis, {lines!r}. Name another one, or leave lines out.")
        if "mean_test_score" not in found:
            raise ValueError("The search has several metrics. SearchDisplay draws a search with one: pass scoring=.")
        values = in_order([each[parameter] for each in tried if parameter in each])
        labels = [None] if lines is None else in_order([each[lines] for each in tried if lines in each])
        means, deviations = (np.full((len(labels), len(values)), np.nan) for _ in range(2))
        for each, mean, deviation in zip(tried, found["mean_test_score"], found["std_test_score"], strict=True):
            if parameter in each and (lines is None or lines in each):
                place = 0 if lines is None else labels.index(each[lines]), values.index(each[parameter])
                if not means[place] >= mean:
                    means[place], deviations[place] = mean, deviation
        display = cls((parameter, lines), values, labels, means, deviations)
        return display if ax is None else display.plot(ax)

    def _draw(self, ax: Any) -> None:
        name, lines = (part and part.rpartition("__")[2] for part in self.parameters)
        are_numbers = all(isinstance(value, Real) and not isinstance(value, bool) for value in self.values)
        places = self.values if are_numbers else list(range(len(self.values)))
        for label, means, deviations in zip(self.labels, self.means, self.deviations, strict=True):
            text = {} if lines is None else {"label": f"{lines} {shorten(str(label))}"}
            ax.errorbar(places, means, yerr=deviations, marker="o", markersize=4, capsize=3, **text)
        if are_numbers and self.values[0] > 0 and self.values[-1] >= LOGARITHMIC * self.values[0]:
            ax.set_xscale("log")
        if len(places) <= MOST_TICKS or not are_numbers:
            ax.set_xticks(places, [shorten(str(value)) for value in self.values])
            ax.minorticks_off()
        if lines is not None:
            ax.legend(fontsize="small")
        ax.set(xlabel=name, ylabel="score of held-out folds, ± standard deviation")


def in_order(values: list[Any]) -> list[Any]:
    """Give the distinct values of a parameter: numbers in rising order, others in the order of the search."""
    known = [value for number, value in enumerate(values) if value not in values[:number]]
    try:
        return sorted(known)
    except TypeError:
        return known
