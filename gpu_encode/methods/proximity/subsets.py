"""Subsets of features, their weights, and the strength of a row's vote, which depends on where it agrees."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from cpu_fallback.exact import Floats, Integers
from gpu_encode.words.errors.parameters import bad_parameter, check_number

# With up to this number of features all patterns of agreement are counted; with more, only patterns that occur.
DENSE = 14
# Bits of a pattern, which is an int64.
MOST_FEATURES = 62
# Each round of the tuning tries each subset.
MOST_SUBSETS = 1 << 16

Subset = tuple[int, ...]


def list_subsets(n_features: int, order: int) -> list[Subset]:
    """List all subsets of up to `order` features, the empty one first, then by size.

    Examples
    --------
    >>> from gpu_encode.methods.proximity.subsets import list_subsets
    >>> list_subsets(3, 2)
    [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    """
    return [subset for size in range(min(order, n_features) + 1) for subset in combinations(range(n_features), size)]


def masks_of(subsets: Sequence[Subset]) -> Integers:
    """Give each subset as a number, in which bit i is set if the subset has feature i."""
    return np.array([sum(1 << feature for feature in subset) for subset in subsets], np.int64)


def read_weights(owner: str, weights: Any, subsets: Sequence[Subset], names: Sequence[str], negative: bool) -> Floats:
    """Read the weight of each subset; subsets that a mapping does not name have weight 0.

    Parameters
    ----------
    owner : str
    weights : mapping or array
    subsets : list of tuple of int
    names : list of str
        Names of the features.
    negative : bool
        Whether weights below zero are allowed.
    """
    if isinstance(weights, Mapping):
        given = np.zeros(len(subsets))
        for key, value in weights.items():
            given[find_subset(owner, key, subsets, names)] = as_weight(owner, f"weights[{key!r}]", value, negative)
        return given
    if isinstance(weights, str) or np.ndim(weights) != 1 or len(weights) != len(subsets):
        law = f'must be "tune", a dict, or one number for each of the {len(subsets)} subsets'
        raise bad_parameter(owner, "weights", weights, law)
    return np.array([as_weight(owner, "weights", value, negative) for value in weights], np.float64)


def as_weight(owner: str, name: str, value: Any, negative: bool) -> float:
    """Check one weight."""
    check_number(owner, name, value, low=-math.inf if negative else 0.0)
    return float(value)


def find_subset(owner: str, key: Any, subsets: Sequence[Subset], names: Sequence[str]) -> int:
    """Find the subset that a key of `weights` names: a feature, or a tuple of features, by name or number."""
    members = key if isinstance(key, tuple) else (key,)
    known = {name: number for number, name in enumerate(names)} | {number: number for number in range(len(names))}
    numbers = [known.get(member, -1) for member in members]
    wanted = tuple(sorted(numbers))
    if wanted not in subsets:
        law = (
            f"must name subsets of up to {max(map(len, subsets))} of the features {list(names)}, by a name or a tuple "
            "of names"
        )
        raise bad_parameter(owner, "weights", key, law)
    return subsets.index(wanted)


def raise_to_degree(agreed: Floats, degree: float, any_scale: bool) -> Floats:
    """Give the strength of votes: summed weights of subsets in which rows agree, to the power of a degree.

    Parameters
    ----------
    agreed : float64 array
    degree : float
    any_scale : bool
        Whether all strengths may be multiplied by a common factor, so that none is too large.
    """
    if degree == 1.0:
        return agreed
    distinct, numbers = np.unique(agreed, return_inverse=True)
    if any_scale:
        # Multiplying by a power of two rounds nothing.
        distinct = np.ldexp(distinct, -int(np.frexp(np.abs(distinct).max(initial=0.0))[1]))
    # NumPy's powers differ between processors.
    return np.array([math.pow(value, degree) for value in distinct.tolist()], np.float64)[numbers]


def add_subsets(patterns: Integers, masks: Integers, weights: Floats, n_features: int) -> Floats:
    """Add up the weights of all subsets of each pattern."""
    if n_features > DENSE:
        total = np.zeros(len(patterns))
        for mask, weight in zip(masks.tolist(), weights.tolist(), strict=True):
            if weight:
                total += np.where((patterns & mask) == mask, weight, 0.0)
        return total
    sums = np.zeros(1 << n_features)
    sums[masks] = weights
    for feature in range(n_features):
        halves = sums.reshape(-1, 2, 1 << feature)
        halves[:, 1] += halves[:, 0]
    return sums[patterns]
