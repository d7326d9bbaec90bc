"""Encodings of more categories than fit one process: they lie in buckets by a hash of the category, on the workers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from pyarrow import parquet
from pyarrow.dataset import dataset

from gpu_encode.fitting.fit import select_columns
from gpu_encode.scale.dask import look_up_tasks as tasks
from gpu_encode.scale.dask.calls import check_training, needs_target, plan_rows
from gpu_encode.scale.dask.exchange import exchange, receive, released
from gpu_encode.scale.dask.partitions import Partitions, held, read
from gpu_encode.scale.dask.trees import map_delayed
from gpu_encode.scale.engines import buckets as steps
from gpu_encode.scale.engines import calls
from gpu_encode.scale.engines.buckets import Buckets, unused_prefix
from gpu_encode.scale.files import shuffle
from gpu_encode.scale.files.look_up import Joined, folder_of
from gpu_encode.scale.files.shuffle import ShuffledSums
from gpu_encode.scale.files.source import Roles
from gpu_encode.scale.parts.plans import unfitted
from gpu_encode.tables import frames

# Bytes of the lines that a bucket adds up, about, until there are so many buckets: a few times as much is in memory
# meanwhile, and each partition has a piece for each bucket.
BUCKET_BYTES, MOST_BUCKETS = 1 << 26, 1 << 14
# Of a line beside its digits: values of a key.
VALUE_BYTES = 48


@dataclass(frozen=True, eq=False)
class InBuckets:
    """Encodings in buckets.

    Parameters
    ----------
    lines : list of Delayed
        Of each bucket, lines of `shuffle.encode_lines`; None where there are none.
    buckets : Buckets
    schema : pyarrow.Schema
        Of the lines of all buckets.
    """

    lines: list[Any]
    buckets: Buckets
    schema: Any


class Shuffle:
    """Rows of Dask, and encodings of their categories that stay on the workers, as `InBuckets`."""

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> None:
        rows = read(X, y, sample_weight, groups)
        rows = replace(rows, sample=sample_of(rows))
        self._rows = replace(rows, roles=[unused_prefix(rows.names) + role for role in rows.roles])

    def count_categories(self, encoder: Any) -> int:
        """Estimate how many categories all keys of an unfitted encoder have, in one pass."""
        encoder = self._name_columns(encoder)
        return sum(steps.count_keys(encoder, self._rows, self._reading(encoder)).categories())

    def learn(self, encoder: Any, training: bool) -> tuple[ShuffledSums, InBuckets]:
        """Add up the sums of each category in its bucket, and encode it there, now."""
        shuffle.check_parameters(encoder, training)
        encoder = self._name_columns(encoder)
        check_training(encoder, self._rows)
        reading = self._reading(encoder)
        shared, self._measured = calls.survey(encoder, self._rows, reading, training, plan_rows)
        counts = steps.count_keys(encoder, self._rows, reading)
        lengths = self._measured.lengths
        buckets = Buckets([number_of_buckets(count, lengths, shared.n_sums) for count in counts.categories()])
        dealt = self._measured.deal(steps.deal_sums, (shared, buckets), buckets.number)
        return shared, settle(dealt.map(steps.add_sums, shared), buckets)

    def encode_training(self, shared: ShuffledSums, joined: Joined, encodings: InBuckets) -> Any:
        """Give the encodings of training rows lazily, with the partitions of X."""
        rows = self._measured if needs_target(shared.encoding_plan) else self._measured.without_target()
        return self._look_up(rows, joined, encodings, joined.beside_training([]), shared)

    def encode_new(self, joined: Joined, encodings: InBuckets) -> Any:
        """Give the encodings of new rows lazily, with the partitions of X."""
        others = joined.beside_new(self._rows.names)
        rows = self._rows.pick(list(dict.fromkeys(name for key in joined.keys for name in key.columns)))
        return self._look_up(rows, joined, encodings, others)

    @staticmethod
    def save(joined: Joined, encodings: InBuckets, path: str) -> None:
        """Write what new rows need to a new folder, which workers have to reach; they write a file for each bucket."""
        import dask

        joined.of_new_rows().write(path)
        filesystem, folder = folder_of(path)
        if filesystem is None:
            Path(folder, "encodings").mkdir()
        write = dask.delayed(tasks.write_bucket)
        sent = [dask.delayed(what, traverse=False) for what in (joined, encodings.schema)]
        dask.compute(*[write(lines, *sent, path, number) for number, lines in enumerate(encodings.lines)])

    def read(self, path: str) -> tuple[Joined, InBuckets]:
        """Read what any engine has saved: row groups of files, of which each bucket gets its lines."""
        import dask

        joined, (filesystem, folder) = Joined.read(path), folder_of(path)
        files = dataset(f"{folder}/encodings", filesystem=filesystem).files
        heads = {name: parquet.read_metadata(name, filesystem=filesystem) for name in files}
        # How many lines each key has, nobody has counted.
        n_bytes = 8 * max(len(key.outputs) for key in joined.keys)
        number = buckets_for(sum(head.num_rows for head in heads.values()), n_bytes)
        buckets = Buckets([number] * len(joined.keys))
        read_group, keys = dask.delayed(tasks.read_group), [key.stored for key in joined.keys]
        groups = [(name, group) for name, head in heads.items() for group in range(head.num_row_groups)]
        dealt = [read_group(path, *group, sender, keys, buckets) for sender, group in enumerate(groups)]
        return joined, settle(exchange("buckets", dealt, buckets.number, tasks.join_lines), buckets)

    @staticmethod
    def release(encodings: InBuckets) -> None:
        """Do nothing: workers forget encodings that no encoder and no frame asks for."""

    def _reading(self, encoder: Any) -> tasks.PartitionReading:
        """Say how rows are read: vectors are columns behind those of X."""
        rows = self._rows
        y, weight, groups = (
            None if data is None else role for data, role in zip(rows.vectors, rows.roles, strict=True)
        )
        given = [role for role in (y, weight, groups) if role is not None]
        roles = Roles([*rows.names, *given], [] if y is None else [y], False, weight, groups)
        return tasks.PartitionReading(roles, encoder._parameters())

    def _name_columns(self, encoder: Any) -> Any:
        """Give an encoder whose columns are named, where it chooses them by type or the like."""
        encoder = unfitted(encoder)
        selected = select_columns(encoder._parameters(), frames.read(self._rows.sample))
        chosen = Roles(self._rows.names, [], False, None, None).chosen(encoder, selected)
        return encoder if chosen is None else encoder.set_params(columns=chosen)

    def _look_up(
        self,
        rows: Partitions,
        joined: Joined,
        encodings: InBuckets,
        others: Sequence[str],
        shared: ShuffledSums | None = None,
    ) -> Any:
        """Send rows to the buckets of their categories, and put the encodings that come back beside other columns."""
        buckets, lines = encodings.buckets, encodings.lines
        dealt = rows.map(tasks.deal_rows, (joined, shared, buckets))
        packed, alike = (map_delayed("dealt", itemgetter(number), dealt) for number in (0, 1))
        known = held((joined, buckets, encodings.schema.empty_table()))
        look_up = partial(released, tasks.look_up_bucket)
        found = exchange("found", packed, len(lines), look_up, known, own=lines)
        extra = exchange("returned", found, rows.number, receive, own=alike)
        meta = tasks.meta_of(frames.read(self._rows.sample), joined, others)
        passed = replace(self._rows.pick(others), extra=extra)
        return passed.table(tasks.put_together, meta, (joined, buckets, others))


def sample_of(partitions: Partitions) -> Any:
    """Give a table without rows that is like those of the partitions."""
    import dask

    samples = partitions.samples()
    if samples is not None:
        return samples[0]
    (table,) = dask.compute(replace(partitions, vectors=[None] * 3).map(tasks.no_rows, None)[0])
    return table


def number_of_buckets(n_categories: int, lengths: Sequence[int], n_sums: int) -> int:
    """Say in how many buckets the categories of a key are to lie, by the bytes of all lines that come there."""
    pieces = sum(-(-length // steps.ROWS_AT_ONCE) for length in lengths)
    return buckets_for(min(sum(lengths), n_categories * pieces), 8 * n_sums)


def buckets_for(n_lines: int, n_bytes: int) -> int:
    """Say in how many buckets so many lines are to lie, each with so many bytes beside its values."""
    return min(max(1, -(-n_lines * (n_bytes + VALUE_BYTES) // BUCKET_BYTES)), MOST_BUCKETS)


def settle(lines: list[Any], buckets: Buckets) -> InBuckets:
    """Have the encodings of all buckets made, and kept."""
    import dask

    kept = list(dask.persist(*lines))
    schemas = dask.compute(*map_delayed("schemas", tasks.schema_of, kept))
    return InBuckets(kept, buckets, tasks.joint_schema(schemas))
