"""The base of all statistics: numbers computed from the sums of a category's visible rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.sums.moments import CategoryMoments, Moments, Needs

if TYPE_CHECKING:
    from gpu_encode.seam.ops import Ops


@dataclass(frozen=True)
class Context:
    """Data beyond a category's own moments: the moments of all visible rows, and sums over categories.

    `categories` is None unless the statistic needs it.  `of_mean` says whether the prior is the mean of `total`.
    """

    total: Moments
    categories: CategoryMoments | None = None
    of_mean: bool = False


class OrderStatistics(Protocol):
    """Order statistics of the values that each view, or each row, sees; on the host."""

    def of_category(self, statistic: Any) -> Floats:
        """Give one statistic of the category."""

    def of_everything(self, statistic: Any) -> Floats:
        """Give one statistic of all visible rows, whatever their category."""


class Statistic(BaseEstimator):
    """Numbers computed from the sums of a category.  Parameters are checked at fit, so `set_params` and `clone` work.

    A statistic is a function of the visible rows and does not know the scheme: the same statistic serves folds,
    leave-one-out and orders, in memory and in parts.
    """

    # Whether the user chooses a prior: a mean, or a number.  Otherwise the statistic has its own, `find_prior`.
    takes_prior: ClassVar[bool] = False
    # Values for encoders that were saved before a parameter was added.
    parameters_before: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    # The encoder's parameter by which the user asks for the statistic, if its class is not public.
    asked_by: ClassVar[str | None] = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({**self.parameters_before, **state})

    @property
    def needs(self) -> Needs:
        """The sums and targets that the statistic needs."""
        return Needs()

    @property
    def names_targets(self) -> bool:
        """Whether output names contain the name of the target even if there is only one."""
        return False

    @property
    def first_target(self) -> int:
        """The number of the first target that has an output."""
        return 0

    @property
    def asked(self) -> str:
        """The name in messages: the name of the class, or of the encoder's parameter that asks for the statistic."""
        return type(self).__name__ if self.asked_by is None else f"{self.asked_by}={getattr(self, self.asked_by)!r}"

    def of_key(self, number: int) -> "Statistic":
        """Give the statistic of one key, by its number; by default, the same for all keys."""
        return self

    def of_target(self, number: int) -> "Statistic":
        """Give the statistic of one target, by its number; by default, the same for all targets."""
        return self

    def check(self) -> None:
        """Raise ValueError for a parameter out of range."""

    def terms(self, ops: "Ops", values: list[Array], present: Array | None) -> list[Array]:
        """Give the numbers of each row that are summed: `needs.terms` of them, the target itself first.

        `values` are the values of the target, or of all targets if these are the terms of one.  Rows with zero in
        `present` have no value, and may have any terms.
        """
        return values

    def check_targets(self, owner: str, kinds: Sequence[str]) -> None:
        """Raise ValueError for targets of a kind that does not suit the statistic; `owner` is the encoder's name."""
        for kind in kinds:
            if kind not in self.needs.target_kinds:
                raise _target_of_another_kind(owner, kind, self.needs.target_kinds)

    def check_labelled(self, owner: str, column: object, kind: str) -> None:
        """Raise ValueError if a column of text or dates (its `kind`) cannot have this statistic."""

    def ranges(self, least: float, largest: float) -> list[tuple[str, float, float]]:
        """Name the encodings, and give the smallest and largest value of each for values between two numbers."""
        return [("the mean", least, largest)]

    def suffixes(self) -> list[str]:
        """Give the suffix of the name of each column that one target or class has."""
        return [""]

    def are_values(self) -> list[bool]:
        """Tell for each column that one target has whether it holds values of the target; by default, none does."""
        return [False] * len(self.suffixes())

    def label_parts(self, labels: Array, first: int) -> list[str]:
        """Give the part of output names for each label of a target of classes; `first` is the first with an output."""
        return [f"_{label}" for label in labels[first:]]

    def n_outputs(self, n_targets: int) -> int:
        """Give the number of columns for `n_targets` targets or classes with an output."""
        return n_targets * len(self.suffixes())

    def of_each_category(self, visible: Moments) -> Floats:
        """Give the numbers that are summed over all categories, if such sums are needed (..., numbers).

        A category whose number is NaN or infinite is left out of the sum of this number.
        """
        return visible.mean

    def category_weights(self, visible: Moments) -> Floats | None:
        """Give the weight of each of these numbers in their sums (..., numbers); None if all weights are 1."""
        return None

    def find_prior(self, total: Moments) -> Floats:
        """Encode a category that no visible row has, from all visible rows: (..., outputs); by default, 0."""
        return np.zeros_like(total.n)

    def encode(self, visible: Moments, context: Context, prior: Floats) -> Floats:
        """Encode categories, or the category of each row, by their visible rows; any number where no row is visible.

        `prior` is the encoding of all rows, or of the parent in a hierarchy.
        """
        raise NotImplementedError

    def encode_table(
        self, ops: "Ops", visible: Moments, counted: NDArray[np.bool_], total: Moments, of_classes: bool
    ) -> tuple[Floats, Floats]:
        """Encode all categories at once (rows, views, outputs), and any other category (views, outputs).

        This is for statistics that need a table.  `counted` (rows, views, 1) tells which categories take part, and
        `of_classes` whether the target has classes.
        """
        raise NotImplementedError

    def encode_in_order(
        self, ops: "Ops", visible: Moments, total: Moments, values: OrderStatistics
    ) -> tuple[Floats, Floats]:
        """Encode categories (..., outputs), and a category that no visible row has, from sums and sorted values.

        This is for statistics that need a distribution; `values` are those of the rows in `visible` and in `total`.
        """
        raise NotImplementedError


def _target_of_another_kind(owner: str, found: str, kinds: Sequence[str]) -> ValueError:
    """Error for a kind of target that an encoder cannot encode by; scikit-learn's checks look for its first words."""
    advice = 'Pass target_type="continuous"' if "continuous" in kinds else "Pass labels, such as y > threshold"
    return ValueError(
        f"Unknown label type: {owner} needs a {' or '.join(kinds)} target, but y is {found}. {advice}, or take "
        "TargetEncoder."
    )


def side_by_side(columns: list[Floats]) -> Floats:
    """Join statistics (..., targets), so that all statistics of one target are next to each other."""
    return np.stack(columns, axis=-1).reshape(*columns[0].shape[:-1], -1)
