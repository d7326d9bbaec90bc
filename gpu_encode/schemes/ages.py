"""Half-lives and windows in the units of a column of times: ages of its distinct values, in whole numbers."""

import datetime
import re
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.decay import STEPS_OF_BLOCK, blocks_of
from gpu_encode.schemes.plans import Ageing, ByValue, FoldPlan
from gpu_encode.tables.categories.values import TEMPORAL, UNITS
from gpu_encode.tables.categories.vocabulary import Vocabulary
from gpu_encode.words.errors.parameters import bad_parameter

# Seconds of each unit.
SECONDS = {
    "w": Fraction(604_800),
    "d": Fraction(86_400),
    "h": Fraction(3600),
    "min": Fraction(60),
    **{unit: Fraction(1, 10**power) for unit, power in UNITS.items()},
}
# Units for which NumPy has other names.
OF_NUMPY = {"W": "w", "D": "d", "m": "min"}
SPAN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(w|d|h|min|s|ms|us|ns)\s*", re.ASCII)
EIGHTHS = 8
# Steps up to this one, and their sums, stay far inside of int64.
MOST_STEPS = 1 << 60


def check_span(owner: str, name: str, value: Any) -> None:
    """Raise ValueError unless a half-life or window is None, a number above 0, a timedelta, or a text such as "7d"."""
    span = None if value is None else seconds_of(value)
    if span is None and value is not None:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else np.nan
        span = Fraction(number if np.isfinite(number) else 0.0)
    if span is not None and span <= 0:
        law = 'must be None, a finite number above 0, a timedelta above 0, or a text such as "7d" (w, d, h, min, s)'
        raise bad_parameter(owner, name, value, law)


def check_spans(owner: str, half_life: Any, window: Any) -> None:
    """Raise ValueError for a half-life or a window that is not valid, or if both are given."""
    check_span(owner, "half_life", half_life)
    check_span(owner, "window", window)
    if half_life is not None and window is not None:
        raise ValueError(f"{owner} takes half_life or window, not both: weights that halve need no end. Leave one out.")


def seconds_of(value: Any) -> Fraction | None:
    """Give the seconds of a timedelta of Python, NumPy or pandas, or of a text; None for anything else."""
    if isinstance(value, str):
        found = SPAN.fullmatch(value)
        return None if found is None else Fraction(found[1]) * SECONDS[found[2]]
    ticks = getattr(value, "asm8", value)
    if isinstance(ticks, np.timedelta64):
        unit = np.datetime_data(ticks)[0]
        seconds = SECONDS.get(OF_NUMPY.get(unit, unit))
        if np.isnat(ticks) or seconds is None:
            return Fraction(0)
        one: Any = np.ones((), f"m8[{unit}]")[()]
        return int(ticks // one) * seconds
    if isinstance(value, datetime.timedelta):
        return Fraction(value // datetime.timedelta(microseconds=1), 10**6)
    return None


def text_of_span(value: Any) -> Any:
    """Write a timedelta as the text that gives the same span; give anything else back.

    Examples
    --------
    >>> text_of_span(np.timedelta64(36, "h")), text_of_span(datetime.timedelta(14)), text_of_span("7d")
    ('36h', '2w', '7d')
    """
    seconds = None if isinstance(value, str) else seconds_of(value)
    if not seconds:
        return value
    unit = next((unit for unit, size in SECONDS.items() if (seconds / size).denominator == 1), None)
    return value if unit is None else f"{seconds / SECONDS[unit]}{unit}"


def in_ticks(owner: str, name: str, value: Any, times: Vocabulary) -> Fraction:
    """Give a half-life or window in the units in which times are kept.

    Raises
    ------
    ValueError
        If a number is given for dates, or a timedelta for numbers; or if times cannot be subtracted.
    """
    seconds, temporal = seconds_of(value), times.kind in TEMPORAL
    if times.kind != "number" and not temporal:
        parse = "Parse it first: pandas.to_datetime(column), or str.to_datetime(...) of polars."
        raise ValueError(
            f"{name}={value!r} of {owner} needs times that can be subtracted, and the time column holds "
            f"{times.values.title}. {parse if times.kind == 'text' else 'Give a column of dates or numbers.'}"
        )
    if temporal != (seconds is not None):
        held, instead = ("numbers", "a number") if not temporal else ("dates or times", 'a timedelta or a text as "7d"')
        raise ValueError(
            f"{name}={value!r} of {owner} does not fit the time column, which holds {held}. Give {instead}."
        )
    if seconds is None:
        return Fraction(int(value) if isinstance(value, Integral) else float(value))
    return seconds * Fraction(10 ** UNITS[times.values.unit or "s"])


def numbers_of(times: Vocabulary) -> NDArray[Any]:
    """Give times as int64, or as float64 if int64 does not hold them."""
    array = times.values.array
    if array.dtype.kind in "biu" and (array.dtype.kind != "u" or not len(array) or int(array[-1]) < 1 << 63):
        return array.astype(np.int64)
    return array.astype(np.float64)


def steps_of(owner: str, half_life: Any, times: Vocabulary) -> NDArray[np.int64]:
    """Give the step of each time: the number of eighths of a half-life since 0 (for dates, since 1970), rounded down.

    The step is exact for whole numbers, dates and times; floats are divided in floating point.
    """
    span, numbers = in_ticks(owner, "half_life", half_life, times), numbers_of(times)
    if numbers.dtype.kind == "f":
        steps = np.floor(numbers / float(span / EIGHTHS))
    else:
        # Products that could overflow are computed with Python's integers.
        factor, divisor = EIGHTHS * span.denominator, span.numerator
        ends = [abs(int(number)) for number in (*numbers[:1], *numbers[-1:])]
        # If all times are 0, the factor has to fit on its own.
        if max(1, *ends) * factor < 1 << 62 and divisor < 1 << 62:
            steps = numbers * factor // divisor
        elif span.denominator == 1 and divisor < 1 << 59:
            steps = EIGHTHS * (numbers // divisor) + EIGHTHS * (numbers % divisor) // divisor
        else:
            steps = numbers.astype(object) * factor // divisor
    if len(steps) and max(abs(steps[0]), abs(steps[-1])) > MOST_STEPS:
        raise ValueError(f"half_life={half_life!r} of {owner} is too small for the times, which end at {numbers[-1]}.")
    return steps.astype(np.int64)


def firsts_within(owner: str, window: Any, times: Vocabulary) -> NDArray[np.int64]:
    """Give for each time the number of the first time that is at most `window` earlier."""
    span, numbers = in_ticks(owner, "window", window, times), numbers_of(times)
    if numbers.dtype.kind == "f":
        starts = numbers - float(span)
    else:
        ticks = min(span.numerator // span.denominator, 1 << 62)
        if len(numbers) and int(numbers[-1]) - int(numbers[0]) == len(numbers) - 1:
            # Times without gaps, such as row numbers or days, need no search.
            return np.maximum(np.arange(-ticks, len(numbers) - ticks), 0)
        starts = np.maximum(numbers, np.iinfo(np.int64).min + ticks) - ticks
    # Both arrays are sorted, and merging them takes less time than a search for each element.
    merged = np.argsort(np.concatenate([starts, numbers]), kind="stable")
    return np.flatnonzero(merged < len(starts)) - np.arange(len(starts))


def times_seen(
    owner: str, half_life: Any, window: Any, times: Vocabulary
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Give for each time the number of the first time that it sees and, if there is a half-life, its step.

    A period counts as the time at which it begins.
    """
    if times.kind == "period":
        times, _ = Vocabulary.from_values([period.to_timestamp() for period in times.to_numpy()], "time")
    if half_life is None:
        return firsts_within(owner, window, times), None
    steps = steps_of(owner, half_life, times)
    return first_of_blocks(steps, blocks_of(steps) - 1), steps


def folds_by_age(
    column: Any,
    firsts: NDArray[np.int64],
    steps: NDArray[np.int64] | None,
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> FoldPlan:
    """Cut times into folds, so that the rows that a view sees begin and end with a fold.

    Parameters
    ----------
    column : str or int
        The column of the times.
    firsts, steps
        As `times_seen` gives them.
    begins, ends : int64 array (views,)
        `begins` has the number of the first time of each view; from it, the view's rows count the ages of other rows.
        `ends` has the number of the first time that they no longer see.  A view ends where the next begins; rows before
        the first view see all rows until the last time, as new rows do.
    """
    n_times = len(firsts)
    now, ends = np.append(begins, n_times - 1), np.append(ends, n_times)
    inner = begins[:0] if steps is None else first_of_blocks(steps, blocks_of(steps[now]))
    cuts = np.unique(np.concatenate([begins, ends, firsts[now], inner, [0]]))
    cuts = cuts[cuts < n_times]
    piece_of = np.repeat(np.arange(len(cuts), dtype=np.int32), np.diff(cuts, append=n_times))
    seen = ((cuts >= firsts[now][:, None]) & (cuts < ends[:, None])).astype(np.int64)
    views = np.searchsorted(begins, cuts, side="right") - 1
    ageing = None
    if steps is not None:
        ageing = Ageing("time", steps, np.stack([blocks_of(steps[cuts]), steps[now][views]], axis=1))
    rule = ByValue(column, "time", piece_of)
    return FoldPlan(None, len(cuts), seen[views], seen[-1:], fold_rule=rule, ageing=ageing)


def first_of_blocks(steps: NDArray[np.int64], blocks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the number of the first time in each block; if a block has no times, of the first time after it."""
    # Neighbouring blocks are mostly the same one.
    begins = np.flatnonzero(np.diff(blocks, prepend=blocks[:1] - 1))
    return np.repeat(np.searchsorted(steps, blocks[begins] * STEPS_OF_BLOCK), np.diff(begins, append=len(blocks)))
