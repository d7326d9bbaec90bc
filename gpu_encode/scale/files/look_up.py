"""Tables of encodings, divided into buckets by a hash of the category, and rows that look up their encodings there.

The bucket of a category follows from its values alone, so a category's lines and its rows meet in the same bucket,
wherever they come from.  So a bucket holds all that its rows need, and no process holds all categories.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from pyarrow.dataset import dataset

from cpu_fallback.types import MISSING, Array
from gpu_encode.fitting.columns import map_columns
from gpu_encode.fitting.model import count_unseen, refuse_values
from gpu_encode.scale.files import shuffle, stores
from gpu_encode.scale.files.files import is_url
from gpu_encode.scale.messages import check_outputs, no_such_column
from gpu_encode.seam.ops import host
from gpu_encode.tables import frames
from gpu_encode.tables.categories.hashes import hash_categories, hash_words
from gpu_encode.tables.categories.keys import CategoryIndex, KeySpec
from gpu_encode.words.errors.tables import rows_have_changed

# With this seed, XXH64 gives what Spark's functions give.
SEED_OF_SPARK = 42
# The record of a folder that is being written.
UNFINISHED = "unfinished"


@dataclass(frozen=True)
class JoinedKey:
    """How rows find the encodings of one key.

    Parameters
    ----------
    columns, stored : list of str
        Its columns, under their names in the rows and in the table of encodings.
    outputs : list of str
    unknown : list of float
        Encodings of values that are not in the table.
    missing : list of float
        Encodings of rows without a value, in the order of views, then outputs; the last view is that of new rows.
    policy : str
        How missing values are treated.
    refuses_unknown : bool
    """

    columns: list[str]
    stored: list[str]
    outputs: list[str]
    unknown: list[float]
    missing: list[float]
    policy: str
    refuses_unknown: bool

    @property
    def new_rows(self) -> int:
        """The number of the view of new rows, which is also the number of views of training rows."""
        return len(self.missing) // len(self.outputs) - 1


@dataclass(frozen=True)
class Joined:
    """Everything that a look-up needs except the table of encodings.

    Parameters
    ----------
    keys : list of JoinedKey
    features : list of str
        Columns that were features in fit.
    passed : list of str
        Columns that pass through.
    optional : list of str
        Columns that new rows may lack.
    dtype : str
    n_rows : int
        Training rows; 0 if they were not counted.
    n_lines, checksum : int, optional
        What `sum_lines` gives for the lines that were saved with this object.
    """

    keys: list[JoinedKey]
    features: list[str]
    passed: list[str]
    optional: list[str]
    dtype: str
    n_rows: int = 0
    n_lines: int | None = None
    checksum: int | None = None

    @property
    def needed(self) -> set[str]:
        """Columns that new rows must have."""
        return {*self.passed, *(name for key in self.keys for name in key.columns)} - {*self.optional}

    @classmethod
    def of(cls, shared: shuffle.ShuffledSums) -> Self:
        """Take from a fit what a look-up needs."""
        model, names = shared.model, shared.reading.roles.features
        outputs, keys = model.encoded_names(names), []
        for entry, (key, rule) in enumerate(zip(model.selection.entries, model.rules, strict=True)):
            unknown, missing = shared.encode(entry, shuffle.no_categories(shared)).astype(float)
            mine, outputs = outputs[: unknown.shape[1]], outputs[unknown.shape[1] :]
            columns, stored = [names[position] for position in key.members], [shuffle.key_name(i) for i in key.members]
            fallbacks = unknown[-1].tolist(), missing.ravel().tolist()
            keys.append(JoinedKey(columns, stored, mine, *fallbacks, rule.missing, rule.refuses_unknown))
        selection = model.selection
        passed, optional = ([names[i] for i in positions] for positions in (selection.passed, selection.optional))
        return cls(keys, names, passed, optional, model.dtype, shared.encoding_plan.n_rows)

    @property
    def outputs(self) -> list[str]:
        """Names of all encodings."""
        return [name for key in self.keys for name in key.outputs]

    def beside_training(self, aside: Sequence[str]) -> list[str]:
        """Give the columns of training rows that follow the encodings: those that pass through, then `aside`."""
        check_outputs([*self.outputs, *self.passed, *aside])
        return [*self.passed, *aside]

    def beside_new(self, names: Sequence[str], *, in_order: bool = True) -> list[str]:
        """Give the columns of new rows that follow the encodings; ValueError for rows that lack one.

        Parameters
        ----------
        names : list of str
            All columns of the new rows; columns that fit has not seen come last.
        in_order : bool, default=True
            Whether the result keeps the order of the rows; otherwise the columns of a scheme stay, too.
        """
        for name in self.features:
            if name in self.needed and name not in names:
                raise no_such_column("the encoder", name, names)
        read = [name for name in self.optional if name not in self.passed and not in_order]
        passed = [name for name in (*self.passed, *read) if name in names]
        others = [*passed, *(name for name in names if name not in self.features)]
        check_outputs([*self.outputs, *others])
        return others

    def of_new_rows(self, n_lines: int | None = None, checksum: int | None = None) -> Self:
        """Give only what new rows need."""
        keys = [replace(key, missing=key.missing[-len(key.outputs) :]) for key in self.keys]
        return replace(self, keys=keys, n_lines=n_lines, checksum=checksum)

    def check_lines(self, n_lines: int, checksum: int, path: str) -> None:
        """Raise ValueError if a folder does not have the lines that were saved with this object."""
        if self.n_lines is not None and (self.n_lines, self.checksum) != (n_lines, checksum):
            raise ValueError(
                f"{path!r} has {n_lines:,} lines of encodings with checksum {checksum:#x}, but {self.n_lines:,} lines "
                f"with checksum {self.checksum:#x} were saved: files were lost, added or changed since. Save again."
            )

    def to_text(self) -> str:
        """Write everything as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str, path: str) -> Self:
        """Read the JSON in the record of a folder; FileNotFoundError if it is none of `to_text`."""
        try:
            known = json.loads(text)
            return cls(**known | {"keys": [JoinedKey(**key) for key in known["keys"]]})
        except (ValueError, TypeError, KeyError) as error:
            raise not_saved(path) from error

    def write(self, path: str) -> None:
        """Write this object to ``path/joined``, a folder with a Parquet file of one row and one column.

        Parameters
        ----------
        path : str
            A folder of this machine, or a URL that fsspec reaches.
        """
        filesystem, folder = folder_of(path)
        table, name = pa.table({"joined": [self.to_text()]}), f"{folder}/joined/part-0.parquet"
        if filesystem is None:
            Path(folder, "joined").mkdir(parents=True, exist_ok=True)
            parquet.write_table(table, f"{folder}/joined/.part-0")
            Path(folder, "joined", ".part-0").replace(name)
        else:
            parquet.write_table(table, name, filesystem=filesystem)

    @classmethod
    def read(cls, path: str) -> Self:
        """Read an object from ``path/joined``, whichever engine wrote it, after a check of the lines beside it."""
        filesystem, folder = folder_of(path)
        try:
            texts = parquet.read_table(f"{folder}/joined", filesystem=filesystem)["joined"].to_pylist()
        except (FileNotFoundError, NotADirectoryError, KeyError, pa.ArrowInvalid) as error:
            # A folder without files has no columns.
            raise not_saved(path) from error
        if texts in ([], [UNFINISHED]):
            raise not_saved(path)
        joined = cls.from_text(texts[0], path)
        if joined.n_lines is not None:
            lines = dataset(f"{folder}/encodings", filesystem=filesystem, format="parquet")
            batches = lines.to_batches(columns=[shuffle.ENCODINGS]) if lines.files else ()
            found = sum(map(sum_lines, batches), sum_lines(None))
            n_lines, checksum = found.tolist()
            joined.check_lines(n_lines, checksum, path)
        return joined


def not_saved(path: str) -> FileNotFoundError:
    """Error for a folder without the record that a save writes last."""
    return FileNotFoundError(
        f"{path!r} is no saved encoder, or its save was ended before it was done: nothing in it is used. Save again, "
        "save(path, overwrite=True)."
    )


def saved_already(path: str) -> FileExistsError:
    """Error for a folder that holds an encoder, or a part of one."""
    return FileExistsError(f"{path!r} is there already: give another path, or save(path, overwrite=True).")


def clear_folder(path: str, overwrite: bool) -> None:
    """Make room for an encoder: remove the record of an older one first, then its lines; create the folder of lines.

    Raises
    ------
    FileExistsError
        If there is an encoder, or a part of one, and `overwrite` is false.
    """
    filesystem, folder = folder_of(path)
    parts = [f"{folder}/{part}" for part in ("joined", "encodings")]
    there = [part for part in parts if (Path(part).exists() if filesystem is None else filesystem.exists(part))]
    if there and not overwrite:
        raise saved_already(path)
    for part in there:
        if filesystem is None:
            shutil.rmtree(part)
        else:
            filesystem.rm(part, recursive=True)
    if filesystem is None:
        Path(folder, "encodings").mkdir(parents=True)


def sum_lines(lines: Any) -> Array:
    """Give the number of some lines, and the sum of the hashes of their encodings, which Spark's ``xxhash64`` gives."""
    if lines is None or not len(lines):
        return np.zeros(2, np.uint64)
    column = lines[shuffle.ENCODINGS]
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    # One form of zero and of NaN.
    encodings = column.flatten().to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
    encodings[np.isnan(encodings)] = np.nan
    hashes = np.full(len(lines), SEED_OF_SPARK, np.uint64)
    for words in encodings.view(np.uint64).reshape(len(lines), -1).T:
        hashes = hash_words(words, hashes)
    return np.array([len(lines), hashes.sum(dtype=np.uint64)], np.uint64)


def folder_of(path: str) -> tuple[Any, str]:
    """Give the file system of a path (None for this machine's), and the path in it."""
    return stores.reach(stores.with_lower_scheme(path)) if is_url(path) else (None, str(path))


def of_new_rows(joined: Joined, lines: Any) -> Any:
    """Remove the encodings of training rows from the lines of `shuffle.encode_lines`.

    Parameters
    ----------
    joined : Joined
        As it was when `lines` were made.
    lines : pyarrow.Table
    """
    made, dtype = [lines.slice(0, 0)], lines.schema.field(shuffle.ENCODINGS).type.value_type
    for entry, key in enumerate(joined.keys):
        own = shuffle.of_entry(lines, entry)
        cells = own[shuffle.ENCODINGS].combine_chunks().flatten().to_numpy()
        cells = cells.reshape(len(own), key.new_rows + 1, len(key.outputs))[:, -1]
        position = own.column_names.index(shuffle.ENCODINGS)
        made.append(own.set_column(position, shuffle.ENCODINGS, shuffle.as_lists(cells, dtype)))
    return pa.concat_tables(made)


def rows_by_bucket(table: Any, columns: Sequence[str], number: int) -> dict[int, Array]:
    """Find the bucket of each row by the values of some columns.

    Parameters
    ----------
    table : pyarrow.Table
    columns : list of str
        Columns of one key; a missing value is a value like others.
    number : int
        The number of buckets.

    Returns
    -------
    dict of int to int64 array
        For each bucket that has rows, their numbers, rising.

    Examples
    --------
    >>> import pyarrow as pa
    >>> buckets = rows_by_bucket(pa.table({"city": ["Rome", "Bonn", None, "Rome"]}), ["city"], 4)
    >>> sorted(rows.tolist() for rows in buckets.values())
    [[0, 3], [1], [2]]
    """
    if not len(table):
        return {}
    key, codes = index_of(table.select(list(columns)))
    return rows_in_buckets(buckets_of(hash_categories(key, shuffle.SEED), number)[codes])


def buckets_of(hashes: Array, number: int) -> Array:
    """Give the bucket of each hash, for this number of buckets."""
    buckets: Array = (hashes % np.uint64(number)).astype(np.uint16)
    return buckets


def rows_in_buckets(buckets: Array) -> dict[int, Array]:
    """Give for each bucket that has rows their numbers, rising."""
    if not len(buckets):
        return {}
    order = np.argsort(buckets, kind="stable")
    found, starts = np.unique(buckets[order], return_index=True)
    return dict(zip(found.tolist(), np.split(order, starts[1:]), strict=True))


def dealt_lines(lines: shuffle.KeyLines, number: int) -> Iterator[tuple[int, Any]]:
    """Yield the lines of a key by bucket, with the number of the bucket; only lines that some row has."""
    for bucket, at in rows_in_buckets(buckets_of(lines.hashes, number)).items():
        yield bucket, lines.table.take(pa.array(at))


def distinct_rows(table: Any, key: JoinedKey) -> shuffle.KeyLines:
    """Give the distinct values of new rows in a key, under the column names of the table of encodings."""
    index, codes = index_of(table.select(list(key.columns)))
    rows = shuffle.first_rows(codes, index.n_categories, with_missing=True)
    found = np.flatnonzero(rows >= 0)
    columns = [shuffle.in_one_form(table[name].take(pa.array(rows[found]))) for name in key.columns]
    hashes = hash_categories(index, shuffle.SEED)[found]
    return shuffle.KeyLines(pa.table(columns, key.stored), hashes, shuffle.line_of_rows(codes, rows))


def lines_by_bucket(
    lines: Any, keys: Sequence[Sequence[str]], numbers: Sequence[int]
) -> Iterator[tuple[tuple[int, int], Any]]:
    """Yield lines by the number of their key and their bucket, which the values of the key's columns decide."""
    for entry, (columns, number) in enumerate(zip(keys, numbers, strict=True)):
        own = shuffle.of_entry(lines, entry)
        for bucket, rows in rows_by_bucket(own, columns, number).items():
            yield (entry, bucket), own.take(pa.array(rows))


def index_of(table: Any, name: str = "") -> tuple[CategoryIndex, Array]:
    """Number the categories of a key with all columns of a table; give the index and the code of each row."""
    columns = map_columns(frames.read(table))
    return CategoryIndex.fit(KeySpec(name, tuple(range(table.num_columns))), columns, host(len(table)), True)


def index_of_lines(key: JoinedKey, lines: Any) -> tuple[CategoryIndex, Array]:
    """Number the categories of the lines of a key."""
    return index_of(lines.select(key.stored), "_x_".join(key.columns))


def codes_in(index: CategoryIndex, key: JoinedKey, values: Any) -> Array:
    """Give the codes of a table of a key's columns in the categories of a bucket."""
    return index.lookup(map_columns(frames.read(values)), host(len(values)), key.policy == "category")


class BucketTable:
    """The encodings of those categories of one key that are in one bucket.

    Parameters
    ----------
    key : JoinedKey
    lines : pyarrow.Table
        Lines of this key, from `shuffle.encode_lines`.
    dtype : str
        Type of the encodings.
    """

    def __init__(self, key: JoinedKey, lines: Any, dtype: str) -> None:
        self._key = key
        self._index, codes = index_of_lines(key, lines)
        encodings = lines[shuffle.ENCODINGS].combine_chunks().flatten().to_numpy()
        shape = len(lines), key.new_rows + 1, len(key.outputs)
        # Two more lines follow those of the categories: one for unknown values, and one for missing values, which have
        # encodings of their own if they are a category.
        self._lines = np.full(self._index.n_categories + 2, -1, np.int64)
        self._lines[codes] = np.arange(len(lines))
        self._encodings = encodings.astype(dtype, copy=False).reshape(shape)

    def look_up(self, table: Any, views: Array | None, of_rows: Array | None = None) -> Array:
        """Give the encodings of rows whose categories are in this bucket.

        Parameters
        ----------
        table : pyarrow.Table
        views : int array (rows,), optional
            The view of each training row; None for new rows.
        of_rows : int array (rows,), optional
            If the table has each category only once: for each row the number of its line in the table.

        Returns
        -------
        float array (rows, outputs)

        Raises
        ------
        ValueError
            For values that a policy refuses, and for training rows whose category has no sums.
        """
        key, columns = self._key, map_columns(frames.read(table.select(list(self._key.columns))))
        codes = self._index.lookup(columns, host(len(table)), key.policy == "category")
        if views is None:
            refuse_values(codes, self._index, key.policy, key.refuses_unknown, columns)
        if of_rows is not None:
            codes = codes[of_rows]
        lines = self._lines[codes]
        if views is None:
            count_unseen(self._index, codes)
            views = np.full(len(codes), key.new_rows)
        elif bool(((lines < 0) & ((codes != MISSING) | (key.policy == "category"))).any()):
            raise rows_have_changed(f"{' x '.join(map(repr, key.columns))}: X has values")
        absent = np.full((len(codes), len(key.outputs)), key.unknown)
        if key.policy != "category":
            missing = np.flatnonzero(codes == MISSING)
            absent[missing] = np.reshape(key.missing, (-1, len(key.outputs)))[views[missing]]
        encodings: Array = absent.astype(self._encodings.dtype)
        found = np.flatnonzero(lines >= 0)
        encodings[found] = self._encodings[lines[found], views[found]]
        return encodings
