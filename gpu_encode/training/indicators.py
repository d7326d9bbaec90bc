"""0/1 columns beside the encodings of a key: no visible row has this category, or the row has no value."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.types import MISSING, Codes, Folds
from gpu_encode.categories.keys import CategoryIndex, Columns, all_present
from gpu_encode.errors.parameters import bad_option
from gpu_encode.ops import Ops

INDICATORS = ("unseen", "missing")


def listed(indicators: Any) -> Any:
    """Give the names of the indicators as a tuple: True means "unseen"; anything but bool and list stays as it is."""
    if isinstance(indicators, bool):
        return ("unseen",) if indicators else ()
    return tuple(indicators) if isinstance(indicators, list) else indicators


def check_indicators(owner: str, indicators: Any) -> None:
    """Raise ValueError unless these names, as `listed` gives them, are known and different."""
    known = isinstance(indicators, tuple) and all(isinstance(name, str) and name in INDICATORS for name in indicators)
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
    members = zip(entry.members, key.vocabularies[len(entry.above) :], strict=True)
    return ~all_present([frame.lookup(column, vocabulary, ops) for column, vocabulary in members])


def indicator(ops: Ops, unseen: NDArray[np.bool_], codes: Codes, folds: Folds) -> NDArray[np.bool_]:
    """Look up whether the category of each row is unseen."""
    flags = ops.empty((len(codes), 1), np.float64)
    ops.gather(unseen[..., None].astype(np.float64), codes, folds, flags)
    unseen_rows: NDArray[np.bool_] = flags[:, 0] != 0
    return unseen_rows
