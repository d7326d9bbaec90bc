"""The ratio of a category's gradients to its hessians, by which gradient boosting orders categories."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.formulas.ranks import ranks_by_value
from gpu_encode.formulas.statistic import Context, Statistic
from gpu_encode.sums.moments import Moments, Needs
from gpu_encode.words.errors.parameters import check_number, check_option
from gpu_encode.words.errors.values import RowError

if TYPE_CHECKING:
    from gpu_encode.seam.ops import Ops

OWNER = "GradientEncoder"
OUTPUTS = ("ratio", "order")


@dataclass(eq=False, repr=False)
class GradientRatios(Statistic):
    """G / (H + lambda), where G and H are a category's summed gradients and hessians; or the rank of this ratio.

    Parameters
    ----------
    output : {"ratio", "order"}, default="ratio"
    regularization : float, default=10.0
        Lambda.
    """

    asked_by = "output"

    output: str = "ratio"
    regularization: float = 10.0

    @property
    def needs(self) -> Needs:
        """The sums that the statistic needs: gradients and hessians; for ranks, all categories at once."""
        return Needs(
            totals=True,
            table=self.output == "order",
            rows=True,
            terms=2,
            joined_targets=True,
            target_kinds=("continuous",),
        )

    def check(self) -> None:
        """Raise ValueError for an unknown output or a lambda out of range."""
        check_option(OWNER, "output", self.output, OUTPUTS)
        check_number(OWNER, "regularization", self.regularization, low=0.0)

    def terms(self, ops: "Ops", values: list[Array], present: Array | None) -> list[Array]:
        """Give gradients and hessians."""
        if len(values) != 2:
            raise _not_gradients_and_hessians(len(values))
        if bool((values[1] < 0).any()):
            row = int(np.flatnonzero(values[1] < 0)[0])
            raise RowError(
                "Hessians (the second column of GradientEncoder's y) must be at least 0. Got "
                f"{values[1][row].item()!r} in row ",
                row,
                ". Are gradients and hessians swapped?",
            )
        return values

    def check_targets(self, owner: str, kinds: Sequence[str]) -> None:
        """Raise ValueError unless there are two quantities: gradient and hessian."""
        if len(kinds) != 2:
            raise _not_gradients_and_hessians(len(kinds))
        super().check_targets(owner, kinds)

    def find_prior(self, total: Moments) -> Floats:
        """Give the ratio of all visible rows."""
        return self._ratio(total)

    def encode(self, visible: Moments, context: Context, prior: Floats) -> Floats:
        """Give the ratio of a category's visible rows."""
        return self._ratio(visible)

    def encode_table(
        self, ops: "Ops", visible: Moments, counted: NDArray[np.bool_], total: Moments, of_classes: bool
    ) -> tuple[Floats, Floats]:
        """Rank categories by rising ratio, equal ones in their order; all others get the rank of the prior's ratio."""
        ratio, present, total_ratio = map(ops.to_host, (self._ratio(visible), counted, self._ratio(total)))
        ranks, others = np.full(ratio.shape, np.nan), np.full(total_ratio.shape, np.nan)
        # Each fold ranks the sums that it sees, so that no row changes its own rank.
        for view in range(ratio.shape[1]):
            rows = np.flatnonzero(present[:, view, 0])
            ratios = ratio[rows, view, 0]
            ranks[rows, view, 0] = ranks_by_value(ratios)
            if len(rows):
                others[view, 0] = np.count_nonzero(ratios < total_ratio[view, 0])
        return ops.to_device(ranks), ops.to_device(others)

    def _ratio(self, moments: Moments) -> Floats:
        """Give G / (H + lambda); 0 if H + lambda is zero."""
        denominator = moments.further[..., :1] + float(self.regularization)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(moments.n > 0, np.where(denominator > 0, moments.total / denominator, 0.0), np.nan)


def _not_gradients_and_hessians(n_targets: int) -> ValueError:
    """Error for a y that does not have two columns."""
    return ValueError(
        f"GradientEncoder needs y of two columns, the gradient and the hessian of each row's loss, but y has "
        f"{n_targets}. Pass np.column_stack([gradient, hessian]), or a frame of both; the hessian of squared error is "
        "1."
    )
