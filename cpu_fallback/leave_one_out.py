"""Leave-one-out: what each row sees is its category without itself."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.sums import row_digits

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Layout, Rows


def leave_one_out(accumulators: "Array", rows: "Rows", layout: "Layout", /) -> NDArray[np.int64]:
    """Category sums (categories + 2, n_classes, width) less the row itself: (rows, n_classes, width) digits."""
    seen = accumulators[rows.codes]
    own = row_digits(rows, layout)
    seen[np.arange(len(own)), 0 if rows.classes is None else rows.classes] -= own
    return seen
