"""Rows of an ordered scheme by their place in the order, in buckets that follow one another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from gpu_encode import ops
from gpu_encode.cells import Array, Rows
from gpu_encode.encoders.work import Work
from gpu_encode.jobs import Job
from gpu_encode.parts.part import Part
from gpu_encode.parts.stretches import begins_of, orders_of
from gpu_encode.parts.sums import work_on
from gpu_encode.parts.tables import Tables
from gpu_encode.plans import ByTime, OrderedPlan
from gpu_encode.statistics import Statistics


@dataclass(frozen=True, eq=False)
class Bucket:
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

    def pick(self, chosen: Array | slice) -> "Bucket":
        """Rows at the given places, in their order."""
        return Bucket(
            self.rows[chosen],
            self.begins[chosen],
            None if self.ties is None else self.ties[chosen],
            [each[chosen] for each in self.codes],
            [each[chosen] for each in self.targets],
            None if self.weight is None else self.weight[chosen],
        )

    @classmethod
    def joined(cls, buckets: "Sequence[Bucket]") -> "Bucket":
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

    def jobs(self, tables: Tables) -> list[list[Job]]:
        """What is to be done with these rows, per entry and target."""
        backend = ops.resolve(len(self), tables.device)
        model, put = tables.model, backend.to_device
        weight = None if self.weight is None else put(self.weight)
        found = []
        for key, formula, codes, sums in zip(model.keys, model.formulas, self.codes, tables.sums, strict=True):
            own = []
            for number, (target, info, whole) in enumerate(zip(self.targets, model.targets, sums, strict=True)):
                classes, values = (put(target), None) if info.classes is not None else (None, put(target))
                rows = Rows(put(codes), classes, values, weight)
                own.append(Job(backend, rows, key, whole.cells.shape[2], whole.measured, formula.of_target(number)))
            found.append(own)
        return found


@dataclass(frozen=True, eq=False)
class BucketSums:
    """Sums of the rows of buckets, per entry and target; those of buckets are added up."""

    sums: list[list[Statistics]]

    @classmethod
    def of(cls, tables: Tables, bucket: Bucket) -> Self:
        """Sum the rows of a bucket."""
        return cls([[job.measure(None, 1).on_host(job.ops) for job in jobs] for jobs in bucket.jobs(tables)])

    def __add__(self, other: "BucketSums") -> "BucketSums":
        pairs = zip(self.sums, other.sums, strict=True)
        return BucketSums([[(a + b).carried() for a, b in zip(*each, strict=True)] for each in pairs])


def scatter(tables: Tables, part: Part, n_buckets: int = 1) -> list[list[Bucket]]:
    """Sort the rows of a part into buckets of neighbouring places, for an ordered scheme.

    Parameters
    ----------
    tables : Tables
    part : Part
    n_buckets : int, default=1
        1 keeps rows together, as an order of rows as they stand (`blueprint.order` is "rows") has them.

    Returns
    -------
    list of list of Bucket
        Per order, its buckets; no bucket of a part without rows.

    Examples
    --------
    >>> from gpu_encode import Ordered, TargetEncoder
    >>> from gpu_encode.parts import Part, draft, fit, measure, scatter, survey
    >>> encoder, part = TargetEncoder(cv=Ordered()), Part([["a"]] * 6, [1, 0, 1, 1, 0, 0])
    >>> blueprint = draft(encoder, survey(encoder, part))
    >>> tables = fit(encoder, blueprint, measure(blueprint, part))
    >>> [len(bucket) for bucket in scatter(tables, part, 2)[0]]
    [3, 3]
    """
    plan = tables.blueprint.plan
    assert isinstance(plan, OrderedPlan)
    with part.named():
        work = work_on(tables.blueprint, part, tables.model.keys)
        if work is None:
            return [[] for _ in orders_of(plan)]
        return [scattered(tables, work, order, part.first_row, n_buckets) for order in orders_of(plan)]


def scattered(tables: Tables, work: Work, order: object, first_row: int, n_buckets: int) -> list[Bucket]:
    """Sort the rows at hand into the buckets of one order."""
    blueprint, fetch = tables.blueprint, work.ops.to_host
    begins = fetch(begins_of(order, blueprint, work, first_row))  # type: ignore[arg-type]
    ties = None
    if isinstance(order, ByTime):
        ties = fetch(blueprint.codes_of(work, order.column, order.role)).astype(np.int64)
    whole = Bucket(
        np.arange(first_row, first_row + len(begins)),
        begins,
        ties,
        [fetch(jobs[0].rows.codes) for jobs in work.jobs],
        [fetch(target.values) for target in work.targets],
        None if work.weight is None else fetch(work.weight),
    )
    if n_buckets == 1:
        return [Bucket.joined([whole])]
    numbers = begins * n_buckets // blueprint.n_rows
    chosen = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=n_buckets))
    return [whole.pick(rows) for rows in np.split(chosen, ends[:-1])]
