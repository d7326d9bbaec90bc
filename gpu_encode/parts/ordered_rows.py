"""Rows of an ordered scheme by their place in the order, in buckets that follow one another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from cpu_fallback.types import Array, Rows
from gpu_encode import ops
from gpu_encode.fitting.work import Work
from gpu_encode.parts.part import Part
from gpu_encode.parts.segments import begins_of, orders_of
from gpu_encode.parts.sums import work_on
from gpu_encode.parts.tables import EncodingTables
from gpu_encode.schemes.plans import ByTime, OrderedPlan
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.training.tasks import EncodingTask


@dataclass(frozen=True, eq=False)
class OrderedRows:
    """Rows at neighbouring places of an order, as numbers that are as small as they can be.

    Parameters
    ----------
    rows : int64 array (rows,)
        Their numbers among all rows.
    begins : int64 array (rows,)
        Place of each; of rows of equal time the first place of them all.
    ties : int64 array or None
        Number of each row's time, in an order in time.
    codes : list of int32 array
        Category of each row, per entry.
    targets : list of array
        Class number or quantity of each row, per target.
    weight : array or None
    """

    rows: Array
    begins: Array
    ties: Array | None
    codes: list[Array]
    targets: list[Array]
    weight: Array | None

    def __len__(self) -> int:
        return len(self.rows)

    def pick(self, chosen: Array | slice) -> "OrderedRows":
        """Rows at the given places, in their order."""
        return OrderedRows(
            self.rows[chosen],
            self.begins[chosen],
            None if self.ties is None else self.ties[chosen],
            [each[chosen] for each in self.codes],
            [each[chosen] for each in self.targets],
            None if self.weight is None else self.weight[chosen],
        )

    @classmethod
    def joined(cls, buckets: "Sequence[OrderedRows]") -> "OrderedRows":
        """Rows of several buckets, in their order."""
        first = buckets[0]
        together = cls(
            np.concatenate([each.rows for each in buckets]),
            np.concatenate([each.begins for each in buckets]),
            None if first.ties is None else np.concatenate([each.ties for each in buckets]),
            [np.concatenate(parts) for parts in zip(*(each.codes for each in buckets), strict=True)],
            [np.concatenate(parts) for parts in zip(*(each.targets for each in buckets), strict=True)],
            None if first.weight is None else np.concatenate([each.weight for each in buckets]),
        )
        if (np.diff(together.begins) >= 0).all():
            return together
        return together.pick(np.argsort(together.begins, kind="stable"))

    def tasks(self, tables: EncodingTables) -> list[list[EncodingTask]]:
        """What is to be done with these rows, per entry and target."""
        backend = ops.resolve(len(self), tables.device)
        model, put = tables.model, backend.to_device
        weight = None if self.weight is None else put(self.weight)
        found = []
        for key, rule, codes, sums in zip(model.keys, model.rules, self.codes, tables.sums, strict=True):
            own = []
            for number, (target, info, whole) in enumerate(zip(self.targets, model.targets, sums, strict=True)):
                classes, values = (put(target), None) if info.classes is not None else (None, put(target))
                rows = Rows(put(codes), classes, values, weight)
                own.append(
                    EncodingTask(
                        backend, rows, key, whole.accumulators.shape[2], whole.measured, rule.of_target(number)
                    )
                )
            found.append(own)
        return found


@dataclass(frozen=True, eq=False)
class PrecedingSums:
    """Sums of the rows of buckets, per entry and target; those of buckets are added up."""

    sums: list[list[CategorySums]]

    @classmethod
    def of(cls, tables: EncodingTables, bucket: OrderedRows) -> Self:
        """Sum the rows of a bucket."""
        return cls([[task.measure(None, 1).on_host(task.ops) for task in tasks] for tasks in bucket.tasks(tables)])

    def __add__(self, other: "PrecedingSums") -> "PrecedingSums":
        pairs = zip(self.sums, other.sums, strict=True)
        return PrecedingSums([[(a + b).carried() for a, b in zip(*each, strict=True)] for each in pairs])


def shuffle(tables: EncodingTables, part: Part, n_buckets: int = 1) -> list[list[OrderedRows]]:
    """Sort the rows of a part into buckets of neighbouring places, for an ordered scheme.

    Parameters
    ----------
    tables : EncodingTables
    part : Part
    n_buckets : int, default=1
        1 keeps rows together, as an order of rows as they stand (`encoding_plan.order` is "rows") has them.

    Returns
    -------
    list of list of OrderedRows
        Per order, its buckets; no bucket of a part without rows.

    Examples
    --------
    >>> from gpu_encode import Ordered, TargetEncoder
    >>> from gpu_encode.parts import Part, plan, fit, measure, shuffle, profile
    >>> encoder, part = TargetEncoder(cv=Ordered()), Part([["a"]] * 6, [1, 0, 1, 1, 0, 0])
    >>> encoding_plan = plan(encoder, profile(encoder, part))
    >>> tables = fit(encoder, encoding_plan, measure(encoding_plan, part))
    >>> [len(bucket) for bucket in shuffle(tables, part, 2)[0]]
    [3, 3]
    """
    plan = tables.encoding_plan.plan
    assert isinstance(plan, OrderedPlan)
    with part.named():
        work = work_on(tables.encoding_plan, part, tables.model.keys)
        if work is None:
            return [[] for _ in orders_of(plan)]
        return [scattered(tables, work, order, part.first_row, n_buckets) for order in orders_of(plan)]


def scattered(tables: EncodingTables, work: Work, order: object, first_row: int, n_buckets: int) -> list[OrderedRows]:
    """Sort the rows at hand into the buckets of one order."""
    encoding_plan, fetch = tables.encoding_plan, work.ops.to_host
    begins = fetch(begins_of(order, encoding_plan, work, first_row))  # type: ignore[arg-type]
    ties = None
    if isinstance(order, ByTime):
        ties = fetch(encoding_plan.codes_of(work, order.column, order.role)).astype(np.int64)
    whole = OrderedRows(
        np.arange(first_row, first_row + len(begins)),
        begins,
        ties,
        [fetch(tasks[0].rows.codes) for tasks in work.tasks],
        [fetch(target.values) for target in work.targets],
        None if work.weight is None else fetch(work.weight),
    )
    if n_buckets == 1:
        return [OrderedRows.joined([whole])]
    numbers = begins * n_buckets // encoding_plan.n_rows
    chosen = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=n_buckets))
    return [whole.pick(rows) for rows in np.split(chosen, ends[:-1])]
