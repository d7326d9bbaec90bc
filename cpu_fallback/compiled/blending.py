"""Sums to codes in one pass over the categories: what each view sees, its mean, lam, and the blend with the prior."""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.blending import EMPIRICAL_BAYES, M_ESTIMATE, PLAIN, Background, Blend, Shrinkage
from cpu_fallback.compiled import moments, threads
from cpu_fallback.compiled.border import Array, frozen, inlined, kernel
from cpu_fallback.compiled.elementary import exp
from cpu_fallback.compiled.moments import SMALL, Shape, cell_width, pair, plain, quotient, scratch, spread, sum_classes
from cpu_fallback.compiled.views import CHOSEN, LESS_ONE, OWN, Views, see_all, views_of

if TYPE_CHECKING:
    from gpu_encode.cells import Layout

# A cell of digits costs as much as some thirty rows of other kernels.
SMALLEST_SHARE = 1 << 12


@inlined
def weight_of(n: float, shrinkage: Shrinkage) -> float:
    """Lam of a formula that depends on the weight of the cell alone."""
    if shrinkage.kind == PLAIN:
        return 1.0
    if shrinkage.kind == M_ESTIMATE:
        return n / (n + shrinkage.first)
    return 1.0 / (1.0 + exp(-((n - shrinkage.first) / shrinkage.second)))


@inlined
def bayes_weight(n: float, own: float, own_exponent: int, total: float, total_exponent: int) -> float:
    """Lam of empirical Bayes, from N * Q - S**2 of the cell and the variance of all that is visible."""
    noise = own / n / n
    if noise == 0:
        return 1.0
    return 1.0 / (1.0 + plain(noise / (total * n), own_exponent - total_exponent))


@inlined
def blend_one(mu: float, mean: float, lam: float) -> float:
    """Code of a cell that counts."""
    return mu + lam * (mean - mu)


@inlined
def unseen_code(mu: float, blend: Blend) -> float:
    """Code of what no visible row has; NaN where there is no visible row at all."""
    return blend.unseen if blend.has_unseen and mu == mu else mu  # noqa: PLR0124 - NaN


@inlined
def code_of_counts(
    weight: float, count: int, own: int, mu: float, lam: float, bayes: bool, total: float, total_exponent: int
) -> float:
    """Code of one class from counts below 2**31: of all rows that are seen, and of those of the class."""
    # Quotients of such numbers are rounded correctly as they are.
    mean = np.float64(own) / weight
    if bayes:
        lam = bayes_weight(weight, np.float64(own * (count - own)), 0, total, total_exponent)
    return blend_one(mu, mean, lam)


@inlined
def seen_of_two(cells: Array, at: np.uint64, view: int, kind: int, none: int, one: int) -> tuple[int, int]:
    """Count both classes in what a view sees, from the counts of all folds."""
    if kind == LESS_ONE:
        return none - (1 if view == 0 else 0), one - (1 if view == 1 else 0)
    own = at + np.uint64(2 * view)
    if kind == OWN:
        return cells[own], cells[own + np.uint64(1)]
    return none - cells[own], one - cells[own + np.uint64(1)]


@kernel
def blend_binary(
    cells: Array,
    views: Views,
    blend: Blend,
    background: Background,
    start: int,
    stop: int,
    values: Array,
    unseen: Array,
) -> bool:
    """Write the codes of the categories [start, stop) from whole counts of two classes.

    False, with nothing promised, if a count is not below 2**31.  Every category is a handful of numbers: loops over
    them would cost more than the arithmetic.
    """
    # What is taken out of a tuple is counted: once here, and not for every category.
    kind, n_folds = views.kind, views.n_folds
    prior, fraction, exponent = background.prior, background.fraction, background.exponent
    bayes = blend.shrinkage.kind == EMPIRICAL_BAYES
    for i in range(start, stop):
        at = np.uint64(i * n_folds * 2)
        none, one = np.int64(0), np.int64(0)
        for fold in range(n_folds if kind != OWN else 0):
            none += cells[at + np.uint64(2 * fold)]
            one += cells[at + np.uint64(2 * fold + 1)]
        for view in range(unseen.shape[1]):
            zeros, ones = seen_of_two(cells, at, view, kind, none, one)
            count = zeros + ones
            if count >= SMALL:
                return False
            weight, mu = np.float64(count), prior[view, 0]
            hidden = not (count > 0 and weight >= blend.least)
            unseen[i, view] = hidden
            if hidden:
                values[i, view] = unseen_code(mu, blend)
            else:
                lam = 1.0 if bayes else weight_of(weight, blend.shrinkage)
                total = fraction[view, 0] if bayes else 0.0
                power = exponent[view, 0] if bayes else 0
                values[i, view] = code_of_counts(weight, count, ones, mu, lam, bayes, total, power)
    return True


@kernel
def blend_counts(
    cells: Array,
    n_classes: int,
    first: int,
    views: Views,
    blend: Blend,
    background: Background,
    start: int,
    stop: int,
    values: Array,
    unseen: Array,
) -> bool:
    """Do the same for any number of classes."""
    # What is taken out of a tuple is counted: once here, and not for every category.
    kind, n_views, n_folds, matrix = views.kind, views.n_views, views.n_folds, views.matrix
    prior, fraction, exponent = background.prior, background.fraction, background.exponent
    bayes, n_outputs = blend.shrinkage.kind == EMPIRICAL_BAYES, n_classes - first
    seen = np.empty(n_views * n_classes, np.int64)
    for i in range(start, stop):
        see_all(cells, i * n_folds * n_classes, n_classes, kind, n_views, n_folds, matrix, seen, 0)
        for view in range(n_views):
            at, count = view * n_classes, np.int64(0)
            for label in range(n_classes):
                count += seen[at + label]
            if count >= SMALL:
                return False
            weight = np.float64(count)
            hidden = not (count > 0 and weight >= blend.least)
            unseen[i, view] = hidden
            lam = 1.0 if bayes or hidden else weight_of(weight, blend.shrinkage)
            for output in range(n_outputs):
                mu, own = prior[view, output], seen[at + first + output]
                total = fraction[view, output] if bayes else 0.0
                power = exponent[view, output] if bayes else 0
                values[i, view * n_outputs + output] = (
                    unseen_code(mu, blend)
                    if hidden
                    else code_of_counts(weight, count, own, mu, lam, bayes, total, power)
                )
    return True


@kernel
def blend_digits(
    cells: Array,
    shape: Shape,
    first: int,
    views: Views,
    blend: Blend,
    background: Background,
    start: int,
    stop: int,
    values: Array,
    unseen: Array,
) -> None:
    """Write the codes of the categories [start, stop) from digits of any number."""
    kind, n_views, n_folds, matrix = views.kind, views.n_views, views.n_folds, views.matrix
    prior, fraction, exponent = background.prior, background.fraction, background.exponent
    bayes, n_outputs, room = blend.shrinkage.kind == EMPIRICAL_BAYES, shape.n_classes - first, scratch(shape)
    width = cell_width(shape)
    length, summed = shape.n_classes * width, room.summed
    seen = np.empty(n_views * length, np.int64)
    for i in range(start, stop):
        see_all(cells, i * n_folds * length, length, kind, n_views, n_folds, matrix, seen, 0)
        for view in range(n_views):
            sum_classes(seen, view * length, shape.n_classes, width, shape.n_width, summed)
            n_high, n_lower, n_power = pair(summed, 0, shape.n_width, shape.n_low)
            weight = plain(n_high, n_power)
            hidden = not (weight > 0 and weight >= blend.least)
            unseen[i, view] = hidden
            lam = 1.0 if bayes or hidden else weight_of(weight, blend.shrinkage)
            for output in range(n_outputs):
                mu, place = prior[view, output], view * n_outputs + output
                if hidden:
                    values[i, place] = unseen_code(mu, blend)
                    continue
                at = view * length + (first + output) * width + (0 if shape.by_class else shape.n_width)
                high, lower, power = pair(seen, at, shape.s_width, shape.s_low)
                mean = plain(quotient(high, lower, n_high, n_lower), power - n_power)
                if bayes:
                    q_at = at if shape.by_class else at + shape.s_width
                    own, own_power = spread(seen, at, q_at, shape, summed[0], room)
                    lam = bayes_weight(weight, own, own_power, fraction[view, output], exponent[view, output])
                values[i, place] = blend_one(mu, mean, lam)


def blended(
    cells: Array,
    layout: "Layout",
    first_output: int,
    visibility: "Array | None",
    blend: Blend,
    background: Background,
    less_one: bool,
    /,
) -> tuple[Array, Array] | None:
    """Codes of every category and view, and where it is unseen; see `gpu_encode.ops.Ops`."""
    views = views_of(visibility, cells.shape[1])
    shape = moments.shape_of(layout, cells.shape[2])
    # Each class is a view of its own that sees one row of it less.
    if less_one:
        views = Views(LESS_ONE, cells.shape[2], 1, views.matrix)
    values = np.empty((len(cells), views.n_views, cells.shape[2] - first_output))
    unseen = np.empty(values.shape[:2], np.bool_)
    around = Background(*(frozen(part, part.dtype) for part in background))
    flat = frozen(cells, np.int64).reshape(-1)
    parts = threads.shares(len(cells), smallest=max(SMALLEST_SHARE // views.n_views, 1))
    lines, whole = values.reshape(len(values), -1), layout.count.whole and shape.by_class

    def work(share: int) -> None:
        given = views, blend, around, *parts[share], lines, unseen
        if whole and shape.n_classes == 2 and first_output == 1 and views.kind != CHOSEN:
            done = blend_binary(flat, *given)
        else:
            done = whole and blend_counts(flat, shape.n_classes, first_output, *given)
        if not done:
            blend_digits(flat, shape, first_output, *given)

    threads.run(work, len(parts))
    return values, unseen
