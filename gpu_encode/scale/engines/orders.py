"""Rows in the order of their times: the engine collects neighbours in groups, and each group starts from earlier sums.

The rank of a row follows from its time, so rows need no numbers.
"""

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gpu_encode.scale import parts
from gpu_encode.scale.engines.rows import Rows
from gpu_encode.scale.files.encoding import plain_output
from gpu_encode.scale.files.source import Reading, with_columns
from gpu_encode.scale.parts import (
    CategoryMeanDeltas,
    CategoryMeanScan,
    EncodingTables,
    OrderedRows,
    OrderedScan,
    PrecedingSums,
    with_categories,
)

# More groups mean more sums in one process; fewer groups mean larger tables.
MOST_GROUPS, LARGEST_SUMS = 64, 1 << 28
FEWEST_ROWS, MOST_ROWS = 1 << 16, 1 << 22


class Grouping(NamedTuple):
    """How rows are assigned to groups.

    Parameters
    ----------
    tables : EncodingTables
    reading : Reading
    number : int
        Number of groups.
    """

    tables: EncodingTables
    reading: Reading
    number: int

    def groups(self, table: Any) -> list[OrderedRows]:
        """Sort rows into groups; copies that take rows out of a window have the number -1."""
        [groups] = parts.shuffle(self.tables, self.reading.part(table), self.number)
        return groups


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums of ordered rows by the number of their group; they can be added."""

    by_group: dict[int, PrecedingSums]

    def __add__(self, other: "GroupSums") -> "GroupSums":
        both = dict(self.by_group)
        for group, sums in other.by_group.items():
            both[group] = both[group] + sums if group in both else sums
        return GroupSums(both)

    def before(self, number: int) -> list[PrecedingSums | None]:
        """Give for each group the sums of all groups before it."""
        earlier: list[PrecedingSums | None] = [None]
        for group in range(number - 1):
            last, own = earlier[-1], self.by_group.get(group)
            earlier.append(own if last is None else last if own is None else last + own)
        return earlier


def encode_in_time(rows: Rows, measured: Rows, tables: EncodingTables, reading: Reading) -> Any:
    """Encode training rows in an order in time, lazily; the sums of groups are added now.

    Parameters
    ----------
    rows : Rows
    measured : Rows
        The columns that are needed to sum rows.
    tables : EncodingTables
    reading : Reading
    """
    grouping = Grouping(tables, reading, number_of_groups(tables))
    before = measured.add_up(sum_groups, grouping, GroupSums({})).before(grouping.number)
    if tables.needs_categories:
        of_measured = measured.deal(deal_table, grouping, grouping.number)
        deltas = of_measured.add_up(mean_deltas, (tables, before), CategoryMeanDeltas({}))
        tables = with_categories(tables, [deltas])
    tables = replace(tables, encoder=plain_output(tables.encoder))
    in_groups = rows.deal(deal_table, grouping, grouping.number)
    return in_groups.map(encode_group, (tables, reading, before, rows.schema.empty_table()))


def number_of_groups(tables: EncodingTables) -> int:
    """Choose the number of groups from the number of rows, and from the bytes of the sums before a group."""
    n_rows = tables.encoding_plan.n_rows
    size = sum(of_target.accumulators.nbytes for per_target in tables.sums for of_target in per_target)
    wanted = min(MOST_GROUPS, LARGEST_SUMS // max(1, size), -(-n_rows // FEWEST_ROWS))
    return max(1, wanted, -(-n_rows // MOST_ROWS))


def sum_groups(grouping: Grouping, table: Any) -> GroupSums:
    """Sum some rows by group."""
    groups = enumerate(grouping.groups(table))
    return GroupSums({number: PrecedingSums.of(grouping.tables, rows) for number, rows in groups if len(rows)})


def deal_table(grouping: Grouping, table: Any) -> dict[int, tuple[Any, OrderedRows]]:
    """Give for each group its rows of a table: as a table, and in order, with their numbers in that table."""
    dealt = {}
    for number, rows in enumerate(grouping.groups(table)):
        if len(rows):
            own = rows.rows >= 0
            dealt[number] = table.take(rows.rows[own]), replace(rows, rows=np.where(own, np.cumsum(own) - 1, -1))
    return dealt


def join_dealt(dealt: list[tuple[Any, OrderedRows]]) -> tuple[Any, OrderedRows]:
    """Join the rows of a group."""
    tables, orders = zip(*dealt, strict=True)
    starts = [0, *accumulate(map(len, tables))][:-1]
    moved = [
        replace(rows, rows=np.where(rows.rows >= 0, rows.rows + start, -1))
        for rows, start in zip(orders, starts, strict=True)
    ]
    return pa.concat_tables(tables), OrderedRows.join(moved)


def mean_deltas(shared: tuple[EncodingTables, list[PrecedingSums | None]], group: Any) -> CategoryMeanDeltas:
    """Find how the means of categories change in a group."""
    (tables, before), (number, dealt) = shared, group
    scan = CategoryMeanScan(tables, 0, before[number])
    scan.add(join_dealt(dealt)[1])
    return scan.deltas()


def encode_group(shared: tuple[EncodingTables, Reading, list[PrecedingSums | None], Any], group: Any) -> Any:
    """Encode the training rows of a group; the other columns follow."""
    (tables, reading, before, table), (number, dealt) = shared, group
    placed = []
    if dealt:
        table, rows = join_dealt(dealt)
        placed = [OrderedScan(tables, 0, before[number]).encode(rows)]
    return with_columns(parts.encode(tables, reading.part(table), [placed]), table.select(reading.roles.beside))
