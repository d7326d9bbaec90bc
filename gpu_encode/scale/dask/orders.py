"""Training encodings of ordered schemes: sums go from partition to partition, or from group to group of rows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gpu_encode.scale.dask import tasks
from gpu_encode.scale.dask.exchange import exchange
from gpu_encode.scale.dask.partitions import Partitions
from gpu_encode.scale.dask.trees import add_in_tree, earlier_sums
from gpu_encode.scale.parts import EncodingPlan, with_categories

# Rows travel between all partitions and all groups: more groups are smaller pieces, fewer groups are larger tasks.
MOST_GROUPS = 64
MOST_ROWS = 1 << 26


def encode_ordered(
    partitions: Partitions, encoding_plan: EncodingPlan, learned: tasks.Learned, tables: Any, meta: Any
) -> Any:
    """Give the training encodings of an ordered scheme, lazily.

    Parameters
    ----------
    partitions : Partitions
        With the numbers of their first rows.
    encoding_plan : EncodingPlan
    learned : Learned
    tables : Delayed
    meta : table without rows, or None
        Like the output.

    Returns
    -------
    dask.dataframe.DataFrame, or list of Delayed
    """
    if encoding_plan.order == "rows":
        return encode_in_sequence(partitions, learned, tables, meta)
    return encode_shuffled(partitions, encoding_plan.n_rows, learned, tables, meta)


def encode_in_sequence(partitions: Partitions, learned: tasks.Learned, tables: Any, meta: Any) -> Any:
    """Encode rows as they stand: each partition needs the sums of the partitions before it, and no other rows."""
    import dask

    ready = replace(partitions, extra=earlier_sums(partitions.map(tasks.sum_partition, tables)))
    if learned.needs_categories:
        deltas = add_in_tree(ready.map(tasks.mean_deltas_of_partition, tables), tasks.add_up)
        tables = dask.delayed(with_categories)(tables, [deltas])
    return ready.table(tasks.encode_in_sequence, meta, tables)


def encode_shuffled(partitions: Partitions, n_rows: int, learned: tasks.Learned, tables: Any, meta: Any) -> Any:
    """Encode rows in another order: sort them into groups of neighbours, encode these, return to the partitions."""
    import dask

    number = max(min(partitions.number, MOST_GROUPS), -(-n_rows // MOST_ROWS))
    shuffled = partitions.map(tasks.shuffle_partition, tables, number)
    orders = range(learned.n_orders)
    met = exchange("groups", shuffled, number * learned.n_orders, tasks.join_groups)
    groups = [met[order * number : (order + 1) * number] for order in orders]
    earlier = [earlier_sums([dask.delayed(tasks.sum_group)(rows, tables) for rows in of_order]) for of_order in groups]

    def scan_groups(function: Callable[..., Any], order: int, tables: Any) -> list[Any]:
        pairs = zip(groups[order], earlier[order], strict=True)
        return [dask.delayed(function)(group, before, tables, order) for group, before in pairs]

    if learned.needs_categories:
        deltas = [add_in_tree(scan_groups(tasks.mean_deltas_of_group, order, tables), tasks.add_up) for order in orders]
        tables = dask.delayed(with_categories)(tables, deltas)
    encodings = [rows for order in orders for rows in scan_groups(tasks.encode_group, order, tables)]
    select, borders = dask.delayed(tasks.select_rows), dask.delayed([*partitions.first_rows, n_rows], traverse=False)
    selected = [select(place, rows, borders) for place, rows in enumerate(encodings)]
    by_partition = exchange("returned", selected, partitions.number, tasks.receive_rows)
    return replace(partitions.without_target(), extra=by_partition).table(tasks.encode_by_place, meta, tables, number)
