"""The result of `tune`: the log-likelihood of held-out rows, smoothing by smoothing."""

from dataclasses import dataclass
from typing import Any, Self

from gpu_encode.study.plots.display import BLUE, GREY, ORANGE, Display, shorten
from gpu_encode.study.tuning.results import Score, Tuned, name_of_scheme, rank

MOST_SHOWN = 15


@dataclass(eq=False)
class TuningDisplay(Display):
    """The candidates with the highest likelihood, the best on top, with their standard errors.

    Parameters
    ----------
    scores : list of Score
        The best one first.

    Examples
    --------
    >>> from gpu_encode import TargetEncoder, tune
    >>> from gpu_encode.plots import TuningDisplay
    >>> tuned = tune(TargetEncoder(), [["a"], ["b"]] * 10, [0, 1, 1, 1] * 5, smoothings=[1.0, 10.0])
    >>> TuningDisplay.from_tuned(tuned).scores[0] == tuned.best
    True
    """

    scores: list[Score]

    @classmethod
    def from_tuned(cls, tuned: Tuned, *, ax: object = None) -> Self:
        """Draw the result of `tune`.

        Parameters
        ----------
        tuned : Tuned
            The result of `tune`.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        TuningDisplay
            It is drawn if axes are given; otherwise call `plot`.
        """
        display = cls(sorted(tuned.scores, key=rank, reverse=True)[:MOST_SHOWN])
        return display if ax is None else display.plot(ax)

    def _draw(self, ax: Any) -> None:
        several = len({name_of_scheme(score.scheme) for score in self.scores}) > 1
        for height, score in enumerate(self.scores):
            color = ORANGE if height == 0 else BLUE
            bar = {"xerr": score.standard_error, "fmt": "o", "color": color, "ecolor": GREY, "capsize": 3}
            ax.errorbar(score.log_likelihood, height, **bar)
        names = []
        for score in self.scores:
            row = score.as_dict()
            parts = [row["smoothing"], *([row["prior"]] if score.prior is not None else [])]
            names.append(shorten(", ".join([*parts, *([row["scheme"]] if several else [])]), 34))
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        # Log-likelihoods are long numbers: more of them run into one another.
        ax.locator_params(axis="x", nbins=5)
        ax.set(xlabel="log-likelihood per held-out row (nats), ± standard error", ylabel="smoothing")
