"""Encodings of more categories than fit one process: they lie in places by a hash of the category, on the workers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from pyarrow import parquet
from pyarrow.dataset import dataset

from gpu_encode.fitting.fit import select_columns
from gpu_encode.scale.dask import place_tasks as tasks
from gpu_encode.scale.dask.exchange import exchange
from gpu_encode.scale.dask.partitions import Partitions, read
from gpu_encode.scale.dask.sequence import plan_encoding, read_training
from gpu_encode.scale.dask.tasks import add_up
from gpu_encode.scale.dask.trees import add_in_tree, map_delayed
from gpu_encode.scale.files import shuffle
from gpu_encode.scale.files.look_up import Joined, folder_of
from gpu_encode.scale.files.shuffle import ShuffledSums
from gpu_encode.scale.files.source import Reading, Roles
from gpu_encode.scale.parts.plans import for_new_rows, unfitted
from gpu_encode.tables import frames

# Bytes of the lines that a place adds up, about, until there are so many places: a few times as much is in memory
# meanwhile, and each partition has a piece for each place.
PLACE_BYTES, MOST_PLACES = 1 << 26, 1 << 14
# Of a line beside its digits: values of a key.
VALUE_BYTES = 48


@dataclass(frozen=True, eq=False)
class Placed:
    """Encodings in places.

    Parameters
    ----------
    places : list of Delayed
        Of each key one after the other, lines of `shuffle.encode_lines`; None where there are none.
    numbers : list of int
        Of each key, the number of its places.
    schema : pyarrow.Schema
        Of the lines of all places.
    """

    places: list[Any]
    numbers: list[int]
    schema: Any


class Shuffle:
    """Rows of Dask, and encodings of their categories that stay on the workers, as `Placed`."""

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> None:
        self._given = X, y, sample_weight, groups
        self._partitions = read(*self._given)
        self._table = sample_of(self._partitions)
        self._names = tasks.names_of(frames.read(self._table))

    def count_categories(self, encoder: Any) -> int:
        """Estimate how many categories all keys of an unfitted encoder have, in one pass."""
        return sum(self._counts(self._name_columns(encoder)))

    def learn(self, encoder: Any, training: bool) -> tuple[ShuffledSums, Placed]:
        """Add up the sums of each category at its place, and encode it there, now."""
        import dask

        shuffle.check_parameters(encoder, training)
        encoder = self._name_columns(encoder)
        shared, layout = self._survey(encoder, training)
        self._layout = layout
        sent = [dask.delayed(what, traverse=False) for what in (shared, layout)]
        lines = pick(self._partitions, layout.wanted, vectors=True).map(tasks.deal_lines, *sent)
        places = exchange("places", lines, sum(layout.places.numbers), tasks.encode_place, sent[0])
        return shared, settle(places, layout.places.numbers)

    def encode_training(self, shared: ShuffledSums, joined: Joined, encodings: Placed) -> Any:
        """Give the encodings of training rows lazily, with the partitions of X."""
        by_folds = shared.encoding_plan.by_folds and not shared.encoding_plan.needs_labels
        partitions = self._partitions.without_target() if by_folds else self._partitions
        others = joined.beside_training([])
        return self._look_up(partitions, joined, encodings, self._layout, others, shared)

    def encode_new(self, joined: Joined, encodings: Placed) -> Any:
        """Give the encodings of new rows lazily, with the partitions of X."""
        others = joined.beside_new(self._names)
        wanted = in_order([key.columns for key in joined.keys])
        layout = tasks.Layout(self._names, wanted, [], tasks.Places(encodings.numbers))
        return self._look_up(self._partitions, joined, encodings, layout, others)

    @staticmethod
    def save(joined: Joined, encodings: Placed, path: str) -> None:
        """Write what new rows need to a new folder, which workers have to reach; they write a file for each place."""
        import dask

        joined.of_new_rows().write(path)
        filesystem, folder = folder_of(path)
        if filesystem is None:
            Path(folder, "encodings").mkdir()
        write = dask.delayed(tasks.write_place)
        sent = [dask.delayed(what, traverse=False) for what in (joined, encodings.schema)]
        dask.compute(*[write(lines, *sent, path, number) for number, lines in enumerate(encodings.places)])

    def read(self, path: str) -> tuple[Joined, Placed]:
        """Read what any engine has saved: row groups of files, of which each place gets its lines."""
        import dask

        joined, (filesystem, folder) = Joined.read(path), folder_of(path)
        files = dataset(f"{folder}/encodings", filesystem=filesystem).files
        heads = {name: parquet.read_metadata(name, filesystem=filesystem) for name in files}
        # How many lines each key has, nobody has counted.
        n_bytes = 8 * max(len(key.outputs) for key in joined.keys)
        numbers = [places_for(sum(head.num_rows for head in heads.values()), n_bytes)] * len(joined.keys)
        read_places, keys = dask.delayed(tasks.read_places), [key.stored for key in joined.keys]
        groups = [(name, group) for name, head in heads.items() for group in range(head.num_row_groups)]
        dealt = [read_places(path, *place, number, keys, tasks.Places(numbers)) for number, place in enumerate(groups)]
        places = exchange("places", dealt, sum(numbers), tasks.join_lines)
        return joined, settle(places, numbers)

    @staticmethod
    def release(encodings: Placed) -> None:
        """Do nothing: workers forget encodings that no encoder and no frame asks for."""

    def _name_columns(self, encoder: Any) -> Any:
        """Give an encoder whose columns are named, where it chooses them by type or the like."""
        encoder = unfitted(encoder)
        roles = Roles(self._names, [], False, None, None)
        selected = select_columns(encoder._parameters(), frames.read(self._table))
        chosen = roles.chosen(encoder, selected)
        return encoder if chosen is None else encoder.set_params(columns=chosen)

    def _keys(self, encoder: Any) -> list[list[str]]:
        """Give the columns of each key."""
        entries = select_columns(encoder._parameters(), frames.read(self._table)).entries
        return [[self._names[position] for position in entry.columns] for entry in entries]

    def _counts(self, encoder: Any) -> list[int]:
        """Estimate how many categories each key has."""
        import dask

        keys = self._keys(encoder)
        counts = pick(self._partitions, in_order(keys)).map(tasks.count_partition, keys)
        (total,) = dask.compute(add_in_tree(counts, tasks.add_counts))
        return [count.estimate() for count in total]

    def _survey(self, encoder: Any, training: bool) -> tuple[ShuffledSums, tasks.Layout]:
        """Find out in three passes what all workers have to know."""
        import dask

        names, sample = self._names, tasks.in_arrow(self._table, self._names)
        # A name that no column has.
        weight = None if self._given[2] is None else "_" * (max(map(len, names)) + 1)
        roles = Roles(names if weight is None else [*names, weight], [], False, weight, None)
        reading = Reading(roles, encoder._parameters())
        rules = shuffle.rules_of(reading, sample.schema)
        counts = self._counts(encoder)
        given = read_training(encoder, *self._given)
        encoding_plan, self._partitions = plan_encoding(encoder, given, training)
        asked = encoder if training else for_new_rows(encoder)
        of_scheme = [names[place] for place in select_columns(asked._parameters(), frames.read(sample)).training_only]
        ends = [*self._partitions.first_rows[1:], encoding_plan.n_rows]
        lengths = [end - start for start, end in zip(self._partitions.first_rows, ends, strict=True)]
        layout = tasks.Layout(names, of_scheme, lengths, tasks.Places([]))
        known = shuffle.blind(encoding_plan), layout
        sent = [dask.delayed(what, traverse=False) for what in known]
        totals = pick(self._partitions, of_scheme, vectors=True).map(tasks.total_partition, *sent)
        (total,) = dask.compute(add_in_tree(totals, add_up))
        shared = shuffle.settle(encoding_plan, reading, rules, total, training)
        numbers = [number_of_places(count, lengths, shared.n_sums) for count in counts]
        wanted = in_order([*self._keys(encoder), of_scheme])
        return shared, layout._replace(wanted=wanted, places=tasks.Places(numbers))

    def _look_up(
        self,
        partitions: Partitions,
        joined: Joined,
        encodings: Placed,
        layout: tasks.Layout,
        others: Sequence[str],
        shared: ShuffledSums | None = None,
    ) -> Any:
        """Send rows to the places of their categories, and put the encodings that come back beside other columns."""
        import dask

        meta = tasks.meta_of(frames.read(self._table), joined, others)
        sent = [dask.delayed(what, traverse=False) for what in (joined, shared, layout)]
        dealt = pick(partitions, layout.wanted, vectors=True).map(tasks.deal_rows, *sent)
        placing, empty = (
            dask.delayed(what, traverse=False) for what in (layout.places, encodings.schema.empty_table())
        )
        packed, alike = (map_delayed("dealt", itemgetter(place), dealt) for place in (0, 1))
        places = encodings.places
        found = exchange("found", packed, len(places), tasks.look_up_place, sent[0], placing, empty, own=places)
        extra = exchange("returned", found, partitions.number, tasks.pair, own=alike)
        passed = replace(pick(partitions, others), extra=extra)
        return passed.table(tasks.put_together, meta, sent[0], placing, others)


def sample_of(partitions: Partitions) -> Any:
    """Give a table without rows that is like those of the partitions."""
    import dask

    samples = partitions.samples()
    if samples is not None:
        return samples[0]
    (table,) = dask.compute(replace(partitions, vectors=[None] * 3).map(tasks.no_rows)[0])
    return table


def pick(partitions: Partitions, names: Sequence[str], vectors: bool = False) -> Partitions:
    """Give the same rows with those of the columns that there are, at least one; and with the vectors, if asked."""
    columns = partitions.column_names or []
    picked = partitions.with_columns([name for name in names if name in columns] or columns[:1])
    return picked if vectors else replace(picked, vectors=[None] * 3)


def in_order(keys: Sequence[Sequence[str]]) -> list[str]:
    """Give all names, each once."""
    return list(dict.fromkeys(name for key in keys for name in key))


def number_of_places(n_categories: int, lengths: Sequence[int], n_sums: int) -> int:
    """Say in how many places the categories of a key are to lie, by the bytes of all lines that come there."""
    pieces = sum(-(-length // tasks.ROWS_AT_ONCE) for length in lengths)
    return places_for(min(sum(lengths), n_categories * pieces), 8 * n_sums)


def places_for(n_lines: int, n_bytes: int) -> int:
    """Say in how many places so many lines are to lie, each with so many bytes beside its values."""
    return min(max(1, -(-n_lines * (n_bytes + VALUE_BYTES) // PLACE_BYTES)), MOST_PLACES)


def settle(places: list[Any], numbers: list[int]) -> Placed:
    """Have the encodings of all places made, and kept."""
    import dask

    kept = list(dask.persist(*places))
    schemas = dask.compute(*map_delayed("schemas", tasks.schema_of, kept))
    return Placed(kept, numbers, tasks.joint_schema(schemas))
