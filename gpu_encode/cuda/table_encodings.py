"""Encodings of all categories in every view, in one pass: each thread computes one category and view."""

from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_fallback.compiled.estimates import mean_pair, plain_pair, weigh_prior, whole_prior
from cpu_fallback.compiled.moments import SMALL, shape_of
from cpu_fallback.compiled.row_encodings import CellRule, encoding_without, has_category
from cpu_fallback.compiled.views import CHOSEN, LESS_ONE, OTHERS, OWN, Views
from cpu_fallback.exact import Limbs, Ratio, m_estimates
from cpu_fallback.fused_rules import FusedRule, PopulationMoments, Shrinkage, Visibility
from cpu_fallback.sums import is_others, is_own, visible
from gpu_encode.cuda.casting import cast
from gpu_encode.cuda.encodings import (
    MOST_CELL,
    TOO_LARGE,
    Doubts,
    Priors,
    around_of,
    encode_count,
    encode_digits,
    exact_limit,
    fits,
    keep_doubt,
    room_for_doubts,
)
from gpu_encode.cuda.fallbacks import DOUBTS, LARGE, WIDE, leave_to_arrays
from gpu_encode.cuda.memory import empty, to_device, to_host
from gpu_encode.cuda.moments import ROOM, Cell, Rooms, class_width, count_pair, pair, start_of_sum
from gpu_encode.cuda.rounding import scale
from gpu_encode.cuda.row_encodings import NAN_WORDS, Destination, destination_of, store
from gpu_encode.cuda.runtime import FEW_THREADS, cuda, device_function, kernel, launch_rows, types, xp

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Layout


@kernel
def weigh_priors(
    total: "Array",
    width: int,
    low: int,
    number: "Array",
    n_width: int,
    n_low: int,
    n_outputs: int,
    m: float,
    priors: Priors,
) -> None:
    """Write m * T / N of each view and output as a pair, and m * T and N if they are whole and small."""
    for i in range(cuda.grid(1), len(priors.high), cuda.gridsize(1)):
        view = i // n_outputs
        high, lower, exponent = pair(total, i * width, width, 1, width, low, 0)
        t_high, t_rest = plain_pair(high, lower, exponent)
        high, lower, exponent = pair(number, view * n_width, n_width, 1, n_width, n_low, 0)
        n_high, n_rest = plain_pair(high, lower, exponent)
        priors.high[i], priors.rest[i] = 0.0, np.nan
        if n_high != 0.0:
            mu, rest = mean_pair(t_high, t_rest, n_high, n_rest)
            priors.high[i], priors.rest[i] = weigh_prior(mu, rest, m)
        priors.weighed[i], priors.number[i] = 0.0, np.nan
        if width == n_width == 1 and low == n_low == 0:
            priors.weighed[i], priors.number[i] = whole_prior(float(total[i]), float(number[view]), m)


@device_function
def number_seen(accumulators: "Array", base: int, length: int, views: Views, view: int, k: int) -> np.int64:
    """Give number k of the sums that a view sees in the category that begins at `base`."""
    if views.kind == LESS_ONE:
        return accumulators[base + k] - (1 if view == k else 0)
    if views.kind == OWN:
        return accumulators[base + view * length + k]
    total = np.int64(0)
    for fold in range(views.n_folds):
        if fold != view if views.kind == OTHERS else views.matrix[view * views.n_folds + fold] != 0:
            total += accumulators[base + fold * length + k]
    return total


@device_function
def code_of(line: int, n_lines: int) -> int:
    """Code of a line of a table: the last line but one is unknown, the last is missing."""
    return line if line < n_lines - 2 else line - n_lines


@device_function
def is_empty(accumulators: "Array", at: int, width: int) -> bool:
    """Say whether a cell has no rows."""
    found = np.int64(0)
    for k in range(width):
        found |= accumulators[at + k]
    return found == 0


@kernel
def blend_counts(
    accumulators: "Array",
    cell_rule: CellRule,
    views: Views,
    priors: Priors,
    below: float,
    to: Destination,
    doubts: Doubts,
) -> None:
    """Write the encodings of every category and view from whole counts of classes."""
    n_classes, first, rule = cell_rule.shape.n_classes, cell_rule.first, cell_rule.rule
    n_outputs = n_classes - first
    for i in range(cuda.grid(1), len(to.unseen), cuda.gridsize(1)):
        category, view, count = i // views.n_views, i % views.n_views, np.int64(0)
        base = category * views.n_folds * n_classes
        for label in range(n_classes):
            count += number_seen(accumulators, base, n_classes, views, view, label)
        if count >= SMALL:
            cuda.atomic.add(doubts.counters, TOO_LARGE, 1)
        code = code_of(category, len(to.unseen) // views.n_views)
        counts = has_category(code, rule) and count > 0 and float(count) >= rule.blend.least
        to.unseen[i] = not counts
        nobody = views.kind == LESS_ONE and is_empty(accumulators, base + view, 1)
        for output in range(n_outputs):
            at = view * n_outputs + output
            value = encoding_without(code, priors.mu[at], rule)
            if counts:
                own = number_seen(accumulators, base, n_classes, views, view, first + output)
                value, doubtful = encode_count(own, count, rule.blend, priors, at, below)
                if doubtful:
                    keep_doubt(doubts, i * n_outputs + output)
            store(0.0 if nobody else value, i * n_outputs + output, to, doubts)


@kernel
def blend_digits(
    accumulators: "Array",
    cell_rule: CellRule,
    views: Views,
    priors: Priors,
    to: Destination,
    doubts: Doubts,
) -> None:
    """Write the encodings of every category and view from digits."""
    seen = cuda.local.array(MOST_CELL, types.int64)
    n_room = cuda.local.array(ROOM, types.int64)
    s_room = cuda.local.array(ROOM, types.int64)
    q_room = cuda.local.array(ROOM, types.int64)
    shape, first, rule = cell_rule
    n_outputs, line = shape.n_classes - first, class_width(shape)
    length = shape.n_classes * line
    for i in range(cuda.grid(1), len(to.unseen), cuda.gridsize(1)):
        category, view = i // views.n_views, i % views.n_views
        base = category * views.n_folds * length
        for k in range(length):
            seen[k] = number_seen(accumulators, base, length, views, view, k)
        count = count_pair(seen, 0, shape, 0)
        weight = scale(count[0], count[2])
        code = code_of(category, len(to.unseen) // views.n_views)
        counts = has_category(code, rule) and weight > 0.0 and weight >= rule.blend.least
        to.unseen[i] = not counts
        for output in range(n_outputs):
            at = view * n_outputs + output
            value = encoding_without(code, priors.mu[at], rule)
            if counts:
                cell, rooms = Cell(seen, 0, start_of_sum(shape, first + output), shape), Rooms(n_room, s_room, q_room)
                value, doubtful = encode_digits(cell, rule.blend, around_of(priors, at, rule.blend), count, rooms)
                if doubtful:
                    keep_doubt(doubts, i * n_outputs + output)
            store(value, i * n_outputs + output, to, doubts)


def views_of(visibility: Visibility, n_folds: int, n_classes: int) -> Views:
    """Describe to kernels the folds that views see."""
    matrix = empty(1, np.int64)
    if isinstance(visibility, str):
        return Views(LESS_ONE, n_classes, 1, matrix)
    if visibility is None or is_own(visibility, n_folds):
        return Views(OWN, n_folds, n_folds, matrix)
    if is_others(visibility, n_folds):
        return Views(OTHERS, n_folds, n_folds, matrix)
    return Views(CHOSEN, len(visibility), n_folds, to_device(visibility).astype(np.int64, copy=False).reshape(-1))


def priors_of(
    population: PopulationMoments, shrinkage: Shrinkage, *more: "Array"
) -> "tuple[Priors, Array, list[Array]]":
    """Copy the moments that views see of all categories to the device, also as pairs, then three counters.

    `more` arrays of 64 bits are copied with them.
    """
    shape, exact = population.prior.shape, population.exact
    parts = [to_host(part).reshape(-1) for part in population[:3]]
    if exact is not None:
        parts += [spread_over(exact.total, shape), spread_over(exact.number, (shape[0], 1))]
    n = len(parts)
    parts = [np.ascontiguousarray(part).view(np.int64) for part in (*parts, np.zeros(3, np.int64), *more)]
    everything, ends = to_device(np.concatenate(parts)), np.cumsum([len(part) for part in parts]).tolist()
    pieces = [everything[end - len(part) : end] for part, end in zip(parts, ends, strict=True)]
    mu = pieces[0].view(np.float64)
    fraction = pieces[1].view(np.float64) if len(parts[1]) else mu[:0]
    if exact is None:
        return Priors(mu, fraction, pieces[2], mu, mu, mu, mu), pieces[n], pieces[n + 1 :]
    priors = Priors(mu, fraction, pieces[2], *empty((4, mu.size), np.float64))
    totals = pieces[3], exact.total.digits.shape[-1], exact.total.low
    numbers = pieces[4], exact.number.digits.shape[-1], exact.number.low
    launch_rows(weigh_priors, mu.size, *totals, *numbers, shape[1], float(shrinkage.first), priors)
    return priors, pieces[n], pieces[n + 1 :]


def spread_over(number: Limbs, shape: tuple[int, ...]) -> "Array":
    """Give the digits of host numbers, with a line for each view and output, flat."""
    digits = to_host(number.digits)
    return np.ascontiguousarray(np.broadcast_to(digits, (*shape, digits.shape[-1]))).reshape(-1)


def encode_categories(
    accumulators: "Array",
    layout: "Layout",
    visibility: Visibility,
    rule: FusedRule,
    population: PopulationMoments,
    dtype: Any,
    /,
) -> "tuple[Array, Array, int] | None":
    """Encodings of every category and view, and where it is unseen; see `gpu_encode.seam.ops.FusedOps`."""
    n_lines, n_folds, n_classes = accumulators.shape[:3]
    shape, views = shape_of(layout, n_classes), views_of(visibility, n_folds, n_classes)
    counts = layout.count.whole and shape.by_class
    if not counts and not fits(shape):
        leave_to_arrays("encode_categories", WIDE)
        return None
    n_outputs, n_views, exact = population.prior.shape[1], views.n_views, population.exact
    first, shrinkage = n_classes - n_outputs, rule.blend.shrinkage
    values = empty((n_lines, n_views, n_outputs), dtype if np.dtype(dtype) in NAN_WORDS else np.float64)
    unseen = empty((n_lines, n_views), np.bool_)
    priors, counters, _ = priors_of(population, shrinkage)
    doubts = room_for_doubts(values.size, 0, shrinkage.kind, counters)
    to = destination_of(values.reshape(n_lines, -1), unseen.reshape(-1))
    flat, given = to_device(accumulators).reshape(-1), (CellRule(shape, first, rule), views, priors)
    if counts:
        launch_rows(blend_counts, unseen.size, flat, *given, exact_limit(shrinkage), to, doubts)
    else:
        launch_rows(blend_digits, unseen.size, flat, *given, to, doubts, threads=FEW_THREADS)
    lost, doubtful, too_large = to_host(counters).tolist()
    if too_large or doubtful > len(doubts.indices):
        leave_to_arrays("encode_categories", LARGE if too_large else DOUBTS)
        return None
    if doubtful and exact is not None:
        seen, at = cells_at(accumulators, visibility, doubts.indices[:doubtful] // n_outputs, n_views)
        prior = Ratio(*(lines_at(number, len(population.prior), at) for number in exact))
        estimates = m_estimates(seen, layout, first, float(shrinkage.first), prior)
        lost += settle_doubts(doubts.indices[:doubtful], estimates, values)
    return values, unseen, int(lost)


def settle_doubts(indices: "Array", estimates: "Array", values: "Array") -> int:
    """Write the values of the estimates that were in doubt (indices, outputs); count the lost encodings."""
    output = xp.arange(len(indices)) * estimates.shape[1] + indices % estimates.shape[1]
    rounded = cast(estimates.reshape(-1)[output], values.dtype)
    values.reshape(-1).put(indices, rounded)
    return int(xp.isinf(rounded).sum())


def cells_at(accumulators: "Array", visibility: Visibility, lines: "Array", n_views: int) -> "tuple[Array, Array]":
    """Give the sums that views see (indices, classes, width), for pairs of category and view, and their views."""
    category, view = lines // n_views, lines % n_views
    cells = accumulators[category]
    number = xp.arange(len(lines))
    if isinstance(visibility, str):
        seen = cells[:, 0].copy()
        seen.reshape(-1).put(number * n_views + view, seen[number, view, 0] - 1)
        return seen, view
    return visible(cells, visibility)[number, view], view


def lines_at(number: Limbs, n_views: int, views: "Array") -> Limbs:
    """Give the exact numbers of the given views: (views, outputs or 1)."""
    digits = to_host(number.digits)
    spread = np.broadcast_to(digits, (n_views, *digits.shape[-2:]))
    return Limbs(to_device(spread)[views], number.low)
