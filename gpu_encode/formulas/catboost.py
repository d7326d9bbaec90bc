"""CatBoost's statistics of a category: shares and means of the target, and counts, each beside rows of a prior."""

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
    """Statistics with several priors, a column each.

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
        """Give the range of the values, or of 0/1 columns and shares, extended by the priors."""
        computed = f"statistic={self.statistic!r} with priors={list(self.priors)!r}"
        return [(computed, min(least, *self.priors), max(largest, *self.priors))]

    def check(self) -> None:
        """Raise ValueError for priors that are no numbers, or equal, and for a negative weight."""
        if not isinstance(self.priors, (list, tuple)) or not self.priors:
            raise bad_option(OWNER, "priors", self.priors, ("a list of numbers such as [0.0, 0.5, 1.0]",))
        for prior in self.priors:
            check_number(OWNER, "priors", prior, low=-np.inf)
        # As names show them: nobody could tell two columns of one name apart.
        if len({f"{prior:g}" for prior in self.priors}) < len(self.priors):
            raise bad_option(OWNER, "priors", self.priors, ("a list of different numbers",))
        check_number(OWNER, "weight", self.weight, low=0.0)

    def suffixes(self) -> list[str]:
        """Name the priors, where there are several."""
        return [f"_prior_{prior:g}" for prior in self.priors] if len(self.priors) > 1 else [""]


class TargetRatios(WithPriors):
    """(S + a * p) / (n + a): S what the rows of a category add up to, n their weight.

    Parameters
    ----------
    statistic : {"mean", "borders", "buckets"}, default="mean"
        S is the sum of y, or of each label's 0/1 column; the weight of the rows with a label above each but the last;
        or that of the rows with each label.
    weight : float, default=1.0
    borders : int, list of float or None
        What the target is cut at; labels are then the largest numbers that buckets hold.
    """

    def __init__(
        self, statistic: str = "mean", priors: Any = (0.0, 0.5, 1.0), weight: float = 1.0, borders: Any = None
    ) -> None:
        super().__init__(priors, weight)
        self.statistic = statistic
        self.borders = borders

    @property
    def needs(self) -> Needs:
        """What it needs of the sums: with borders, a row counts for its own label and for all labels below it."""
        return Needs(totals=True, totals_from_above=self.statistic == "borders")

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        check_option(OWNER, "statistic", self.statistic, OF_TARGETS)
        super().check()

    def check_targets(self, owner: str, kinds: Sequence[str]) -> None:
        """Raise ValueError for a quantity where labels are counted."""
        if self.statistic in OF_LABELS and "continuous" in kinds:
            raise ValueError(
                f"statistic={self.statistic!r} of {owner} counts labels, but y is continuous. Give borders, numbers at "
                "which y is cut, such as borders=[0.0, 10.0]; borders=1 cuts it at its median, as CatBoost does."
            )

    def label_parts(self, labels: Array, first: int) -> list[str]:
        """Name labels by what lies above them, or up to them, where that is what is counted."""
        if self.statistic == "borders":
            return [f"_above_{label}" for label in labels[:-1]]
        return [f"_to_{label}" for label in labels] if self.borders is not None else super().label_parts(labels, first)

    def find_prior(self, total: Moments) -> Floats:
        """Give the priors."""
        return side_by_side([np.full_like(total.mean, float(prior)) for prior in self.priors])

    def encode(self, visible: Moments, context: Context, prior: Floats) -> Floats:
        """Give (S + a * p) / (n + a) for each prior p, within 5 ulp where S and p have one sign.

        By the mean where S is beyond float64.
        """
        a, columns = float(self.weight), []
        for number in range(len(self.priors)):
            p = prior[..., number :: len(self.priors)]
            # By the sum, as CatBoost has it; a sum may overflow where the mean does not.
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                ratio = (visible.total + a * p) / (visible.n + a)
                by_mean = p + (visible.n / (visible.n + a)) * (visible.mean - p)
            columns.append(np.where(np.isinf(visible.total), by_mean, ratio))
        return side_by_side(columns)


class CountRatios(WithPriors):
    """(n + a * p) / (N + a): n the weight of a category, N the largest of any visible category, or that of all rows.

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
        """What it needs of the sums: a counter divides by the largest category."""
        return Needs(table=self.statistic == "counter")

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        check_option(OWNER, "statistic", self.statistic, OF_COUNTS)
        super().check()

    def n_outputs(self, n_targets: int) -> int:
        """One column a prior, whatever the target."""
        return len(self.priors)

    def ranges(self, least: float, largest: float) -> list[tuple[str, float, float]]:
        """Give the range from 0 to 1, extended by the priors."""
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
        """Give (n + a * p) / (whole + a) for every p; 0 where nothing is visible, not even a prior."""
        a = float(self.weight)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = [(n + a * float(prior)) / (whole + a) for prior in self.priors]
        return side_by_side([np.where(whole + a > 0, ratio, 0.0) for ratio in ratios])
