"""Categories that do not fit into memory: their sums and encodings are in files, one file for each bucket of a key.

Each chunk of rows becomes lines, one for each of its categories.  Lines are spilled to files by bucket, together with
the number of each row's line, its fold and its target.  Pieces of several chunks wait in memory until they are large
enough, since each piece costs as much as thousands of rows.  Then, bucket by bucket, rows are summed, sums are turned
into encodings, and each row finds its encoding by the number of its line.  So a chunk writes each of its values only
once, however many rows have it; and it writes no sums, which take far more memory than rows if a category has few of
them.  Encodings are spilled by chunk of the output.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from cpu_fallback.row_numbers import FoldPattern, fold_array
from cpu_fallback.types import Array, Layout
from cpu_fallback.types import Rows as CodedRows
from gpu_encode.fitting.fit import FitContext
from gpu_encode.fitting.model import unseen_counted
from gpu_encode.scale.files import memory, shuffle
from gpu_encode.scale.files.look_up import (
    BucketTable,
    Joined,
    buckets_of,
    codes_in,
    index_of_lines,
    lines_by_bucket,
    of_new_rows,
    rows_in_buckets,
    sum_lines,
)
from gpu_encode.scale.files.memory import Room
from gpu_encode.scale.files.run import Run
from gpu_encode.scale.files.shuffle import KeyLines, ShuffledSums
from gpu_encode.scale.files.source import Chunk, Reading, Size, with_columns
from gpu_encode.scale.files.spilling import SpillTables
from gpu_encode.scale.parts import EncodingPlan, Part, PartialSums
from gpu_encode.scale.parts.sums import prepare_part
from gpu_encode.schemes import Ordered
from gpu_encode.seam.ops import host
from gpu_encode.sums.category_sums import CategorySums, windows
from gpu_encode.tables.categories.keys import CategoryIndex
from gpu_encode.words.errors.tables import rows_have_changed
from gpu_encode.words.errors.values import RowError

# Columns of a spilled row: its number among all rows, the number of its line in its chunk and bucket, and its view.
ROW, LINE, VIEW = "row", "line", "view"
# More columns of a training row: the fold in which it is summed, and its weight.  Targets follow.
FOLD, WEIGHT = "fold", "weight"
# More buckets would make pieces too small.
FEWEST_BUCKETS, MOST_BUCKETS = 1, 1 << 10
# Lines or rows that are gathered before they are added up; fewest and most lines that are encoded at a time.
GATHERED, FEWEST_ENCODED, ENCODED = 1 << 17, 1 << 8, 1 << 15
# One part in so many of the free memory is for what is gathered, and for the work on lines that are encoded.
SHARE = 8
# Pieces wait to be written until they have this number of bytes, or one part in so many of the free memory.
MOST_WAITING, WAITING = 1 << 26, 16
# Copies of the digits of a line while it is encoded: columns beside each other, sums, and what each view sees.
COPIES_OF_DIGITS = 6
# Bytes of memory for a category while its bucket is processed, in addition to its digits, values and encodings.
WORK_OF_CATEGORY = 256
# Lines of a saved table that are read at a time.
READ = 1 << 16


def number_of_buckets(n_categories: float, bytes_of_category: float, limit: int) -> int:
    """Choose the number of buckets for the categories of a key.

    Parameters
    ----------
    n_categories : float
    bytes_of_category : float
        Bytes of its digits, values and encodings.
    limit : int
        Bytes that the process may take: a third of the free ones is for the categories of a bucket.
    """
    memory.release()
    needed = int(3 * n_categories * (3 * bytes_of_category + WORK_OF_CATEGORY))
    buckets = -(-needed // memory.free_bytes(limit))
    return max(FEWEST_BUCKETS, min(buckets, MOST_BUCKETS))


class CategoryFiles:
    """Sums or encodings of all categories in files, and the rows that look up their encodings there.

    Parameters
    ----------
    joined : Joined
    folder : Path
        Made for these files, which are removed when they are no longer needed.
    number : int
        The number of buckets of each key.
    chunk_rows : int
        Every chunk is between two multiples of this number of rows.
    limit : int
        Bytes that the process may take.
    advance : callable
        Called with the number of rows that were looked up.
    """

    def __init__(
        self, joined: Joined, folder: Path, number: int, chunk_rows: int, limit: int, advance: Callable[[int], object]
    ) -> None:
        self._joined, self._number, self._chunk_rows, self._advance = joined, number, chunk_rows, advance
        self._limit, self._most_waiting = limit, min(MOST_WAITING, memory.free_bytes(limit) // WAITING)
        self._lines = SpillTables(folder / "lines")
        self._encodings = SpillTables(folder / "encodings")
        self._rows = SpillTables(folder / "rows")
        self._by_chunk = SpillTables(folder / "by-chunk")
        self.n_categories = [0] * len(joined.keys)

    @property
    def n_bytes(self) -> int:
        """Bytes that were written."""
        return sum(files.n_bytes for files in (self._lines, self._encodings, self._rows, self._by_chunk))

    def add(self, entry: int, lines: KeyLines, first_row: int, of_rows: Mapping[str, Array]) -> None:
        """Spill the lines of some consecutive rows, and for each row the number of its line.

        Parameters
        ----------
        entry : int
            Number of the key.
        lines : KeyLines
        first_row : int
        of_rows : mapping of str to array (rows,)
            Columns of training rows; for new rows, there are none.
        """
        buckets, within = buckets_of(lines.hashes, self._number), np.zeros(len(lines.table), np.int32)
        for bucket, at in rows_in_buckets(buckets).items():
            before = self._lines.keep(self._file(entry, bucket), lines.table.take(pa.array(at)))
            within[at] = np.arange(before, before + len(at))
        rows = np.flatnonzero(lines.of_rows >= 0)
        line = lines.of_rows[rows]
        for bucket, at in rows_in_buckets(buckets[line]).items():
            here = rows[at]
            columns = {ROW: here + first_row, LINE: within[line[at]]}
            columns |= {name: column[here] for name, column in of_rows.items()}
            self._rows.keep(self._file(entry, bucket), pa.table(columns))
        if self._lines.bytes_waiting + self._rows.bytes_waiting > self._most_waiting:
            # The numbers of lines count from the beginning of a piece, so pieces of both begin together.
            self._lines.flush()
            self._rows.flush()
        if len(rows) < len(lines.of_rows):
            missing = np.flatnonzero(lines.of_rows < 0)
            key, views = self._joined.keys[entry], of_rows[VIEW][missing]
            encodings = np.reshape(key.missing, (-1, len(key.outputs)))[views].astype(self._joined.dtype)
            self._add_encodings(entry, first_row + missing, encodings)

    def add_encodings(self, paths: Iterable[Path]) -> None:
        """Spill the encodings of a saved table by bucket, whichever engine wrote its files."""
        keys, numbers = [key.stored for key in self._joined.keys], [self._number] * len(self._joined.keys)
        for path in paths:
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(READ):
                    for where, own in lines_by_bucket(pa.Table.from_batches([batch]), keys, numbers):
                        self._encodings.add(self._file(*where), own)

    def learn(self, shared: ShuffledSums, saved: "SavedTable | None") -> None:
        """Make the encodings of each bucket from its rows, save them if asked, and look up the rows of the bucket."""
        most = memory.free_bytes(self._limit) // SHARE
        for entry, key in enumerate(self._joined.keys):
            of_line = memory.IN_ARRAYS * len(key.missing) + 8 * COPIES_OF_DIGITS * shared.n_sums
            at_once = max(FEWEST_ENCODED, min(ENCODED, most // of_line))
            for bucket in range(self._number):
                lines = distinct(self._lines.read(self._file(entry, bucket)), most)
                if lines is not None:
                    index, codes = index_of_lines(key, lines)
                    self.n_categories[entry] += index.n_categories
                    sums = self._sum(shared, entry, bucket, index, most)
                    encodings = encode_categories(shared, entry, lines, codes, sums, at_once)
                    del lines, sums
                    if saved is not None:
                        saved.add(encodings)
                    self._look_up(entry, bucket, encodings)
                    del encodings
                    memory.release()

    def look_up(self, no_lines: Any) -> None:
        """Look up all rows in the encodings that were added; `no_lines` is an empty table with their columns."""
        for entry in range(len(self._joined.keys)):
            for bucket in range(self._number):
                found = self._encodings.read(self._file(entry, bucket))
                self._look_up(entry, bucket, pa.concat_tables([no_lines, *found]))
                memory.release()

    def encodings_of(self, first_row: int, n_rows: int) -> Any:
        """Give the encodings of the rows of a chunk, as a table."""
        columns: dict[str, Any] = {}
        for entry, key in enumerate(self._joined.keys):
            encodings = np.empty((n_rows, len(key.outputs)), self._joined.dtype, "F")
            n_found = 0
            for piece in self._by_chunk.read(first_row // self._chunk_rows * len(self._joined.keys) + entry):
                rows, *values = (column.to_numpy() for column in piece.columns)
                rows = rows - first_row
                here = slice(None)
                if rows.min() < 0 or rows.max() >= n_rows:
                    here = (rows >= 0) & (rows < n_rows)
                for number, column in enumerate(values):
                    encodings[rows[here], number] = column[here]
                n_found += len(rows[here])
            if n_found != n_rows:
                raise rows_have_changed("The source has rows")
            columns |= dict(zip(key.outputs, encodings.T, strict=True))
        return pa.table(columns)

    def _file(self, entry: int, bucket: int) -> int:
        """Give the number of the file of a bucket of a key."""
        return entry * self._number + bucket

    def _sum(
        self, shared: ShuffledSums, entry: int, bucket: int, index: CategoryIndex, most: int
    ) -> list[CategorySums]:
        """Sum the rows of a bucket by category and fold, for each target; about `most` bytes of rows at a time."""
        key, number, total = self._joined.keys[entry], self._file(entry, bucket), list[CategorySums]()
        same = np.arange(index.n_categories, dtype=np.int32)
        pieces = zip(self._lines.read(number), self._rows.read(number), strict=True)
        coded = (
            (codes_in(index, key, lines.select(key.stored))[rows[LINE].to_numpy()], rows.drop_columns([ROW, LINE]))
            for lines, rows in pieces
        )
        for gathered in batches(coded, most):
            codes = np.concatenate([codes for codes, _ in gathered])
            # Each piece has the smallest type for its own folds and classes.
            rows = pa.concat_tables((rows for _, rows in gathered), promote_options="permissive")
            sums = sum_rows(shared, codes, index.n_categories, rows)
            pairs = zip(total, sums, strict=True)
            total = [mine.plus(other, same, same, len(same), True) for mine, other in pairs] if total else sums
        return total

    def _look_up(self, entry: int, bucket: int, encodings: Any) -> None:
        """Look up the rows of a bucket, and spill their encodings by chunk."""
        key, number = self._joined.keys[entry], self._file(entry, bucket)
        table = BucketTable(key, encodings, self._joined.dtype)
        pieces = zip(self._lines.read(number), self._rows.read(number), strict=True)
        for lines, piece in pieces:
            values = lines.select(key.stored).rename_columns(key.columns)
            rows, within, *views = (piece[name].to_numpy() for name in (ROW, LINE, VIEW) if name in piece.column_names)
            try:
                found = table.look_up(values, views[0] if views else None, within)
            except RowError:
                raise refused_row(table, values.take(pa.array(within)), rows) from None
            self._add_encodings(entry, rows, found)
            self._advance(len(rows))
        self._lines.remove(number)
        self._rows.remove(number)
        self._encodings.remove(number)

    def _add_encodings(self, entry: int, rows: Array, encodings: Array) -> None:
        """Spill the encodings of rows, whose numbers are rising, by chunk."""
        key = self._joined.keys[entry]
        table = pa.table([rows, *np.asfortranarray(encodings).T], [ROW, *key.outputs])
        chunks, starts = np.unique(rows // self._chunk_rows, return_index=True)
        ends = [*starts[1:].tolist(), len(rows)]
        for chunk, start, end in zip(chunks.tolist(), starts.tolist(), ends, strict=True):
            self._by_chunk.keep(chunk * len(self._joined.keys) + entry, table.slice(start, end - start))
        if self._by_chunk.bytes_waiting > self._most_waiting:
            self._by_chunk.flush()


def refused_row(table: BucketTable, values: Any, rows: Array) -> ValueError:
    """Give the error for new rows if a policy refuses some of them."""
    try:
        with unseen_counted():
            table.look_up(values, None)
    except RowError as error:
        return RowError(error.before, int(rows[error.row]), error.after)
    raise AssertionError("a value is refused where its rows are not")


def distinct(pieces: Iterable[Any], most_bytes: int) -> Any:
    """Give the distinct lines of a bucket, gathered some at a time; None if it has no lines."""
    gathered: list[Any] = []
    n_lines = found = 0
    for piece in pieces:
        gathered.append(piece)
        n_lines += len(piece)
        if n_lines > max(min(GATHERED, most_bytes * len(piece) // max(1, piece.nbytes)), 2 * found):
            gathered = [shuffle.add_lines(gathered)]
            n_lines = found = len(gathered[0])
    return shuffle.add_lines(gathered) if gathered else None


def batches(pieces: Iterable[tuple[Array, Any]], most_bytes: int) -> Iterator[list[tuple[Array, Any]]]:
    """Yield pieces of rows in lists, each of about this number of bytes."""
    gathered, n_bytes = [], 0
    for piece in pieces:
        gathered.append(piece)
        n_bytes += sum(part.nbytes for part in piece)
        if n_bytes > most_bytes:
            yield gathered
            gathered, n_bytes = [], 0
    if gathered:
        yield gathered


def columns_of_rows(shared: ShuffledSums, part: Part, context: FitContext) -> dict[str, Array]:
    """Give the columns of training rows that are spilled: view, fold, targets and weight."""
    rows, to_host = context.rows, context.rows.ops.to_host
    columns = {VIEW: narrow(shuffle.view_of_rows(shared, part))}
    labels = context.targets[0].labels
    [plan, *_] = shared.encoding_plan.fold_plans(context.selection, rows, labels, part.first_row)
    folds: Any = plan.folds
    if isinstance(folds, FoldPattern):
        folds = fold_array(folds, 0, rows.n_rows)
    if folds is not None:
        columns[FOLD] = narrow(to_host(folds))
    for number, column in enumerate(context.summed):
        values = to_host(column.target.values)
        columns[target_name(number)] = narrow(values) if column.target.is_classification else values
        if column.weight is not None:
            # Fractions may come in a later chunk; whole numbers from floats are floats again without loss.
            whole = pa.types.is_integer(part.sample_weight.type)
            columns[WEIGHT] = to_host(column.weight).astype(np.int64 if whole else np.float64)
    return columns


def narrow(numbers: Array) -> Array:
    """Give whole numbers that are not negative in the smallest type that holds them."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def target_name(number: int) -> str:
    """Name the column that holds a target: its class numbers or its values."""
    return f"target{number}"


def sum_rows(shared: ShuffledSums, codes: Array, n_categories: int, rows: Any) -> list[CategorySums]:
    """Sum rows by category and fold, for each target, from the columns of `columns_of_rows`."""
    made, columns = [], {name: column.to_numpy() for name, column in zip(rows.column_names, rows.columns, strict=True)}
    folds, weight, backend = columns.get(FOLD), columns.get(WEIGHT), host(len(codes))
    for number, (spec, total) in enumerate(zip(shared.specs, shared.totals, strict=True)):
        values, of_classes = columns[target_name(number)], spec.classification
        classes, target = (values.astype(np.int32), None) if of_classes else (None, values)
        highest = len(spec.layout.measures()) - 1
        layout = Layout(*windows(backend, target, weight, highest, len(codes)))
        shape, of_folds = (n_categories, *total.shape[:2]), None if folds is None else folds.astype(np.int32)
        coded = CodedRows(codes, classes, target, weight)
        made.append(CategorySums.measure(backend, coded, shape, replace(spec, layout=layout), of_folds))
    return made


def encode_categories(
    shared: ShuffledSums, entry: int, lines: Any, codes: Array, sums: Sequence[CategorySums], at_once: int
) -> Any:
    """Encode the lines of a bucket, which have these codes, `at_once` at a time."""
    made = []
    for start in range(0, len(lines), at_once):
        some = codes[start : start + at_once]
        digits = [
            shuffle.digits_in(replace(of_target, accumulators=of_target.accumulators[some]), spec)
            for of_target, spec in zip(sums, shared.specs, strict=True)
        ]
        made.append(shuffle.with_encodings(shared, entry, lines.slice(start, at_once), digits))
    return pa.concat_tables(made)


class SavedTable:
    """A folder of encodings of new rows, written bucket by bucket, in the format of `DistributedEncoder.save`.

    The record comes last; it has the number and a checksum of all lines.

    Parameters
    ----------
    path : Path
        The folder is made here, and must not exist before.
    joined : Joined
    no_lines : pyarrow.Table
        An empty table with the columns of encodings.
    """

    def __init__(self, path: Path, joined: Joined, no_lines: Any) -> None:
        Path(path, "encodings").mkdir(parents=True)
        self._joined, self._path, self._found = joined, str(path), sum_lines(None)
        self._writer = parquet.ParquetWriter(Path(path, "encodings", "part-0.parquet"), no_lines.schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.close()
        if error[0] is None:
            n_lines, checksum = self._found.tolist()
            self._joined.of_new_rows(n_lines, checksum).write(self._path)

    def add(self, encodings: Any) -> None:
        """Write the encodings of some categories."""
        lines = of_new_rows(self._joined, encodings)
        self._found = self._found + sum_lines(lines)
        self._writer.write_table(lines)


def survey(run: Run, encoding_plan: EncodingPlan, reading: Reading, columns: Sequence[str], size: Size) -> ShuffledSums:
    """Collect what every bucket needs to know about all rows, in a pass over the columns that are not keys.

    Raises
    ------
    NotShuffledError
        For encodings that depend on more than the sums of single categories.
    """
    shuffle.check_parameters(encoding_plan.encoder, True, Ordered)
    rules = shuffle.rules_of(reading, run.source.schema)
    blind = shuffle.blind(encoding_plan)

    def total_of(chunk: Chunk) -> PartialSums:
        return shuffle.total_part(blind, reading.roles.part(chunk))

    total = sum(run.each("profiling", columns, size, total_of), PartialSums())
    return shuffle.settle(encoding_plan, reading, rules, total, training=True)


class TrainingFiles:
    """Training rows, their sums and their encodings in files.

    Parameters
    ----------
    run : Run
    shared : ShuffledSums
    room : Room
    columns : list of str
        Columns that are needed to sum rows.
    n_categories : sequence of float, optional
        The number of categories of each key, if they have been counted.
    chunk_rows : int
        Rows of the chunks that are written.
    """

    def __init__(
        self,
        run: Run,
        shared: ShuffledSums,
        room: Room,
        columns: list[str],
        n_categories: Sequence[float] | None,
        chunk_rows: int,
    ) -> None:
        self._run, self._shared, self._room, self._columns = run, shared, room, columns
        self.joined = Joined.of(shared)
        most = max(n_categories or [run.source.n_rows])
        number = number_of_buckets(most, bytes_of_category(run, self.joined, shared.n_sums), room.limit)
        folder = run.staging.partial / "categories"
        self._files = CategoryFiles(self.joined, folder, number, chunk_rows, room.limit, run.progress.advance)

    def spill(self, size: Size) -> None:
        """Spill all rows by bucket, chunk by chunk."""
        run, shared = self._run, self._shared
        if not shared.encoding_plan.needs_labels:
            size = self._room.shorten_spilled(size)
        with run.reading("measuring", self._columns, size) as chunks:
            for chunk in chunks:
                part = shared.reading.roles.part(chunk)
                with run.timed("measuring"), part.named():
                    context = prepare_part(shared.encoding_plan, part)
                    assert context is not None
                    of_rows = columns_of_rows(shared, part, context)
                    for entry in range(len(context.categories)):
                        lines = shuffle.key_lines(shared, context, part, entry)
                        self._files.add(entry, lines, chunk.first_row, of_rows)
                del chunk, part, context, of_rows, lines

    def learn(self, model: Path | None) -> None:
        """Make the encodings of all categories, look up the rows, and save those of new rows if asked."""
        no_lines = shuffle.encode_lines(
            self._shared, shuffle.sum_table(self._shared, self._run.source.schema.empty_table())
        )
        with (
            contextlib.nullcontext() if model is None else SavedTable(model, self.joined, no_lines) as saved,
            placing(self._run, self.joined),
        ):
            self._files.learn(self._shared, saved)
        names = (key.entry.name for key in self._shared.model.keys)
        self._run.categories = dict(zip(names, self._files.n_categories, strict=True))
        self._run.bytes_spilled = self._files.n_bytes

    def encode(self, chunk: Chunk, aside: Sequence[str]) -> Any:
        """Give the table to write for a chunk."""
        encodings = self._files.encodings_of(chunk.first_row, chunk.table.num_rows)
        return with_columns(encodings, chunk.table.select(self.joined.beside_training(aside)))


@contextlib.contextmanager
def placing(run: Run, joined: Joined) -> Iterator[None]:
    """Count time and rows while rows are looked up, key by key."""
    run.progress.stage("placing", run.source.n_rows * len(joined.keys))
    memory.release()
    with run.timed("placing"):
        yield
    memory.release()


def bytes_of_category(run: Run, joined: Joined, n_sums: int) -> float:
    """Give the bytes of a category's digits, values and encodings, for the key that has most."""
    return 8 * n_sums + max(run.bytes_of_row(key.columns) + 8 * len(key.missing) for key in joined.keys)
