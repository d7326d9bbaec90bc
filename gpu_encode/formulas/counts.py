"""The number of rows of a category, and its share."""

from dataclasses import dataclass

import numpy as np

from cpu_fallback.elementary import log
from cpu_fallback.exact import Floats
from gpu_encode.formulas.statistic import Context, Statistic
from gpu_encode.sums.moments import Moments
from gpu_encode.words.errors.parameters import check_option

KINDS = ("count", "frequency", "log")


@dataclass(eq=False, repr=False)
class Counts(Statistic):
    """Summed weight n of a category's visible rows: n itself, n / N with N of all visible rows, or log(1 + n).

    Parameters
    ----------
    kind : {"count", "frequency", "log"}, default="count"
    """

    kind: str = "count"

    def check(self) -> None:
        """Raise ValueError for an unknown kind."""
        check_option("CountEncoder", "kind", self.kind, KINDS)

    def n_outputs(self, n_targets: int) -> int:
        """Give one column, whatever the target."""
        return 1

    def encode(self, visible: Moments, context: Context, prior: Floats) -> Floats:
        """Give n, n / N or log(1 + n)."""
        # The library has a logarithm of its own, since those of NumPy and CuPy differ in their last bits.
        if self.kind == "log":
            return log(1.0 + visible.n)
        if self.kind == "frequency":
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(context.total.n > 0, visible.n / context.total.n, 0.0)
        return visible.n
