"""Ray Data: encoders take its datasets as they take Dask's frames, `fit(dataset, y="clicked")`.

They are no Preprocessors of Ray.  ``Preprocessor.fit_transform`` gives training rows the encodings of new rows, with
their own target in them.  Vectors beside a dataset are names of its columns, as with Spark.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self, TypeVar

import pyarrow as pa

from cpu_fallback.cached import cached_property
from gpu_encode.encoders.base import Encoder
from gpu_encode.scale import messages
from gpu_encode.scale.engines import calls

E = TypeVar("E", bound=Encoder)

# Each block is one batch: batches of a size of their own would be joined of blocks, which are then one task.
BLOCKS: dict[str, Any] = {"batch_size": None, "batch_format": "pyarrow"}
# States that one task adds up.
FAN_IN = 8


def fit(encoder: E, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None) -> E:
    """Learn the encodings of new rows: two passes over the dataset, now.

    Parameters
    ----------
    encoder : TargetEncoder
    X : ray.data.Dataset
    y : str or list of str
        Columns of X that are learned from.
    sample_weight, groups : str, optional
        Columns of X.

    Returns
    -------
    encoder, fitted

    Raises
    ------
    ValueError, TypeError
        For bad input; the encoder is then as it was.
    """
    return calls.fit(encoder, RayRows(X), y, sample_weight, groups)


def fit_transform(encoder: Encoder, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None) -> Any:
    """Learn the encodings of new rows, now, and give training encodings in a dataset that is computed when asked for.

    Parameters
    ----------
    encoder, X, y, sample_weight, groups
        As in `fit`.  Those schemes serve that find by its values what a row sees, such as ``KFold(by="order_id")`` and
        ``Ordered(time="day")``.

    Returns
    -------
    ray.data.Dataset
        Encoded columns, columns that pass through, and those of y, weights and groups.
    """
    return calls.fit_transform(encoder, RayRows(X), y, sample_weight, groups)


def transform(encoder: Encoder, X: Any) -> Any:
    """Give the encodings of new rows, in a dataset that is computed when asked for; columns new to it come last."""
    return calls.transform(encoder, RayRows(X))


def drift(encoder: Encoder, X: Any) -> list[dict[str, Any]]:
    """Compare new rows with those that the encoder has learned from, in one pass, now."""
    return calls.drift(encoder, RayRows(X))


def partial_fit(*_: Any, **__: Any) -> None:
    """Refuse: encoders of datasets are fitted and merged."""
    raise messages.not_added("Ray", "partial_fit")


def forget(*_: Any, **__: Any) -> None:
    """Refuse: datasets are not taken out."""
    raise messages.not_added("Ray", "forget")


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
        """Nothing tells: a dataset does not say whether its functions draw numbers."""

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
