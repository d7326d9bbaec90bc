"""The way through an order: segments of places whose rows share a prior, and the sums of all rows before them."""

from typing import NamedTuple

import numpy as np

from cpu_fallback.blending import CHECKPOINT_BITS
from cpu_fallback.compiled.border import Array, frozen, kernel

# Where the segment at hand ends, where its last tie begins, and where the sums behind its prior end.
END, PIVOT, BACK = 0, 1, 2


class Course(NamedTuple):
    """An order, and how far one has come.

    `starts` is empty where no two rows are tied.  `totals` are the sums of all rows so far, `held` those at the pivot.
    """

    n_rows: int
    burned: int
    ties: Array
    starts: Array
    state: Array
    totals: Array
    held: Array


def course_of(ties: tuple[Array, Array] | None, n_rows: int, burn_in: int, length: int) -> Course:
    """Begin an order; rows that are all of different times are no ties."""
    places, starts, burned = np.zeros(0, np.int64), np.zeros(0, np.int64), min(burn_in, n_rows)
    if ties is not None and not (ties[0][1:] > ties[0][:-1]).all():
        places, starts = ties
        # The rows of one time burn in together.
        burned = int(np.append(starts[starts >= burned], n_rows).min())
    zeros = [np.zeros(size, np.int64) for size in (3, length, length)]
    return Course(n_rows, burned, frozen(places, np.int64), frozen(starts, np.int64), *zeros)


@kernel
def checkpoint(place: int) -> tuple[int, int]:
    """Place with all but its top nine bits cleared, and how far the next such place lies from there."""
    extra = 0
    while place >> (CHECKPOINT_BITS + extra):
        extra += 1
    return (place >> extra) << extra, 1 << extra


@kernel
def enter(course: Course, at: int) -> bool:
    """Begin the segment at `at`; gives whether its prior is of the sums held instead of those so far."""
    floor, step = checkpoint(at)
    if not len(course.starts):
        course.state[END] = course.state[PIVOT] = min(floor + step, course.n_rows)
        return False
    if floor == at:
        course.state[BACK] = at
    elif floor >= course.state[PIVOT]:
        course.state[BACK] = course.state[PIVOT]
    back = course.state[BACK]
    # While the prior would be taken before all rows, it is taken at the begin of each tie.
    after = floor + step if back else at + 1
    end = course.n_rows
    if after < end:
        tie = course.ties[after]
        begin = course.starts[tie]
        if begin == after:
            end = begin
        elif tie + 1 < len(course.starts):
            end = course.starts[tie + 1]
    course.state[END] = end
    course.state[PIVOT] = course.starts[course.ties[end - 1]]
    return 0 < back < at


@kernel
def leg(course: Course, at: int, stop: int) -> int:
    """Give where rows from `at` on are to pause: at the segment's end, or at its pivot."""
    pivot = course.state[PIVOT]
    end = min(stop, course.state[END])
    return min(end, pivot) if at < pivot else end


@kernel
def pause(course: Course, at: int) -> None:
    """Hold the sums so far where the last tie of the segment begins."""
    if len(course.starts) and at == course.state[PIVOT]:
        course.held[:] = course.totals
