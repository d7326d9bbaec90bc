"""Training codes of rows drawn by Hypothesis, and the statistics that several files ask for."""

import math
import warnings
from collections import Counter

import numpy as np

from gpu_encode import Greedy, KFold, LeaveOneOut, Ordered
from tests.laws import encoding

STATISTICS = ["count", "sum", "mean", "var", "std", "sem"]
ORDERS = ["min", "max", "median", ("quantile", 0.3), ("quantile", 0.75), "nunique", "mode", ("share", 0.0)]
# Schemes, and whether one row sees another.
SEEN = {
    "folds": (lambda: KFold(3, order="interleaved"), lambda row, other: row % 3 != other % 3),
    "leave-one-out": (LeaveOneOut, lambda row, other: row != other),
    "ordered, in rows": (lambda: Ordered(shuffle=False), lambda row, other: other < row),
    "greedy": (Greedy, lambda row, other: True),
}


def quietly(function, *arguments, **named):
    """Call a function, without the warnings of this library."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return function(*arguments, **named)


def weights_of(drawn):
    """Give the weight of each row."""
    return [1] * drawn.size if drawn.weight is None else drawn.weight.tolist()


def training_encodings(made, drawn, scheme, **choices):
    """Encode the column of keys by a named scheme."""
    encoder = made(cv=encoding.SCHEMES[scheme], columns=["key"], **choices)
    codes = quietly(encoder.fit_transform, encoding.framed(drawn.keys), drawn.target, sample_weight=drawn.weight)
    # The group and time columns are passed through, after the encoded ones.
    return np.asarray(codes, dtype=np.float64)[:, :-2]


def describe(values, chosen):
    """Give order statistics of a list of values by their definitions; quantiles are NumPy's."""
    # Of the two zeros that a float has, this keeps one.
    values = sorted(value + 0.0 for value in values)
    times = Counter(values)
    known = {"count": float(len(values)), "nunique": float(len(times))}
    if not values:
        return [known.get(each, math.nan) for each in chosen]
    mode = min(value for value, number in times.items() if number == max(times.values()))
    known |= {"min": values[0], "max": values[-1], "mode": mode}
    for each in chosen:
        if each == "median" or each[0] == "quantile":
            with np.errstate(over="ignore", invalid="ignore"):
                known[each] = float(np.quantile(values, 0.5 if each == "median" else each[1]))
        elif each[0] == "share":
            known[each] = sum(value > each[1] for value in values) / len(values)
    return [known[each] for each in chosen]
