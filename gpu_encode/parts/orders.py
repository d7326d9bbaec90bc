"""Ordered schemes: from bucket to bucket, what rows have seen so far goes on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from cpu_fallback.exact import Floats
from gpu_encode.cells import Array
from gpu_encode.checkpoints import Before
from gpu_encode.jobs import Job, tiles
from gpu_encode.moments import CategoryMoments
from gpu_encode.ops import Ops, host
from gpu_encode.parts.buckets import Bucket, BucketSums
from gpu_encode.parts.tables import Tables
from gpu_encode.plans import OrderedPlan
from gpu_encode.rows import Permutation
from gpu_encode.walks import Gains, Walk


@dataclass(frozen=True, eq=False)
class Placed:
    """Codes of the rows of a bucket.

    Parameters
    ----------
    rows : int64 array (rows,)
        Their numbers among all rows.
    values : float64 array (rows, outputs)
        By entry, then target, then output.
    unseen : bool array (rows, entries)
        Rows whose category the order has not seen before; no columns unless they are asked for.
    """

    rows: Array
    values: Floats
    unseen: Array

    def between(self, start: int, stop: int) -> "Placed":
        """Those of rows [start, stop)."""
        there = (self.rows >= start) & (self.rows < stop)
        return Placed(self.rows[there], self.values[there], self.unseen[there])


class Running:
    """One order on its way: buckets are encoded one after another, each from all that came before it.

    Parameters
    ----------
    tables : Tables
    order : int, default=0
        Which order of the scheme.
    earlier : BucketSums, optional
        Sums of all buckets before the first to come, where these are not encoded here.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import Ordered, TargetEncoder
    >>> from gpu_encode.parts import Bucket, Part, Running, draft, encode, fit, measure, scatter, survey
    >>> encoder = TargetEncoder(cv=Ordered(shuffle=False), target_type="continuous", smooth=1, prior=0.5)
    >>> parts = [Part([["a"], ["a"]], [1.0, 2.5]), Part([["a"], ["a"]], [6.0, 4.5], first_row=2)]
    >>> blueprint = draft(encoder, survey(encoder, parts[0]) + survey(encoder, parts[1]))
    >>> tables = fit(encoder, blueprint, measure(blueprint, parts[0]) + measure(blueprint, parts[1]))
    >>> running, codes = Running(tables), []
    >>> for part in parts:
    ...     [[bucket]] = scatter(tables, part)
    ...     codes.append(encode(tables, part, [[running.codes(bucket)]]))
    >>> np.concatenate(codes).ravel().tolist()
    [0.5, 0.75, 1.3333333333333333, 2.5]
    """

    def __init__(self, tables: Tables, order: int = 0, earlier: BucketSums | None = None) -> None:
        plan = tables.blueprint.plan
        assert isinstance(plan, OrderedPlan)
        self.tables, self.order, self.earlier, self.burn_in = tables, order, earlier, plan.burn_in
        self.shuffled = bool(plan.orders) and isinstance(plan.orders[order], Permutation)
        self._walks: dict[tuple[int, int], Walk] = {}

    def codes(self, bucket: Bucket) -> Placed:
        """Give the codes of the rows of the next bucket."""
        jobs = bucket.jobs(self.tables)
        width = sum(job.n_outputs for own in jobs for job in own)
        values = np.empty((len(bucket), width), np.float64)
        unseen = np.ones((len(bucket), len(jobs) if "unseen" in self.tables.model.indicators else 0), np.bool_)
        start = 0
        for entry, own in enumerate(jobs):
            first = self.tables.model.formulas[entry].readout.first_target
            for target, job in enumerate(own):
                if not job.n_outputs:
                    continue
                stop = start + job.n_outputs
                flags = unseen[:, entry] if unseen.shape[1] and target == first else None
                self._write(job, self._walk(entry, target, job), bucket, values[:, start:stop], flags)
                start = stop
        return Placed(bucket.rows, values, unseen)

    def _walk(self, entry: int, target: int, job: Job) -> Walk:
        walk = self._walks.get((entry, target))
        if walk is None:
            before = placed(self.tables.before[self.order][entry][target], job.ops)
            earlier = None if self.earlier is None else self.earlier.sums[entry][target]
            walk = self._walks[entry, target] = Walk(job, before, self.shuffled, self.burn_in, earlier)
        # Buckets of few and of many rows are computed by backends of their own.
        walk.job = job
        return walk

    def _write(self, job: Job, walk: Walk, bucket: Bucket, out: Array, flags: Array | None) -> None:
        put, fetch = job.ops.to_device, job.ops.to_host
        for start, stop in tiles(len(bucket), job.tile):
            ties = None if bucket.ties is None else put(bucket.ties[start:stop])
            values, missing = walk(job.rows.block(start, stop), put(bucket.begins[start:stop]), ties)
            out[start:stop] = fetch(values)
            if flags is not None:
                flags[start:stop] = fetch(missing)


class Gaining:
    """One order on its way, for formulas that ask for the means of all categories so far: a pass before `Running`.

    Parameters
    ----------
    tables : Tables
        Whose `needs_categories` is true.
    order : int, default=0
    earlier : BucketSums, optional
        As for `Running`.
    """

    def __init__(self, tables: Tables, order: int = 0, earlier: BucketSums | None = None) -> None:
        self.tables, self.order, self.earlier = tables, order, earlier
        self._gains: dict[tuple[int, int], list[Gains]] = {}

    def add(self, bucket: Bucket) -> None:
        """Add the rows of the next bucket."""
        for entry, own in enumerate(bucket.jobs(self.tables)):
            for target, job in enumerate(own):
                gains = self._own(entry, target, job)
                for start, stop in tiles(len(bucket), job.tile):
                    for each in gains:
                        each.job = job
                        each.add(job.rows.block(start, stop), job.ops.to_device(bucket.begins[start:stop]))

    def _own(self, entry: int, target: int, job: Job) -> list[Gains]:
        if (entry, target) not in self._gains:
            places = job.ops.to_device(self.tables.before[self.order][entry][target].places)
            earlier = None if self.earlier is None else self.earlier.sums[entry][target]
            self._gains[entry, target] = [Gains(job, keying, places, earlier) for keying in job.keyings()]
        return self._gains[entry, target]

    def gained(self) -> "Gained":
        """Give what the rows so far have added."""
        found = {place: [moved(each.sums, each.job.ops.to_host) for each in own] for place, own in self._gains.items()}
        return Gained(found)


@dataclass(frozen=True, eq=False)
class Gained:
    """Changes of the sums over categories between checkpoints, per entry and target; those of buckets are added up."""

    sums: dict[tuple[int, int], list[CategoryMoments]]

    def __add__(self, other: "Gained") -> "Gained":
        if not self.sums or not other.sums:
            return self if self.sums else other
        nothing = {place: [none_of(each) for each in own] for place, own in self.sums.items()}
        return Gained(
            {
                place: [a.changed(b, c) for a, b, c in zip(own, other.sums[place], nothing[place], strict=True)]
                for place, own in self.sums.items()
            }
        )


def none_of(sums: CategoryMoments) -> CategoryMoments:
    """Sums over no category, in the shape of others."""
    return CategoryMoments.none(host(0), sums.number.digits.shape[:-1])


def with_categories(tables: Tables, gained: Sequence[Gained]) -> Tables:
    """Give the tables with the means of the categories before each checkpoint, as `Gaining` found them; per order."""
    before = [
        [
            [
                replace(each, categories=[sums.running() for sums in own.sums[entry, target]])
                for target, each in enumerate(per_target)
            ]
            for entry, per_target in enumerate(per_entry)
        ]
        for per_entry, own in zip(tables.before, gained, strict=True)
    ]
    return replace(tables, before=before)


def placed(before: Before, ops: Ops) -> Before:
    """What lies before checkpoints, where the backend computes."""
    found: Before = moved(before, ops.to_device)
    return found


def moved(value: Any, move: Callable[[Array], Array]) -> Any:
    """Give the same with all its arrays moved."""
    if isinstance(value, np.ndarray) or hasattr(value, "__cuda_array_interface__"):
        return move(value)
    if isinstance(value, list):
        return [moved(each, move) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{each.name: moved(getattr(value, each.name), move) for each in fields(value) if each.init}
        )
    return value
