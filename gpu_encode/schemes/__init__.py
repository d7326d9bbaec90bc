"""Which rows a row may look at.

Every class is a small parameter object; `plan` turns it into fold numbers and a visibility matrix, or an order.  For
every scheme but `Greedy`, changing a row's target never changes that row's own training code.
"""

from gpu_encode.schemes.base import Scheme
from gpu_encode.schemes.folds import Greedy, GroupKFold, Holdout, KFold, TimeFolds
from gpu_encode.schemes.given import FoldNumbers, Splits, resolve
from gpu_encode.schemes.orders import LeaveOneOut, Ordered

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
    "resolve",
]
