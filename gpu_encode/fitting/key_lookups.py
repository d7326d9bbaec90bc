"""Look up many keys in one call of the backend: each column gets codes once, and no key gets codes of its own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Self

import numpy as np

from cpu_fallback.types import MISSING, Array, Folds, KeyColumns, KeyEncodings, KeyTables
from gpu_encode.fitting import columns as limits
from gpu_encode.fitting.columns import FEWEST_ON, MOST_COLUMNS, ColumnMap, most_numbers
from gpu_encode.seam import devices
from gpu_encode.seam.ops import Ops, VocabularyIndexes, device_of, host
from gpu_encode.tables.categories.keys import CategoryIndex
from gpu_encode.tables.categories.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class JointTables:
    """The tables of keys that are looked up together: joint keys, and columns that these read.

    Parameters
    ----------
    entries : list of int
        Numbers of the keys among all keys.
    columns : list of tuple
        Position and vocabulary of each column that any of the keys reads.
    members : list of tuple of int
        Columns of each key, by their positions in `columns`.
    sizes : int64 array (keys,)
        Length of the table of each key.
    tables : KeyTables
    indexes : VocabularyIndexes, optional
        The vocabularies of all columns on a GPU, if the tables lie there.
    """

    entries: list[int]
    columns: list[tuple[Any, Vocabulary]]
    members: list[tuple[int, ...]]
    sizes: Array
    tables: KeyTables
    indexes: VocabularyIndexes | None = None

    @classmethod
    def of(
        cls,
        keys: Sequence[CategoryIndex],
        encodings: Sequence[Array | None],
        as_category: Sequence[bool],
        ops: Ops | None = None,
    ) -> Self | None:
        """Choose the keys that can be looked up together, and make their tables; None if there are too few of them.

        Parameters
        ----------
        keys : list of CategoryIndex
        encodings : list of array (categories + 2, views, outputs) or None
            The encodings of each key, all with the same number of views; None for a key that is looked up alone.
        as_category : list of bool
            For each key, whether a missing value is one more value of its column.
        ops : Ops, optional
            The backend of a GPU, if rows are looked up there.
        """
        entries = choose_keys(keys, encodings, on_gpu=ops is not None)
        if len(entries) < FEWEST_ON["cpu" if ops is None else "cuda"]:
            return None
        chosen = [keys[number] for number in entries]
        columns, members = list_columns(chosen)
        held: list[Any] = [encodings[number] for number in entries]
        cells = [number_categories(key) for key in chosen]
        missing = [missing_line(keys[number], as_category[number]) for number in entries]
        tables = KeyTables(
            np.concatenate(cells),
            np.concatenate([values.reshape(-1) for values in held]),
            starts_of(cells),
            starts_of([values.reshape(-1) for values in held]),
            np.array([len(of_key) for of_key in cells], np.int64),
            np.array([values.shape[2] for values in held], np.int64),
            np.array(missing, np.int64),
            held[0].shape[1],
        )
        sizes = [n_cells(key) * values[0].size for key, values in zip(chosen, held, strict=True)]
        made = cls(entries, columns, members, np.array(sizes, np.int64), tables)
        return made if ops is None else made.on_gpu(ops)

    def on_gpu(self, ops: Ops) -> Self:
        """Give the same tables in the memory of a GPU, with indexes of the columns' vocabularies."""
        tables = self.tables._replace(cells=ops.to_device(self.tables.cells), values=ops.to_device(self.tables.values))
        indexes = devices.cuda().read_vocabularies([vocabulary.values.array for _, vocabulary in self.columns])
        return replace(self, tables=tables, indexes=indexes)

    def values_of(self, number: int) -> Array:
        """Give the encodings (categories + 2, views, outputs) of a key, by its position here, without a copy."""
        tables = self.tables
        n_outputs, start = int(tables.n_outputs[number]), int(tables.first_value[number])
        shape = int(tables.n_categories[number]) + 2, tables.n_views, n_outputs
        return tables.values[start : start + prod(shape)].reshape(shape)

    def look_up(self, columns: ColumnMap, ops: Ops, folds: Folds, step: int, out: KeyEncodings) -> dict[int, int]:
        """Write the encodings of rows; out.first[number] is the first line of key `number`, counted among all keys.

        It gives for each key that was looked up, by its number, how many of the rows 0, `step`, 2 * `step` and so on
        have an unknown category.
        """
        keys = np.flatnonzero(self.sizes <= most_numbers(columns.n_rows))
        backend = host(columns.n_rows * len(keys)) if self.indexes is None else ops
        if len(keys) < FEWEST_ON[device_of(backend)] or backend.fused is None:
            return {}
        members = [self.members[key] for key in keys]
        read = sorted({column for of_key in members for column in of_key})
        if self.indexes is not None:
            read = [*range(len(self.columns))]
        position = {column: number for number, column in enumerate(read)}
        codes, sizes = self.code_rows(columns, ops, read)
        given = KeyColumns(codes, sizes, [tuple(position[column] for column in of_key) for of_key in members])
        tables = self.tables._replace(**{name: getattr(self.tables, name)[keys] for name in OF_EACH_KEY})
        entries = [self.entries[key] for key in keys]
        lines = out._replace(first=[out.first[entry] for entry in entries])
        unknown = backend.fused.look_up_keys(given, tables, folds, step, lines)
        return dict(zip(entries, unknown.tolist(), strict=True))

    def code_rows(self, columns: ColumnMap, ops: Ops, read: Sequence[int]) -> tuple[Array, list[int]]:
        """Give the codes of the rows in some columns, in the smallest type that holds them, and their sizes."""
        chosen = [self.columns[column] for column in read]
        sizes = [len(vocabulary) + 2 for _, vocabulary in chosen]
        if self.indexes is not None:
            numbers = [columns.numbers(*each) for each in chosen]
            there = [None if isinstance(each, np.ndarray) else each for each in numbers]
            return self.indexes.look_up(there, lambda number: columns.lookup(*chosen[number], ops)), sizes
        matrix = np.empty((len(read), columns.n_rows), np.uint8 if max(sizes) <= 1 << 8 else np.int32)
        for line, (column, vocabulary), size in zip(matrix, chosen, sizes, strict=True):
            codes = columns.lookup(column, vocabulary, ops)
            np.copyto(line, codes, casting="unsafe")
            negative = codes < 0
            if bool(negative.any()):
                # The code -1 of a missing value becomes the last but one, the code -2 of an unknown value the last.
                line[negative] = size - 3 - codes[negative]
        return matrix, sizes


# Fields of `KeyTables` that have one number for each key.
OF_EACH_KEY = ("first_cell", "first_value", "n_categories", "n_outputs", "missing")


def choose_keys(keys: Sequence[CategoryIndex], encodings: Sequence[Array | None], on_gpu: bool) -> list[int]:
    """Choose joint keys whose tables are not too large, and single columns whose codes these keys need in any case.

    A GPU reads all columns in one launch, so other single columns are chosen, too.
    """
    most = limits.FEW_NUMBERS if on_gpu else limits.MOST_NUMBERS
    joint, single = [], []
    read: set[Any] = set()
    for number, (key, values) in enumerate(zip(keys, encodings, strict=True)):
        if values is None or key.entry.above or key.entry.rule is not None or key.labels is not None:
            continue
        if n_cells(key) * values[0].size > most or (on_gpu and len(key.entry.members) > MOST_COLUMNS):
            continue
        if len(key.entry.members) == 1:
            single.append(number)
        else:
            joint.append(number)
            read.update(key.entry.members)
    return sorted([*joint, *(number for number in single if on_gpu or keys[number].entry.members[0] in read)])


def n_cells(key: CategoryIndex) -> int:
    """Count the combinations of a key's values; each column also has a missing and an unknown value."""
    return prod(len(vocabulary) + 2 for vocabulary in key.vocabularies)


def list_columns(keys: Sequence[CategoryIndex]) -> tuple[list[tuple[Any, Vocabulary]], list[tuple[int, ...]]]:
    """List columns with their vocabularies, each once, and give the numbers of the columns of each key."""
    columns: list[tuple[Any, Vocabulary]] = []
    members = []
    # Keys that were loaded or merged have separate, but equal, vocabularies.
    known: dict[tuple[Any, int], int] = {}
    of_column: dict[Any, list[int]] = {}
    for key in keys:
        for column, vocabulary in zip(key.entry.members, key.vocabularies, strict=True):
            if (column, id(vocabulary)) in known:
                continue
            alike = of_column.setdefault(column, [])
            number = next((other for other in alike if columns[other][1] == vocabulary), None)
            if number is None:
                number = len(columns)
                columns.append((column, vocabulary))
                alike.append(number)
            known[column, id(vocabulary)] = number
        pairs = zip(key.entry.members, key.vocabularies, strict=True)
        members.append(tuple(known[column, id(vocabulary)] for column, vocabulary in pairs))
    return columns, members


def number_categories(key: CategoryIndex) -> Array:
    """Give the cell of each category: the mixed-radix number of its values; a missing value comes after all others."""
    if key.tuples is None:
        return np.arange(key.n_categories, dtype=np.uint32)
    cells = np.zeros(key.n_categories, np.int64)
    for values, vocabulary in zip(key.tuples.members.T, key.vocabularies, strict=True):
        cells *= len(vocabulary) + 2
        cells += np.where(values == MISSING, len(vocabulary), values)
    return cells.astype(np.uint32)


def missing_line(key: CategoryIndex, as_category: bool) -> int:
    """Give the line of rows that lack a value; -1 if a missing value is looked up like any other value."""
    if len(key.entry.members) > 1 and as_category:
        return -1
    return key.n_categories + (not (as_category and key.missing_is_unknown))


def starts_of(arrays: Sequence[Array]) -> Array:
    """Give the position at which each array begins after they are concatenated."""
    return np.cumsum([0, *map(len, arrays[:-1])]).astype(np.int64)
