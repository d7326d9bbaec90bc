"""One run over files: its passes, each with a chunk read ahead and one written behind, and their costs."""

import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from gpu_encode.scale.files import memory
from gpu_encode.scale.files.room import Room
from gpu_encode.scale.files.source import Chunk, Size, Source, open_source, without_columns
from gpu_encode.scale.files.staging import Staging
from gpu_encode.scale.files.writing import Destination, OutputFiles, RowWriter
from gpu_encode.scale.parts import EncodingPlan
from gpu_encode.sums.targets import MANY_CLASSES
from gpu_encode.words.errors.targets import many_columns
from gpu_encode.words.progress import Progress, Teller, with_prefix

Item = TypeVar("Item")


class ReadAhead(Generic[Item]):
    """Takes items from an iterator in a thread, at most one before it is asked for.

    Parameters
    ----------
    items : callable
        Gives the iterator; called with a function that tells whether to stop early.

    Examples
    --------
    >>> with ReadAhead(lambda stopped: iter("ab")) as ahead:
    ...     list(ahead)
    ['a', 'b']
    """

    def __init__(self, items: Callable[[Callable[[], bool]], Iterable[Item]]) -> None:
        self.seconds = 0.0
        self.waited = 0.0
        self._items = iter(items(lambda: self._stopped))
        self._stopped = False
        self._thread = ThreadPoolExecutor(1, "gpu-encode reading")

    def __enter__(self) -> Self:
        self._next = self._thread.submit(self._read)
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped = True
        self._thread.shutdown()

    def __iter__(self) -> Iterator[Item]:
        while True:
            begun = time.perf_counter()
            item = self._next.result()
            self.waited += time.perf_counter() - begun
            if not item:
                return
            self._next = self._thread.submit(self._read)
            yield item.pop()

    def _read(self) -> list[Item]:
        """Give the next item in a list, out of which the caller takes it: nothing else holds it. Empty at the end."""
        begun = time.perf_counter()
        try:
            return [next(self._items)]
        except StopIteration:
            return []
        finally:
            self.seconds += time.perf_counter() - begun


class WriteBehind(Generic[Item]):
    """Hands items to a function in a thread, one at a time.

    Parameters
    ----------
    write : callable
        Called with each item, in order.

    Examples
    --------
    >>> written = []
    >>> with WriteBehind(written.append) as behind:
    ...     behind.put("a")
    ...     behind.put("b")
    >>> written
    ['a', 'b']
    """

    def __init__(self, write: Callable[[Item], None]) -> None:
        self.seconds = 0.0
        self.waited = 0.0
        self._write = write
        self._last: Future[None] | None = None
        self._thread = ThreadPoolExecutor(1, "gpu-encode writing")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            if kind is None:
                self.wait()
        finally:
            self._thread.shutdown(cancel_futures=True)

    def put(self, item: Item) -> None:
        """Hand over the next item, once those before it are written; raises an error of writing one of them."""
        self.wait()
        self._last = self._thread.submit(self._timed, item)

    def wait(self) -> None:
        """Wait until all is written; raises an error of writing."""
        begun = time.perf_counter()
        if self._last is not None:
            self._last.result()
        self.waited += time.perf_counter() - begun

    def _timed(self, item: Item) -> None:
        begun = time.perf_counter()
        self._write(item)
        self.seconds += time.perf_counter() - begun


# As people say it: thread by thread.
STAGES = ("opening", "profiling", "measuring", "placing", "encoding", "waiting", "reading", "writing")


@dataclass(frozen=True)
class Summary:
    """What a run over files did.

    Parameters
    ----------
    rows, columns : int
        Of the output.
    chunks : int
        Chunks that were encoded.
    files : int
        Files that were written; a resumed run counts its own.
    bytes_read, bytes_written : int
        Bytes of files, in all passes.
    seconds : mapping of str to float
        Seconds by stage.  "reading" and "writing" run beside the others, in threads of their own; "waiting" is the time
        spent waiting for these.
    peak_bytes : int
        Most memory that the process ever had.
    encoded : int
        Rows that this run encoded; an interrupted run may have written others before.
    missing, unseen : mapping of str to int
        Of these rows, the number without a value, by encoded column; and the number with a value that fit has not seen,
        by output of the encoder (None except from `transform_dataset`).  Columns and outputs without such rows are left
        out.
    elapsed : float
        Seconds from the beginning to the end.
    bytes_spilled : int
        Bytes of sums, rows and encodings that were written to disk on the way, since memory had no room for the
        categories; 0 where it had.

    Examples
    --------
    >>> stages = {"measuring": 1.5, "encoding": 2.25}
    >>> Summary(2_000_000, 3, 4, 1, 10**8, 5 * 10**7, stages, 10**9, 2_000_000, {"city": 50_000}, elapsed=3.8)
    in 4 chunks to 1 file, read 100.0 MB, written 50.0 MB, at most 1.0 GB of memory
    seconds: measuring 1.5, encoding 2.2
    2,000,000 rows of 3 columns in 3.8 s; missing values: city 2.5% (50,000 rows)
    """

    rows: int
    columns: int
    chunks: int
    files: int
    bytes_read: int
    bytes_written: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    peak_bytes: int = 0
    encoded: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)
    unseen: Mapping[str, int] | None = None
    elapsed: float = 0.0
    bytes_spilled: int = 0

    def __repr__(self) -> str:
        shares = "".join(
            f"; {word} values: "
            + (", ".join(f"{name} {share(rows, self.encoded)}" for name, rows in counts.items()) or "none")
            for word, counts in (("missing", self.missing), ("unseen", self.unseen))
            if counts is not None
        )
        times = ", ".join(f"{name} {self.seconds[name]:.1f}" for name in STAGES if name in self.seconds)
        return (
            f"in {self.chunks:,} {'chunk' if self.chunks == 1 else 'chunks'} to {self.files:,} "
            f"{'file' if self.files == 1 else 'files'}, read {amount(self.bytes_read)}, "
            f"written {amount(self.bytes_written)}, at most {amount(self.peak_bytes)} of memory"
            f"{f', {amount(self.bytes_spilled)} of categories on disk' if self.bytes_spilled else ''}\n"
            f"seconds: {times}\n"
            f"{self.rows:,} rows of {self.columns} columns in {self.elapsed:.1f} s{shares}"
        )


def share(rows: int, n_rows: int) -> str:
    """Write a number of rows, and their share of all rows.

    Examples
    --------
    >>> share(1_250, 100_000), share(1, 100_000)
    ('1.2% (1,250 rows)', '<0.1% (1 row)')
    """
    part = f"{rows / n_rows:.1%}" if 1000 * rows >= n_rows else "<0.1%"
    return f"{part} ({rows:,} {'row' if rows == 1 else 'rows'})"


def amount(n_bytes: float) -> str:
    """Write a number of bytes as people read it.

    Examples
    --------
    >>> amount(1_500_000)
    '1.5 MB'
    """
    return f"{with_prefix(n_bytes)}{'B' if n_bytes >= 1e3 else ' bytes'}"


@dataclass(frozen=True)
class Options:
    """The options of a run, for training rows and for new rows.

    Parameters
    ----------
    limit : int
        Bytes of memory that this process may have.
    compression, overwrite, resume, progress
        As `encode_dataset` takes them.
    chunk_rows : int, optional
        Rows of a chunk, whatever the limit.
    tables : str, default="auto"
        As `encode_dataset` takes it.
    """

    limit: int
    compression: str | None = None
    overwrite: bool = False
    resume: bool = False
    progress: bool | Teller | None = None
    chunk_rows: int | None = None
    tables: str = "auto"


def hold_stream(source: Source, folder: Path, progress: Progress) -> Source:
    """Run the query of a source, and give its rows as a file in `folder`; other sources stay as they are."""
    if source.stream is None:
        return source
    # Arrow's own format has every type that a query may give.
    path, tables = folder / "rows.arrow", source.stream.tables()
    progress.stage("fetching")
    first = next(tables, source.stream.schema.empty_table())
    rows_of_group = memory.group_rows(max(1.0, first.nbytes / max(first.num_rows, 1)))
    with RowWriter(path, source.stream.schema, "lz4", rows_of_group) as writer:
        for table in chain([first], tables):
            writer.write(table)
            progress.advance(table.num_rows)
    memory.release()
    return replace(open_source(path, source.missing_text), stream=source.stream)


class Run:
    """One run over files.

    Parameters
    ----------
    source : Source
    destination : Destination
    staging : Staging
    progress : Progress
    options : Options
    begun : float
        When it began, by `time.perf_counter`.
    """

    def __init__(
        self,
        source: Source,
        destination: Destination,
        staging: Staging,
        progress: Progress,
        options: Options,
        begun: float,
    ) -> None:
        self.source, self.destination, self.staging, self.progress = source, destination, staging, progress
        self.begun = begun
        self.seconds: defaultdict[str, float] = defaultdict(float, opening=time.perf_counter() - begun)
        self.chunks = self.bytes_read = self.bytes_written = self.files = self.columns = self.encoded = 0
        self.bytes_spilled = 0
        self.missing: Counter[str] = Counter()
        self._limit, self._chunk_rows = options.limit, options.chunk_rows
        self._row_bytes = source.row_bytes()
        self._begun = self._keeps_rows = False

    def size(self, columns: Sequence[str], n_keys: int, n_outputs: int = 0) -> Size:
        """Choose how many rows and bytes a chunk of these columns may hold."""
        if self._chunk_rows is not None:
            return Size(self._chunk_rows, batch_rows=min(self._chunk_rows, 1 << 16))
        row_bytes = self.bytes_of_row(columns)
        begun, self._begun = self._begun, True
        n_rows = self.source.n_rows
        return memory.chunk_size(self._limit, row_bytes, len(columns), n_keys, 8 * n_outputs, begun, n_rows)

    def check_classes(self, columns: Sequence[str], n_keys: int, n_classes: int) -> None:
        """Refuse a target with so many classes that the limit has no room for a column for each class and key."""
        if n_classes <= MANY_CLASSES or self._chunk_rows is not None:
            return
        row_bytes, n_rows = self.bytes_of_row(columns), self.source.n_rows
        try:
            memory.chunk_size(self._limit, row_bytes, len(columns), n_keys, 8 * n_keys * n_classes, False, n_rows)
        except ValueError as error:
            error.add_note(many_columns(n_classes))
            raise

    def room(self, encoding_plan: EncodingPlan, columns: Sequence[str], n_keys: int) -> Room:
        """Give the room that there is for categories."""
        every, names = self.bytes_of_row(self.source.schema.names), self.source.schema.names
        smallest = memory.least_bytes(every, len(names), n_keys, 8 * n_keys, self.source.n_rows)
        limit = self._limit if self._chunk_rows is None else 1 << 62
        kept = (
            0 if self.source.loaded is not None or self.source.n_rows > memory.MOST_ROWS else self.source.n_rows * every
        )
        return Room(limit, encoding_plan, smallest, self.bytes_of_row(columns), n_keys, int(kept))

    def bytes_of_row(self, columns: Sequence[str]) -> float:
        """Bytes of a row in memory, of some columns."""
        return max(1.0, sum(self._row_bytes[name] for name in columns))

    def keep_rows(self, size: Size) -> None:
        """Let the first pass keep all rows in memory, where they fit in one chunk of all columns."""
        n_rows = self.source.n_rows
        needed = n_rows * self.bytes_of_row(self.source.schema.names)
        self._keeps_rows = n_rows <= size.rows and needed <= size.n_bytes

    def keep_all_rows(self, n_keys: int) -> None:
        """Let the first pass keep all rows in memory, or refuse where they do not fit."""
        row_bytes = self.bytes_of_row(self.source.schema.names)
        memory.check_room_for_all(self._limit, self.source.n_rows, row_bytes, n_keys)
        self._keeps_rows = True

    @contextlib.contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Count the time of a stage; if an error names a row, add the file that holds the row."""
        begun = time.perf_counter()
        try:
            with self.source.naming_rows():
                yield
        finally:
            self.seconds[stage] += time.perf_counter() - begun

    @contextlib.contextmanager
    def reading(self, stage: str, columns: Sequence[str], size: Size, start: int = 0) -> Iterator[Iterator[Chunk]]:
        """Give the chunks of one pass, one of them read ahead."""
        self.progress.stage(stage, self.source.n_rows, start)
        n_bytes = self.source.read_bytes(self.source.schema.names if self._keeps_rows else columns)
        ahead = ReadAhead(lambda stopped: self._chunks(columns, size, start, stopped))
        with ahead:
            yield self._release_each(ahead)
        self.seconds["reading"] += ahead.seconds
        self.seconds["waiting"] += ahead.waited
        self.bytes_read += n_bytes

    def _chunks(self, columns: Sequence[str], size: Size, start: int, stopped: Callable[[], bool]) -> Iterator[Chunk]:
        if self._keeps_rows and self.source.loaded is None:
            self.source = self.source.load()
        yield from self.source.chunks(columns, size, start, stopped)

    def _release_each(self, chunks: ReadAhead[Chunk]) -> Iterator[Chunk]:
        for chunk in chunks:
            n_rows = chunk.table.num_rows
            yield chunk
            del chunk
            memory.release()
            self.progress.advance(n_rows)

    def write(
        self,
        part_rows: int,
        needed: Collection[str],
        empty: Any,
        encode: Callable[[Chunk], Any],
        size: Size,
        *,
        from_start: bool = False,
    ) -> None:
        """Encode all rows that are not in finished outputs, and write them.

        Parameters
        ----------
        part_rows : int
            Rows of each file, where the source does not decide it.
        needed : collection of str
            Columns that are encoded, and so are written even where a folder has a column of the same name.
        empty : pyarrow.Table
            The table that is written for no rows.
        encode : callable
            Gives the table that is written for a chunk.
        size : Size
        from_start : bool
            Whether finished rows have to be encoded again, before those that are still to be written.
        """
        outputs = self.staging.left(self.destination.outputs(self.source, part_rows))
        left_out = [name for name in self.destination.left_out(self.source) if name not in needed]
        first_row = outputs[0].first_row if outputs else self.source.n_rows
        schema = without_columns(empty, left_out).schema
        self.columns = len(schema)
        files = OutputFiles(
            outputs,
            schema,
            self.destination.compression,
            self.staging.partial_path,
            self.staging.keep_output,
            memory.group_rows(self.bytes_of_row(self.source.schema.names)),
        )
        # Chunks begin where they would without an interruption: some schemes depend on that.
        start = 0 if from_start else first_row // size.rows * size.rows

        def encode_rows(chunk: Chunk) -> Any:
            return without_columns(encode(chunk), left_out).slice(max(0, first_row - chunk.first_row))

        if outputs:
            self._write_chunks(files, encode_rows, size, start, needed)
        files.end()
        self.files, self.bytes_written = files.files, files.n_bytes

    def _write_chunks(
        self,
        files: OutputFiles,
        encode_rows: Callable[[Chunk], Any],
        size: Size,
        start: int,
        needed: Collection[str],
    ) -> None:
        """Encode chunk by chunk, while a thread writes the chunk before."""
        behind = WriteBehind(files.write)
        with contextlib.ExitStack() as stack:
            stack.callback(files.abandon)
            stack.enter_context(behind)
            stack.push(lambda kind, *_: files.stop() if kind is not None else None)
            for chunk in stack.enter_context(self.reading("encoding", self.source.schema.names, size, start)):
                with self.timed("encoding"):
                    table = encode_rows(chunk)
                self.chunks += 1
                self.encoded += chunk.table.num_rows
                self.missing += count_missing(chunk.table, needed)
                behind.put(table)
                del chunk, table
            behind.wait()
        self.seconds["writing"] += behind.seconds
        self.seconds["waiting"] += behind.waited

    def summary(self, unseen: Mapping[str, int] | None = None) -> Summary:
        """Give the summary; `unseen` counts the rows whose values fit has not seen, by key, where they were counted."""
        return Summary(
            self.source.n_rows,
            self.columns,
            self.chunks,
            self.files,
            self.bytes_read,
            self.bytes_written,
            {name: round(seconds, 6) for name, seconds in self.seconds.items()},
            memory.peak_bytes(),
            self.encoded,
            dict(self.missing),
            None if unseen is None else dict(unseen),
            time.perf_counter() - self.begun,
            self.bytes_spilled,
        )


def count_missing(table: pa.Table, names: Collection[str]) -> Counter[str]:
    """Count the rows without a value in each of some columns."""
    counts = {name: table[name].null_count for name in table.column_names if name in names}
    for name in counts:
        if pa.types.is_floating(table.schema.field(name).type):
            counts[name] = pc.sum(pc.is_null(table[name], nan_is_null=True)).as_py() or 0
    return Counter(counts)
