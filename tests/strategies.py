"""Rows that Hypothesis draws: few rows, few categories, and numbers that break sums; and the number of examples."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

KEYS = ("a", "b", "c", "d", "e")
LARGEST = 1e150
PITFALLS = (0.0, 1.0, -1.0, 0.1, 1 / 3, 1e-300, -1e-300, 5e-324, LARGEST, -LARGEST, 1e16, 2.0**53 + 2, 1e-17)
KINDS = ("binary", "continuous", "multiclass")


def examples(count: int) -> settings:
    """Draw `count` examples where the run's profile draws a hundred."""
    return settings(max_examples=count * settings.default.max_examples // 100)


@dataclass
class Drawn:
    """A column of keys, a target, and weights or None."""

    keys: np.ndarray[Any, Any]
    target: np.ndarray[Any, Any]
    weight: np.ndarray[Any, Any] | None
    kind: str

    @property
    def size(self) -> int:
        return len(self.keys)

    @property
    def frame(self) -> np.ndarray[Any, Any]:
        return self.keys.reshape(-1, 1)


def finite_numbers(largest: float = LARGEST) -> st.SearchStrategy[float]:
    return st.one_of(
        st.integers(-3, 3).map(float),
        st.sampled_from([number for number in PITFALLS if abs(number) <= largest]),
        st.floats(-largest, largest, allow_subnormal=True),
        st.floats(-100, 100),
    )


def numbers(size: int, largest: float = LARGEST) -> st.SearchStrategy[list[float]]:
    """Draw targets: all equal, few distinct values, or any."""
    one = finite_numbers(largest)
    few = st.lists(one, min_size=1, max_size=4).flatmap(
        lambda pool: st.lists(st.sampled_from(pool), min_size=size, max_size=size)
    )
    return st.one_of(few, st.lists(one, min_size=size, max_size=size))


def labels(size: int, classes: int, each: int = 1) -> st.SearchStrategy[list[int]]:
    """Draw class labels 0 .. classes - 1, with every class at least ``each`` times."""
    certain = list(range(classes)) * each
    rest = st.lists(st.integers(0, classes - 1), min_size=size - len(certain), max_size=size - len(certain))
    return rest.flatmap(lambda drawn: st.permutations(certain + drawn))


def weights(size: int) -> st.SearchStrategy[list[float] | None]:
    """Draw no weights, whole weights or fractions; some may be zero, but not all.

    Fractions sum to more than one row, since sample variances are refused otherwise.
    """
    whole = st.lists(st.integers(0, 4).map(float), min_size=size, max_size=size)
    parts = st.one_of(st.sampled_from((0.0, 0.1, 0.5, 1.0, 7.25)), st.floats(0.001, 10))
    real = st.lists(parts, min_size=size, max_size=size)
    return st.one_of(st.none(), whole.filter(any), real.filter(lambda drawn: sum(drawn) > 1.01))


@st.composite
def drawn_rows(
    draw: st.DrawFn,
    kind: str,
    size: int | None = None,
    smallest: int = 4,
    largest_size: int = 24,
    nulls: bool = False,
    weighted: bool = True,
    each: int = 1,
) -> Drawn:
    """Draw a keyed target of one kind."""
    classes = {"binary": 2, "multiclass": 3, "continuous": 0}[kind]
    count = size or draw(st.integers(max(smallest, classes * each), largest_size))
    pool = (*KEYS[: draw(st.integers(1, len(KEYS)))], *((None,) if nulls else ()))
    keys = np.array(draw(st.lists(st.sampled_from(pool), min_size=count, max_size=count)), dtype=object)
    target = np.array(draw(numbers(count) if kind == "continuous" else labels(count, classes, each)))
    weight = draw(weights(count)) if weighted else None
    return Drawn(keys, target, None if weight is None else np.array(weight), kind)


def fold_numbers(size: int, largest: int = 4) -> st.SearchStrategy[list[int]]:
    """Draw a fold number for each row, with at least two folds in use."""
    return st.lists(st.integers(0, largest), min_size=size, max_size=size).filter(lambda folds: len(set(folds)) > 1)
