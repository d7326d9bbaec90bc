"""Numbers that other libraries publish, and the rows from which they were computed."""

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

# vtreat 1.3.1: what NumericOutcomeTreatment's transform gives after fit_transform, of all columns, recommended or not.
VTREAT_PARTS = [
    {
        "x": list("aaabbc"),
        "y": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "new": ["a", "b", "c", "z"],
        "impact_code": [-1.3383915022761759, 0.8621700879765397, 1.8421052631578947, 0.0],
        "deviation_code": [1.000499875062461, 0.7078135347674556, 0.8666025617317317, 0.0],
        "prevalence_code": [1 / 2, 1 / 3, 1 / 6, 0.0],
    },
    {
        "x": [*"aaabbcd", None, None],
        "y": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 1.0, 4.0],
        "new": ["a", "b", "c", "d", "z", None],
        "impact_code": [-1.7386844360881466, 0.538969984369619, 1.571754444817175, 3.8053002348205305, 0.0, 0.0],
        "deviation_code": [
            1.000499875062461,
            0.7078135347674556,
            1.4145670715805596,
            1.4145670715805596,
            0.0,
            2.121556032726923,
        ],
        "prevalence_code": [3 / 9, 2 / 9, 1 / 9, 1 / 9, 0.0, 2 / 9],
    },
]
# The same of BinomialOutcomeTreatment: rows, target, and the logit_code of each category.
VTREAT_LOGIT = (
    list("aaabbcd"),
    [1, 0, 1, 1, 1, 0, 1],
    {"a": -0.04694939493869428, "b": 0.2974474877901258, "c": -1.1531421395664574, "d": 0.24195952295724316},
)


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
