"""Which of the visible categories are infrequent."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats
from gpu_encode.words.errors.parameters import bad_option, check_count

if TYPE_CHECKING:
    from gpu_encode.seam.ops import Ops


@dataclass(frozen=True)
class Infrequent:
    """The rule that says which categories are infrequent, and how these are encoded; applied to each view separately.

    Parameters
    ----------
    min_frequency, max_categories
        As in `find_infrequent`.
    pooled : bool
        True: all infrequent categories are encoded as one category.  False: they are treated as unseen.
    """

    min_frequency: float | int | None = None
    max_categories: int | None = None
    pooled: bool = False

    def among(self, ops: "Ops", n: Floats, counted: NDArray[np.bool_], total: Floats) -> NDArray[np.bool_]:
        """Tell which of the categories that count are infrequent.

        Parameters
        ----------
        n : float64 array (rows, views, 1)
        counted : bool array (rows, views, 1)
        total : float64 array (views, 1)

        Returns
        -------
        bool array (rows, views, 1)
        """
        # The weights are sorted on the host: there is one short list for each view.
        weights, present, totals = ops.to_host(n), ops.to_host(counted), ops.to_host(total)
        infrequent = np.zeros(present.shape, np.bool_)
        for view in range(present.shape[1]):
            here = present[:, view, 0]
            infrequent[here, view, 0] = find_infrequent(
                weights[here, view, 0], float(totals[view, 0]), self.min_frequency, self.max_categories
            )
        return ops.to_device(infrequent)


def check_rule(owner: str, min_frequency: Any, max_categories: Any) -> None:
    """Raise ValueError for limits that no category can be compared with; `owner` is the encoder's name."""
    if isinstance(min_frequency, Integral):
        fits = not isinstance(min_frequency, bool) and int(min_frequency) >= 1
    else:
        fits = min_frequency is None or (isinstance(min_frequency, Real) and 0.0 < float(min_frequency) < 1.0)
    if not fits:
        allowed = ("None", "an integer of at least 1", "a share of the rows between 0 and 1")
        raise bad_option(owner, "min_frequency", min_frequency, allowed)
    if max_categories is not None:
        check_count(owner, "max_categories", max_categories, low=1)


def find_infrequent(
    weights: Floats, total: float, min_frequency: Any = None, max_categories: int | None = None
) -> NDArray[np.bool_]:
    """Tell which categories are infrequent, by scikit-learn's rule.

    Parameters
    ----------
    weights : float64 array (n_categories,)
        Summed weight of each category (without weights, its number of rows), on the host.
    total : float
        Weight of all rows.
    min_frequency : int or float, optional
        Categories with less weight are infrequent; a float is a share of all rows.
    max_categories : int, optional
        Largest number of output columns, the column of the infrequent categories included.  The categories with the
        largest weights are kept; of equal weights, the last.

    Returns
    -------
    bool array (n_categories,)

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode.formulas.infrequent import find_infrequent
    >>> find_infrequent(np.array([5.0, 1.0, 2.0, 2.0]), 10.0, max_categories=3).tolist()
    [False, True, True, False]
    """
    infrequent = np.zeros(len(weights), np.bool_)
    if min_frequency is not None:
        whole = isinstance(min_frequency, Integral)
        infrequent = weights < (float(min_frequency) if whole else float(min_frequency) * total)
    # One of the columns is for the infrequent categories, even if there are none so far.
    if max_categories is not None and max_categories < len(weights) - int(infrequent.sum()) + 1:
        order = np.argsort(weights, kind="stable")
        infrequent[order[: len(weights) - (max_categories - 1)]] = True
    return infrequent
