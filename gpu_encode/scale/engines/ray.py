"""Ray Data: the rows of its datasets, `fit(dataset, y="clicked")`, and tables of categories that stay in Ray.

The sums of categories are added up in buckets in the object store, and rows are sent there for their encodings.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa

from cpu_fallback.cached import cached_property
from gpu_encode.scale.engines import calls
from gpu_encode.scale.engines.buckets import BucketShuffle, InBuckets, number_of_buckets
from gpu_encode.scale.files.look_up import Joined, clear_folder, of_new_rows, sum_lines
from gpu_encode.scale.files.shuffle import ShuffledSums

# Each block is one batch: for batches of another size, Ray would join blocks, and these would become one task.
BLOCKS: dict[str, Any] = {"batch_size": None, "batch_format": "pyarrow"}
# States that one task adds up.
FAN_IN = 8


class RayRows:
    """A dataset of Ray."""

    engine = "Ray"

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    @cached_property
    def schema(self) -> Any:
        """Names and types of the columns, as an Arrow schema."""
        schema = self._dataset.schema()
        if schema is None:
            raise ValueError("X of Ray has no rows, and no columns.")
        if not isinstance(schema.base_schema, pa.Schema):
            # For blocks of pandas, the types follow only from the values.
            return next(iter(self._dataset.limit(1).iter_batches(**BLOCKS))).schema
        return schema.base_schema

    def check_repeatable(self) -> None:
        """Do nothing: Ray cannot tell whether the functions of a dataset are random."""

    def pick(self, names: Sequence[str]) -> Self:
        """Give the same rows with some of the columns, so that no others are read."""
        return type(self)(self._dataset.select_columns(list(names)))

    def add_up(self, function: Callable[[Any, Any], Any], shared: Any, nothing: Any) -> Any:
        """Add up the results of a function on all rows: block by block where the blocks are, then in a tree."""
        import ray

        def of_states(*blocks: Any) -> Any:
            return write({0: calls.add_states(read(blocks), nothing)})

        add = ray.remote(of_states)
        blocks = self._apply(add_table, function, ray.put(shared), nothing).to_arrow_refs()
        while len(blocks) > 1:
            blocks = [add.remote(*blocks[start : start + FAN_IN]) for start in range(0, len(blocks), FAN_IN)]
        total = calls.add_states(read(ray.get(blocks)), nothing)
        if isinstance(total, Exception):
            raise total
        return total

    def map(self, function: Callable[[Any, Any], Any], shared: Any) -> Any:
        """Call a function on all rows, lazily."""
        import ray

        # One copy in the memory of each node, for all its tasks.
        return self._apply(map_table, function, ray.put(shared))

    def deal(self, function: Callable[[Any, Any], dict[int, Any]], shared: Any, number: int) -> "RayGroups":
        """Collect the results of a function on all rows, bucket by bucket."""
        import ray

        return RayGroups(self._apply(deal_table, function, ray.put(shared)), number)

    def _apply(self, function: Callable[..., Any], *others: Any) -> Any:
        """Give the dataset of the tables that a function makes of blocks."""
        return self._dataset.map_batches(function, fn_args=others, **BLOCKS)


class RayGroups(RayRows):
    """The pieces that were given for each bucket."""

    def __init__(self, dealt: Any, number: int) -> None:
        super().__init__(dealt)
        self._number = number

    def beside(self, other: "RayGroups") -> "RayGroups":
        """Put together the pieces of each bucket from both."""
        return RayGroups(self._dataset.union(other._dataset), self._number)

    def _apply(self, function: Callable[..., Any], *others: Any) -> Any:
        """Give the dataset of the tables that a function makes of groups."""
        # Without a number, Ray would make two hundred tasks.
        groups = self._dataset.groupby("bucket", num_partitions=self._number)
        return groups.map_groups(of_group, fn_args=(function, *others), batch_format="pyarrow")


def of_group(cells: Any, function: Callable[..., Any], *others: Any) -> Any:
    """Call a function on the pieces of one bucket."""
    return function((cells["bucket"][0].as_py(), list(read([cells]))), *others)


def add_table(table: Any, function: Callable[[Any, Any], Any], sent: Any, nothing: Any) -> Any:
    """Write the state that a function computes from a block."""
    import ray

    return write({0: calls.add_tables(function, ray.get(sent), [table] if len(table) else [], nothing)})


def map_table(table: Any, function: Callable[[Any, Any], Any], sent: Any) -> Any:
    """Call a function on a block."""
    import ray

    return function(ray.get(sent), table)


def deal_table(table: Any, function: Callable[[Any, Any], dict[int, Any]], sent: Any) -> Any:
    """Write the pieces that a function gives of a block for each bucket."""
    import ray

    return write(function(ray.get(sent), table))


def write(states: dict[int, Any]) -> Any:
    """Write states, or errors, as rows, in the form in which Ray sends functions between its own processes."""
    from ray import cloudpickle

    written = pa.array([cloudpickle.dumps(state) for state in states.values()], pa.large_binary())
    return pa.table({"bucket": pa.array(states, pa.int32()), "state": written})


def read(blocks: Iterable[Any]) -> Iterator[Any]:
    """Yield the states in blocks; a block that was made from no rows has no columns."""
    from ray import cloudpickle

    for block in blocks:
        for state in block["state"] if block.num_rows else ():
            yield cloudpickle.loads(state.as_buffer())


class Shuffle(BucketShuffle):
    """A dataset of Ray."""

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> None:
        super().__init__(RayRows(X), y, sample_weight, groups)
        self._dataset = X

    def learn(self, encoder: Any, training: bool) -> tuple[ShuffledSums, InBuckets]:
        """Add up the sums of each category in its bucket, and encode the categories there, now."""
        from ray.exceptions import RayTaskError

        try:
            return super().learn(encoder, training)
        except RayTaskError as error:
            if isinstance(error.cause, (ValueError, TypeError)):
                raise error.cause from error
            raise

    def encode_new(self, joined: Joined, encodings: InBuckets) -> Any:
        """Give the encodings of new rows, lazily."""
        import ray
        from ray.data.dataset import MaterializedDataset

        if isinstance(self._dataset, MaterializedDataset) and not self._dataset.count():
            # Ray's shuffle does not find the columns of blocks that never had any rows.
            schema = self._rows.schema
            fields = [pa.field(name, pa.from_numpy_dtype(np.dtype(joined.dtype))) for name in joined.outputs]
            fields += [schema.field(name) for name in joined.beside_new(schema.names, in_order=False)]
            return ray.data.from_arrow(pa.schema(fields).empty_table())
        return super().encode_new(joined, encodings)

    def rows_of(self, table: Any) -> RayRows:
        """Give the rows of a dataset."""
        return RayRows(table)

    def together(self, dealt: RayGroups, other: RayGroups) -> RayGroups:
        """Put together the pieces of each bucket from both."""
        return dealt.beside(other)

    def keep(self, lines: Any) -> Any:
        """Compute a dataset now; the object store keeps it, and spills to disk if it is full."""
        return lines.materialize()

    @staticmethod
    def save(joined: Joined, encodings: InBuckets, path: str, overwrite: bool) -> None:
        """Let Ray write what new rows need; the record comes last."""
        clear_folder(path, overwrite)
        lines = encodings.lines.map_batches(lambda table: of_new_rows(joined, table), **BLOCKS).materialize()
        lines.write_parquet(f"{path}/encodings")
        joined.of_new_rows(*RayRows(lines).add_up(sum_table_lines, None, sum_lines(None)).tolist()).write(path)

    def read(self, path: str) -> tuple[Joined, InBuckets]:
        """Read a folder that any engine has saved."""
        import ray

        joined, lines = Joined.read(path), ray.data.read_parquet(f"{path}/encodings")
        # As many buckets as for training rows, since new rows were not counted.
        pieces = np.ones(number_of_buckets(lines.count(), joined.n_rows), np.int64)
        return joined, InBuckets(lines, [pieces] * len(joined.keys))

    @staticmethod
    def release(encodings: InBuckets) -> None:
        """Do nothing: the object store drops objects without references."""


def sum_table_lines(_: None, table: Any) -> Any:
    """Give `sum_lines` of a block."""
    return sum_lines(table)
