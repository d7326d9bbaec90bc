"""What becomes of the sums of a category: numbers read off them, whoever sees which rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.errors.statistics import target_of_another_kind
from gpu_encode.sums.moments import CategoryMoments, Moments

if TYPE_CHECKING:
    from gpu_encode.ops import Ops


@dataclass(frozen=True)
class Context:
    """What is known beside the category itself: all visible rows, and the category means where a statistic asks."""

    total: Moments
    categories: CategoryMoments | None = None


class OrderStatistics(Protocol):
    """Statistics of values in order, on the host, of what each category and view sees, or each row of a tile."""

    def of_category(self, statistic: Any) -> Floats:
        """Give one statistic of the category."""

    def of_everything(self, statistic: Any) -> Floats:
        """Give one statistic of all rows that are seen, whatever their category."""


class Needs(NamedTuple):
    """What a statistic asks of the sums and of the target.

    Parameters
    ----------
    sums : bool
        Whether anything is read off sums at all; if not, neither sums nor categories are kept.
    squares, cubes : bool
        Sums of squares; of cubes, which takes squares as well, and whose parts are terms 1 to 4 of each row.
    totals : bool
        The sum of the target of a category, beside its mean.
    totals_from_above : bool
        Whether the total of a class is that of all classes from it on, as sorted.
    others : bool
        The weight of the rows with any other label, beside that of each label.
    categories : bool
        Sums over the means of all categories.
    table : bool
        All categories at once, which a row that sees sums of its own cannot have.
    distribution : bool
        How often each value occurs; such a statistic needs a table.
    rows : bool
        Whether there is no encoding of what no visible row has, where there is no visible row.
    terms : int
        Numbers of each row that are summed, the target itself among them.
    joined_targets : bool
        Whether all targets together are the terms of one.
    target_kinds : tuple of str
        Kinds of targets that it can be computed of.
    """

    sums: bool = True
    squares: bool = False
    cubes: bool = False
    totals: bool = False
    totals_from_above: bool = False
    others: bool = False
    categories: bool = False
    table: bool = False
    distribution: bool = False
    rows: bool = False
    terms: int = 1
    joined_targets: bool = False
    target_kinds: tuple[str, ...] = ("none", "binary", "continuous", "multiclass")


class Statistic(BaseEstimator):
    """Numbers computed from the sums of a category.  Parameters are checked at fit, so `set_params` and `clone` work.

    A statistic is a function of what is seen, and knows nothing of schemes: the same one serves folds, leave-one-out
    and orders, in memory and in parts.
    """

    # Whether the encoding of what no visible row has is a mean, or a number that the user gives.
    takes_prior: ClassVar[bool] = False

    @property
    def needs(self) -> Needs:
        """What is asked of the sums and of the target."""
        return Needs()

    @property
    def names_targets(self) -> bool:
        """Whether output names hold the name of a target even where it is the only one."""
        return False

    @property
    def first_target(self) -> int:
        """The first target that a key has an output of."""
        return 0

    @property
    def asked(self) -> str:
        """What the user asked for to get it, for messages: a class of that name, unless a statistic says otherwise."""
        return type(self).__name__

    def of_entry(self, number: int) -> "Statistic":  # noqa: ARG002
        """Give what is read off the sums of one entry, by its place; the same of all, unless said."""
        return self

    def of_target(self, number: int) -> "Statistic":  # noqa: ARG002
        """Give what is read off the sums of one target, by its place; the same of all, unless said."""
        return self

    def check(self) -> None:
        """Raise ValueError for a parameter out of range."""

    def terms(self, ops: "Ops", values: list[Array], present: Array | None) -> list[Array]:  # noqa: ARG002
        """Numbers of each row that are summed, `needs.terms` of them, the target itself first.

        `values` are those of the target; of all targets where these are terms of one.  Rows of which `present` is zero
        have no value, and may have any terms.
        """
        return values

    def check_targets(self, owner: str, kinds: Sequence[str]) -> None:
        """Raise ValueError for a kind of target that it cannot be read off; `owner` is the encoder's name."""
        for kind in kinds:
            if kind not in self.needs.target_kinds:
                raise target_of_another_kind(owner, kind, self.needs.target_kinds)

    def ranges(self, least: float, largest: float) -> list[tuple[str, float, float]]:
        """What is computed of values between two numbers, and between which numbers each of it lies."""
        return [("the mean", least, largest)]

    def suffixes(self) -> list[str]:
        """What the names of the columns made of one target or class end with, one a column."""
        return [""]

    def label_parts(self, labels: Array, first: int) -> list[str]:
        """What output names hold of the labels of a target of classes, from the first with an output on."""
        return [f"_{label}" for label in labels[first:]]

    def n_outputs(self, n_targets: int) -> int:
        """Give the columns of codes, of so many targets or classes with an output."""
        return n_targets * len(self.suffixes())

    def root(self, total: Moments) -> Floats:
        """Code of a category that no visible row has, by all that is visible: (..., outputs); zero unless said."""
        return np.zeros_like(total.n)

    def codes(self, seen: Moments, context: Context, mu: Floats) -> Floats:
        """Code of what is seen, where mu is the code of what lies above; cells that see nothing may hold anything."""
        raise NotImplementedError

    def table(
        self, ops: "Ops", seen: Moments, counted: NDArray[np.bool_], total: Moments, of_classes: bool
    ) -> tuple[Floats, Floats]:
        """Codes (rows, views, outputs) of all categories at once, and the code (views, outputs) of any other.

        Of statistics that need a table; `counted` (rows, views, 1) are the categories that take part, and `of_classes`
        says whether the target is one of classes.
        """
        raise NotImplementedError

    def ranked(self, ops: "Ops", seen: Moments, total: Moments, values: OrderStatistics) -> tuple[Floats, Floats]:
        """Codes (..., outputs) of what is seen, and of what nobody sees, from values as well.

        Of statistics that need a distribution; `values` are those of what is seen in `seen` and in `total`.
        """
        raise NotImplementedError
