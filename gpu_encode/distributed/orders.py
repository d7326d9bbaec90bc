"""Training codes of ordered schemes: what rows have seen goes from partition to partition, or from bucket to bucket."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from gpu_encode.distributed import tasks
from gpu_encode.distributed.partitions import Partitions
from gpu_encode.distributed.trees import added, earlier_sums, promised
from gpu_encode.parts import EncodingPlan

# Pieces of rows travel between all partitions and all buckets: more buckets are more tasks, fewer are larger ones.
MOST_BUCKETS = 64
MOST_ROWS = 1 << 26


def ordered_codes(
    partitions: Partitions, encoding_plan: EncodingPlan, learned: tasks.Learned, tables: Any, meta: Any
) -> Any:
    """Give the training codes of an ordered scheme, lazily.

    Parameters
    ----------
    partitions : Partitions
        With the numbers of their first rows.
    encoding_plan : EncodingPlan
    learned : Learned
    tables : Delayed
    meta : table without rows, or None
        Like the codes.

    Returns
    -------
    dask.dataframe.DataFrame, or list of Delayed
    """
    if encoding_plan.order == "rows":
        return as_they_stand(partitions, learned, tables, meta)
    return shuffled(partitions, encoding_plan.n_rows, learned, tables, meta)


def as_they_stand(partitions: Partitions, learned: tasks.Learned, tables: Any, meta: Any) -> Any:
    """Give codes of rows from those above them: each partition needs the sums of those before it, and no other rows."""
    import dask

    ready = partitions.beside(earlier_sums(partitions.mapped(tasks.partition_sums, tables)))
    if learned.needs_categories:
        gained = added(ready.mapped(tasks.partition_gained, tables), tasks.summed)
        tables = dask.delayed(tasks.completed)(tables, [gained])
    return ready.table(tasks.encoded_as_they_stand, meta, tables)


def shuffled(partitions: Partitions, n_rows: int, learned: tasks.Learned, tables: Any, meta: Any) -> Any:
    """Give codes of rows in an order of its own: sorted into buckets of neighbours, encoded there, brought back."""
    import dask

    number = max(min(partitions.number, MOST_BUCKETS), -(-n_rows // MOST_ROWS))
    scattered = partitions.mapped(tasks.scattered, tables, number)
    orders = range(learned.n_orders)
    buckets = [collected(scattered, order, number) for order in orders]
    earlier = [earlier_sums([dask.delayed(tasks.bucket_sums)(each, tables) for each in own]) for own in buckets]

    def walked(function: Callable[..., Any], order: int, tables: Any) -> list[Any]:
        pairs = zip(buckets[order], earlier[order], strict=True)
        return [dask.delayed(function)(bucket, before, tables, order) for bucket, before in pairs]

    if learned.needs_categories:
        gained = [added(walked(tasks.bucket_gained, order, tables), tasks.summed) for order in orders]
        tables = dask.delayed(tasks.completed)(tables, gained)
    placed = [walked(tasks.bucket_codes, order, tables) for order in orders]
    own = brought_back(placed, [*partitions.first_rows, n_rows])
    return partitions.without_target().beside(own).table(tasks.encoded_in_order, meta, tables)


def collected(scattered: Sequence[Any], order: int, number: int) -> list[Any]:
    """Give a Delayed of each bucket of an order: its rows of all partitions."""

    def graph(name: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for bucket in range(number):
            pieces = {
                f"{name}-{bucket}-{partition}": (tasks.bucket_of, each.key, order, bucket)
                for partition, each in enumerate(scattered)
            }
            found |= {**pieces, f"{name}-{bucket}": (tasks.bucket_joined, list(pieces))}
        return found

    return promised("collected", graph, range(number), scattered)


def brought_back(placed: Sequence[Sequence[Any]], borders: Sequence[int]) -> list[Any]:
    """Give a Delayed for each partition of the codes of its rows: per order, the pieces of all buckets."""

    def graph(name: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for partition, (start, stop) in enumerate(pairwise(borders)):
            orders = []
            for order, own in enumerate(placed):
                pieces = {
                    f"{name}-{partition}-{order}-{bucket}": (tasks.codes_between, each.key, start, stop)
                    for bucket, each in enumerate(own)
                }
                found |= pieces
                orders.append(list(pieces))
            found[f"{name}-{partition}"] = (list, orders)
        return found

    return promised("brought-back", graph, range(len(borders) - 1), [each for own in placed for each in own])
