"""Which rows a row may look at.

Every class is a small parameter object; `plan` turns it into fold numbers and a visibility matrix, or an order.  For
every scheme but `Greedy`, changing a row's target never changes that row's own training encoding.
"""

from gpu_encode.schemes.folds import FoldNumbers, Greedy, GroupKFold, Holdout, KFold, Splits, TimeFolds, naming, resolve
from gpu_encode.schemes.orders import LeaveOneOut, Ordered
from gpu_encode.schemes.plans import Scheme

__all__ = [
    "FoldNumbers",
    "Greedy",
    "GroupKFold",
    "Holdout",
    "KFold",
    "LeaveOneOut",
    "Ordered",
    "Scheme",
    "Splits",
    "TimeFolds",
    "naming",
    "resolve",
]
