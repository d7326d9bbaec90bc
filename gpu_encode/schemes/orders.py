"""Schemes in which no two rows see the same rows: a row sees all other rows, or the rows before it."""

from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.row_numbers import Order, Permutation, RowOrder
from gpu_encode.schemes.ages import check_spans, folds_by_age, times_seen
from gpu_encode.schemes.plans import (
    ByTime,
    FoldPlan,
    LeaveOneOutPlan,
    OrderedPlan,
    Request,
    Scheme,
    check_random_state,
    seed_of,
    starts_of,
)
from gpu_encode.tables.categories.vocabulary import Vocabulary
from gpu_encode.words.annotations import Column, Seed
from gpu_encode.words.errors.parameters import MOST_COLUMNS, bad_parameter, check_count, check_number, check_option

# An "auto" block has one more row for every ROWS_OF_BLOCK rows of the table, but at most MOST_IN_BLOCK.
ROWS_OF_BLOCK, MOST_IN_BLOCK = 1000, 256
# Cycle walking may try as many ranks as a block has until it finds one in the last block, which may have one row.
LONGEST_BLOCK = 4096
# The number of an order has 32 bits.
MOST_ORDERS = 2**32 - 1


class LeaveOneOut(Scheme):
    """Every row sees all rows but itself.

    A row's own target never changes its encoding, and yet this scheme misleads a learner: within a category, rows with
    a higher target have a lower encoding, so even for a constant feature one threshold separates the classes.  Prefer
    `KFold` or `Ordered`.

    Examples
    --------
    >>> from gpu_encode import LeaveOneOut, TargetEncoder
    >>> TargetEncoder(cv=LeaveOneOut(), smooth=None).fit_transform([["a"]] * 3, [1.0, 2.5, 6.0]).ravel().tolist()
    [4.25, 3.5, 1.75]
    """

    needs_row_numbers = False

    def plan(self, request: Request) -> LeaveOneOutPlan:  # noqa: ARG002
        """Give the plan, which is the same for all rows."""
        return LeaveOneOutPlan()


@dataclass(eq=False, repr=False)
class Ordered(Scheme):
    """Every row sees the rows before it: in a random order, in time or as they stand (CatBoost's ordered statistics).

    The prior of a row is the mean of the rows before it, up to a checkpoint: the row's rank with all but its top nine
    bits cleared.  So at most 1/256 of the rows before it are missing from the prior.  For the first row of a random
    order, the prior is the mean of all other rows.

    Parameters
    ----------
    n_permutations : int, default=1
        Number of random orders.
    time : str or int, optional
        Column of X to order by, instead of random permutations.  Rows of equal time do not see each other; rows of the
        first time get NaN.
    average : bool, default=True
        True gives the average over the permutations.  False gives a column for each permutation.
    burn_in : int or float, default=0
        The first rows of each order (a count, or a share below 1) get NaN.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the orders.
    shuffle : bool, default=True
        False takes the rows in the order of X (CatBoost's `has_time`): there is no permutation, and the first row,
        which sees nothing, gets NaN.
    block : int or "auto", default=1
        Consecutive rows that stay together in a random order (CatBoost's `fold_permutation_block`): the blocks come in
        a random order, and the rows of each block too.  With 256, five million rows take a third to three quarters of
        the time that they take with 1.  At most 4,096.  "auto" is near CatBoost's choice: 1 + rows / 1,000, at most
        256, rounded down to a power of two.
    half_life : number, timedelta or str, optional
        With `time`: time in which the weight of a row halves, as in `TimeFolds`.  For a training row, the ages of
        earlier rows are counted back from its own time; for new rows, from the last time of training.
    window : number, timedelta or str, optional
        With `time`: a row sees only rows that are at most so much older; new rows see rows that are at most so much
        older than the last time of training.

    Notes
    -----
    The notes of `TimeFolds` define ages.  With `half_life` or `window`, the prior of a row is the mean of exactly the
    rows that it sees.  Rows that see no rows get NaN.

    Use blocks only if the rows of X are in no particular order.  Of any two rows, each still comes first equally often,
    but neighbours stay together: the first rows of a category see few rows, and most of these are then their
    neighbours.  If neighbours have similar targets, they reveal a row's own target.  A table of 95,000 hotel bookings,
    sorted by hotel and outcome, loses 0.001 to 0.002 of the area under the curve with blocks of 16, 0.003 to 0.006 with
    64 (its "auto"), and 0.013 to 0.017 with 1,024; the same rows in no order lose nothing.

    References
    ----------
    Prokhorenkova et al. (2018), section 3.2.

    Examples
    --------
    >>> from gpu_encode import Ordered, TargetEncoder
    >>> X, y = [[0, 2021], [0, 2022], [0, 2023], [0, 2024]], [1.0, 2.5, 6.0, 4.5]
    >>> TargetEncoder(cv=Ordered(time=1, burn_in=1), smooth=None).fit_transform(X, y).ravel().tolist()
    [nan, 1.0, 1.75, 3.1666666666666665]
    >>> as_they_stand = TargetEncoder(columns=[0], cv=Ordered(shuffle=False, burn_in=1), smooth=None)
    >>> as_they_stand.fit_transform(X, y)[:, 0].tolist()
    [nan, 1.0, 1.75, 3.1666666666666665]
    >>> halving = TargetEncoder(cv=Ordered(time=1, burn_in=1, half_life=1), smooth=None)
    >>> halving.fit_transform(X, y).ravel().tolist()
    [nan, 1.0, 2.0, 4.285714285714286]
    >>> last_two_years = TargetEncoder(cv=Ordered(time=1, burn_in=1, window=2), smooth=None)
    >>> last_two_years.fit_transform(X, y).ravel().tolist()
    [nan, 1.0, 1.75, 4.25]
    """

    parameters_before = MappingProxyType({"block": 1, "half_life": None, "window": None})

    n_permutations: int = 1
    _: KW_ONLY
    time: Column | None = None
    average: bool = True
    burn_in: float = 0
    random_state: Seed = 0
    shuffle: bool = True
    block: int | Literal["auto"] = 1
    half_life: float | timedelta | np.timedelta64 | str | None = None
    window: float | timedelta | np.timedelta64 | str | None = None

    @property
    def n_repeats(self) -> int:  # type: ignore[override]
        """Number of columns that repeat each output: one for each order that is not averaged."""
        return 1 if self.average else int(self.n_permutations)

    @property
    def by_age(self) -> bool:
        """Whether rows count by their age, for new rows too."""
        return self.half_life is not None or self.window is not None

    @property
    def needs_row_numbers(self) -> bool:
        """Whether the rows that a row sees depend on its number among all rows, rather than on its values."""
        return self.time is None

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        check_count("Ordered", "n_permutations", self.n_permutations, low=1, high=MOST_COLUMNS)
        check_option("Ordered", "average", self.average, (True, False))
        check_option("Ordered", "shuffle", self.shuffle, (True, False))
        check_random_state(self.random_state)
        check_count("Ordered", "block", self.block, low=1, high=LONGEST_BLOCK, word="auto")
        check_number("Ordered", "burn_in", self.burn_in, low=0.0)
        if (not isinstance(self.burn_in, Integral) and self.burn_in >= 1) or not isinstance(self.burn_in, Real):
            raise bad_parameter("Ordered", "burn_in", self.burn_in, "must be an integer or a share below 1")
        if self.block != 1 and (self.time is not None or not self.shuffle):
            raise ValueError(f"block={self.block} is for random orders. Leave it out with time or shuffle=False.")
        if self.time is not None and self.n_permutations != 1:
            raise ValueError("Ordered(time=...) has one order: leave n_permutations at 1.")
        if not self.shuffle and (self.time is not None or self.n_permutations != 1):
            raise ValueError(
                "Ordered(shuffle=False) has one order, that of the rows: leave n_permutations at 1, and leave time out."
            )

        check_spans("Ordered", self.half_life, self.window)
        if self.by_age and self.time is None:
            given = "half_life" if self.window is None else "window"
            raise ValueError(f"Ordered({given}=...) asks for the ages of rows. Name the column of their times: time=.")

    def reads(self) -> list[tuple[Any, str]]:
        """Give the time column, if there is one."""
        return [] if self.time is None else [(self.time, "time")]

    def plan(self, request: Request) -> OrderedPlan:
        """Give the orders, and the rank from which rows get encodings."""
        n = request.n_rows
        burn_in = self.rows_left_out(n)
        if self.time is not None:
            by_time = ByTime(self.time, "time", starts_of(request.counts["time"]))
            ages = self.plan_ages(request.values["time"]) if self.by_age else (None, None)
            return OrderedPlan([], True, burn_in, by_time, *ages)
        if not self.shuffle:
            return OrderedPlan([RowOrder()], True, burn_in)
        orders: list[Order] = [self.order(number, n) for number in range(self.n_permutations)]
        return OrderedPlan(orders, self.average, burn_in)

    def plan_ages(self, times: Vocabulary) -> tuple[NDArray[np.int64], FoldPlan]:
        """Give for each time the number of the first time that it sees, and the plan for new rows."""
        firsts, steps = times_seen("Ordered", self.half_life, self.window, times)
        none = np.zeros(0, np.int64)
        return firsts, folds_by_age(self.time, firsts, steps, none, none)

    def rows_left_out(self, n_rows: int) -> int:
        """Give the number of rows at the beginning of each order that get NaN."""
        return int(self.burn_in) if isinstance(self.burn_in, Integral) else int(self.burn_in * n_rows)

    def order(self, number: int, n_rows: int) -> Permutation:
        """Give one of the random orders of `n_rows` rows; `number` counts from 0, and may be n_permutations or more."""
        block = block_of(n_rows) if self.block == "auto" else max(1, min(int(self.block), n_rows))
        return Permutation(n_rows, seed_of(self.random_state, "Ordered", number), block)

    def draw(self, number: Any, n_rows: int) -> OrderedPlan:
        """Give the plan of one random order, by its number.

        Raises
        ------
        ValueError
            If no order has this number, if there is only one order, or if each call would get another order.
        """
        check_count("draw", "t", number, low=0, high=MOST_ORDERS)
        if self.time is not None or not self.shuffle:
            raise ValueError(
                "draw gives one random order by its number, but Ordered(time=...) and Ordered(shuffle=False) have a "
                "single order, which is not random. Take cv=Ordered(), or call fit_transform."
            )
        if not isinstance(self.random_state, Integral):
            raise ValueError(
                "draw has to give the same order for the same t, which takes an integer as random_state. Got "
                f"random_state={self.random_state!r} instead."
            )
        return OrderedPlan([self.order(int(number), n_rows)], True, self.rows_left_out(n_rows))


def block_of(n_rows: int) -> int:
    """Give the number of rows that a random order keeps together: CatBoost's choice, rounded down to a power of two."""
    return 1 << min(MOST_IN_BLOCK, 1 + n_rows // ROWS_OF_BLOCK).bit_length() - 1
