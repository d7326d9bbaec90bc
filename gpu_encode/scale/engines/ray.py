"""Ray Data: what its datasets offer to encoders, `fit(dataset, y="clicked")`, and tables of categories that stay in it.

Encoders are no Preprocessors of Ray.  ``Preprocessor.fit_transform`` gives training rows the encodings of new rows,
with their own target in them.

The sums of categories are added up in buckets of the object store, and rows come there for their encodings.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa

from cpu_fallback.cached import cached_property
from gpu_encode.scale.engines import calls
from gpu_encode.scale.engines.buckets import BucketShuffle, InBuckets, number_of_buckets
from gpu_encode.scale.files.look_up import Joined, of_new_rows
from gpu_encode.scale.files.shuffle import ShuffledSums

# Each block is one batch: batches of a size of their own would be joined of blocks, which are then one task.
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
        """Names and types of the columns, as Arrow has them."""
        schema = self._dataset.schema()
        if schema is None:
            raise ValueError("X of Ray has no rows, and no columns.")
        if not isinstance(schema.base_schema, pa.Schema):
            # Of blocks of pandas only their values tell.
            return next(iter(self._dataset.limit(1).iter_batches(**BLOCKS))).schema
        return schema.base_schema

    def check_repeatable(self) -> None:
        """Do nothing: a dataset does not say whether its functions draw numbers."""

    def pick(self, names: Sequence[str]) -> Self:
        """Give the same rows with some of the columns, so that no others are read."""
        return type(self)(self._dataset.select_columns(list(names)))

    def add_up(self, function: Callable[[Any, Any], Any], shared: Any, nothing: Any) -> Any:
        """Add up what a function gives of all rows: block by block where they lie, then in a tree."""
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
        """Give what a function gives of all rows, lazily."""
        import ray

        # Once in each node's memory, whatever runs there.
        return self._apply(map_table, function, ray.put(shared))

    def deal(self, function: Callable[[Any, Any], dict[int, Any]], shared: Any, number: int) -> "RayGroups":
        """Bring together what a function gives of all rows for each bucket."""
        import ray

        return RayGroups(self._apply(deal_table, function, ray.put(shared)), number)

    def _apply(self, function: Callable[..., Any], *others: Any) -> Any:
        """Give the dataset of the tables that a function gives of blocks."""
        return self._dataset.map_batches(function, fn_args=others, **BLOCKS)


class RayGroups(RayRows):
    """What was given for each bucket."""

    def __init__(self, dealt: Any, number: int) -> None:
        super().__init__(dealt)
        self._number = number

    def beside(self, other: "RayGroups") -> "RayGroups":
        """Give together what was given for each bucket here and there."""
        return RayGroups(self._dataset.union(other._dataset), self._number)

    def _apply(self, function: Callable[..., Any], *others: Any) -> Any:
        """Give the dataset of the tables that a function gives of groups."""
        # By itself Ray makes two hundred tasks.
        groups = self._dataset.groupby("bucket", num_partitions=self._number)
        return groups.map_groups(of_group, fn_args=(function, *others), batch_format="pyarrow")


def of_group(cells: Any, function: Callable[..., Any], *others: Any) -> Any:
    """Give what a function gives of what lies at one bucket."""
    return function((cells["bucket"][0].as_py(), list(read([cells]))), *others)


def add_table(table: Any, function: Callable[[Any, Any], Any], sent: Any, nothing: Any) -> Any:
    """Write the state that a function gives of a block."""
    import ray

    return write({0: calls.add_tables(function, ray.get(sent), [table] if len(table) else [], nothing)})


def map_table(table: Any, function: Callable[[Any, Any], Any], sent: Any) -> Any:
    """Give what a function gives of a block."""
    import ray

    return function(ray.get(sent), table)


def deal_table(table: Any, function: Callable[[Any, Any], dict[int, Any]], sent: Any) -> Any:
    """Write what a function gives of a block for each bucket."""
    import ray

    return write(function(ray.get(sent), table))


def write(states: dict[int, Any]) -> Any:
    """Write states, or errors instead, as rows: as Ray sends functions, between its own processes."""
    from ray import cloudpickle

    written = pa.array([cloudpickle.dumps(state) for state in states.values()], pa.large_binary())
    return pa.table({"bucket": pa.array(states, pa.int32()), "state": written})


def read(blocks: Iterable[Any]) -> Iterator[Any]:
    """Read the states of blocks, one after the other; what is made of no rows has no columns."""
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
        """Add up the sums of each category in its bucket, and make encodings of them there, now."""
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
            # Ray's shuffle finds no columns in blocks that have had no rows from the first.
            schema = self._rows.schema
            fields = [pa.field(name, pa.from_numpy_dtype(np.dtype(joined.dtype))) for name in joined.outputs]
            fields += [schema.field(name) for name in joined.beside_new(schema.names)]
            return ray.data.from_arrow(pa.schema(fields).empty_table())
        return super().encode_new(joined, encodings)

    def rows_of(self, table: Any) -> RayRows:
        """Give the rows of a dataset."""
        return RayRows(table)

    def together(self, dealt: RayGroups, other: RayGroups) -> RayGroups:
        """Give together what was given for each bucket here and there."""
        return dealt.beside(other)

    def keep(self, lines: Any) -> Any:
        """Compute a dataset now; the object store keeps it, and spills to disks what it has no room for."""
        return lines.materialize()

    @staticmethod
    def save(joined: Joined, encodings: InBuckets, path: str) -> None:
        """Write what new rows need, by Ray."""
        encodings.lines.map_batches(lambda table: of_new_rows(joined, table), **BLOCKS).write_parquet(
            f"{path}/encodings"
        )
        joined.of_new_rows().write(path)

    def read(self, path: str) -> tuple[Joined, InBuckets]:
        """Read what any engine has saved."""
        import ray

        joined, lines = Joined.read(path), ray.data.read_parquet(f"{path}/encodings")
        # As many buckets as for training rows: nobody has counted the new ones.
        pieces = np.ones(number_of_buckets(lines.count(), joined.n_rows), np.int64)
        return joined, InBuckets(lines, [pieces] * len(joined.keys))

    @staticmethod
    def release(encodings: InBuckets) -> None:
        """Do nothing: the object store forgets what nobody holds."""
