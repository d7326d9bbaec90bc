"""Sums of the rows of an order between the places at which priors are taken."""

from dataclasses import dataclass

import numpy as np

from gpu_encode.cells import Array
from gpu_encode.checkpoints import checkpoint_places, segments_of
from gpu_encode.encoders.work import Work
from gpu_encode.ops import host
from gpu_encode.parts.blueprints import Blueprint
from gpu_encode.plans import ByTime, Order, OrderedPlan, RowOrder
from gpu_encode.rows import Permutation
from gpu_encode.statistics import Statistics


@dataclass(frozen=True, eq=False)
class Stretches:
    """Sums of rows between checkpoints, per target; those of parts are added up."""

    sums: list[Statistics]

    def __add__(self, other: "Stretches") -> "Stretches":
        return Stretches([(mine + theirs).carried() for mine, theirs in zip(self.sums, other.sums, strict=True)])


def orders_of(plan: OrderedPlan) -> list[Order | ByTime]:
    """Orders of a plan that no rows are assigned to."""
    return [plan.time] if plan.time is not None else list(plan.orders)


def starts_in(order: Order | ByTime) -> Array | None:
    """Places at which ties begin, in an order in time."""
    return order.starts if isinstance(order, ByTime) else None


def begins_of(order: Order | ByTime, blueprint: Blueprint, work: Work, first_row: int) -> Array:
    """Place in the order of each row of a part; of rows of equal time the first place of them all."""
    n_rows = work.frame.n_rows
    if isinstance(order, Permutation):
        return work.ops.places_of(order, first_row, first_row + n_rows)
    if isinstance(order, RowOrder):
        places: Array = work.ops.xp.arange(first_row, first_row + n_rows)
        return places
    assert isinstance(order, ByTime)
    times = blueprint.codes_of(work, order.column, order.role)
    starts: Array = work.ops.to_device(order.starts)[times]
    return starts


def stretches_of(blueprint: Blueprint, plan: OrderedPlan, work: Work, first_row: int) -> list[Stretches]:
    """Sums of the rows of a part, per order."""
    found = []
    for order in orders_of(plan):
        on_host = checkpoint_places(starts_in(order), blueprint.n_rows, host(blueprint.n_rows))
        checkpoints = work.ops.to_device(on_host)
        segments = segments_of(checkpoints, begins_of(order, blueprint, work, first_row))
        sums = [
            Statistics.measure(
                job.ops,
                job.rows.with_codes(segments.astype(np.int32)),
                len(checkpoints),
                None,
                1,
                job.n_classes,
                job.measured,
            ).on_host(work.ops)
            for job in work.jobs[0]
        ]
        found.append(Stretches(sums))
    return found
