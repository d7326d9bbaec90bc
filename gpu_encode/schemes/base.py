"""What all schemes share: the class, seeds, checks."""

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from cpu_fallback.row_numbers import key_of
from gpu_encode.errors.parameters import check_count
from gpu_encode.frames import Frame, Pieces
from gpu_encode.schemes.plans import Plan, Request

PURPOSES = {"KFold": 1, "Stratified": 2, "GroupKFold": 3, "Holdout": 4, "Ordered": 16}


def seed_of(random_state: Any, purpose: str, number: int = 0) -> int:
    """64-bit key of a user's `random_state`: an int, None (fresh entropy), or a NumPy generator (one draw)."""
    check_random_state(random_state)
    if random_state is None:
        random_state = int(np.random.default_rng().integers(1 << 62))
    elif isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(0, 2**31 - 1))
    elif isinstance(random_state, np.random.Generator):
        random_state = int(random_state.integers(1 << 62))
    return key_of(int(random_state), PURPOSES[purpose] + number)


def check_random_state(random_state: Any) -> None:
    """Raise ValueError unless `random_state` is an int, None or a NumPy generator."""
    allowed = (Integral, np.random.RandomState, np.random.Generator)
    if random_state is not None and (isinstance(random_state, bool) or not isinstance(random_state, allowed)):
        raise ValueError(f"random_state must be an integer, None or a NumPy generator. Got {random_state!r} instead.")


def check_splits(owner: str, n_splits: Any, n_rows: int, noun: str = "samples") -> None:
    """Raise ValueError unless there are at least two splits and as many rows."""
    check_count(owner, "n_splits", n_splits, low=2)
    if n_splits > n_rows:
        raise ValueError(
            f"Cannot have number of splits n_splits={n_splits} greater than the number of {noun}: n_{noun}={n_rows}. "
            f"Take fewer splits in {owner}, or more {noun}."
        )


class Scheme(BaseEstimator):
    """Base of all schemes."""

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""

    def reads(self) -> list[tuple[Any, str]]:
        """Columns whose values the scheme asks for, and as what; None is the groups given beside X."""
        return []

    @property
    def reads_classes(self) -> bool:
        """Whether a row's fold depends on its class."""
        return False

    def used_columns(self) -> list[Any]:
        """Columns of X that the scheme reads, which are never encoded."""
        return [column for column, _ in self.reads() if column is not None and not isinstance(column, (Frame, Pieces))]

    def plan(self, request: Request) -> Plan:
        """Decide who looks at whom."""
        raise NotImplementedError
