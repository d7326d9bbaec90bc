"""The parts of the formula lam * mean + (1 - lam) * mu that a fused backend needs; lam depends on a cell's own sums."""

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.types import Array, Folds, Layout, Rows

if TYPE_CHECKING:
    from cpu_fallback.exact import Ratio

PLAIN, M_ESTIMATE, SIGMOID, EMPIRICAL_BAYES = 0, 1, 2, 3
# The prior of a row belongs to a checkpoint: the row's rank, of which only this number of top bits is kept.
CHECKPOINT_BITS = 9
AS_CATEGORY, AS_PRIOR, AS_NAN = 0, 1, 2
# The rows that the views of a table see: folds, by a matrix (views, folds) of 0 and 1; only their own fold (None); or
# all rows but one.
LESS_ONE_ROW: Literal["less one row"] = "less one row"
Visibility = NDArray[np.int64] | Literal["less one row"] | None


class Shrinkage(NamedTuple):
    """A formula for lam that needs only a cell's own sums and the variance of all visible rows.

    Parameters
    ----------
    kind : int
        PLAIN, M_ESTIMATE, SIGMOID or EMPIRICAL_BAYES.
    first, second : float
        m of an m-estimate; or k and f of a sigmoid.
    """

    kind: int
    first: float = 0.0
    second: float = 1.0


class Blend(NamedTuple):
    """Everything that turns the sums of a cell into an encoding, except for the moments of each view.

    Parameters
    ----------
    shrinkage : Shrinkage
    least : float
        Cells of less weight are treated as unseen.
    has_unseen : bool
        Whether unseen cells get a number of their own instead of the prior.
    unseen : float
        That number.
    """

    shrinkage: Shrinkage
    least: float
    has_unseen: bool
    unseen: float


class PopulationMoments(NamedTuple):
    """Moments of all categories that a view sees, for each view and output.

    Parameters
    ----------
    prior : float64 array (views, outputs)
        mu; NaN if no row is visible.
    fraction, exponent : float64 and int64 arrays (views, outputs)
        Variance of the visible targets, fraction * 2**exponent; empty if lam does not need it.
    exact : Ratio, optional
        The exact priors of m-estimates (views, outputs); None for other formulas.
    """

    prior: NDArray[np.float64]
    fraction: NDArray[np.float64]
    exponent: NDArray[np.int64]
    exact: "Ratio | None" = None


class FusedRule(NamedTuple):
    """Everything that turns the sums that a row sees into its encoding.

    Parameters
    ----------
    blend : Blend
    by_mean : bool
        Whether the prior is the mean of all rows that the row sees.
    prior : float
        The prior, if it is not that mean.
    missing : int
        AS_CATEGORY, AS_PRIOR or AS_NAN: how a missing value is treated.
    """

    blend: Blend
    by_mean: bool
    prior: float
    missing: int


class FoldedRows(NamedTuple):
    """Rows and their folds, the layout of their sums, and the folds that each view sees.

    Parameters
    ----------
    rows : Rows
        Their codes do not matter.
    n_classes : int
    layout : Layout
    folds : FoldPattern or int32 array or None
    visibility : int64 array (views, folds), or LESS_ONE_ROW
        1 where rows of a fold, or of a view, see rows of another fold; LESS_ONE_ROW: each row sees all other rows.
    new_rows : int64 array (folds,)
        1 for the folds that new rows see.
    """

    rows: Rows
    n_classes: int
    layout: Layout
    folds: Folds
    visibility: Visibility
    new_rows: Array


class RowEncodings(NamedTuple):
    """Where a pass over all rows writes their encodings.

    Parameters
    ----------
    values : float array (rows, outputs)
        Outputs are the last classes, all or all but the first.
    unseen : bool array (rows,), optional
        Becomes False for rows whose category is not unseen.
    """

    values: NDArray[Any]
    unseen: NDArray[np.bool_] | None = None


class Written(NamedTuple):
    """Results of a pass over all rows, without the encodings.

    Parameters
    ----------
    accumulators : int64 array (categories + 2, classes, layout.width)
        Sums over all rows.
    lost : int
        Number of encodings that became infinite because the type of the output cannot hold them.
    """

    accumulators: NDArray[np.int64]
    lost: int
