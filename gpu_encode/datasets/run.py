"""One run over files: its passes, each with a chunk read ahead and one written behind, and what they cost."""

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gpu_encode.datasets import memory
from gpu_encode.datasets.destinations import Destination, Output, OutputFiles
from gpu_encode.datasets.progress import Progress
from gpu_encode.datasets.roles import without_columns
from gpu_encode.datasets.source import Chunk, Size, Source
from gpu_encode.datasets.staging import Staging
from gpu_encode.datasets.summary import Summary
from gpu_encode.datasets.threads import ReadAhead, WriteBehind
from gpu_encode.errors.rows import RowError


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
        self._begun = False

    def size(self, columns: Sequence[str], n_keys: int, n_outputs: int = 0) -> Size:
        """Choose how much a chunk of these columns may hold."""
        if self._chunk_rows is not None:
            return Size(self._chunk_rows, batch_rows=min(self._chunk_rows, 1 << 16))
        row_bytes = max(1.0, sum(self._row_bytes[name] for name in columns))
        begun, self._begun = self._begun, True
        return memory.chunk_size(self._limit, row_bytes, len(columns), n_keys, 8 * n_outputs, begun)

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
        ahead = ReadAhead(lambda stopped: self.source.chunks(columns, size, start, stopped))
        with ahead:
            yield self._told(ahead)
        self.seconds["reading"] += ahead.seconds
        self.seconds["waiting"] += ahead.waited
        self.bytes_read += self.source.read_bytes(columns)

    def _told(self, chunks: ReadAhead[Chunk]) -> Iterator[Chunk]:
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
        files = OutputFiles(left, schema, self.destination.compression, staging.partial_path, staging.keep_output)
        # Chunks begin where they would without an interruption: some schemes count on that.
        start = 0 if from_start else first_row // size.rows * size.rows
        behind = WriteBehind(files.write)
        names = self.source.schema.names
        with contextlib.ExitStack() as stack:
            stack.callback(files.abandon)
            stack.enter_context(behind)
            for chunk in stack.enter_context(self.reading("encoding", names, size, start)) if left else ():
                with self.timed("encoding"):
                    table = without_columns(encoded(chunk), left_out).slice(max(0, first_row - chunk.first_row))
                self.chunks += 1
                behind.put(table)
                del chunk, table
        files.end()
        self.seconds["writing"] += behind.seconds
        self.seconds["waiting"] += behind.waited
        self.files, self.bytes_written = files.files, files.n_bytes

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
