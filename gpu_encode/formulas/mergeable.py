"""Statistics that a user defines by terms whose sums add up."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.seam.ops import Ops, holding
from gpu_encode.sums.moments import Moments
from gpu_encode.words.errors.parameters import KnownKeywords, nameless_statistic
from gpu_encode.words.errors.values import RowError


class MergeableStatistic(KnownKeywords, BaseEstimator):
    """A symmetric function of the values of a category, computed from sums of terms.

    ``encoding = finish(N, sum of w * terms[0](x), sum of w * terms[1](x), ...)`` where N is the summed weight w of the
    rows that a row may see.  Each sum is exact and then rounded once, so neither chunks nor workers change a bit.
    Since only sums are used, every scheme of `StatisticEncoder` keeps a row's own value out of its encoding.

    Parameters
    ----------
    name : str
        Part of the name of the output column; a Python identifier.
    terms : sequence of callable
        Each turns a float64 array of values (rows,) into an array of as many finite numbers, value by
        value.  They are called on the host with NumPy arrays.
    finish : callable
        ``finish(count, *sums)`` turns arrays of counts and sums, with one number for each category, into an array of
        the same shape, element by element.  It is also called on the host, so that every device gives the same bits.
        Counts may be zero; the results for these are not used.

    Raises
    ------
    ValueError
        At fit: if a term is not finite or an array has the wrong shape (the message names statistic, term and row), or
        if `finish` takes another number of sums.

    See Also
    --------
    StatisticEncoder : Takes it as one of its `statistics`.

    Notes
    -----
    The sums keep all digits that the terms have: terms of very different magnitudes take more memory.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import MergeableStatistic, StatisticEncoder
    >>> geometric = MergeableStatistic("geometric_mean", [np.log], lambda count, logs: np.exp(logs / count))
    >>> encoder = StatisticEncoder(["mean", geometric]).fit([["a"], ["a"], ["b"]], [2.0, 8.0, 3.0])
    >>> encoder.transform([["a"], ["b"]]).round(6).tolist()
    [[5.0, 4.0], [3.0, 3.0]]
    """

    def __init__(self, name: str, terms: Sequence[Callable[[Array], Array]], finish: Callable[..., Array]) -> None:
        self.name = name
        self.terms = terms
        self.finish = finish

    def check(self) -> None:
        """Raise ValueError for a parameter that is not valid."""
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise nameless_statistic(self.name)
        listed = isinstance(self.terms, (list, tuple)) and len(self.terms) > 0
        if not listed or not all(map(callable, self.terms)) or not callable(self.finish):
            raise ValueError(
                f"MergeableStatistic({self.name!r}, ...) needs terms, a list of functions of an array of values, and "
                f"finish, a function of counts and sums. Got terms={self.terms!r} and finish={self.finish!r}."
            )
        if not takes(self.finish, 1 + len(self.terms)):
            raise _finish_of_other_sums(self.name, len(self.terms))

    def of_values(self, ops: Ops, values: Array, present: "Array | None") -> list[Array]:
        """Compute the terms of each row, on the device of `ops`; 0 if `present` says that the row has no value."""
        terms = []
        # Terms are computed from floats: integers would wrap around, and other rows may hold floats.
        numbers = ops.to_host(ops.cast(values, np.float64))
        for number, function in enumerate(self.terms):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                term = np.asarray(function(numbers.copy()))
            if term.shape != values.shape or term.dtype.kind not in "biuf":
                raise ValueError(
                    f"terms[{number}] of the statistic {self.name!r} must give an array of numbers of shape "
                    f"{values.shape}, like the values, but gave {term.dtype} of shape {term.shape}. Compute it "
                    "value by value, as np.log does."
                )
            term = term.astype(np.float64)
            if present is not None:
                term = np.where(ops.to_host(present), term, 0)
            if not np.isfinite(term).all():
                row = int(np.flatnonzero(~np.isfinite(term))[0])
                raise RowError(
                    f"terms[{number}] of the statistic {self.name!r} must be finite, but is {term[row]!s} for the "
                    f"value {numbers[row]!s} in row ",
                    row,
                    ". Drop such rows, or make it a number, such as np.log1p(value).",
                )
            terms.append(ops.to_device(term))
        return terms

    def of_sums(self, visible: Moments, first: int) -> Floats:
        """Finish the sums: (..., 1); `first` is the position of this statistic's first sum in `visible.further`."""
        sums = [visible.further[..., first + number, None] for number in range(len(self.terms))]
        values = call_on_host(self.finish, self.name, (visible.n, *sums))
        if values.dtype.kind not in "biuf":
            raise _misshapen_statistic(self.name, visible.n.shape, f"{values.dtype} values")
        return holding(visible.n).to_device(values.astype(np.float64))


def _finish_of_other_sums(name: str, n_sums: int) -> ValueError:
    """Error for a `finish` that cannot be called with this number of sums."""
    sums = "the sum of its term" if n_sums == 1 else f"the sums of its {n_sums} terms"
    return ValueError(
        f"finish of the statistic {name!r} cannot be called with {1 + n_sums} arrays, counts and {sums}. Define it as "
        "finish(count, *sums), or with as many parameters."
    )


def call_on_host(function: Callable[..., Any], name: str, arrays: Sequence[Array]) -> Any:
    """Call a user's function on the host, and check that it gives a number for every category."""
    # The function gets copies, since it may write to them, and other statistics are computed from the same arrays.
    copies = [holding(array).to_host(array).copy() for array in arrays]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        values = function(*copies)
    if getattr(values, "shape", None) != copies[0].shape:
        raise _misshapen_statistic(name, copies[0].shape, getattr(values, "shape", type(values).__name__))
    # The bits of the NaN that 0 / 0 gives depend on the processor.
    return np.where(np.isnan(values), np.nan, values) if values.dtype.kind == "f" else values


def _misshapen_statistic(name: str, expected: tuple[int, ...], found: object) -> ValueError:
    """Error for a function that does not give one number for every category."""
    return ValueError(
        f"the statistic {name!r} must give an array of shape {expected}, like the arrays that it gets, but gave "
        f"{found}. Compute it by array expressions, such as mean / count."
    )


def takes(function: Callable[..., Any], number: int) -> bool:
    """Tell whether a function can be called with `number` arrays; True if its signature cannot be read."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*range(number))
    except TypeError:
        return False
    return True
