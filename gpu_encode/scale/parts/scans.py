"""Scans of ordered schemes in parts: groups of ordered rows are encoded in turn, each row from all before it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cpu_fallback.exact import Floats
from cpu_fallback.row_numbers import Permutation
from cpu_fallback.types import Array
from gpu_encode.fitting.ageing import AgeingScan
from gpu_encode.fitting.scans import SegmentMeanDeltas, SequentialScan
from gpu_encode.fitting.tasks import EncodingTask, OutputColumns, make_room
from gpu_encode.scale.parts.ordered_rows import OrderedRows, PrecedingSums, map_arrays
from gpu_encode.scale.parts.tables import EncodingTables
from gpu_encode.schemes.plans import OrderedPlan
from gpu_encode.seam.ops import host
from gpu_encode.sums.moments import CategoryMoments


@dataclass(frozen=True, eq=False)
class RowEncodings:
    """Encodings of ordered rows.

    Parameters
    ----------
    rows : int64 array (rows,)
        Numbers of the rows among all rows.
    values : float64 array (rows, outputs)
        By key, then target, then output.
    unseen : bool array (rows, keys)
        Rows whose category the order has not seen before; no columns unless they are asked for.
    """

    rows: Array
    values: Floats
    unseen: Array

    def between(self, start: int, stop: int) -> "RowEncodings":
        """Select rows [start, stop)."""
        selected = (self.rows >= start) & (self.rows < stop)
        return RowEncodings(self.rows[selected], self.values[selected], self.unseen[selected])


class OrderedScan:
    """The scan of one order: ordered rows are encoded group by group, each row from all rows before it.

    Parameters
    ----------
    tables : EncodingTables
    order : int, default=0
        Number of the order of the scheme.
    earlier : PrecedingSums, optional
        Sums of all rows before the first one, if those rows are not encoded here.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import Ordered, TargetEncoder
    >>> from gpu_encode.parts import OrderedRows, Part, OrderedScan, plan, encode, fit, measure, shuffle, profile
    >>> encoder = TargetEncoder(cv=Ordered(shuffle=False), target_type="continuous", smooth=1, prior=0.25)
    >>> parts = [Part([["a"], ["a"]], [1.0, 2.5]), Part([["a"], ["a"]], [6.0, 4.5], first_row=2)]
    >>> encoding_plan = plan(encoder, profile(encoder, parts[0]) + profile(encoder, parts[1]))
    >>> tables = fit(encoder, encoding_plan, measure(encoding_plan, parts[0]) + measure(encoding_plan, parts[1]))
    >>> scan, encodings = OrderedScan(tables), []
    >>> for part in parts:
    ...     [[rows]] = shuffle(tables, part)
    ...     encodings.append(encode(tables, part, [[scan.encode(rows)]]))
    >>> np.concatenate(encodings).ravel().tolist()
    [0.25, 0.625, 1.25, 2.4375]
    """

    def __init__(self, tables: EncodingTables, order: int = 0, earlier: PrecedingSums | None = None) -> None:
        plan = tables.encoding_plan.plan
        assert isinstance(plan, OrderedPlan)
        self.tables, self.order, self.earlier, self.burn_in = tables, order, earlier, plan.burn_in
        self.shuffled = bool(plan.orders) and isinstance(plan.orders[order], Permutation)
        self._scans: dict[tuple[int, int], SequentialScan | AgeingScan] = {}

    def encode(self, rows: OrderedRows) -> RowEncodings:
        """Encode the next rows of the order."""
        per_key = rows.tasks(self.tables)
        model = self.tables.model
        width = sum(task.n_outputs for tasks in per_key for task in tasks)
        numbers = rows.rows[rows.rows >= 0]
        output = OutputColumns(make_room(host(len(rows)), len(numbers), width, "float64", model.targets))
        unseen = np.ones((len(numbers), len(per_key) if "unseen" in model.indicators else 0), np.bool_)
        for key, tasks in enumerate(per_key):
            for target, task in enumerate(tasks):
                if not task.n_outputs:
                    continue
                first = target == model.rules[key].statistic.first_target
                out, scan = output.next(task.n_outputs), self._scan(key, target, task)
                for tile in rows.tiles(task):
                    values, missing = scan.encode(tile)
                    out[tile.numbers] = task.ops.to_host(values)
                    if unseen.shape[1] and first:
                        unseen[tile.numbers, key] = task.ops.to_host(missing)
        return RowEncodings(numbers, output.matrix, unseen)

    def _scan(self, key: int, target: int, task: EncodingTask) -> SequentialScan | AgeingScan:
        """Give the scan of a key and a target, which goes on where it stopped."""
        scan = self._scans.get((key, target))
        if scan is None:
            plan, earlier = (
                self.tables.encoding_plan.plan,
                {} if self.earlier is None else self.earlier.of_task(key, target),
            )
            if isinstance(plan, OrderedPlan) and plan.new_rows is not None:
                scan = AgeingScan(task, plan, earlier)
            else:
                before = map_arrays(self.tables.before[self.order][key][target], task.ops.to_device)
                scan = SequentialScan(task, before, self.shuffled, self.burn_in, earlier.get(0))
            self._scans[key, target] = scan
        # Few and many rows are computed by different backends.
        scan.task = task
        return scan


class CategoryMeanScan:
    """A scan before `OrderedScan`, for statistics that need the means of all categories so far.

    Parameters
    ----------
    tables : EncodingTables
        Tables whose `needs_categories` is true.
    order : int, default=0
    earlier : PrecedingSums, optional
        As for `OrderedScan`.
    """

    def __init__(self, tables: EncodingTables, order: int = 0, earlier: PrecedingSums | None = None) -> None:
        self.tables, self.order, self.earlier = tables, order, earlier
        self._deltas: dict[tuple[int, int], SegmentMeanDeltas] = {}

    def add(self, rows: OrderedRows) -> None:
        """Add the next rows of the order."""
        for key, tasks in enumerate(rows.tasks(self.tables)):
            for target, task in enumerate(tasks):
                deltas = self._deltas_of(key, target, task)
                deltas.task = task
                deltas.add(rows.tiles(task))

    def _deltas_of(self, key: int, target: int, task: EncodingTask) -> SegmentMeanDeltas:
        """Give the deltas of a key and a target, to which more rows are added."""
        if (key, target) not in self._deltas:
            ranks = task.ops.to_device(self.tables.before[self.order][key][target].places)
            earlier = None if self.earlier is None else self.earlier.of_task(key, target)[0]
            self._deltas[key, target] = SegmentMeanDeltas(task, ranks, earlier)
        return self._deltas[key, target]

    def deltas(self) -> "CategoryMeanDeltas":
        """Give the changes that the rows added so far make."""
        return CategoryMeanDeltas(
            {key: map_arrays(deltas.sums, deltas.task.ops.to_host) for key, deltas in self._deltas.items()}
        )


@dataclass(frozen=True, eq=False)
class CategoryMeanDeltas:
    """Changes of the sums over categories in each segment, per key and target; those of groups are added up."""

    sums: dict[tuple[int, int], list[CategoryMoments]]

    def __add__(self, other: "CategoryMeanDeltas") -> "CategoryMeanDeltas":
        if not self.sums or not other.sums:
            return self if self.sums else other
        return CategoryMeanDeltas(
            {
                key: [mine.changed(more, none_of(mine)) for mine, more in zip(levels, other.sums[key], strict=True)]
                for key, levels in self.sums.items()
            }
        )


def none_of(sums: CategoryMoments) -> CategoryMoments:
    """Sums over no category, in the shape of given ones."""
    return CategoryMoments.none(host(0), sums.number.digits.shape[:-1])


def with_categories(tables: EncodingTables, deltas: Sequence[CategoryMeanDeltas]) -> EncodingTables:
    """Give the tables with the means of the categories before each checkpoint, by `CategoryMeanScan`; per order."""
    before = [
        [
            [
                replace(state, categories=[sums.running() for sums in of_order.sums[key, target]])
                for target, state in enumerate(per_target)
            ]
            for key, per_target in enumerate(per_key)
        ]
        for per_key, of_order in zip(tables.before, deltas, strict=True)
    ]
    return replace(tables, before=before)
