"""Numbers that other libraries publish, with the rows that they belong to."""

from collections.abc import Sequence
from typing import Any

import numpy as np

# scikit-learn 1.9.1, docstring data of TargetEncoder; encodings in the order cat, dog, snake.
SCIKIT_LEARN_CODES = [
    ("auto", [20.15001694, 82.58705994, 43.15381172]),
    (0.0, [20.15, 82.65, 43.14736842]),
    (1.0, [20.92855572, 80.82310606, 43.17654429]),
    (5000.0, [44.1412796, 44.43807497, 44.27664477]),
]

# category_encoders 2.11.2, its own tests.
TREND = ["UP", "UP", "DOWN", "FLAT", "DOWN", "UP", "DOWN", "FLAT", "FLAT", "FLAT"]
TREND_TARGET = [1, 1, 0, 0, 1, 0, 0, 0, 1, 1]
TREND_CODES = {"UP": 0.5874, "DOWN": 0.4125, "FLAT": 0.5}
COMPASS = ["N", "N", "NE", "NE", "NE", "SE", "SE", *"SSSSWWWWW"]
COMPASS_PARENTS = {"N": "N", "NE": "N", "S": "S", "SE": "S", "W": "W"}
COMPASS_TARGET = [1, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1]
COMPASS_CODES = {"N": 0.6226, "NE": 0.9038, "SE": 0.1766, "S": 0.4605, "W": 0.4033}


# pyvtreat's own test of its pooled estimate, of the rows aaabbc, 1 to 6.
VTREAT_CODES = {"a": 2.161608, "b": 4.362170, "c": 5.342105}


def scikit_learn_rows() -> tuple[list[str], list[float]]:
    """Return keys and target of scikit-learn's docstring example."""
    keys = ["dog"] * 20 + ["cat"] * 30 + ["snake"] * 38
    target = [90.3] * 5 + [80.1] * 15 + [20.4] * 5 + [20.1] * 25 + [21.2] * 8 + [49.0] * 30
    return keys, target


def vtreat_codes(keys: Sequence[Any], target: Sequence[float]) -> dict[Any, float]:
    """Return vtreat's pooled estimate of each category, not centred."""
    all_keys, all_values = np.asarray(keys), np.asarray(target, dtype=float)
    groups = {key: all_values[all_keys == key] for key in dict.fromkeys(all_keys.tolist())}
    between = np.var([values.mean() for values in groups.values()], ddof=1)
    encodings = {}
    for key, values in groups.items():
        own = values.var(ddof=1) if len(values) > 1 else 0.0
        within = (len(values) * own + all_values.var()) / (len(values) + 1)
        share = 1 / (1 + within / (len(values) * between))
        encodings[key] = share * values.mean() + (1 - share) * all_values.mean()
    return encodings
