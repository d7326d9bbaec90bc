"""How every message says how many rows are meant, and where the first of them is."""

from typing import Any

from numpy.typing import NDArray


def first_of(rows: NDArray[Any], what: str, where: str = "") -> str:
    """Say how many rows there are, and which is the first; `where` says more of the place of the first.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode.errors.rows import first_of
    >>> first_of(np.array([4, 7]), "negative weights")
    '2 negative weights, the first in row 4'
    """
    return f"{len(rows)} {what}, the first in row {int(rows[0])}{where}"
