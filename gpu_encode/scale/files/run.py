"""One run over files: its passes, which read one chunk ahead and write one behind, and their costs."""

import contextlib
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from cpu_fallback.cached import cached_property
from gpu_encode.scale.files import memory
from gpu_encode.scale.files.formats import has_fixed_width
from gpu_encode.scale.files.memory import Room
from gpu_encode.scale.files.pandas_note import with_note
from gpu_encode.scale.files.source import Chunk, Size, Source, open_source, without_columns
from gpu_encode.scale.files.staging import Staging, describe_run, end_publication
from gpu_encode.scale.files.text import TextRules
from gpu_encode.scale.files.writing import MOST_GROUP_ROWS, Destination, Output, RowWriter, choose_destination
from gpu_encode.scale.parts import EncodingPlan
from gpu_encode.storage.archive import explain_unwritten
from gpu_encode.sums.targets import MANY_CLASSES
from gpu_encode.words.errors.targets import many_columns
from gpu_encode.words.progress import Progress, Teller
from gpu_encode.words.sizes import amount
from gpu_encode.words.terminal import printable

Item = TypeVar("Item")


class Background:
    """A thread that runs one call at a time, and counts the seconds of these calls and of waiting for them.

    Parameters
    ----------
    name : str
        Name of the thread.

    Examples
    --------
    >>> with Background("gpu-encode adding") as thread:
    ...     thread.start(sum, [1, 2])
    ...     thread.wait()
    3
    """

    def __init__(self, name: str) -> None:
        self.seconds = self.waited = 0.0
        self.stopped = False
        self._thread = ThreadPoolExecutor(1, name)
        self._begun: Future[Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stopped = True
        self._thread.shutdown(cancel_futures=True)

    def start(self, function: Callable[..., Any], *given: Any) -> None:
        """Start a call once the call before is done; raise the error of that call, if it had one."""
        self.wait()
        self._begun = self._thread.submit(self._timed, function, *given)

    def wait(self) -> Any:
        """Wait for the last call, and give its result or raise its error; give None if there was no call."""
        begun = time.perf_counter()
        try:
            return None if self._begun is None else self._begun.result()
        finally:
            self.waited += time.perf_counter() - begun

    def _timed(self, function: Callable[..., Any], *given: Any) -> Any:
        begun = time.perf_counter()
        try:
            return function(*given)
        finally:
            self.seconds += time.perf_counter() - begun


def read_ahead(thread: Background, items: Iterator[Item]) -> Iterator[Item]:
    """Yield items; the thread takes the next item while one is in use.

    Examples
    --------
    >>> with Background("gpu-encode reading") as thread:
    ...     list(read_ahead(thread, iter("ab")))
    ['a', 'b']
    """

    def take() -> list[Item]:
        # The caller takes the item out of the list, so that nothing else keeps it in memory.
        return list(islice(items, 1))

    thread.start(take)
    while taken := thread.wait():
        thread.start(take)
        yield taken.pop()


# The stages in the order in which a summary lists them: those of the main thread come first.
STAGES = ("opening", "profiling", "measuring", "placing", "encoding", "waiting", "reading", "writing")


@dataclass(frozen=True)
class Summary:
    """What a run over files did.

    Parameters
    ----------
    rows, columns : int
        Rows and columns of the output.
    chunks : int
        Chunks that were encoded.
    files : int
        Files that were written; a resumed run counts only its own.
    bytes_read, bytes_written : int
        Bytes of files, in all passes.
    seconds : mapping of str to float
        Seconds by stage.  "reading" and "writing" are in threads of their own, at the same time as the other stages;
        "waiting" is the time that the main thread waits for them.
    peak_bytes : int
        The highest memory use of the process.
    encoded : int
        Rows that this run encoded; if it resumed another run, that run may have written more.
    missing, unseen : mapping of str to int
        For these rows: the number of missing values, by encoded column; the number of values that fit has not seen, by
        output of the encoder (None except from `transform_dataset`).  Columns and outputs without such rows are left
        out.
    elapsed : float
        Seconds from the beginning of the call to its end.
    bytes_spilled : int
        Bytes of sums, rows and encodings that were written to temporary files because the categories did not fit into
        memory; 0 if they did.
    categories : mapping of str to int
        The number of categories of each key that was learned; empty from `transform_dataset`.
    enough_memory : int
        If the categories did not fit into memory: a limit with which they do, and with which the call is fastest; else
        0.

    Examples
    --------
    >>> stages = {"measuring": 1.5, "encoding": 2.25}
    >>> Summary(2_000_000, 3, 4, 1, 10**8, 5 * 10**7, stages, 10**9, 2_000_000, {"city": 50_000}, elapsed=3.8)
    in 4 chunks to 1 file, read 95.4 MiB, written 47.7 MiB, at most 953.7 MiB of memory
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
    categories: Mapping[str, int] = field(default_factory=dict)
    enough_memory: int = 0

    def __repr__(self) -> str:
        shares = "".join(
            f"; {word} values: "
            + (", ".join(f"{printable(name)} {share(rows, self.encoded)}" for name, rows in counts.items()) or "none")
            for word, counts in (("missing", self.missing), ("unseen", self.unseen))
            if counts is not None
        )
        # A run that resumes another one encodes some of the rows.
        own = "" if self.encoded == self.rows else f"{self.encoded:,} of "
        on_disk = f", {amount(self.bytes_spilled)} of categories on disk" if self.bytes_spilled else ""
        if self.enough_memory:
            on_disk += f" (from memory_limit={self.enough_memory >> 20}MiB on, they stay in memory, which is faster)"
        times = ", ".join(f"{name} {self.seconds[name]:.1f}" for name in STAGES if name in self.seconds)
        return (
            f"in {self.chunks:,} {'chunk' if self.chunks == 1 else 'chunks'} to {self.files:,} "
            f"{'file' if self.files == 1 else 'files'}, read {amount(self.bytes_read)}, "
            f"written {amount(self.bytes_written)}, at most {amount(self.peak_bytes)} of memory"
            f"{on_disk}\n"
            f"seconds: {times}\n"
            f"{own}{self.rows:,} rows of {self.columns} columns in {self.elapsed:.1f} s{shares}"
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


@dataclass(frozen=True)
class Options:
    """The options of a run, for training rows and for new rows.

    Parameters
    ----------
    limit : int
        Bytes of memory that this process may have.
    compression, overwrite, resume, progress
        As in `encode_dataset`.
    chunk_rows : int, optional
        Rows of a chunk; overrides what the limit allows.
    tables : str, default="auto"
        As in `encode_dataset`.
    model : Path, optional
        Where the fitted encoder is saved; it appears together with the output.
    begun : float
        The time at which the call began, from `time.perf_counter`.
    """

    limit: int
    compression: str | None = None
    overwrite: bool = False
    resume: bool = False
    progress: bool | Teller | None = None
    chunk_rows: int | None = None
    tables: str = "auto"
    model: Path | None = None
    begun: float = field(default_factory=time.perf_counter)


class OutputFiles:
    """Writes rows, which come in order, to planned files.

    Parameters
    ----------
    outputs : sequence of Output
        The files that are still to be written, in order.
    schema_of : callable
        Gives the schema of a file.
    compression : str or None
    staging : Staging
        Knows the folders of unfinished and finished files.
    group_rows : int, optional
        As in `RowWriter`.
    """

    def __init__(
        self,
        outputs: Sequence[Output],
        schema_of: Callable[[Output], Any],
        compression: str | None,
        staging: Staging,
        group_rows: int = MOST_GROUP_ROWS,
    ) -> None:
        self.files = self.n_bytes = 0
        self._left = deque(outputs)
        self._schema_of, self._compression, self._group_rows = schema_of, compression, group_rows
        self._staging = staging
        self._row = outputs[0].first_row if outputs else 0
        self._writer: RowWriter | None = None

    def write(self, table: Any, stopped: Callable[[], bool] = lambda: False) -> None:
        """Write the next rows, one row group at a time, until all are written or `stopped` returns True."""
        while table.num_rows and not stopped():
            first = self._left[0].first_row
            groups = (self._row - first) // self._group_rows
            stop = min(self._left[0].stop, first + (groups + 1) * self._group_rows)
            piece, table = table.slice(0, stop - self._row), table.slice(stop - self._row)
            if piece.num_rows:
                self._open().write(piece)
                self._row += piece.num_rows
            if self._row == self._left[0].stop:
                self._close()

    def end(self) -> None:
        """Write the remaining files, which have no rows."""
        while self._left:
            self._open()
            self._close()

    def abandon(self) -> None:
        """Close a file that will not be finished."""
        if self._writer is not None:
            self._writer.abandon()

    def _open(self) -> RowWriter:
        if self._writer is None:
            path = self._partial()
            self._writer = RowWriter(
                path, self._schema_of(self._left[0]), self._compression, self._group_rows
            ).__enter__()
        return self._writer

    def _close(self) -> None:
        self._open()
        assert self._writer is not None
        writer, self._writer, path = self._writer, None, self._partial()
        writer.__exit__(None, None, None)
        self.files += 1
        self.n_bytes += path.stat().st_size
        self._staging.keep(path, self._staging.finished / self._left.popleft().relative)

    def _partial(self) -> Path:
        return self._staging.partial / Path(self._left[0].relative).name


def hold_stream(source: Source, folder: Path, progress: Progress) -> Source:
    """Run the query of a source, and give its rows as a file in `folder`; give any other source unchanged."""
    if source.stream is None:
        return source
    # Arrow's own format supports every type of a query.
    path, tables = folder / "rows.arrow", source.stream.tables()
    progress.stage("fetching")
    first = next(tables, source.stream.schema.empty_table())
    rows_of_group = memory.group_rows(max(1.0, first.nbytes / max(first.num_rows, 1)))
    with RowWriter(path, source.stream.schema, "lz4", rows_of_group) as writer:
        for table in chain([first], tables):
            writer.write(table)
            progress.advance(table.num_rows)
    memory.release()
    return replace(open_source(path, TextRules(source.missing_text)), stream=source.stream)


def open_destination(rows: Source, destination: Any, options: Options) -> Destination:
    """Check the destination of a run; first finish the publication of an earlier run that was killed during it."""
    if options.resume and rows.stream is not None:
        raise ValueError(
            f"resume=True needs files, which stay as they are, but source is a {rows.stream.name}: its query runs "
            "again, and may give other rows. Run without resume, or write the rows to files first."
        )
    # What a killed run has just published is the work that is to be resumed.
    ended = bool(end_publication(destination)) and options.resume
    return choose_destination(rows, destination, options.compression, options.overwrite or ended)


class Run:
    """One run over files; `Run.start` begins it.

    Parameters
    ----------
    source : Source
    destination : Destination
    staging : Staging
    progress : Progress
    options : Options
    """

    def __init__(
        self, source: Source, destination: Destination, staging: Staging, progress: Progress, options: Options
    ) -> None:
        self.source, self.destination, self.staging, self.progress = source, destination, staging, progress
        self.options = options
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.chunks = self.bytes_read = self.bytes_written = self.files = self.columns = self.encoded = 0
        self.bytes_spilled = self.enough_memory = 0
        self.missing: Counter[str] = Counter()
        self.categories: dict[str, int] = {}
        self.work: dict[str, Any] = {}
        self._needed: Collection[str] = ()
        self._begun, self._kept_bytes = False, 0
        self._all_rows: memory.PassBytes | None = None

    @classmethod
    @contextlib.contextmanager
    def start(cls, source: Source, destination: Destination, options: Options, keep: bool) -> Iterator["Run"]:
        """Do the work of a run in the hidden folder.  `keep` says whether the folder is kept after an error.

        If the source is a query, nothing is kept, since another run of the query may give other rows.
        """
        with (
            explain_unwritten(destination.path),
            Staging(destination, keep and source.stream is None) as staging,
            Progress(options.progress) as progress,
            memory.few_kept(options.limit),
        ):
            yield cls(hold_stream(source, staging.folder, progress), destination, staging, progress, options)

    def begin(
        self, choices: Mapping[str, Any], needed: Collection[str], plan_work: Callable[[], Mapping[str, Any]]
    ) -> None:
        """Start from the beginning, or continue an interrupted run.

        Parameters
        ----------
        choices : mapping of str to object
            Choices, other than source and destination, that decide the output.
        needed : collection of str
            Columns that are encoded; they are written even if a folder name gives a column of this name.
        plan_work : callable
            Called if the run starts from the beginning. Gives the sizes of pieces of work; "part_rows" is the number
            of rows of an output file, unless the files of the source decide it.
        """
        self.seconds["opening"] = time.perf_counter() - self.options.begun
        description = describe_run(self.source, self.destination, choices)
        self.work = self.staging.begin(description, self.options.resume, plan_work)
        self._needed = needed
        self.source = self.source.with_dictionaries(needed, self._row_bytes)

    @cached_property
    def _row_bytes(self) -> dict[str, float]:
        return self.source.row_bytes()

    def size(self, columns: Sequence[str], n_keys: int, n_outputs: int = 0) -> Size:
        """Choose the most rows and bytes of a chunk with these columns."""
        if (rows := self.options.chunk_rows) is not None:
            return Size(rows, batch_rows=min(rows, 1 << 16))
        begun, self._begun = self._begun, True
        return memory.chunk_size(self.options.limit, self.bytes_of_pass(columns, n_keys, n_outputs), begun)

    def overlapping(self, size: Size, n_outputs: int) -> Size:
        """Give chunks so short that rows are read, encoded and written at the same time."""
        row_bytes = self.bytes_of_row(self.source.schema.names) + 8 * n_outputs
        rows = min(size.rows, memory.whole_chunk(memory.STEP_BYTES / row_bytes))
        at_work = size.at_work * rows // size.rows
        return replace(size, rows=rows, batch_rows=min(size.batch_rows, rows), at_work=at_work)

    def bytes_of_pass(self, columns: Sequence[str], n_keys: int, n_outputs: int) -> memory.PassBytes:
        """Say how much memory a pass over some columns needs."""
        row_bytes, source = self.bytes_of_row(columns), self.source
        reading = source.files[0].format.buffers(source.contents, columns)
        return memory.PassBytes(row_bytes, n_keys, 8 * n_outputs, source.n_rows, reading)

    def check_classes(self, columns: Sequence[str], n_keys: int, n_classes: int) -> None:
        """Refuse a target with so many classes that a column for each class and key does not fit into the limit."""
        if n_classes <= MANY_CLASSES or self.options.chunk_rows is not None:
            return
        try:
            memory.chunk_size(self.options.limit, self.bytes_of_pass(columns, n_keys, n_keys * n_classes))
        except ValueError as error:
            error.add_note(many_columns(n_classes))
            raise

    def room(self, encoding_plan: EncodingPlan, columns: Sequence[str], n_keys: int) -> Room:
        """Give the memory that is free for categories."""
        every = self.bytes_of_pass(self.source.schema.names, n_keys, n_keys)
        limit = self.options.limit if self.options.chunk_rows is None else 1 << 62
        keepable = self.source.loaded is None and self.source.n_rows <= memory.MOST_ROWS
        kept = int(self.source.n_rows * every.row_bytes) if keepable else 0
        return Room(limit, encoding_plan, every.least, self.bytes_of_row(columns), n_keys, kept)

    def bytes_of_row(self, columns: Sequence[str]) -> float:
        """Bytes of a row in memory, with some of its columns."""
        return max(1.0, sum(map(self._row_bytes.__getitem__, columns)))

    def keep_rows(self, size: Size) -> None:
        """Let the first pass keep all rows in memory if they fit into one chunk with all columns."""
        n_rows = self.source.n_rows
        needed = n_rows * self.bytes_of_row(self.source.schema.names)
        self._kept_bytes = size.n_bytes if n_rows <= size.rows and needed <= size.n_bytes else 0

    def keep_all_rows(self, n_keys: int) -> None:
        """Let the first pass keep all rows in memory; refuse them if they do not fit."""
        self._all_rows = self.bytes_of_pass(self.source.schema.names, n_keys, n_keys)
        self._kept_bytes = memory.check_room_for_all(self.options.limit, self._all_rows)

    @contextlib.contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Count the time of a stage; if an error names a row, add the file of the row."""
        begun = time.perf_counter()
        try:
            with self.source.naming_rows():
                yield
        finally:
            self.seconds[stage] += time.perf_counter() - begun

    @contextlib.contextmanager
    def reading(self, stage: str, columns: Sequence[str], size: Size, start: int = 0) -> Iterator[Iterator[Chunk]]:
        """Give the chunks of one pass; one chunk is read ahead."""
        self.progress.stage(stage, self.source.n_rows, start)
        n_bytes = self.source.read_bytes(self.source.schema.names if self._kept_bytes else columns)
        with Background("gpu-encode reading") as thread:
            yield self._release_each(read_ahead(thread, self._chunks(thread, columns, size, start)), size.at_work)
        self.seconds["reading"] += thread.seconds
        self.seconds["waiting"] += thread.waited
        self.bytes_read += n_bytes

    def _chunks(self, thread: Background, columns: Sequence[str], size: Size, start: int) -> Iterator[Chunk]:
        if self._kept_bytes and self.source.loaded is None:
            # The bytes of a row were estimated, and later rows may be longer.
            self.source = self.source.load(self._kept_bytes)
            if self.source.loaded is None:
                memory.release()
                if self._all_rows is not None:
                    row_bytes = self.source.count_bytes() / self.source.n_rows
                    memory.check_room_for_all(self.options.limit, self._all_rows._replace(row_bytes=row_bytes))
                self._kept_bytes = 0
        yield from self.source.chunks(columns, size, start, lambda: thread.stopped)

    def each(self, stage: str, columns: Sequence[str], size: Size, function: Callable[[Chunk], Item]) -> Iterator[Item]:
        """Call a function with each chunk of one pass, and yield the results."""
        with self.reading(stage, columns, size) as chunks:
            for chunk in chunks:
                with self.timed(stage):
                    made = function(chunk)
                del chunk
                yield made

    def _release_each(self, chunks: Iterator[Chunk], needed: int) -> Iterator[Chunk]:
        for chunk in chunks:
            n_rows = chunk.table.num_rows
            yield chunk
            del chunk
            memory.release(needed, self.options.limit)
            self.progress.advance(n_rows)

    def write(self, empty: Any, encode: Callable[[Chunk], Any], size: Size, *, from_start: bool = False) -> None:
        """Encode all rows that are not in finished outputs, and write them.

        Parameters
        ----------
        empty : pyarrow.Table
            A table with the columns of the output and no rows.
        encode : callable
            Gives the table to write for a chunk.
        size : Size
        from_start : bool
            Whether finished rows must be encoded again before the remaining ones.
        """
        outputs = self.staging.left(self.destination.outputs(self.source, self.work["part_rows"]))
        if self.source.copied:
            empty = self.source.with_cells(empty, self.source.schema.empty_table())
        folders = self.source.partition_names if self.destination.is_folder else []
        left_out = [name for name in folders if name not in self._needed]
        first_row = outputs[0].first_row if outputs else self.source.n_rows
        schema = without_columns(empty, left_out).schema
        self.columns = len(schema)
        row_bytes = 0.0
        for column in schema:
            name, fixed = self.source.copied.get(column.name, column.name), has_fixed_width(column.type)
            row_bytes += column.type.bit_width / 8 if fixed else self._row_bytes.get(name, 0.0)
        files = OutputFiles(
            outputs,
            partial(with_note, schema, self.source),
            self.destination.compression,
            self.staging,
            memory.group_rows(max(self.bytes_of_row(self.source.schema.names), row_bytes)),
        )
        # Chunks begin where they would without an interruption, since some schemes depend on it.
        start = 0 if from_start else first_row // size.rows * size.rows

        def encode_rows(chunk: Chunk) -> Any:
            made = encode(chunk)
            table = self.source.with_cells(made, chunk.table) if self.source.copied else made
            return without_columns(table, left_out).slice(max(0, first_row - chunk.first_row))

        if outputs:
            with self.reading("encoding", self.source.schema.names, size, start) as chunks:
                self._write_chunks(files, chunks, encode_rows)
        files.end()
        self.files, self.bytes_written = files.files, files.n_bytes

    def _write_chunks(self, files: OutputFiles, chunks: Iterator[Chunk], encode_rows: Callable[[Chunk], Any]) -> None:
        """Encode chunk by chunk, while a thread writes the previous chunk."""
        with contextlib.ExitStack() as stack:
            stack.callback(files.abandon)
            thread = stack.enter_context(Background("gpu-encode writing"))
            for chunk in chunks:
                with self.timed("encoding"):
                    table = encode_rows(chunk)
                self.chunks += 1
                self.encoded += chunk.table.num_rows
                self.missing += count_missing(chunk.table, self._needed)
                thread.start(files.write, table, lambda: thread.stopped)
                del chunk, table
            thread.wait()
        self.seconds["writing"] += thread.seconds
        self.seconds["waiting"] += thread.waited

    def summary(self, unseen: Mapping[str, int] | None = None) -> Summary:
        """Give the summary; `unseen` counts, by key, the rows whose values fit has not seen, if they were counted."""
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
            time.perf_counter() - self.options.begun,
            self.bytes_spilled,
            self.categories,
            self.enough_memory,
        )


def count_missing(table: pa.Table, names: Collection[str]) -> Counter[str]:
    """Count the rows without a value, for each of some columns."""
    counts = Counter[str]()
    for name in table.column_names:
        if name not in names:
            continue
        counts[name] = table[name].null_count
        if pa.types.is_floating(table[name].type):
            counts[name] = pc.sum(pc.is_null(table[name], nan_is_null=True)).as_py() or 0
    return counts
