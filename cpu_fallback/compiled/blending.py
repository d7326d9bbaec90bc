"""Turn sums into encodings in one pass over the categories: sums by view, mean, lam, and blend with a prior."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cpu_fallback.compiled import moments, threads
from cpu_fallback.compiled.block_moments import (
    BLOCK,
    BlockMoments,
    BlockWeights,
    moment_rows,
    room_for_moments,
    room_for_weights,
)
from cpu_fallback.compiled.border import Array, counting, freeze, inlined, kernel, set_all, stage
from cpu_fallback.compiled.estimates import (
    Prior,
    exact_below,
    near_estimate,
    prior_of,
    settle_count,
    settle_line,
    weigh_priors,
    whole_estimate,
    whole_prior,
)
from cpu_fallback.compiled.moments import SMALL, Shape, cell_width, plain, scratch
from cpu_fallback.compiled.shrinkage import (
    bayes_weight,
    blend_near,
    blend_one,
    unseen_encoding,
    weights_of,
)
from cpu_fallback.compiled.ties import decide_estimate
from cpu_fallback.compiled.views import CHOSEN, LESS_ONE, OTHERS, OWN, Views, see_all, see_others, views_of
from cpu_fallback.fused_rules import (
    AS_CATEGORY,
    AS_NAN,
    EMPIRICAL_BAYES,
    M_ESTIMATE,
    Blend,
    FusedRule,
    PopulationMoments,
    Shrinkage,
    Visibility,
)
from cpu_fallback.memory import empty

if TYPE_CHECKING:
    from cpu_fallback.types import Layout

# Number of counts in a block; the compiler turns the loops over a block into vector instructions.
COUNTS = 1 << 8
# A cell of digits costs about as much as thirty rows of other kernels.
SMALLEST_SHARE = 1 << 12


class Around(NamedTuple):
    """Moments of all categories together, for each view and output; for m-estimates also m * mu, as pairs and exact."""

    prior: Array
    fraction: Array
    exponent: Array
    high: Array
    lower: Array
    exact: Prior


@inlined
def seen_of_two(accumulators: Array, at: np.uint64, view: int, kind: int, none: int, one: int) -> tuple[int, int]:
    """Count both classes among the rows that a view sees, from the counts of all folds."""
    if kind == LESS_ONE:
        return none - (1 if view == 0 else 0), one - (1 if view == 1 else 0)
    own = at + np.uint64(2 * view)
    if kind == OWN:
        return accumulators[own], accumulators[own + np.uint64(1)]
    return none - accumulators[own], one - accumulators[own + np.uint64(1)]


class CountBlock(NamedTuple):
    """Counts of a block of cells, one for each category, view and output, and the moments of all categories.

    Blends take `mu`, and the variance of all rows as `fraction` and the power of two by which a quotient is multiplied.
    """

    seen: Array
    own: Array
    mu: Array
    fraction: Array
    power: Array
    high: Array
    lower: Array
    weighed: Array
    number: Array
    nothing: Array


@counting
def count_block(n_categories: int, blend: Blend, around: Around) -> CountBlock:
    """Allocate a block, and repeat the moments of all categories in it."""
    n_views, n_outputs = around.prior.shape
    size, m, exact = n_categories * n_views * n_outputs, blend.shrinkage.first, around.exact
    bayes, estimates = blend.shrinkage.kind == EMPIRICAL_BAYES, blend.shrinkage.kind == M_ESTIMATE
    mu, fraction, power = np.empty(size), np.empty(size), np.empty(size)
    high, lower, nothing = np.empty(size), np.empty(size), np.empty(size)
    weighed, number = np.empty(size), np.empty(size)
    whole = estimates and exact.width == 1 and exact.n_width == 1 and exact.low == 0 and exact.n_low == 0
    for k in range(size):
        view, output = k // n_outputs % n_views, k % n_outputs
        mu[k], high[k], lower[k] = around.prior[view, output], around.high[view, output], around.lower[view, output]
        nothing[k] = unseen_encoding(mu[k], blend)
        # The variance of counts is far from the ends of floats, and so is its power of two.
        fraction[k] = around.fraction[view, output] if bayes else 0.0
        power[k] = plain(1.0, -around.exponent[view, output]) if bayes else 1.0
        weighed[k], number[k] = 0.0, np.nan
        if whole:
            total, rows = np.float64(exact.total[view * n_outputs + output]), np.float64(exact.number[view])
            weighed[k], number[k] = whole_prior(total, rows, m)
    room = np.empty(size, np.int64), np.empty(size, np.int64)
    return CountBlock(*room, mu, fraction, power, high, lower, weighed, number, nothing)


@stage
def read_pairs(accumulators: Array, start: int, stop: int, views: Views, count: Array, own: Array) -> None:
    """Count both classes for each view of the categories [start, stop)."""
    kind, n_folds, n_views, k = views.kind, views.n_folds, views.n_views, np.uint64(0)
    for i in range(start, stop):
        at = np.uint64(i * n_folds * 2)
        none, one = np.int64(0), np.int64(0)
        for fold in range(n_folds if kind != OWN else 0):
            none += accumulators[at + np.uint64(2 * fold)]
            one += accumulators[at + np.uint64(2 * fold + 1)]
        for view in range(n_views):
            zeros, ones = seen_of_two(accumulators, at, view, kind, none, one)
            count[k], own[k] = zeros + ones, ones
            k += np.uint64(1)


@counting
def read_classes(
    accumulators: Array, n_classes: int, first: int, start: int, stop: int, views: Views, count: Array, own: Array
) -> None:
    """Count any number of classes for each view of the categories [start, stop)."""
    kind, n_views, n_folds, k = views.kind, views.n_views, views.n_folds, np.uint64(0)
    seen = np.empty(n_views * n_classes, np.int64)
    for i in range(start, stop):
        see_all(accumulators, i * n_folds * n_classes, n_classes, kind, n_views, n_folds, views.matrix, seen, 0)
        for view in range(n_views):
            total = np.int64(0)
            for label in range(n_classes):
                total += seen[view * n_classes + label]
            for label in range(first, n_classes):
                count[k], own[k] = total, seen[view * n_classes + label]
                k += np.uint64(1)


@stage
def divide_block(block: CountBlock, n: int, m: float, below: float, least: float, values: Array) -> bool:
    """Write m-estimates of a block by one division each, and tell whether all are rounded correctly."""
    seen, own, weighed, number, nothing = block.seen, block.own, block.weighed, block.number, block.nothing
    sure = True
    for k in range(n):
        weight = np.float64(seen[k])
        near, whole = whole_estimate(np.float64(own[k]), weight, m, weighed[k], number[k], below)
        hidden = (weight < 1.0) | (weight < least)
        values[k] = nothing[k] if hidden else near
        sure &= whole | hidden
    return sure


@stage
def estimate_block(block: CountBlock, n: int, m: float, least: float, values: Array) -> tuple[bool, bool]:
    """Write m-estimates of a block; tell whether all counts are small enough, and whether all are rounded correctly."""
    seen, own, high, lower, nothing = block.seen, block.own, block.high, block.lower, block.nothing
    small, sure = True, True
    for k in range(n):
        weight = np.float64(seen[k])
        near, doubtful = near_estimate(np.float64(own[k]), 0.0, weight, 0.0, m, high[k], lower[k])
        hidden = (weight < 1.0) | (weight < least)
        values[k] = nothing[k] if hidden else near
        small &= seen[k] < SMALL
        sure &= hidden | ~doubtful
    return small, sure


@stage
def settle_block(block: CountBlock, n: int, m: float, least: float, around: Around, values: Array) -> None:
    """Round the doubtful m-estimates of a block by exact pairs, or else by digits."""
    n_views, n_outputs = around.prior.shape
    for k in range(n):
        weight = np.float64(block.seen[k])
        pairs = np.float64(block.own[k]), 0.0, weight, 0.0, m, block.high[k], block.lower[k]
        _, doubtful = near_estimate(*pairs)
        if doubtful and weight >= max(least, 1.0):
            values[k], doubtful = decide_estimate(*pairs)
            view = k // n_outputs % n_views
            at = view * n_outputs + k % n_outputs
            if doubtful:
                values[k] = settle_count(block.own[k], block.seen[k], around.exact, at, view, m)


@stage
def weigh_block(block: CountBlock, n: int, n_outputs: int, shrinkage: Shrinkage, others: Array) -> None:
    """Write the weights of the priors of a block; the means have 1."""
    seen, own, fraction, power = block.seen, block.own, block.fraction, block.power
    for k in range(n if shrinkage.kind == EMPIRICAL_BAYES else 0):
        weight, mine = np.float64(seen[k]), np.float64(own[k])
        noise = mine * (weight - mine) / weight / weight
        others[k] = 0.0 if noise == 0.0 else noise / (fraction[k] * weight) * power[k]
    for line in range(0, 0 if shrinkage.kind == EMPIRICAL_BAYES else n, n_outputs):
        _, other = weights_of(np.float64(seen[line]), shrinkage)
        set_all(others[line : line + n_outputs], other)


@stage
def blend_block(block: CountBlock, n: int, least: float, values: Array) -> bool:
    """Turn the weights of the priors of a block into its encodings, and tell whether all counts are small enough.

    Plain division rounds quotients of such counts correctly.
    """
    seen, own, mu, nothing, small = block.seen, block.own, block.mu, block.nothing, True
    for k in range(n):
        weight = np.float64(seen[k])
        blended = blend_near(mu[k], np.float64(own[k]) / weight, 1.0, values[k])
        values[k] = nothing[k] if (weight < 1.0) | (weight < least) else blended
        small &= seen[k] < SMALL
    return small


@stage
def encode_block(block: CountBlock, n: int, below: float, blend: Blend, around: Around, values: Array) -> bool:
    """Write the encodings of a block, and tell whether all counts are small enough."""
    m, least = blend.shrinkage.first, blend.least
    if blend.shrinkage.kind != M_ESTIMATE:
        weigh_block(block, n, around.prior.shape[1], blend.shrinkage, values)
        return blend_block(block, n, least, values)
    # Divisors are at least 1: if the bound is below 1, no division is exact, and none is tried.
    if below > 1.0 and divide_block(block, n, m, below, least, values):
        return True
    small, sure = estimate_block(block, n, m, least, values)
    if small and not sure:
        settle_block(block, n, m, least, around, values)
    return small


@counting
def blend_counts(
    accumulators: Array,
    n_classes: int,
    first: int,
    views: Views,
    blend: Blend,
    around: Around,
    start: int,
    stop: int,
    values: Array,
    unseen: Array,
) -> bool:
    """Write the encodings of the categories [start, stop) from whole counts, a block at a time.

    It gives False, and the output is not valid, if a count is not below 2**31.
    """
    least, n_outputs, below = blend.least, n_classes - first, exact_below(blend.shrinkage.first)
    width = views.n_views * n_outputs
    at_once = max(COUNTS // width, 1)
    block, flat, flags = count_block(at_once, blend, around), values.reshape(-1), unseen.reshape(-1)
    for begin in range(start, stop, at_once):
        end = min(begin + at_once, stop)
        n, here = (end - begin) * width, flat[begin * width : end * width]
        if n_classes == 2 and first == 1 and views.kind != CHOSEN:
            read_pairs(accumulators, begin, end, views, block.seen, block.own)
        else:
            read_classes(accumulators, n_classes, first, begin, end, views, block.seen, block.own)
        if not encode_block(block, n, below, blend, around, here):
            return False
        line = begin * views.n_views
        for k in range(n // n_outputs):
            weight = np.float64(block.seen[k * n_outputs])
            flags[np.uint64(line + k)] = weight < 1.0 or weight < least
    return True


@stage
def blend_lines(
    first_line: int,
    found_at: Array,
    number: BlockWeights,
    moments_: BlockMoments,
    n_views: int,
    blend: Blend,
    around: Around,
    values: Array,
    unseen: Array,
) -> None:
    """Write the encodings of some lines; a line is a category and a view, one view after the other.

    `found_at` has the index of the moments of each line.
    """
    prior, fraction, exponent = around.prior, around.fraction, around.exponent
    mean, own, own_exponent, weight = moments_.mean, moments_.fraction, moments_.exponent, number.weight
    bayes, n_outputs, view = blend.shrinkage.kind == EMPIRICAL_BAYES, values.shape[1], first_line % n_views
    lines, flags = values[first_line:], unseen[first_line:]
    for i in range(len(found_at)):
        at = np.uint64(found_at[i])
        hidden = not (weight[at] > 0 and weight[at] >= blend.least)
        flags[i] = hidden
        own_part, other = (1.0, 0.0) if bayes or hidden else weights_of(weight[at], blend.shrinkage)
        for k in range(n_outputs):
            mu = prior[view, k]
            if bayes and not hidden:
                other = bayes_weight(weight[at], own[k, at], own_exponent[k, at], fraction[view, k], exponent[view, k])
            lines[i, k] = unseen_encoding(mu, blend) if hidden else blend_one(mu, mean[k, at], own_part, other)
        view = view + 1 if view + 1 < n_views else 0


@stage
def estimate_lines(
    first_line: int,
    found_at: Array,
    number: BlockWeights,
    moments_: BlockMoments,
    n_views: int,
    blend: Blend,
    around: Around,
    seen: Array,
    start: int,
    shape: Shape,
    first: int,
    values: Array,
    unseen: Array,
) -> None:
    """Write the m-estimates of some lines, whose digits begin at `start`; `blend_lines` writes other encodings."""
    prior, high, lower, weight, rest = around.prior, around.high, around.lower, number.weight, number.rest
    total, total_rest, m, least = moments_.high, moments_.lower, blend.shrinkage.first, blend.least
    n_outputs, first_view, length = values.shape[1], first_line % n_views, cell_width(shape) * shape.n_classes
    lines, flags = values[first_line:], unseen[first_line:]
    for k in range(n_outputs):
        sure, view = True, first_view
        for i in range(len(found_at)):
            at = np.uint64(found_at[i])
            hidden = not (weight[at] > 0 and weight[at] >= least)
            given = total[k, at], total_rest[k, at], weight[at], rest[at], m, high[view, k], lower[view, k]
            near, doubtful = near_estimate(*given)
            flags[i], lines[i, k] = hidden, unseen_encoding(prior[view, k], blend) if hidden else near
            sure &= hidden | ~doubtful
            view = view + 1 if view + 1 < n_views else 0
        view = first_view
        # Doubtful numbers have a loop of their own: a call in the first loop would slow it down for all numbers.
        for i in range(0 if sure else len(found_at)):
            at = np.uint64(found_at[i])
            given = total[k, at], total_rest[k, at], weight[at], rest[at], m, high[view, k], lower[view, k]
            if near_estimate(*given)[1] and not flags[i]:
                lines[i, k], doubtful = decide_estimate(*given)
                line, prior_at = start + found_at[i] * length, view * n_outputs + k
                if doubtful:
                    lines[i, k] = settle_line(seen, line, first + k, shape, around.exact, prior_at, view, m)
            view = view + 1 if view + 1 < n_views else 0


@stage
def encode_lines(
    first_line: int,
    found_at: Array,
    number: BlockWeights,
    moments_: BlockMoments,
    n_views: int,
    blend: Blend,
    around: Around,
    seen: Array,
    start: int,
    shape: Shape,
    first: int,
    values: Array,
    unseen: Array,
) -> None:
    """Write the encodings of some lines, as the kind of lam requires."""
    given = first_line, found_at, number, moments_, n_views, blend, around
    if blend.shrinkage.kind == M_ESTIMATE:
        estimate_lines(*given, seen, start, shape, first, values, unseen)
    else:
        blend_lines(*given, values, unseen)


@kernel
def blend_digits(
    accumulators: Array,
    shape: Shape,
    first: int,
    views: Views,
    blend: Blend,
    around: Around,
    start: int,
    stop: int,
    values: Array,
    unseen: Array,
) -> None:
    """Write the encodings of the categories [start, stop) from any number of digits, a block at a time.

    If views see all folds but their own, those whose own fold has no row of a category see the same rows of it: these
    moments are computed once.
    """
    kind, n_views, n_folds, matrix = views.kind, views.n_views, views.n_folds, views.matrix
    lam, room, length = blend.shrinkage.kind, scratch(shape), cell_width(shape) * shape.n_classes
    number, found = room_for_weights(BLOCK, shape.n_width), room_for_moments(values.shape[1], BLOCK)
    at_once, share = max(BLOCK // n_views, 1), kind == OTHERS and n_views <= BLOCK
    seen, found_at = np.empty(at_once * n_views * length, np.int64), np.arange(max(at_once * n_views, BLOCK))
    for begin in range(start, stop, at_once):
        n_categories, n_found = min(at_once, stop - begin), BLOCK
        lines = n_categories * n_views
        if share:
            n_found = see_others(accumulators, begin, n_views, length, seen, found_at[:lines])
        own = np.uint64(begin * n_views * length)
        for k in range(lines * length if kind == OWN else 0):
            seen[np.uint64(k)] = accumulators[own + np.uint64(k)]
        for i in range(0 if share or kind == OWN else n_categories):
            at, to = (begin + i) * n_folds * length, i * n_views * length
            see_all(accumulators, at, length, kind, n_views, n_folds, matrix, seen, to)
        for line in range(0, lines, BLOCK):
            n_lines, at = min(BLOCK, lines - line), line * length
            moment_rows(seen, at, min(n_lines, n_found), shape, first, lam, lam != M_ESTIMATE, room, number, found)
            given = begin * n_views + line, found_at[:n_lines], number, found, n_views, blend, around
            encode_lines(*given, seen, at, shape, first, values, unseen)


@kernel
def clear_without_rows(accumulators: Array, start: int, stop: int, values: Array) -> None:
    """Make encodings zero if the cell of the category and class has no row, since no row uses them."""
    width = len(accumulators) // len(values)
    at = np.uint64(start * width)
    for line in range(start, stop):
        any_row = np.int64(0)
        for _ in range(width):
            any_row |= accumulators[at]
            at += np.uint64(1)
        if any_row == 0:
            set_all(values[line], 0.0)


def around_of(population: PopulationMoments, shrinkage: Shrinkage) -> Around:
    """Give the moments of all categories together in the form that kernels take."""
    mean, fraction, exponent = (freeze(part, part.dtype) for part in population[:3])
    nothing = np.zeros(0, np.int64)
    high, lower, prior = np.empty(mean.shape), np.empty(mean.shape), Prior(nothing, 1, 0, nothing, 1, 0)
    if population.exact is not None:
        prior = prior_of(population.exact, mean.shape)
        weigh_priors(prior, shrinkage.first, high, lower)
    return Around(mean, fraction, exponent, high, lower, prior)


class Formula(NamedTuple):
    """The formula that turns sums by category and fold into encodings; `whole`: a sum is a count of a class."""

    shape: Shape
    first: int
    whole: bool
    views: Views
    blend: Blend
    around: Around


def formula_of(layout: "Layout", n_classes: int, views: Views, blend: Blend, population: PopulationMoments) -> Formula:
    """Describe to the kernels the formula that turns sums into encodings."""
    shape, first = moments.shape_of(layout, n_classes), n_classes - population.prior.shape[1]
    whole = layout.count.whole and shape.by_class
    return Formula(shape, first, whole, views, blend, around_of(population, blend.shrinkage))


def encode_sums(sums: Array, formula: Formula, start: int, stop: int, values: Array, unseen: Array) -> None:
    """Write the encodings (categories, views, outputs) of the categories [start, stop), and which views see no rows."""
    shape, first, whole, views, blend, around = formula
    n_categories, n_views, n_outputs = values.shape
    by_category, by_line = values.reshape(n_categories, n_views * n_outputs), values.reshape(-1, n_outputs)
    given, flags = (views, blend, around, start, stop), unseen.reshape(-1)
    # Large counts go by digits.
    if whole and blend_counts(sums, shape.n_classes, first, *given, by_category, unseen):
        return
    blend_digits(sums, shape, first, *given, by_line, flags)


def encode_categories(
    accumulators: Array,
    layout: "Layout",
    visibility: Visibility,
    rule: FusedRule,
    population: PopulationMoments,
    dtype: Any,  # noqa: ARG001 - to round all encodings here would cost a pass
    /,
) -> tuple[Array, Array, int]:
    """Encode every category and view, and tell which are unseen; see `gpu_encode.seam.ops.FusedOps`."""
    n_lines, n_folds, n_classes = accumulators.shape[:3]
    views = views_of(visibility, n_folds, n_classes)
    values = empty((n_lines, *population.prior.shape), np.float64)
    unseen, formula = empty(values.shape[:2], np.bool_), formula_of(layout, n_classes, views, rule.blend, population)
    flat = freeze(accumulators, np.int64).reshape(-1)
    parts = threads.shares(n_lines, smallest=max(SMALLEST_SHARE // views.n_views, 1))
    threads.run(lambda share: encode_sums(flat, formula, *parts[share], values, unseen), len(parts))
    apply_policies(population.prior, rule, values, unseen)
    if views.kind == LESS_ONE:
        by_line = values.reshape(-1, values.shape[2])
        clear_without_rows(flat, 0, len(by_line), by_line)
    return values, unseen, 0


def apply_policies(prior: Array, rule: FusedRule, values: Array, unseen: Array) -> None:
    """Write the encodings of unknown and missing values; NaN if there is no visible row at all."""
    blend, missing = rule.blend, rule.missing
    unseen[-2], values[-2] = True, np.where(np.isnan(prior), prior, blend.unseen) if blend.has_unseen else prior
    if missing != AS_CATEGORY:
        unseen[-1], values[-1] = True, np.nan if missing == AS_NAN else prior
