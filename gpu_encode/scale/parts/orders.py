"""Ordered schemes in parts: rows are sorted by rank into groups of neighbours, and scans encode the groups in order."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Self

import numpy as np

from cpu_fallback.decay import blocks_of, weights_of
from cpu_fallback.exact import Floats
from cpu_fallback.row_numbers import Order, Permutation
from cpu_fallback.types import Array, Rows
from gpu_encode.fitting.fit import FitContext
from gpu_encode.fitting.ordered import AgeingScan, SegmentMeanDeltas, SequentialScan, Tile
from gpu_encode.fitting.tasks import EncodingTask, OutputColumns, make_room
from gpu_encode.scale.parts.part import Part
from gpu_encode.scale.parts.sums import begins_of, orders_of, prepare_part
from gpu_encode.scale.parts.tables import EncodingTables
from gpu_encode.schemes.plans import ByTime, OrderedPlan
from gpu_encode.seam import ops
from gpu_encode.seam.ops import host, tiles
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.sums.moments import CategoryMoments
from gpu_encode.sums.targets import as_doubles


@dataclass(frozen=True, eq=False)
class OrderedRows:
    """Rows of neighbouring ranks in an order, stored as numbers only, to be sent between processes.

    Parameters
    ----------
    rows : int64 array (rows,)
        Numbers of the rows among all rows; -1 for a copy that takes a row away when it leaves the window.
    begins : int64 array (rows,)
        Rank of each row; rows of equal time all have the rank of the first of them.
    ties : int64 array or None
        Index of each row's time among the distinct times, for an order in time.
    codes : list of int32 array
        Category of each row, per key.
    targets : list of array
        Class number or value of each row, for each target.
    weights : list of array or None
        Weight of each row, per target: a row that lacks a target has no weight for it.
    """

    rows: Array
    begins: Array
    ties: Array | None
    codes: list[Array]
    targets: list[Array]
    weights: list[Array | None]

    def __len__(self) -> int:
        return len(self.rows)

    def pick(self, chosen: Array | slice) -> "OrderedRows":
        """Select rows, in the order in which they are given."""
        rows: OrderedRows = map_arrays(self, lambda array: array[chosen])
        return rows

    @classmethod
    def join(cls, groups: "Sequence[OrderedRows]") -> "OrderedRows":
        """Join rows from several parts, and sort them by rank."""
        first = groups[0]
        together = cls(
            np.concatenate([group.rows for group in groups]),
            np.concatenate([group.begins for group in groups]),
            None if first.ties is None else np.concatenate([group.ties for group in groups]),
            [np.concatenate(codes) for codes in zip(*(group.codes for group in groups), strict=True)],
            [np.concatenate(targets) for targets in zip(*(group.targets for group in groups), strict=True)],
            [join_weights(groups, number) for number in range(len(first.targets))],
        )
        # At equal rank, copies that take rows away come before rows that are added.
        ranks = together.begins if together.ties is None else together.ties
        if (np.diff(ranks) >= 0).all():
            return together
        return together.pick(np.argsort(ranks, kind="stable"))

    def tasks(self, tables: EncodingTables) -> list[list[EncodingTask]]:
        """Give the tasks of these rows, for each key and target."""
        backend = ops.resolve(len(self), tables.device)
        model, upload = replace(tables.model, statistics=tables.sums), backend.to_device
        of_targets = []
        for target, info, weight in zip(self.targets, model.targets, self.weights, strict=True):
            classes, values = (upload(target), None) if info.classes is not None else (None, upload(target))
            of_targets.append(Rows(np.zeros(0, np.int32), classes, values, None if weight is None else upload(weight)))
        return [
            [model.task(key, target, backend, rows.with_codes(of_key)) for target, rows in enumerate(of_targets)]
            for key, of_key in enumerate(map(upload, self.codes))
        ]

    def tiles(self, task: EncodingTask) -> Iterator[Tile]:
        """Yield the rows of one of these tasks, tile by tile."""
        upload, edges = task.ops.to_device, np.append(0, np.cumsum(self.rows >= 0))
        for start, stop in tiles(len(self), task.tile):
            here = slice(start, stop)
            ties = None if self.ties is None else upload(self.ties[here])
            yield Tile(slice(edges[start], edges[stop]), task.rows.block(start, stop), upload(self.begins[here]), ties)


@dataclass(frozen=True, eq=False)
class PrecedingSums:
    """Sums of the ordered rows before a group, for each key and target; they can be added.

    If rows lose weight with age, sums are kept by blocks of half-lives, and only the last two blocks matter.
    Otherwise all rows are one block, number 0.
    """

    by_block: dict[int, list[list[CategorySums]]]

    @classmethod
    def of(cls, tables: EncodingTables, rows: OrderedRows) -> Self:
        """Sum a group of ordered rows."""
        plan = tables.encoding_plan.plan
        steps = plan.steps if isinstance(plan, OrderedPlan) else None
        if steps is None or rows.ties is None:
            return cls({0: sum_up(tables, rows)})
        blocks = blocks_of(steps[rows.ties])
        last = int(blocks.max())
        by_block = {block: rows.pick(blocks == block) for block in (last - 1, last)}
        return cls({block: sum_up(tables, part) for block, part in by_block.items() if len(part)})

    def of_task(self, key: int, target: int) -> dict[int, CategorySums]:
        """Give the sums of a key and a target, by block."""
        return {block: sums[key][target] for block, sums in self.by_block.items()}

    def __add__(self, other: "PrecedingSums") -> "PrecedingSums":
        both = dict(self.by_block)
        for block, sums in other.by_block.items():
            both[block] = join_sums(both[block], sums) if block in both else sums
        return PrecedingSums({block: sums for block, sums in both.items() if block >= max(both) - 1})


def sum_up(tables: EncodingTables, rows: OrderedRows) -> list[list[CategorySums]]:
    """Sum ordered rows, per key and target."""
    return [[task.measure(None, 1).on_host(task.ops) for task in tasks] for tasks in rows.tasks(tables)]


def join_sums(some: list[list[CategorySums]], others: list[list[CategorySums]]) -> list[list[CategorySums]]:
    """Add up sums, per key and target."""
    pairs = zip(some, others, strict=True)
    return [[(a + b).to_canonical() for a, b in zip(*of_key, strict=True)] for of_key in pairs]


def shuffle(tables: EncodingTables, part: Part, n_groups: int = 1) -> list[list[OrderedRows]]:
    """Sort the rows of a part into groups of neighbouring ranks, for an ordered scheme.

    Parameters
    ----------
    tables : EncodingTables
    part : Part
    n_groups : int, default=1
        With 1 the rows stay together, which `encoding_plan.order` "rows" needs.

    Returns
    -------
    list of list of OrderedRows
        For each order, one for each group; an empty list for a part without rows.

    Examples
    --------
    >>> from gpu_encode import Ordered, TargetEncoder
    >>> from gpu_encode.parts import Part, plan, fit, measure, shuffle, profile
    >>> encoder, part = TargetEncoder(cv=Ordered()), Part([["a"]] * 6, [1, 0, 1, 1, 0, 0])
    >>> encoding_plan = plan(encoder, profile(encoder, part))
    >>> tables = fit(encoder, encoding_plan, measure(encoding_plan, part))
    >>> [len(rows) for rows in shuffle(tables, part, 2)[0]]
    [3, 3]
    """
    plan = tables.encoding_plan.plan
    assert isinstance(plan, OrderedPlan)
    with part.named():
        context = prepare_part(tables.encoding_plan, part, tables.model.keys)
        if context is None:
            return [[] for _ in orders_of(plan)]
        return [sort_by_rank(tables, context, order, part.first_row, n_groups) for order in orders_of(plan)]


def sort_by_rank(
    tables: EncodingTables, context: FitContext, order: Order | ByTime, first_row: int, n_groups: int
) -> list[OrderedRows]:
    """Sort the rows of a part into groups by their rank in one order."""
    encoding_plan, rows, fetch = tables.encoding_plan, context.rows, context.rows.ops.to_host
    begins = fetch(begins_of(order, encoding_plan, rows, first_row))
    ties = None
    if isinstance(order, ByTime):
        ties = fetch(encoding_plan.codes_of(rows, order.column, order.role)).astype(np.int64)
    whole = OrderedRows(
        np.arange(first_row, first_row + len(begins)),
        begins,
        ties,
        [fetch(tasks[0].rows.codes) for tasks in context.tasks],
        [fetch(as_doubles(rows.ops, target.values)) for target in context.targets],
        [None if task.rows.weight is None else fetch(task.rows.weight) for task in context.tasks[0]],
    )
    assert isinstance(encoding_plan.plan, OrderedPlan)
    if encoding_plan.plan.new_rows is not None:
        whole = with_ages(whole, encoding_plan.plan)
        begins = whole.begins
    if n_groups == 1:
        return [OrderedRows.join([whole])]
    groups = begins * n_groups // encoding_plan.n_rows
    by_group = np.argsort(groups, kind="stable")
    ends = np.cumsum(np.bincount(groups, minlength=n_groups))
    return [whole.pick(chosen) for chosen in np.split(by_group, ends[:-1])]


def join_weights(groups: Sequence[OrderedRows], target: int) -> Array | None:
    """Join the weights of rows for one target; rows of a group without weights have weight one."""
    weights = [group.weights[target] for group in groups]
    if all(weight is None for weight in weights):
        return None
    pairs = zip(groups, weights, strict=True)
    return np.concatenate([np.ones(len(group), np.int64) if weight is None else weight for group, weight in pairs])


def with_ages(rows: OrderedRows, plan: OrderedPlan) -> OrderedRows:
    """Weight rows by their ages; with a window, add for each row a copy that takes it away when it leaves."""
    assert plan.time is not None
    assert rows.ties is not None
    if plan.steps is not None:
        factors = weights_of(plan.steps)[rows.ties]
        return replace(rows, weights=[factors if weight is None else weight * factors for weight in rows.weights])
    assert plan.leaves is not None
    weights: list[Array | None] = [
        np.ones(len(rows), np.int64) if weight is None else weight for weight in rows.weights
    ]
    until, staying = plan.leaves[rows.ties], replace(rows, ties=2 * rows.ties, weights=weights)
    starts, out = plan.time.starts, until < len(plan.time.starts)
    leaving, until = staying.pick(out), until[out]
    none = np.full(len(leaving), -1)
    away: list[Array | None] = [-weight for weight in leaving.weights if weight is not None]
    leaving = replace(leaving, rows=none, begins=starts[until], ties=2 * until - 1, weights=away)
    return OrderedRows.join([staying, leaving])


def map_arrays(value: Any, function: Callable[[Array], Array]) -> Any:
    """Apply a function to each array inside a value, list or dataclass."""
    if isinstance(value, np.ndarray) or hasattr(value, "__cuda_array_interface__"):
        return function(value)
    if isinstance(value, list):
        return [map_arrays(item, function) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        mapped = {field.name: map_arrays(getattr(value, field.name), function) for field in fields(value) if field.init}
        return replace(value, **mapped)
    return value


@dataclass(frozen=True, eq=False)
class RowEncodings:
    """Encodings of ordered rows.

    Parameters
    ----------
    rows : int64 array (rows,)
        Numbers of the rows among all rows.
    values : float64 array (rows, outputs)
        In the order of keys, then targets, then outputs.
    unseen : bool array (rows, keys)
        Rows whose category no earlier row of the order has; no columns if indicators do not need them.
    """

    rows: Array
    values: Floats
    unseen: Array

    def between(self, start: int, stop: int) -> "RowEncodings":
        """Select rows [start, stop)."""
        selected = (self.rows >= start) & (self.rows < stop)
        return RowEncodings(self.rows[selected], self.values[selected], self.unseen[selected])


class OrderedScan:
    """The scan of one order: it encodes groups of ordered rows one after another, each row from all rows before it.

    Parameters
    ----------
    tables : EncodingTables
    order : int, default=0
        Index of the order in the scheme.
    earlier : PrecedingSums, optional
        Sums of all rows before the first row of this scan, if another scan encodes those.

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
        """Give the scan of a key and a target; it continues after the rows that it has encoded."""
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
        # Different backends compute few and many rows.
        scan.task = task
        return scan


class CategoryMeanScan:
    """A scan that runs before `OrderedScan`, for statistics that need the means of all categories so far.

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
        """Give the changes of a key and a target, to which more rows are added."""
        if (key, target) not in self._deltas:
            ranks = task.ops.to_device(self.tables.before[self.order][key][target].ranks)
            earlier = None if self.earlier is None else self.earlier.of_task(key, target)[0]
            self._deltas[key, target] = SegmentMeanDeltas(task, ranks, earlier)
        return self._deltas[key, target]

    def deltas(self) -> "CategoryMeanDeltas":
        """Give the changes by the rows that were added so far."""
        return CategoryMeanDeltas(
            {key: map_arrays(deltas.sums, deltas.task.ops.to_host) for key, deltas in self._deltas.items()}
        )


@dataclass(frozen=True, eq=False)
class CategoryMeanDeltas:
    """Changes of the sums over categories in each segment, for each key and target; changes of groups can be added."""

    sums: dict[tuple[int, int], list[CategoryMoments]]

    def __add__(self, other: "CategoryMeanDeltas") -> "CategoryMeanDeltas":
        if not self.sums or not other.sums:
            return self if self.sums else other
        return CategoryMeanDeltas(
            {
                key: [add_moments(mine, more) for mine, more in zip(levels, other.sums[key], strict=True)]
                for key, levels in self.sums.items()
            }
        )


def add_moments(mine: CategoryMoments, more: CategoryMoments) -> CategoryMoments:
    """Add up sums over categories."""
    return mine.changed(more, CategoryMoments.none(host(0), mine.number.digits.shape[:-1]))


def with_categories(tables: EncodingTables, deltas: Sequence[CategoryMeanDeltas]) -> EncodingTables:
    """Give tables with the means of the categories before each checkpoint of each order, from `CategoryMeanScan`."""
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
