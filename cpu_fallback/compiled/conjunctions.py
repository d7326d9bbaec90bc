"""The gain of a conjunction for an additive model: sums by category and fold, and from these the gain of each view.

All numbers that are summed are whole, as in the array expressions of `gpu_encode.study.tuning.steps`, the definition.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array, codes_of, counting, freeze, inlined, kernel, separate, set_all, stage
from cpu_fallback.compiled.sums import add_tables, tables
from cpu_fallback.compiled.threads import run, shares
from cpu_fallback.memory import empty

# Smallest work of a thread, in categories times views.
SMALLEST_SHARE = 1 << 15
UNIT, UNIT_OF_SCORE, GRID, GRID_OF_SPREAD, GRID_OF_GAIN, LONGEST = range(6)
GAIN, SPREAD, FREEDOM, TOTAL = range(4)
# With at least ROWS_PER_PAIR rows for each possible pair, every pair gets sums.  If at least the share MOSTLY of the
# pairs is in several folds, all pairs are kept, since a selection would cost more.
ROWS_PER_PAIR = 4
MOSTLY = 0.75
# Marks of a pair: 0 without rows; WEIGHTLESS; fold + FIRST_FOLD with weight in one fold; SHARED with weight in several.
WEIGHTLESS, FIRST_FOLD, SHARED = 1, 2, -1


@inlined
def join_mark(before: int, mark: int) -> int:
    """Join two marks of one pair."""
    if 0 <= before <= WEIGHTLESS:
        return mark if mark != 0 else before
    return before if mark == before or 0 <= mark <= WEIGHTLESS else SHARED


@inlined
def pair_of(left: Array, right: Array, n_right: int, row: np.uint64) -> int:
    """Give the pair left * n_right + right of a row, or left if there is no right; below 0 without a category."""
    code = np.int64(left[row])
    if len(right):
        code = code * n_right + right[row] if code >= 0 and right[row] >= 0 else np.int64(-1)
    return code  # type: ignore[return-value]


@kernel
def mark_pairs(
    left: Array, right: Array, n_right: int, folds: Array, information: Array, start: int, stop: int, marks: Array
) -> None:
    """Mark the pairs of the rows [start, stop) by their folds."""
    set_all(marks, 0)
    for row in range(start, stop):
        i = np.uint64(row)
        code = pair_of(left, right, n_right, i)
        if code >= 0:
            mark = folds[i] + FIRST_FOLD if not len(information) or information[i] > 0 else WEIGHTLESS
            marks[np.uint64(code)] = join_mark(marks[np.uint64(code)], mark)


@kernel
def join_marks(marks: Array, other: Array, start: int, stop: int) -> None:
    """Join another thread's marks."""
    for pair in range(start, stop):
        marks[pair] = join_mark(marks[pair], other[pair])


@kernel
def number_shared(marks: Array, n_right: int, lefts: Array, rights: Array) -> tuple[int, int]:
    """Replace marks of shared pairs by numbers, other marks by -1; count the shared pairs, and the pairs with rows."""
    count, occupied, pair = np.int64(0), np.int64(0), np.uint64(0)
    for left in range(len(marks) // n_right):
        for right in range(n_right):
            mark = marks[pair]
            occupied += np.int64(mark != 0)
            marks[pair] = count if mark == SHARED else -1
            lefts[count], rights[count] = left, right
            count += np.int64(mark == SHARED)
            pair += np.uint64(1)
    return count, occupied  # type: ignore[return-value]


@kernel
def sum_pairs(
    left: Array,
    right: Array,
    n_right: int,
    folds: Array,
    response: Array,
    information: Array,
    numbers: Array,
    n_cells: int,
    start: int,
    stop: int,
    own: Array,
    weightless: Array,
) -> None:
    """Sum h and h * z of the rows [start, stop) by fold and pair, and mark pairs without weight.

    If there are `numbers`, they replace the pairs; pairs whose number is below 0 are left out.
    """
    set_all(own, 0)
    set_all(weightless, 0)
    for row in range(start, stop):
        i = np.uint64(row)
        cell = pair_of(left, right, n_right, i)
        if len(numbers) and cell >= 0:
            cell = np.int64(numbers[np.uint64(cell)])
        if cell >= 0:
            at = np.uint64(2 * (folds[i] * n_cells + cell))
            weight = information[i] if len(information) else np.int64(1)
            own[at] += weight
            own[at + np.uint64(1)] += weight * response[i]
            if weight == 0 and len(weightless):
                weightless[np.uint64(cell)] = WEIGHTLESS


@kernel
def mark_sums(own: Array, n_folds: int, marks: Array) -> None:
    """Mark each pair by the folds in which it has weight, and set the sums of pairs that are not shared to 0."""
    length = np.uint64(2 * len(marks))
    for cell in range(len(marks)):
        at, weighty = np.uint64(2 * cell), np.int64(0)
        for _ in range(n_folds):
            weighty += np.int64(own[at] > 0)
            at += length
        if weighty > 1:
            marks[cell] = SHARED
        elif weighty:
            marks[cell], at = FIRST_FOLD, np.uint64(2 * cell)
            for _ in range(n_folds):
                own[at], own[at + np.uint64(1)] = 0, 0
                at += length


class Pairs:
    """Rows by pair, in the form that kernels take.

    Parameters
    ----------
    codes, sizes, folds, n_folds, response, information
        As in `conjunction_sums`.
    """

    def __init__(
        self,
        codes: tuple[Array, Array | None],
        sizes: tuple[int, int],
        folds: Array,
        n_folds: int,
        response: Array,
        information: Array | None,
    ) -> None:
        self.sizes, self.size, self.n_rows, self.n_folds = sizes, sizes[0] * sizes[1], len(folds), n_folds
        self.given = codes_of(codes[0]), codes_of(codes[1]), sizes[1], codes_of(folds)
        self.response = freeze(response, np.int64)
        self.weight = freeze(np.zeros(0, np.int64) if information is None else information, np.int64)

    def mark(self) -> Array:
        """Mark every pair by the folds of its rows."""
        parts = shares(self.n_rows, tables(self.size, self.n_rows))
        marks = [empty(self.size, np.int32) for _ in parts]
        run(lambda share: mark_pairs(*self.given, self.weight, *parts[share], marks[share]), len(parts))
        return joined(marks)

    def number(self, marks: Array) -> tuple[int, tuple[Array, Array]]:
        """Replace marks by numbers of the shared pairs; count the pairs with rows, and give the shared pairs' codes."""
        room = min(self.size, self.n_rows // 2) + 1
        left, right = empty(room, np.int32), empty(room, np.int32)
        count, occupied = number_shared(marks, self.sizes[1], left, right)
        return occupied, (left[:count], right[:count])

    def sum(self, numbers: Array, n_cells: int, n_marks: int) -> tuple[Array, Array]:
        """Sum rows by the numbers of their pairs; mark pairs without weight if there is room for marks."""
        fixed = *self.given, self.response, self.weight, freeze(numbers, np.int32), n_cells
        length = 2 * n_cells * self.n_folds
        parts = shares(self.n_rows, tables(max(length, 1), self.n_rows))
        own, marks = [empty(length, np.int64) for _ in parts], [empty(n_marks, np.int32) for _ in parts]
        run(lambda share: sum_pairs(*fixed, *parts[share], own[share], marks[share]), len(parts))
        return add_tables(own).reshape(self.n_folds, n_cells, 2), joined(marks)

    def sum_all(self) -> tuple[int, tuple[Array, Array], Array]:
        """Sum rows by pair, and keep the shared pairs; if most are shared, keep all, with sums of 0 for the others."""
        own, marks = self.sum(np.zeros(0, np.int32), self.size, self.size)
        mark_sums(own.reshape(-1), self.n_folds, marks)
        occupied, pairs = self.number(marks)
        if len(pairs[0]) > MOSTLY * self.size:
            return occupied, tuple(np.indices(self.sizes, np.int32).reshape(2, -1)), own  # type: ignore[return-value]
        return occupied, pairs, own.take(pairs[0].astype(np.int64) * self.sizes[1] + pairs[1], axis=1)


def joined(marks: list[Array]) -> Array:
    """Join the marks of all threads into the first thread's."""
    ranges = shares(len(marks[0]))
    for other in marks[1:]:
        run(lambda share, other=other: join_marks(marks[0], other, *ranges[share]), len(ranges))  # type: ignore[misc]
    return marks[0]


def conjunction_sums(
    codes: tuple[Array, Array | None],
    sizes: tuple[int, int],
    folds: Array,
    n_folds: int,
    response: Array,
    information: Array | None,
    /,
) -> tuple[int, tuple[Array, Array], Array]:
    """Give the number of pairs with rows, the shared pairs, and their sums; see `gpu_encode.seam.ops.FusedOps`."""
    every = Pairs(codes, sizes, folds, n_folds, response, information)
    if ROWS_PER_PAIR * every.size <= every.n_rows:
        return every.sum_all()
    occupied, pairs = every.number(marks := every.mark())
    return occupied, pairs, every.sum(marks, len(pairs[0]), 0)[0]


@stage
def see_cells(
    own: Array, totals: Array, hidden: Array, on_grid: bool, numbers: Array, weight: Array, score: Array
) -> None:
    """Write W and S of every category in one view; round S to its grid if `on_grid`."""
    unit, length = numbers[UNIT], np.uint64(len(totals))
    scale = numbers[UNIT_OF_SCORE] * (numbers[GRID] if on_grid else 1.0)
    at = np.uint64(0)
    for cell in range(len(weight)):
        seen, moved = totals[at], totals[at + np.uint64(1)]
        for fold in hidden:
            source = np.uint64(fold) * length + at
            seen -= own[source]
            moved -= own[source + np.uint64(1)]
        weight[cell] = seen * unit
        score[cell] = np.rint(moved * scale) if on_grid else moved * scale
        at += np.uint64(2)


@stage
def sum_margins(categories: Array, weight: Array, score: Array, margins: Array, totals: Array) -> None:
    """Sum W and S by the categories of one column; neighbours are added first."""
    last, more, moved = np.uint64(categories[0]), 0.0, 0.0
    for cell in range(len(categories)):
        category = np.uint64(categories[cell])
        if category != last:
            margins[last] += more
            totals[last] += moved
            last, more, moved = category, 0.0, 0.0
        more += weight[cell]
        moved += score[cell]
    margins[last] += more
    totals[last] += moved


@stage
def explain(at: Array, means: Array, explained: Array) -> None:
    """Write the part of every category that the columns together explain, for each unit of W."""
    for part in range(len(at)):
        categories = at[part]
        if part:
            for cell in range(len(explained)):
                explained[cell] += means[np.uint64(categories[cell])]
        else:
            for cell in range(len(explained)):
                explained[cell] = means[np.uint64(categories[cell])]


@stage
def subtract_explained(categories: Array, weight: Array, explained: Array, left: Array) -> None:
    """Subtract the explained part of every category from the sums of one column."""
    last, more = np.uint64(categories[0]), 0.0
    for cell in range(len(categories)):
        category = np.uint64(categories[cell])
        if category != last:
            left[last] -= more
            last, more = category, 0.0
        more += np.rint(explained[cell] * weight[cell])
    left[last] -= more


@counting
def fit_margins(
    at: Array, first: Array, weight: Array, score: Array, margins: Array, means: Array, explained: Array
) -> None:
    """Sum W, and let each column explain the rest that columns before it leave; all but the last have two turns."""
    n_parts, totals = len(at), np.zeros(len(means))
    for part in range(n_parts):
        sum_margins(at[part], weight, score, margins, totals)
    left = totals.copy()
    for turn in range(2 * n_parts - 1):
        part = turn % n_parts
        begin, end = first[part], first[part + 1]
        for i in range(begin, end):
            left[i] = totals[i]
        if turn:
            # Columns that have not had their turn explain nothing yet.
            explain(at[: min(turn, n_parts)], means, explained)
            subtract_explained(at[part], weight, explained, left)
        for i in range(begin, end):
            means[i] += left[i] / (margins[i] if margins[i] > 0 else 1.0)
    explain(at, means, explained)


@stage
def spread_of(n_parts: int, weight: Array, explained: Array, numbers: Array, score: Array, found: Array) -> None:
    """Subtract from S the part that columns explain; write the spread, the number of categories and the sum of W."""
    unit, grid, fine = numbers[UNIT], 1.0 / numbers[GRID], numbers[GRID_OF_SPREAD]
    spread, present, total = 0.0, 0.0, 0.0
    for cell in range(len(weight)):
        seen = weight[cell]
        left = (score[cell] - np.rint(explained[cell] * seen)) * grid if n_parts else score[cell]
        score[cell] = left
        spread += np.rint(left * left / max(seen, unit) * fine)
        present += 1.0 if seen > 0 else 0.0
        total += seen
    found[SPREAD], found[FREEDOM], found[TOTAL] = spread * (1.0 / fine), present, total


@stage
def variance_of(n_parts: int, margins: Array, found: Array) -> float:
    """Subtract the columns' own degrees of freedom, and estimate the variance between categories by moments."""
    if n_parts:
        found[FREEDOM] += n_parts - 1.0
        for margin in margins:
            found[FREEDOM] -= 1.0 if margin > 0 else 0.0
    known = found[TOTAL] > 0 and found[FREEDOM] > 0
    return max(found[SPREAD] - found[FREEDOM], 0.0) / found[TOTAL] if known else 0.0


@separate
def gain_of(
    own: Array, weight: Array, score: Array, variance: float, ridge: float, numbers: Array, steps: Array
) -> float:
    """Give the gain of a view's steps for the rows of its own fold, and write the steps if there is room for them."""
    unit, unit_of_score = -0.5 * numbers[UNIT], numbers[UNIT_OF_SCORE]
    fine, longest = numbers[GRID_OF_GAIN], numbers[LONGEST]
    gain, at = 0.0, np.uint64(0)
    for cell in range(len(weight)):
        seen = weight[cell]
        if ridge < 0:
            step = score[cell] * variance / (seen * variance + 1.0)
        else:
            step = score[cell] / (seen + ridge if seen + ridge > 0 else 1.0) if seen > 0 else 0.0
        step = min(max(step, -longest), longest)
        rise = (step * (own[at] * unit) + own[at + np.uint64(1)] * unit_of_score) * step
        gain += np.rint(rise * fine)
        at += np.uint64(2)
        if len(steps):
            steps[cell] = step
    return gain * (1.0 / fine)


class ViewRoom(NamedTuple):
    """Room for one view: W, S and the explained part of every category, and W and means of the columns' categories."""

    weight: Array
    score: Array
    explained: Array
    margins: Array
    means: Array


@separate
def see_view(
    own: Array, totals: Array, hidden: Array, at: Array, first: Array, numbers: Array, room: ViewRoom, found: Array
) -> float:
    """Write W of one view, and the part of S that no column explains; give the variance between categories."""
    weight, score, explained, margins, means = room
    n_parts = len(at)
    see_cells(own, totals, hidden, n_parts > 0, numbers, weight, score)
    set_all(margins, 0.0)
    set_all(means, 0.0)
    if n_parts:
        fit_margins(at, first, weight, score, margins, means, explained)
    spread_of(n_parts, weight, explained, numbers, score, found)
    return variance_of(n_parts, margins, found)


@counting
def room_for_view(n_cells: int, n_parts: int, n_levels: int) -> ViewRoom:
    """Give room for one view."""
    explained = np.empty(n_cells if n_parts else 0)
    return ViewRoom(np.empty(n_cells), np.empty(n_cells), explained, np.empty(n_levels), np.empty(n_levels))


@kernel
def gains_of_views(
    own: Array,
    totals: Array,
    hidden: Array,
    n_hidden: Array,
    at: Array,
    first: Array,
    ridge: float,
    numbers: Array,
    first_view: int,
    stop: int,
    found: Array,
    steps: Array,
) -> None:
    """Write gain, spread, freedom and sum of W of the views [first_view, stop), and the steps if there is room."""
    n_cells = len(totals) // 2
    room = room_for_view(n_cells, len(at), first[len(first) - 1])
    for view in range(first_view, stop):
        variance = see_view(own, totals, hidden[view, : n_hidden[view]], at, first, numbers, room, found[view])
        if ridge >= 0 or variance > 0:
            begin, end = n_cells * view, n_cells * (view + 1)
            of_fold = own[2 * begin : 2 * end]
            found[view][GAIN] = gain_of(of_fold, room.weight, room.score, variance, ridge, numbers, steps[begin:end])


def conjunction_gains(
    own: Array, visibility: Array, parts: Sequence[Array], ridge: float, numbers: Sequence[float], steps: Array, /
) -> Array:
    """Give gain, spread, freedom and sum of W of every view (views, 4); see `gpu_encode.seam.ops.FusedOps`."""
    n_views, n_cells = len(visibility), own.shape[1]
    found = np.zeros((n_views, 4))
    if not n_cells:
        return found
    at, first = np.empty((len(parts), n_cells), np.int32), np.zeros(len(parts) + 1, np.int64)
    for number, part in enumerate(parts):
        np.add(part, first[number], out=at[number], casting="unsafe")
        first[number + 1] = int(at[number].max()) + 1
    fixed = (
        freeze(own, np.int64).reshape(-1),
        freeze(own.sum(axis=0), np.int64).reshape(-1),
        freeze(np.argsort(visibility, axis=1, kind="stable"), np.int64),
        freeze((visibility == 0).sum(axis=1), np.int64),
        at,
        first,
        float(ridge),
        freeze(np.asarray(numbers), np.float64),
    )
    ranges = shares(n_views, smallest=max(1, SMALLEST_SHARE // n_cells))
    run(lambda share: gains_of_views(*fixed, *ranges[share], found, steps.reshape(-1)), len(ranges))
    return found
