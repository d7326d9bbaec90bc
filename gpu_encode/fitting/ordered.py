"""Ordered target statistics in memory: every row is encoded from the rows before it, in random orders or in time."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cpu_fallback.exact import Floats, Integers
from cpu_fallback.fused_rules import RowEncodings
from cpu_fallback.row_numbers import Order, Permutation, RowOrder, TimeOrder
from cpu_fallback.types import CARRY_AFTER, MISSING, Array, Rows, SumShape, carry
from gpu_encode.fitting.ageing import AgeingScan, signed
from gpu_encode.fitting.scans import (
    CheckpointState,
    SegmentMeanDeltas,
    SequentialScan,
    Tile,
    checkpoint_places,
    find_segments,
    root_of_others,
)
from gpu_encode.fitting.tasks import EncodingTask, TiledOutput
from gpu_encode.formulas.encoding_rule import Mask
from gpu_encode.schemes.plans import OrderedPlan
from gpu_encode.seam.ops import host, tiles
from gpu_encode.sums.category_sums import CategorySums


def ordered(task: EncodingTask, plan: OrderedPlan, out: Array, want_unseen: bool) -> tuple[CategorySums, Mask | None]:
    """Encode each row from the rows before it.

    Parameters
    ----------
    task : EncodingTask
    plan : OrderedPlan
    out : array (rows, outputs * columns)
        One column per output, or per output and order where orders are not averaged; NaN in the burn-in.
    want_unseen : bool

    Returns
    -------
    statistics : CategorySums
        Sums of all rows, one view.
    unseen : bool array (rows,) or None
        Rows whose category none of the orders had seen.
    """
    n, n_orders = len(task.rows), len(plan.orders)
    averaged = plan.average and n_orders > 1
    every = task.ops.empty((n, task.n_outputs * n_orders), np.float64, "F") if averaged else out
    output, unseen = TiledOutput(every, task.ops), task.ops.xp.ones(n, np.bool_) if want_unseen else None
    statistics = None
    for number, order in enumerate(plan.orders):
        columns = range(number, task.n_outputs * n_orders, n_orders)
        all_rows = in_one_pass(task, order, plan.burn_in, output, columns, unseen)
        statistics = statistics or all_rows
        if all_rows is None:
            by_tiles(task, order, plan.burn_in, output, columns, unseen)
    output.close()
    if averaged:
        average_orders(task, every, n_orders, out)
    return statistics or task.measure(None, 1), unseen


def ordered_by_age(task: EncodingTask, plan: OrderedPlan, out: Array, want_unseen: bool) -> Mask | None:
    """Encode each row from the rows before it by their age; otherwise as `ordered`."""
    assert plan.new_rows is not None
    weighed, (order,) = task.weighed(plan.new_rows.weights), plan.orders
    output, unseen = TiledOutput(out, task.ops), task.ops.xp.ones(len(task.rows), np.bool_) if want_unseen else None
    assert isinstance(order, TimeOrder)
    if not by_age_in_one_pass(weighed, plan, order, output, unseen):
        scan = AgeingScan(weighed, plan, {})
        for tile in tiles_in_order(weighed, order, task.tile):
            values, missing = scan.encode(tile)
            numbers = tile.numbers[scan.which_stay(tile)]
            output.put(numbers, range(task.n_outputs), values)
            if unseen is not None:
                unseen.put(numbers, missing)
    output.close()
    return unseen


def by_tiles(
    task: EncodingTask, order: Order, burn_in: int, output: TiledOutput, columns: range, unseen: Mask | None
) -> None:
    """Encode the rows in one order, tile by tile."""
    scan = SequentialScan(task, state_at_checkpoints(task, order), isinstance(order, Permutation), burn_in)
    for tile in tiles_in_order(task, order, task.tile):
        values, missing = scan.encode(tile)
        output.put(tile.numbers, columns, values)
        if unseen is not None:
            unseen.put(tile.numbers, unseen[tile.numbers] & missing)


def in_one_pass(
    task: EncodingTask, order: Order, burn_in: int, output: TiledOutput, columns: range, unseen: Mask | None
) -> CategorySums | None:
    """Encode the rows in one order in one pass of the backend, with the same bits; None where it has no such pass."""
    fused, fused_rule = task.ops.fused, task.fused_rule()
    if fused is None or fused_rule is None or len(task.rows) > fused.most_ordered_rows(task.spec.layout):
        return None
    out = RowEncodings(output.matrix[:, columns.start :: columns.step], unseen)
    shape = SumShape(task.key.n_categories, 1, task.n_classes, task.spec.layout)
    written = fused.ordered_encodings(task.rows, shape, order, burn_in, fused_rule, out)
    if written is None:
        return None
    output.count(written.lost)
    if isinstance(order, Permutation) and fused_rule.by_mean and not burn_in:
        encode_first(task, order, written.accumulators, output, columns)
    return CategorySums(written.accumulators[:, None], task.spec, len(task.rows))


def encode_first(task: EncodingTask, order: Permutation, sums: Array, output: TiledOutput, columns: range) -> None:
    """Encode the first row of a random order, whose prior is that of all other rows, from the sums of all rows.

    The host does that: for a single row each step would be a launch.
    """
    ops = host(1)
    number = int(ops.rows_at(order, 0, 1)[0])
    row = task.rows.block(number, number + 1)
    parts = row.codes, row.classes, row.target, row.weight
    known = Rows(*(None if part is None else task.ops.to_host(part) for part in parts))  # type: ignore[arg-type]
    everything = task.ops.to_host(task.ops.totals(sums))
    root = root_of_others(replace(task, ops=ops, rows=known), everything, known)[None]
    no_category = task.rule.missing != "category" and bool((known.codes == MISSING)[0])
    values = task.rule.encode_missing(root) if no_category else task.rule.encode_unseen(root)
    output.put_row(number, columns, values[0], ops)


def by_age_in_one_pass(
    task: EncodingTask, plan: OrderedPlan, order: TimeOrder, output: TiledOutput, unseen: Mask | None
) -> bool:
    """Encode the rows in one pass of the backend, with the same bits; says whether it has such a pass."""
    encode, rule = getattr(task.ops.fused, "encodings_by_age", None), task.fused_rule()
    if encode is None or rule is None or len(order.rows) > CARRY_AFTER:
        return False
    shape = SumShape(task.key.n_categories, 1, task.n_classes, task.spec.layout)
    lost = encode(task.rows, shape, order, plan.burn_in, rule, RowEncodings(output.matrix, unseen))
    output.count(lost or 0)
    return lost is not None


def average_orders(task: EncodingTask, every: Floats, n_orders: int, out: Array) -> None:
    """Write the average over the orders, tile by tile."""
    whole = TiledOutput(out, task.ops)
    for start, stop in tiles(len(task.rows), task.tile):
        by_output = every[start:stop].T.reshape(task.n_outputs, n_orders, stop - start)
        whole.write(start, stop, np.stack([average(orders) for orders in by_output], axis=1))
    whole.close()


def average(columns: Floats) -> Floats:
    """Mean over the orders without NaN; the mean of equal encodings is exactly that encoding."""
    if len(columns) == 1:
        only: Floats = columns[0]
        return only
    known = ~np.isnan(columns)
    first = columns[0]
    for column in columns[1:]:
        first = np.where(np.isnan(first), column, first)
    shift = np.zeros_like(first)
    for column, valid in zip(columns, known, strict=True):
        # Infinite encodings that are equal do not differ either.
        with np.errstate(invalid="ignore"):
            shift += np.where(valid & (column != first), column - first, 0.0)
    mean: Floats = first + shift / np.maximum(known.sum(axis=0), 1)
    return mean


def tiles_in_order(task: EncodingTask, order: Order, size: int) -> Iterator[Tile]:
    """Give the rows in an order, tile by tile."""
    windowed = isinstance(order, TimeOrder) and order.firsts is not None
    order = with_leaving(order) if isinstance(order, TimeOrder) else order
    n_rows = len(order.rows) if isinstance(order, TimeOrder) else len(task.rows)
    for start, stop in tiles(n_rows, size):
        places = task.ops.xp.arange(start, stop)
        if isinstance(order, TimeOrder):
            numbers, ties = order.rows[start:stop], order.ties[start:stop]
            rows = task.rows.pick(numbers)
            yield Tile(numbers, signed(rows, ties) if windowed else rows, order.starts[ties], ties)
        else:
            numbers = places if isinstance(order, RowOrder) else task.ops.rows_at(order, start, stop)
            yield Tile(numbers, task.rows.pick(numbers), places, None)


def with_leaving(order: TimeOrder) -> TimeOrder:
    """Give the order of a window with rows once more where they leave it; any other as it is.

    Number 2 t is that of time t; with 2 t - 1, right before, rows leave.  Of these `starts` says nothing.
    """
    rows, ties, starts, firsts = order.rows, order.ties, order.starts, order.firsts
    if firsts is None or not len(rows):
        return order
    # Rows leave in the order in which they came.
    n_leaving, leaves = int(starts[firsts[-1]]), np.cumsum(np.bincount(firsts, minlength=len(firsts)))
    ties = np.concatenate([2 * ties, 2 * leaves[ties[:n_leaving]] - 1])
    places = np.argsort(ties, kind="stable")
    return TimeOrder(np.concatenate([rows, rows[:n_leaving]])[places], ties[places], np.repeat(starts, 2))


def state_at_checkpoints(task: EncodingTask, order: Order) -> CheckpointState:
    """Sum the rows before each checkpoint of an order."""
    starts = order.starts if isinstance(order, TimeOrder) else None
    places = checkpoint_places(starts, len(task.rows), task.ops)
    sums = sums_by_segment(task, order, places)
    state = CheckpointState.of(places, starts, sums, task.rule, task.spec, task.ops)
    if not task.rule.needs_categories:
        return state
    deltas = SegmentMeanDeltas(task, places)
    deltas.add(tiles_in_order(task, order, task.tile))
    return replace(state, categories=[sums.running() for sums in deltas.sums])


def sums_by_segment(task: EncodingTask, order: Order, checkpoints: Integers) -> Integers:
    """Digits of the rows between checkpoints (checkpoints, classes, width)."""
    n_segments, layout, n_rows = len(checkpoints), task.spec.layout, 0
    sums = task.ops.zeros((n_segments, task.n_classes, layout.width), np.int64)
    for tile in tiles_in_order(task, order, task.ops.TILE):
        rows = tile.rows.with_codes(find_segments(checkpoints, tile.begins))
        sums += task.ops.accumulate(rows, SumShape(n_segments, 1, task.n_classes, layout))[:-2, 0]
        start, n_rows = n_rows, n_rows + len(rows)
        if start // CARRY_AFTER < n_rows // CARRY_AFTER:
            # Rows of one time are one segment, however many they are.
            carry(sums, layout)
    carry(sums, layout)
    return sums
