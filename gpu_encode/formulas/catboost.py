"""CatBoost's statistics of a category: shares and means of the target, and counts, each mixed with rows of a prior."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.formulas.statistic import Context, Statistic, side_by_side
from gpu_encode.seam.ops import Ops
from gpu_encode.sums.moments import Moments, Needs
from gpu_encode.words.errors.parameters import bad_option, check_number, check_option

OWNER = "CatBoostEncoder"
OF_TARGETS = ("mean", "borders", "buckets")
OF_COUNTS = ("counter", "frequency")
OF_LABELS = ("borders", "buckets")


class WithPriors(Statistic):
    """Statistics with several priors; each prior gives a column.

    Parameters
    ----------
    weight : float, default=1.0
        Weight a of each prior, in rows.
    """

    statistic: str

    def __init__(self, priors: Any = (0.0, 0.5, 1.0), weight: float = 1.0) -> None:
        self.priors = priors
        self.weight = weight

    def ranges(self, least: float, largest: float) -> list[tuple[str, float, float]]:
        """Give the range of the values, or of shares, extended to hold the priors."""
        computed = f"statistic={self.statistic!r} with priors={list(self.priors)!r}"
        return [(computed, min(least, *self.priors), max(largest, *self.priors))]

    def check(self) -> None:
        """Raise ValueError for priors that are no numbers or are equal, and for a negative weight."""
        if not isinstance(self.priors, (list, tuple)) or not self.priors:
            raise bad_option(OWNER, "priors", self.priors, ("a list of numbers such as [0.0, 0.5, 1.0]",))
        for prior in self.priors:
            check_number(OWNER, "priors", prior, low=-np.inf)
        # Priors differ if their names differ: nobody could tell two columns of one name apart.
        if len({f"{prior:g}" for prior in self.priors}) < len(self.priors):
            raise bad_option(OWNER, "priors", self.priors, ("a list of different numbers",))
        check_number(OWNER, "weight", self.weight, low=0.0)

    def suffixes(self) -> list[str]:
        """Name the priors, if there are several."""
        return [f"_prior_{prior:g}" for prior in self.priors] if len(self.priors) > 1 else [""]


class TargetRatios(WithPriors):
    """(S + a * p) / (n + a): S is a sum over a category's rows, chosen by `statistic`, and n the weight of the rows.

    Parameters
    ----------
    statistic : {"mean", "borders", "buckets"}, default="mean"
        "mean": S is the sum of y, or of the 0/1 column of each label.  "borders": the weight of the rows whose label
        is above a label, for each label but the last.  "buckets": the weight of the rows with a label, for each label.
    weight : float, default=1.0
    borders : int, list of float or None
        Where the target is cut; the label of a bucket is the largest number that it can hold.
    """

    def __init__(
        self, statistic: str = "mean", priors: Any = (0.0, 0.5, 1.0), weight: float = 1.0, borders: Any = None
    ) -> None:
        super().__init__(priors, weight)
        self.statistic = statistic
        self.borders = borders

    @property
    def needs(self) -> Needs:
        """The sums that are needed: with borders, a row counts for its own label and for all labels below it."""
        return Needs(totals=True, totals_from_above=self.statistic == "borders", everything=False)

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        check_option(OWNER, "statistic", self.statistic, OF_TARGETS)
        super().check()

    def check_targets(self, owner: str, kinds: Sequence[str]) -> None:
        """Raise ValueError for a quantity if labels are counted."""
        if self.statistic in OF_LABELS and "continuous" in kinds:
            raise ValueError(
                f"statistic={self.statistic!r} of {owner} counts labels, but y is continuous. Give borders, numbers at "
                "which y is cut, such as borders=[0.0, 10.0]; borders=1 cuts it at its median, as CatBoost does."
            )

    def label_parts(self, labels: Array, first: int) -> list[str]:
        """Name labels as borders or as ends of buckets, if rows above or up to a border are counted."""
        if self.statistic == "borders":
            return [f"_above_{label}" for label in labels[:-1]]
        return [f"_to_{label}" for label in labels] if self.borders is not None else super().label_parts(labels, first)

    def find_prior(self, total: Moments) -> Floats:
        """Give the priors."""
        return side_by_side([np.full_like(total.mean, float(prior)) for prior in self.priors])

    def encode(self, visible: Moments, context: Context, prior: Floats) -> Floats:
        """Give (S + a * p) / (n + a) for each prior p, within 5 ulp if S and p have the same sign.

        If S is beyond float64, the mean is used instead.
        """
        a, columns = float(self.weight), []
        # CatBoost uses the sum; a sum may overflow where the mean does not.
        too_large = np.isinf(visible.total)
        n, any_too_large = visible.n + a, bool(too_large.any())
        for number in range(len(self.priors)):
            p = prior[..., number :: len(self.priors)]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                columns.append((visible.total + a * p) / n)
                if any_too_large:
                    by_mean = p + (visible.n / n) * (visible.mean - p)
                    columns[-1] = np.where(too_large, by_mean, columns[-1])
        return side_by_side(columns)


class CountRatios(WithPriors):
    """(n + a * p) / (N + a): n is the weight of a category, N the largest n of any visible category, or of all rows.

    Parameters
    ----------
    statistic : {"counter", "frequency"}, default="counter"
    weight : float, default=1.0
    """

    asked_by = "statistic"

    def __init__(self, statistic: str = "counter", priors: Any = (0.0,), weight: float = 1.0) -> None:
        super().__init__(priors, weight)
        self.statistic = statistic

    @property
    def needs(self) -> Needs:
        """The sums that are needed: a counter divides by the weight of the largest category."""
        return Needs(table=self.statistic == "counter")

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        check_option(OWNER, "statistic", self.statistic, OF_COUNTS)
        super().check()

    def n_outputs(self, n_targets: int) -> int:
        """Each prior gives one column, for any target."""
        return len(self.priors)

    def ranges(self, least: float, largest: float) -> list[tuple[str, float, float]]:
        """Give the range from 0 to 1, extended to hold the priors."""
        return super().ranges(0.0, 1.0)

    def find_prior(self, total: Moments) -> Floats:
        """Give the frequency of a category without rows."""
        return self._ratios(np.zeros_like(total.n), total.n)

    def encode(self, visible: Moments, context: Context, prior: Floats) -> Floats:
        """Give the frequency of a category."""
        return self._ratios(visible.n, context.total.n)

    def encode_table(
        self, ops: Ops, visible: Moments, counted: NDArray[np.bool_], total: Moments, of_classes: bool
    ) -> tuple[Floats, Floats]:
        """Compare every category with the largest one of its view."""
        largest = np.where(counted, visible.n, 0.0).max(axis=0)
        return self._ratios(visible.n, largest), self._ratios(np.zeros_like(total.n), largest)

    def _ratios(self, n: Floats, whole: Floats) -> Floats:
        """Give (n + a * p) / (whole + a) for every p; 0 if nothing is visible, not even a prior."""
        a = float(self.weight)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = [(n + a * float(prior)) / (whole + a) for prior in self.priors]
        return side_by_side([np.where(whole + a > 0, ratio, 0.0) for ratio in ratios])
