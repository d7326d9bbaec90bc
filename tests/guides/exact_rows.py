"""Rows whose sums, means and shrunk means are exact in floats, so that two formulas must agree to the bit."""

import numpy as np
import pandas as pd

# Halves of 105: its shares by 3, 4, 5, 7, 12, 15 and 28 end after a few binary digits, and no kind of label fits.
UNIT = 52.5
FOLDS = 4
SMOOTH_OF_FITTED = 4
SMOOTH_OF_TRAINED = 1


def fitted_rows(seed=0):
    """Categories of 4, 12 and 28 rows: with `SMOOTH_OF_FITTED`, all rows of each weigh a power of two."""
    rng = np.random.default_rng(seed)
    return describe(rng.permutation(np.repeat(np.arange(8), [12, 28, *(6 * [4])])), rng)


def trained_rows(seed=0):
    """Categories of 20, 4 and 1 rows, each evenly over four interleaved folds.

    With `SMOOTH_OF_TRAINED`, the rows of each that another fold sees weigh a power of two.  The categories of one row
    are seen by no row of their own.
    """
    rng = np.random.default_rng(seed)
    categories = np.empty(64, int)
    for fold in range(FOLDS):
        alone = [6 + 2 * fold, 7 + 2 * fold]
        categories[fold::FOLDS] = rng.permutation([*(5 * [0]), *(5 * [1]), 2, 3, 4, 5, *alone])
    return describe(categories, rng)


def describe(categories, rng):
    """Frame with the category as one column of text and as a pair of columns, and a target beside it."""
    frame = pd.DataFrame(
        {
            "shop": [f"shop {category}" for category in categories],
            "street": [f"street {category // 3}" for category in categories],
            "number": categories % 3,
        }
    )
    target = UNIT * rng.integers(-8, 9, len(frame))
    target[0] = UNIT
    return frame, target
