"""Risks that make even encodings without a leak dangerous: in columns, and in rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.types import Array
from gpu_encode.formulas.auc import roc_auc_score
from gpu_encode.study.leaks.trials import RowTargets
from gpu_encode.tables.frames import Frame
from gpu_encode.tables.frames.columns import is_temporal

# From this share of rows on, rows whose value no other row has are reported.
MANY_ALONE = 0.5
# Among rows whose value occurs more than once: from this share on, a common target of all rows of a value is no
# accident.
SHARED = 0.95
# Areas under the ROC curve of the row number from which the target, or a column, counts as sorted.
SORTED = 0.95
# Only columns with at least this number of values can count as times because of their order.
FEWEST_TIMES = 20


def risks_of_rows(targets: RowTargets) -> list[str]:
    """Say whether rows are sorted by the target."""
    if order_by(targets.present, targets) < SORTED:
        return []
    told = "The rows are sorted by the target, so encodings by earlier rows, or by contiguous folds, tell it."
    return [f"{told} Shuffle the rows, or take Ordered() or KFold(), which draw their orders."]


def order_by(numbers: Array, targets: RowTargets) -> float:
    """Give the largest ROC AUC of numbers, in either direction and for any class, over rows that have a target."""
    labels = targets.labels[targets.present]
    areas = [float(roc_auc_score(labels == label, numbers)) for label in np.unique(labels)]
    return max(max(area, 1 - area) for area in areas)


def risks_of_key(codes: NDArray[np.int64], targets: RowTargets, frame: Frame, members: tuple[int, ...]) -> list[str]:
    """Say what is dangerous about the values of a column or joint key.

    Parameters
    ----------
    codes : int64 array (rows,)
        Categories, in the order of their values.
    targets : RowTargets
    frame : Frame
    members : tuple of int
        Columns of the key.
    """
    sizes = np.bincount(codes)
    alone = float((sizes[codes] == 1).mean())
    risks = []
    if len(sizes) == 1:
        risks.append("It has only one value: leave-one-out then gives just two encodings, one for each class.")
    elif alone == 1:
        risks.append("All its values are distinct: new rows have other values, about which training rows say nothing.")
    elif alone >= MANY_ALONE:
        risks.append(f"{alone:.0%} of the rows have a value that no other row has, and so will new rows.")
    if len(members) == 1 and is_time(codes, frame, members[0]):
        risks.append("It is a time, or rises with the rows: new rows come later, with values that no training row has.")
    if shares_targets(codes, sizes, targets):
        risks.append(
            "Rows of one value share their target: they may be the same case several times. Give groups to GroupKFold."
        )
    return risks


def is_time(codes: NDArray[np.int64], frame: Frame, position: int) -> bool:
    """Whether a column holds dates, or its values rise with the rows."""
    column: Any = frame.column(position)
    if is_temporal(column):
        return True
    n_values, n_rows = int(codes.max()) + 1, len(codes)
    if n_values < FEWEST_TIMES:
        return False
    later = np.arange(n_rows) >= n_rows // 2
    return bool((np.diff(codes) >= 0).all()) or float(roc_auc_score(later, codes)) > 1 - (1 - SORTED) / 10


def shares_targets(codes: NDArray[np.int64], sizes: NDArray[np.int64], targets: RowTargets) -> bool:
    """Whether nearly all rows of a value have the same label, while labels differ between values."""
    rows = targets.present[sizes[codes[targets.present]] > 1]
    if len(rows) < len(targets.present) / 4 or len(np.unique(codes[rows])) < FEWEST_TIMES:
        return False
    n_labels = len(targets.classes)
    table = np.bincount(codes[rows] * n_labels + targets.labels[rows], minlength=len(sizes) * n_labels)
    of_label = table.reshape(-1, n_labels)
    pure = of_label.sum(axis=1) == of_label.max(axis=1)
    common = of_label.sum(axis=0).max() / len(rows)
    # The number of pairs with equal labels if labels were drawn at random.
    return bool(of_label[pure].sum() / len(rows) >= SHARED and common < (1 + SHARED) / 2)
