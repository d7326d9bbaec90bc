"""0/1 columns beside the codes of an entry: no visible row has this category, or the row has no value."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.types import MISSING, Array, Codes, Folds
from gpu_encode.categories.keys import CategoryIndex, Columns, all_present
from gpu_encode.errors.parameters import bad_option
from gpu_encode.ops import Ops

INDICATORS = ("unseen", "missing")


def listed(indicators: Any) -> Any:
    """Give the names of what is asked for as a tuple: True is "unseen"; what is no list stays as it is."""
    if isinstance(indicators, bool):
        return ("unseen",) if indicators else ()
    return tuple(indicators) if isinstance(indicators, list) else indicators


def check_indicators(owner: str, indicators: Any) -> None:
    """Raise ValueError unless these, as `listed` gives them, are different indicators that there are."""
    known = isinstance(indicators, tuple) and all(isinstance(each, str) and each in INDICATORS for each in indicators)
    if not known or len(set(indicators)) < len(indicators):
        given = list(indicators) if isinstance(indicators, tuple) else indicators
        raise bad_option(owner, "indicators", given, ("True", "False", f"a list of some of {list(INDICATORS)}"))


def missing_rows(
    key: CategoryIndex, codes: Codes, frame: Columns, ops: Ops, missing_is_category: bool
) -> NDArray[np.bool_]:
    """Say which rows have no value; of a joint key, in any of its columns.

    Parameters
    ----------
    key : CategoryIndex
    codes : int32 array (rows,)
        Category of each row, as the key gives it.
    frame : Columns
        The same rows.
    ops : Ops
    missing_is_category : bool
        Whether codes of a joint key count a missing value as one more value.

    Returns
    -------
    bool array (rows,)
    """
    entry = key.entry
    if len(entry.columns) == 1 or not missing_is_category:
        missing: NDArray[np.bool_] = codes == MISSING
        return missing
    own = zip(entry.members, key.vocabularies[len(entry.above) :], strict=True)
    return ~all_present([frame.lookup(column, words, ops) for column, words in own])


def indicator(ops: Ops, unseen: NDArray[np.bool_], codes: Codes, folds: Folds) -> NDArray[np.bool_]:
    """Look up which rows' categories are unseen."""
    found = ops.empty((len(codes), 1), np.float64)
    ops.gather(unseen[..., None].astype(np.float64), codes, folds, found)
    flags: NDArray[np.bool_] = found[:, 0] != 0
    return flags


def columns_of_entry(
    indicators: Sequence[str],
    unseen: Array | None,
    missing: Callable[[], Array],
    dtype: str,
) -> list[Array]:
    """Columns of one entry in the order asked for; `unseen` where it is asked for, `missing` called where it is."""
    return [(missing() if each == "missing" else unseen).astype(dtype) for each in indicators]  # type: ignore[union-attr]
