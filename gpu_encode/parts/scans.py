"""Ordered schemes: from bucket to bucket, what rows have seen so far goes on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from cpu_fallback.exact import Floats
from cpu_fallback.row_numbers import Permutation
from cpu_fallback.types import Array
from gpu_encode.ops import Ops, host, tiles
from gpu_encode.parts.ordered_rows import OrderedRows, PrecedingSums
from gpu_encode.parts.tables import EncodingTables
from gpu_encode.schemes.plans import OrderedPlan
from gpu_encode.sums.moments import CategoryMoments
from gpu_encode.training.checkpoints import CheckpointState
from gpu_encode.training.scans import SegmentMeanDeltas, SequentialScan
from gpu_encode.training.tasks import EncodingTask


@dataclass(frozen=True, eq=False)
class RowEncodings:
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

    def between(self, start: int, stop: int) -> "RowEncodings":
        """Those of rows [start, stop)."""
        there = (self.rows >= start) & (self.rows < stop)
        return RowEncodings(self.rows[there], self.values[there], self.unseen[there])


class OrderedScan:
    """One order on its way: buckets are encoded one after another, each from all that came before it.

    Parameters
    ----------
    tables : EncodingTables
    order : int, default=0
        Which order of the scheme.
    earlier : PrecedingSums, optional
        Sums of all buckets before the first to come, where these are not encoded here.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import Ordered, TargetEncoder
    >>> from gpu_encode.parts import OrderedRows, Part, OrderedScan, plan, encode, fit, measure, shuffle, profile
    >>> encoder = TargetEncoder(cv=Ordered(shuffle=False), target_type="continuous", smooth=1, prior=0.5)
    >>> parts = [Part([["a"], ["a"]], [1.0, 2.5]), Part([["a"], ["a"]], [6.0, 4.5], first_row=2)]
    >>> encoding_plan = plan(encoder, profile(encoder, parts[0]) + profile(encoder, parts[1]))
    >>> tables = fit(encoder, encoding_plan, measure(encoding_plan, parts[0]) + measure(encoding_plan, parts[1]))
    >>> running, codes = OrderedScan(tables), []
    >>> for part in parts:
    ...     [[bucket]] = shuffle(tables, part)
    ...     codes.append(encode(tables, part, [[running.codes(bucket)]]))
    >>> np.concatenate(codes).ravel().tolist()
    [0.5, 0.75, 1.3333333333333333, 2.5]
    """

    def __init__(self, tables: EncodingTables, order: int = 0, earlier: PrecedingSums | None = None) -> None:
        plan = tables.encoding_plan.plan
        assert isinstance(plan, OrderedPlan)
        self.tables, self.order, self.earlier, self.burn_in = tables, order, earlier, plan.burn_in
        self.shuffled = bool(plan.orders) and isinstance(plan.orders[order], Permutation)
        self._walks: dict[tuple[int, int], SequentialScan] = {}

    def codes(self, bucket: OrderedRows) -> RowEncodings:
        """Give the codes of the rows of the next bucket."""
        tasks = bucket.tasks(self.tables)
        width = sum(task.n_outputs for own in tasks for task in own)
        values = np.empty((len(bucket), width), np.float64)
        unseen = np.ones((len(bucket), len(tasks) if "unseen" in self.tables.model.indicators else 0), np.bool_)
        start = 0
        for entry, own in enumerate(tasks):
            first = self.tables.model.rules[entry].statistic.first_target
            for target, task in enumerate(own):
                if not task.n_outputs:
                    continue
                stop = start + task.n_outputs
                flags = unseen[:, entry] if unseen.shape[1] and target == first else None
                self._write(task, self._walk(entry, target, task), bucket, values[:, start:stop], flags)
                start = stop
        return RowEncodings(bucket.rows, values, unseen)

    def _walk(self, entry: int, target: int, task: EncodingTask) -> SequentialScan:
        walk = self._walks.get((entry, target))
        if walk is None:
            before = placed(self.tables.before[self.order][entry][target], task.ops)
            earlier = None if self.earlier is None else self.earlier.sums[entry][target]
            walk = self._walks[entry, target] = SequentialScan(task, before, self.shuffled, self.burn_in, earlier)
        # Buckets of few and of many rows are computed by backends of their own.
        walk.task = task
        return walk

    def _write(
        self, task: EncodingTask, walk: SequentialScan, bucket: OrderedRows, out: Array, flags: Array | None
    ) -> None:
        put, fetch = task.ops.to_device, task.ops.to_host
        for start, stop in tiles(len(bucket), task.tile):
            ties = None if bucket.ties is None else put(bucket.ties[start:stop])
            values, missing = walk(task.rows.block(start, stop), put(bucket.begins[start:stop]), ties)
            out[start:stop] = fetch(values)
            if flags is not None:
                flags[start:stop] = fetch(missing)


class CategoryMeanScan:
    """One order on its way, for formulas that ask for the means of all categories so far: a pass before `OrderedScan`.

    Parameters
    ----------
    tables : EncodingTables
        Whose `needs_categories` is true.
    order : int, default=0
    earlier : PrecedingSums, optional
        As for `OrderedScan`.
    """

    def __init__(self, tables: EncodingTables, order: int = 0, earlier: PrecedingSums | None = None) -> None:
        self.tables, self.order, self.earlier = tables, order, earlier
        self._gains: dict[tuple[int, int], list[SegmentMeanDeltas]] = {}

    def add(self, bucket: OrderedRows) -> None:
        """Add the rows of the next bucket."""
        for entry, own in enumerate(bucket.tasks(self.tables)):
            for target, task in enumerate(own):
                gains = self._own(entry, target, task)
                for start, stop in tiles(len(bucket), task.tile):
                    for each in gains:
                        each.task = task
                        each.add(task.rows.block(start, stop), task.ops.to_device(bucket.begins[start:stop]))

    def _own(self, entry: int, target: int, task: EncodingTask) -> list[SegmentMeanDeltas]:
        if (entry, target) not in self._gains:
            places = task.ops.to_device(self.tables.before[self.order][entry][target].places)
            earlier = None if self.earlier is None else self.earlier.sums[entry][target]
            self._gains[entry, target] = [SegmentMeanDeltas(task, keying, places, earlier) for keying in task.keyings()]
        return self._gains[entry, target]

    def gained(self) -> "CategoryMeanDeltas":
        """Give what the rows so far have added."""
        found = {place: [moved(each.sums, each.task.ops.to_host) for each in own] for place, own in self._gains.items()}
        return CategoryMeanDeltas(found)


@dataclass(frozen=True, eq=False)
class CategoryMeanDeltas:
    """Changes of the sums over categories between checkpoints, per entry and target; those of buckets are added up."""

    sums: dict[tuple[int, int], list[CategoryMoments]]

    def __add__(self, other: "CategoryMeanDeltas") -> "CategoryMeanDeltas":
        if not self.sums or not other.sums:
            return self if self.sums else other
        nothing = {place: [none_of(each) for each in own] for place, own in self.sums.items()}
        return CategoryMeanDeltas(
            {
                place: [a.changed(b, c) for a, b, c in zip(own, other.sums[place], nothing[place], strict=True)]
                for place, own in self.sums.items()
            }
        )


def none_of(sums: CategoryMoments) -> CategoryMoments:
    """Sums over no category, in the shape of others."""
    return CategoryMoments.none(host(0), sums.number.digits.shape[:-1])


def with_categories(tables: EncodingTables, gained: Sequence[CategoryMeanDeltas]) -> EncodingTables:
    """Give the tables with the means of the categories before each checkpoint, by `CategoryMeanScan`; per order."""
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


def placed(before: CheckpointState, ops: Ops) -> CheckpointState:
    """What lies before checkpoints, where the backend computes."""
    found: CheckpointState = moved(before, ops.to_device)
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
