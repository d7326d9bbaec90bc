"""What a statistic is: numbers computed from the sums of a category, whichever rows are visible."""

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
    """What is known beside the category itself: all visible rows, and sums over categories where a statistic asks.

    `of_mean` says whether the prior is the mean of `total`, and `ops` who computes.
    """

    total: Moments
    categories: CategoryMoments | None = None
    of_mean: bool = False
    ops: "Ops | None" = None


class OrderStatistics(Protocol):
    """Statistics of sorted values, on the host: those of the values that each view, or each row, sees in a category."""

    def of_category(self, statistic: Any) -> Floats:
        """Give one statistic of the category."""

    def of_everything(self, statistic: Any) -> Floats:
        """Give one statistic of all visible rows, whatever their category."""


class Statistic(BaseEstimator):
    """Numbers computed from the sums of a category.  Parameters are checked at fit, so `set_params` and `clone` work.

    A statistic is a function of what is visible, and knows nothing of schemes: the same one serves folds, leave-one-out
    and orders, in memory and in parts.
    """

    # Whether the encoding of a category without visible rows is a mean, or a number that the user gives.
    takes_prior: ClassVar[bool] = False
    # What those had that were saved before a parameter was added.
    parameters_before: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    # The parameter by which the user asks for it, where a class of its name is not what the user sees.
    asked_by: ClassVar[str | None] = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({**self.parameters_before, **state})

    @property
    def needs(self) -> Needs:
        """What it needs of the sums and of the target."""
        return Needs()

    @property
    def names_targets(self) -> bool:
        """Whether output names hold the name of a target even where it is the only one."""
        return False

    @property
    def first_target(self) -> int:
        """The number of the first target that has an output."""
        return 0

    @property
    def asked(self) -> str:
        """What the user asked for to get it, for messages: a class of that name, or a parameter of the encoder."""
        return type(self).__name__ if self.asked_by is None else f"{self.asked_by}={getattr(self, self.asked_by)!r}"

    def of_key(self, number: int) -> "Statistic":
        """Give the statistic of one key, by its number; the same for all, unless overridden."""
        return self

    def of_target(self, number: int) -> "Statistic":
        """Give the statistic of one target, by its number; the same for all, unless overridden."""
        return self

    def check(self) -> None:
        """Raise ValueError for a parameter out of range."""

    def terms(self, ops: "Ops", values: list[Array], present: Array | None) -> list[Array]:
        """Give the numbers of each row that are summed, `needs.terms` of them, the target itself first.

        `values` are those of the target; of all targets where these are terms of one.  Rows where `present` is zero
        have no value, and may have any terms.
        """
        return values

    def check_targets(self, owner: str, kinds: Sequence[str]) -> None:
        """Raise ValueError for a kind of target that it cannot be computed of; `owner` is the encoder's name."""
        for kind in kinds:
            if kind not in self.needs.target_kinds:
                raise _target_of_another_kind(owner, kind, self.needs.target_kinds)

    def check_labelled(self, owner: str, column: object, kind: str) -> None:
        """Raise ValueError if a column of values that holds text or dates, its `kind`, has no such statistic."""

    def ranges(self, least: float, largest: float) -> list[tuple[str, float, float]]:
        """Name what is computed of values between two numbers, and give the range of each."""
        return [("the mean", least, largest)]

    def suffixes(self) -> list[str]:
        """Give the endings of the names of the columns made of one target or class, one a column."""
        return [""]

    def are_values(self) -> list[bool]:
        """Say of each column made of one target whether it holds values of the target; none does unless overridden."""
        return [False] * len(self.suffixes())

    def label_parts(self, labels: Array, first: int) -> list[str]:
        """Give what output names hold of the labels of a target of classes, from the first with an output on."""
        return [f"_{label}" for label in labels[first:]]

    def n_outputs(self, n_targets: int) -> int:
        """Give the number of columns for `n_targets` targets, or classes with an output."""
        return n_targets * len(self.suffixes())

    def of_each_category(self, visible: Moments) -> Floats:
        """Give the numbers that are summed over all categories, where that is needed (..., numbers).

        A category that has none, NaN or infinite, is left out of the sums of that number.
        """
        return visible.mean

    def category_weights(self, visible: Moments) -> Floats | None:
        """Give the weight of each of these numbers in their sums (..., numbers); None where every category has one."""
        return None

    def find_prior(self, total: Moments) -> Floats:
        """Encode a category that no visible row has, by all that is visible: (..., outputs); 0 unless overridden."""
        return np.zeros_like(total.n)

    def encode(self, visible: Moments, context: Context, prior: Floats) -> Floats:
        """Encode what is visible of categories, or by each row; where nothing is, the encoding may be anything.

        `prior` is the encoding of what lies above: of all rows, or of the parent in a hierarchy.
        """
        raise NotImplementedError

    def encode_table(
        self, ops: "Ops", visible: Moments, counted: NDArray[np.bool_], total: Moments, of_classes: bool
    ) -> tuple[Floats, Floats]:
        """Encode all categories at once (rows, views, outputs), and any other category (views, outputs).

        For statistics that need a table.  `counted` (rows, views, 1) are the categories that take part, and
        `of_classes` says whether the target is one of classes.
        """
        raise NotImplementedError

    def encode_in_order(
        self, ops: "Ops", visible: Moments, total: Moments, values: OrderStatistics
    ) -> tuple[Floats, Floats]:
        """Encode what is visible (..., outputs), and what nobody sees, from sorted values as well as from sums.

        For statistics that need a distribution; `values` are those of the rows in `visible` and in `total`.
        """
        raise NotImplementedError


def _target_of_another_kind(owner: str, found: str, kinds: Sequence[str]) -> ValueError:
    """Error for a kind of target that an encoder has no encodings for; worded so that scikit-learn's checks know it."""
    advice = 'Pass target_type="continuous"' if "continuous" in kinds else "Pass labels, such as y > threshold"
    return ValueError(
        f"Unknown label type: {owner} needs a {' or '.join(kinds)} target, but y is {found}. {advice}, or take "
        "TargetEncoder."
    )


def side_by_side(columns: list[Floats]) -> Floats:
    """Put statistics (..., targets) side by side, those of one target one after the other."""
    return np.stack(columns, axis=-1).reshape(*columns[0].shape[:-1], -1)
