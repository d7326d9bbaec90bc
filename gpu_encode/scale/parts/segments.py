"""Sums of rows by segment: between the ranks of an order at which priors are taken."""

from dataclasses import dataclass

from cpu_fallback.row_numbers import Permutation
from cpu_fallback.types import Array
from gpu_encode.fitting.fit import FitContext
from gpu_encode.fitting.inputs import TrainingRows
from gpu_encode.fitting.scans import checkpoint_places, find_segments
from gpu_encode.scale.parts.plans import EncodingPlan
from gpu_encode.schemes.plans import ByTime, Order, OrderedPlan, RowOrder
from gpu_encode.seam.ops import host
from gpu_encode.sums.category_sums import CategorySums


@dataclass(frozen=True, eq=False)
class SegmentSums:
    """Sums of rows by segment, per target; the sums of parts are added up."""

    sums: list[CategorySums]

    def __add__(self, other: "SegmentSums") -> "SegmentSums":
        return SegmentSums([(mine + theirs).to_canonical() for mine, theirs in zip(self.sums, other.sums, strict=True)])


def orders_of(plan: OrderedPlan) -> list[Order | ByTime]:
    """Orders of a plan to which no rows were assigned."""
    return [plan.time] if plan.time is not None else list(plan.orders)


def starts_in(order: Order | ByTime) -> Array | None:
    """Ranks at which ties begin, in an order in time."""
    return order.starts if isinstance(order, ByTime) else None


def begins_of(order: Order | ByTime, encoding_plan: EncodingPlan, rows: TrainingRows, first_row: int) -> Array:
    """Rank in the order of each row of a part; rows of equal time all have the first of their ranks."""
    if isinstance(order, Permutation):
        return rows.ops.ranks_of(order, first_row, first_row + rows.n_rows)
    if isinstance(order, RowOrder):
        ranks: Array = rows.ops.xp.arange(first_row, first_row + rows.n_rows)
        return ranks
    assert isinstance(order, ByTime)
    times = encoding_plan.codes_of(rows, order.column, order.role)
    starts: Array = rows.ops.to_device(order.starts)[times]
    return starts


def segment_sums(
    encoding_plan: EncodingPlan, plan: OrderedPlan, context: FitContext, first_row: int
) -> list[SegmentSums]:
    """Sum the rows of a part by segment, per order."""
    per_order = []
    for order in orders_of(plan):
        on_host = checkpoint_places(starts_in(order), encoding_plan.n_rows, host(encoding_plan.n_rows))
        checkpoints = context.rows.ops.to_device(on_host)
        segments = find_segments(checkpoints, begins_of(order, encoding_plan, context.rows, first_row))
        sums = []
        for task in context.tasks[0]:
            rows = task.rows.with_codes(segments)
            by_segment = CategorySums.measure(task.ops, rows, len(checkpoints), None, 1, task.n_classes, task.spec)
            sums.append(by_segment.on_host(context.rows.ops))
        per_order.append(SegmentSums(sums))
    return per_order
