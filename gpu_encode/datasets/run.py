"""One run over files: its passes, each with a chunk read ahead and one written behind, and what they cost."""

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, Self, TypeVar

from gpu_encode.datasets import memory
from gpu_encode.datasets.progress import Progress, Summary
from gpu_encode.datasets.roles import without_columns
from gpu_encode.datasets.source import Chunk, Size, Source
from gpu_encode.datasets.staging import Staging
from gpu_encode.datasets.writing import Destination, Output, OutputFiles
from gpu_encode.errors.values import RowError

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
        """Give the next item alone in a list, from which it is taken so that nothing else holds it; none at the end."""
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
        """Hand over the next item, once those before it are written; raises what went wrong with one of them."""
        self.wait()
        self._last = self._thread.submit(self._timed, item)

    def wait(self) -> None:
        """Wait until all is written; raises what went wrong."""
        begun = time.perf_counter()
        if self._last is not None:
            self._last.result()
        self.waited += time.perf_counter() - begun

    def _timed(self, item: Item) -> None:
        begun = time.perf_counter()
        self._write(item)
        self.seconds += time.perf_counter() - begun


class Run:
    """One run over files.

    Parameters
    ----------
    source : Source
    destination : Destination
    progress : Progress
    limit : int
        Bytes of memory that this process may have.
    chunk_rows : int, optional
        Rows of a chunk, whatever the limit.
    """

    def __init__(
        self, source: Source, destination: Destination, progress: Progress, limit: int, chunk_rows: int | None
    ) -> None:
        self.source, self.destination, self.progress = source, destination, progress
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.chunks = self.bytes_read = self.bytes_written = self.files = self.columns = 0
        self._limit, self._chunk_rows = limit, chunk_rows
        self._row_bytes = source.row_bytes()
        self._begun = self._keeps_rows = False

    def size(self, columns: Sequence[str], n_keys: int, n_outputs: int = 0) -> Size:
        """Choose how much a chunk of these columns may hold."""
        if self._chunk_rows is not None:
            return Size(self._chunk_rows, batch_rows=min(self._chunk_rows, 1 << 16))
        row_bytes = self._bytes_of_row(columns)
        begun, self._begun = self._begun, True
        n_rows = self.source.n_rows
        return memory.chunk_size(self._limit, row_bytes, len(columns), n_keys, 8 * n_outputs, begun, n_rows)

    def _bytes_of_row(self, columns: Sequence[str]) -> float:
        return max(1.0, sum(self._row_bytes[name] for name in columns))

    def keep_rows(self, size: Size) -> bool:
        """Let the first pass keep all rows in memory, where they fit in one chunk of all columns."""
        n_rows = self.source.n_rows
        needed = n_rows * self._bytes_of_row(self.source.schema.names)
        self._keeps_rows = n_rows <= size.rows and needed <= size.n_bytes
        return self._keeps_rows

    def keep_all_rows(self, n_keys: int) -> None:
        """Let the first pass keep all rows in memory, or refuse where they do not fit."""
        row_bytes = self._bytes_of_row(self.source.schema.names)
        memory.check_room_for_all(self._limit, self.source.n_rows, row_bytes, n_keys)
        self._keeps_rows = True

    @contextlib.contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Count the time of a stage; say of a row that an error names in which file it is."""
        begun = time.perf_counter()
        try:
            yield
        except RowError as error:
            place, row = self.source.named(error.row)
            raise RowError(error.before, error.row, f" (row {row} of {place}){error.after}") from error
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
        staging: Staging,
        outputs: Sequence[Output],
        empty: Any,
        encoded: Callable[[Chunk], Any],
        size: Size,
        left_out: Sequence[str],
        *,
        from_start: bool = False,
    ) -> None:
        """Encode all rows that are not in finished outputs, and write them.

        Parameters
        ----------
        staging : Staging
        outputs : sequence of Output
            All of them, finished ones included.
        empty : pyarrow.Table
            What is written of no rows.
        encoded : callable
            Gives what is written of a chunk.
        size : Size
        left_out : sequence of str
            Columns that are not written.
        from_start : bool
            Whether rows before those that are written have to be encoded, too.
        """
        left = staging.left(outputs)
        first_row = left[0].first_row if left else self.source.n_rows
        schema = without_columns(empty, left_out).schema
        self.columns = len(schema)
        files = OutputFiles(
            left,
            schema,
            self.destination.compression,
            staging.partial_path,
            staging.keep_output,
            memory.group_rows(self._bytes_of_row(self.source.schema.names)),
        )
        # Chunks begin where they would without an interruption: some schemes count on that.
        start = 0 if from_start else first_row // size.rows * size.rows

        def encode_rows(chunk: Chunk) -> Any:
            return without_columns(encoded(chunk), left_out).slice(max(0, first_row - chunk.first_row))

        if left:
            self._write_chunks(files, encode_rows, size, start)
        files.end()
        self.files, self.bytes_written = files.files, files.n_bytes

    def _write_chunks(self, files: OutputFiles, encode_rows: Callable[[Chunk], Any], size: Size, start: int) -> None:
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
                behind.put(table)
                del chunk, table
            behind.wait()
        self.seconds["writing"] += behind.seconds
        self.seconds["waiting"] += behind.waited

    def summary(self) -> Summary:
        """Say what was done."""
        return Summary(
            self.source.n_rows,
            self.columns,
            self.chunks,
            self.files,
            self.bytes_read,
            self.bytes_written,
            {name: round(seconds, 6) for name, seconds in self.seconds.items()},
            memory.peak_bytes(),
        )
