"""What a conjunction adds to an additive model, from its sums: all views at once, one category after the other.

Every number that is summed is whole, as in the array expressions of `gpu_encode.tuning.stages`, the definition.
"""

from collections.abc import Sequence

import numpy as np

from cpu_fallback.compiled.border import Array, codes_of, counting, freeze, kernel, stage
from cpu_fallback.compiled.threads import run, shares

# Categories times views that are worth a thread of their own.
SMALLEST_SHARE = 1 << 15
UNIT, UNIT_OF_SCORE, GRID, GRID_OF_SPREAD, GRID_OF_GAIN, LONGEST = range(6)


@stage
def keep_shared(sums: Array, n_folds: int, levels: Array, first: Array, n_views: int, kept: Array, at: Array) -> int:
    """Write the categories with rows in several folds, and where numbers of their columns' begin; gives how many."""
    count, place = np.int64(0), np.uint64(0)
    for cell in range(levels.shape[1]):
        folds = np.int64(0)
        for _ in range(n_folds):
            folds += np.int64(sums[place] > 0)
            place += np.uint64(2)
        kept[count] = cell
        for part in range(len(levels)):
            at[part, count] = (first[part] + levels[part, cell]) * n_views
        count += np.int64(folds > 1)
    return count  # type: ignore[return-value]


@stage
def see_cells(
    sums: Array, kept: Array, hidden: Array, visibility: Array, numbers: Array, weight: Array, score: Array
) -> None:
    """Write W, and S on its grid, of every category that is kept and every view."""
    n_folds, n_views, place = visibility.shape[1], len(hidden), np.uint64(0)
    unit, scale = numbers[UNIT], numbers[UNIT_OF_SCORE] * numbers[GRID]
    for cell in range(len(kept)):
        begin = np.uint64(2 * n_folds * kept[cell])
        total, moment, source = np.int64(0), np.int64(0), begin
        for _ in range(n_folds):
            total += sums[source]
            moment += sums[source + np.uint64(1)]
            source += np.uint64(2)
        for view in range(n_views):
            seen, moved = total, moment
            if hidden[view] >= 0:
                source = begin + np.uint64(2 * hidden[view])
                seen -= sums[source]
                moved -= sums[source + np.uint64(1)]
            else:
                for fold in range(n_folds):
                    source = begin + np.uint64(2 * fold)
                    seen -= np.int64(0) if visibility[view, fold] else sums[source]
                    moved -= np.int64(0) if visibility[view, fold] else sums[source + np.uint64(1)]
            weight[place] = seen * unit
            score[place] = np.rint(moved * scale)
            place += np.uint64(1)


@stage
def sum_margins(at: Array, n_views: int, weight: Array, score: Array, margins: Array, totals: Array) -> None:
    """Sum W and S by the categories of every column."""
    for part in range(len(at)):
        place, places = np.uint64(0), at[part]
        for cell in range(len(places)):
            target = np.uint64(places[cell])
            for _ in range(n_views):
                margins[target] += weight[place]
                totals[target] += score[place]
                place += np.uint64(1)
                target += np.uint64(1)


@stage
def subtract_explained(
    at: Array, part: int, n_views: int, weight: Array, means: Array, explained: Array, left: Array
) -> None:
    """Take what the columns explain of every category away from the sums of one column."""
    place = np.uint64(0)
    for cell in range(at.shape[1]):
        for other in range(len(at)):
            source = np.uint64(at[other, cell])
            for view in range(n_views):
                explained[view] = explained[view] + means[source] if other else means[source]
                source += np.uint64(1)
        target = np.uint64(at[part, cell])
        for view in range(n_views):
            left[target] -= np.rint(explained[view] * weight[place])
            target += np.uint64(1)
            place += np.uint64(1)


@stage
def spread_of(
    at: Array, n_views: int, numbers: Array, weight: Array, score: Array, means: Array, explained: Array, found: Array
) -> None:
    """Leave in S what no column explains; add the spread, the number of categories and the sum of W of each view."""
    place, unit, grid, fine = np.uint64(0), numbers[UNIT], 1.0 / numbers[GRID], numbers[GRID_OF_SPREAD]
    for cell in range(at.shape[1]):
        for part in range(len(at)):
            source = np.uint64(at[part, cell])
            for view in range(n_views):
                explained[view] = explained[view] + means[source] if part else means[source]
                source += np.uint64(1)
        for view in range(n_views):
            seen = weight[place]
            left = (score[place] - np.rint(explained[view] * seen)) * grid
            score[place] = left
            found[view, 1] += np.rint(left * left / max(seen, unit) * fine)
            found[view, 2] += 1.0 if seen > 0 else 0.0
            found[view, 3] += seen
            place += np.uint64(1)


@stage
def gain_of(
    sums: Array,
    kept: Array,
    n_folds: int,
    first_view: int,
    weight: Array,
    score: Array,
    variances: Array,
    ridge: float,
    numbers: Array,
    found: Array,
) -> None:
    """Add what the steps of each view are worth to the rows of its own fold."""
    place, n_views = np.uint64(0), len(variances)
    unit, unit_of_score = -0.5 * numbers[UNIT], numbers[UNIT_OF_SCORE]
    fine, longest = numbers[GRID_OF_GAIN], numbers[LONGEST]
    for cell in range(len(kept)):
        own = np.uint64(2 * (n_folds * kept[cell] + first_view))
        for view in range(n_views):
            seen, variance = weight[place], variances[view]
            if ridge < 0:
                step = score[place] * variance / (seen * variance + 1.0)
            else:
                step = score[place] / (seen + ridge if seen + ridge > 0 else 1.0) if seen > 0 else 0.0
            step = min(max(step, -longest), longest)
            rise = (step * (sums[own] * unit) + sums[own + np.uint64(1)] * unit_of_score) * step
            found[view, 0] += np.rint(rise * fine)
            place += np.uint64(1)
            own += np.uint64(2)


@stage
def variances_of(first: Array, margins: Array, found: Array, variances: Array) -> None:
    """Take the columns' own freedom away, and estimate the variance between categories by moments, in each view."""
    n_views = len(variances)
    for view in range(n_views):
        freedom = found[view, 2] + len(first) - 1.0
        for place in range(view, len(margins), n_views):
            freedom -= 1.0 if margins[place] > 0 else 0.0
        found[view, 2] = freedom
        known = found[view, 3] > 0 and freedom > 0
        variances[view] = max(found[view, 1] - freedom, 0.0) / found[view, 3] if known else 0.0


@counting
def fit_margins(
    at: Array, first: Array, n_views: int, weight: Array, score: Array, margins: Array, means: Array
) -> None:
    """Sum W, and let each column explain what those before it leave over: all but the last twice."""
    n_parts, totals, explained = len(first), np.zeros(len(means)), np.empty(n_views)
    sum_margins(at, n_views, weight, score, margins, totals)
    left = totals.copy()
    for turn in range(2 * n_parts - 1):
        part = turn % n_parts
        begin = first[part] * n_views
        end = first[part + 1] * n_views if part + 1 < n_parts else len(totals)
        left[begin:end] = totals[begin:end]
        if turn:
            subtract_explained(at, part, n_views, weight, means, explained, left)
        for i in range(begin, end):
            means[i] += left[i] / (margins[i] if margins[i] > 0 else 1.0)


@kernel
def gains_of_views(
    sums: Array,
    hidden: Array,
    visibility: Array,
    levels: Array,
    first: Array,
    n_levels: int,
    ridge: float,
    numbers: Array,
    first_view: int,
    stop: int,
    found: Array,
) -> None:
    """Write gain, spread, freedom and sum of W of the views [first_view, stop)."""
    n_parts, n_folds, n_views = len(first), visibility.shape[1], stop - first_view
    kept, places = np.empty(levels.shape[1] + 1, np.int64), np.empty((n_parts, levels.shape[1] + 1), np.int64)
    count = keep_shared(sums, n_folds, levels, first, n_views, kept, places)
    kept, at = kept[:count], places[:, :count]
    weight, score, explained = np.empty(count * n_views), np.empty(count * n_views), np.empty(n_views)
    see_cells(sums, kept, hidden[first_view:stop], visibility[first_view:stop], numbers, weight, score)
    margins, means = np.zeros(n_levels * n_views), np.zeros(n_levels * n_views)
    fit_margins(at, first, n_views, weight, score, margins, means)
    own, variances = found[first_view:stop], np.zeros(n_views)
    spread_of(at, n_views, numbers, weight, score, means, explained, own)
    for view in range(n_views):
        own[view, 1] *= 1.0 / numbers[GRID_OF_SPREAD]
    variances_of(first, margins, own, variances)
    gain_of(sums, kept, n_folds, first_view, weight, score, variances, ridge, numbers, own)
    for view in range(n_views):
        own[view, 0] *= 1.0 / numbers[GRID_OF_GAIN]


def conjunction_gains(
    sums: Array, visibility: Array, parts: Sequence[Array], ridge: float, numbers: Sequence[float], /
) -> Array:
    """Give gain, spread, freedom and sum of W of every view (views, 4); see `gpu_encode.ops.FusedOps`."""
    n_views = len(visibility)
    blind = visibility == 0
    levels = codes_of(np.stack(parts))
    ends = np.cumsum([int(part.max()) + 1 for part in levels])
    fixed = (
        freeze(sums, np.int64).reshape(-1),
        freeze(np.where(blind.sum(axis=1) == 1, blind.argmax(axis=1), -1), np.int64),
        freeze(visibility, np.int64),
        levels,
        freeze(np.append(0, ends[:-1]), np.int64),
        int(ends[-1]),
        float(ridge),
        freeze(np.asarray(numbers), np.float64),
    )
    found = np.zeros((n_views, 4))
    ranges = shares(n_views, smallest=max(1, SMALLEST_SHARE // levels.shape[1]))
    run(lambda share: gains_of_views(*fixed, *ranges[share], found), len(ranges))
    return found
