"""Encodings of rows that Hypothesis draws, the rows that a scheme shows, and order statistics by their definitions."""

import math
import warnings
from collections import Counter

import numpy as np

from gpu_encode import Greedy, KFold, LeaveOneOut, Ordered
from tests.bits import assert_same_bits
from tests.family.members import N
from tests.laws import encoding

STATISTICS = ["count", "sum", "mean", "var", "std", "sem"]
ORDERS = ["min", "max", "median", ("quantile", 0.3), ("quantile", 0.75), "nunique", "mode", ("share", 0.0)]
ROW = np.arange(N)
# Overlapping training rows of three test sets, of different sizes.
SPLITS = [(ROW[part != ROW % 3][part:], ROW[part == ROW % 3]) for part in (0, 1)]
SPLITS.append((np.append(ROW[ROW % 3 == 1], 2), ROW[ROW % 3 == 2]))
# Schemes for N rows, each with a function: does one row see another?
SEEN = {
    "folds": (KFold(3, order="interleaved"), lambda row, other: row % 3 != other % 3),
    "greedy": (Greedy(), lambda row, other: True),
    "splits": (SPLITS, lambda row, other: other in SPLITS[row % 3][0]),
    "leave-one-out": (LeaveOneOut(), lambda row, other: row != other),
    "ordered": (Ordered(shuffle=False), lambda row, other: other < row),
}
# Schemes that give each row its own sums, which no table of all categories can hold.
ROW_BY_ROW = ("leave-one-out", "ordered")


def quietly(function, *arguments, **named):
    """Call a function, without the warnings of this library."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return function(*arguments, **named)


def check_rows_in_sight(make, y, X, scheme, weights=None):
    """Demand that training encodings equal those of an encoder fitted to only the rows that each row sees."""
    cv, sees = SEEN[scheme]
    training = quietly(make().set_params(cv=cv).fit_transform, X, y, sample_weight=weights)
    fitted = {}
    # After enough rows to have every class; where each row has a fit of its own, some of them.
    for row in range(30, N, 7 if scheme in ROW_BY_ROW else 1):
        visible = np.array([sees(row, other) for other in ROW])
        if visible.tobytes() not in fitted:
            given = {"sample_weight": None if weights is None else weights[visible]}
            encoder = make().set_params(cv=Greedy()).fit(X[visible], None if y is None else y[visible], **given)
            fitted[visible.tobytes()] = encoder.transform(X)
        assert_same_bits(
            *(
                table[encoder.get_feature_names_out()].iloc[[row]].select_dtypes("number")
                for table in (training, fitted[visible.tobytes()])
            )
        )


def weights_of(drawn):
    """Return the weight of each row."""
    return [1] * drawn.size if drawn.weight is None else drawn.weight.tolist()


def training_encodings(made, drawn, scheme, **choices):
    """Encode the column of keys by a named scheme."""
    encoder = made(cv=encoding.SCHEMES[scheme], columns=["key"], **choices)
    encodings = quietly(encoder.fit_transform, encoding.key_frame(drawn.keys), drawn.target, sample_weight=drawn.weight)
    # The group and time columns are passed through, after the encoded ones.
    return np.asarray(encodings, dtype=np.float64)[:, :-2]


def describe(values, statistics):
    """Return order statistics of a list of values by their definitions; quantiles are NumPy's."""
    # Of a float's two zeros, this keeps one.
    values = sorted(value + 0.0 for value in values)
    times = Counter(values)
    numbers = {"count": float(len(values)), "nunique": float(len(times))}
    if not values:
        return [numbers.get(statistic, math.nan) for statistic in statistics]
    mode = min(value for value, number in times.items() if number == max(times.values()))
    numbers |= {"min": values[0], "max": values[-1], "mode": mode}
    for statistic in statistics:
        if statistic == "median" or statistic[0] == "quantile":
            with np.errstate(over="ignore", invalid="ignore"):
                numbers[statistic] = float(np.quantile(values, 0.5 if statistic == "median" else statistic[1]))
        elif statistic[0] == "share":
            numbers[statistic] = sum(value > statistic[1] for value in values) / len(values)
    return [numbers[statistic] for statistic in statistics]
