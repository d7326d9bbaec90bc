"""Rows of files encoded with tables of categories on disk: training rows by their sums, new rows by a saved table."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from gpu_encode.fitting.model import unseen_counted, warn_of_share
from gpu_encode.scale.files import memory, shuffle
from gpu_encode.scale.files.category_files import CategoryFiles, SavedTable, number_of_buckets
from gpu_encode.scale.files.look_up import Joined, distinct_rows
from gpu_encode.scale.files.room import Room
from gpu_encode.scale.files.run import Options, Run, Summary, hold_stream
from gpu_encode.scale.files.shuffle import ShuffledSums
from gpu_encode.scale.files.source import Chunk, Reading, Size, Source, with_columns
from gpu_encode.scale.files.staging import Staging, describe_run, end_publication, refuse_resume
from gpu_encode.scale.files.writing import choose_destination
from gpu_encode.scale.parts import EncodingPlan, PartialSums
from gpu_encode.schemes import Ordered
from gpu_encode.storage.archive import explain_full_disk
from gpu_encode.words.progress import Progress

# Copies of a new row's values that exist while the values are told apart, hashed and spilled.
VALUES_AT_WORK = 3


def survey(run: Run, encoding_plan: EncodingPlan, reading: Reading, columns: Sequence[str], size: Size) -> ShuffledSums:
    """Learn what every bucket needs to know of all rows, in a pass over the columns beside the keys.

    Raises
    ------
    NotShuffledError
        For encodings that follow from more than the sums of single categories.
    """
    shuffle.check_parameters(encoding_plan.encoder, True, Ordered)
    rules = shuffle.rules_of(reading, run.source.schema)
    blind, total = shuffle.blind(encoding_plan), PartialSums()
    with run.reading("profiling", columns, size) as chunks:
        for chunk in chunks:
            with run.timed("profiling"):
                total += shuffle.total_part(blind, reading.roles.part(chunk))
    return shuffle.settle(encoding_plan, reading, rules, total, training=True)


class TrainingFiles:
    """Training rows, their sums and their encodings in files.

    Parameters
    ----------
    run : Run
    shared : ShuffledSums
    room : Room
    columns : list of str
        Columns that are read to sum rows.
    n_categories : sequence of float, optional
        Categories of each key, where they have been counted.
    chunk_rows : int
        Of the chunks that are written.
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
        self._files = CategoryFiles(self.joined, folder, number, chunk_rows, run.progress.advance)

    def spill(self, size: Size) -> None:
        """Sum all rows chunk by chunk."""
        run, shared = self._run, self._shared
        if not shared.encoding_plan.needs_labels:
            size = self._room.shorten_spilled(size, shared.n_sums)
        with run.reading("measuring", self._columns, size) as chunks:
            for chunk in chunks:
                part = shared.reading.roles.part(chunk)
                with run.timed("measuring"), part.named():
                    views = shuffle.view_of_rows(shared, part)
                    for entry, lines in enumerate(shuffle.sum_part(shared, part)):
                        self._files.add(entry, lines, chunk.first_row, views)
                del chunk, part

    def learn(self, model: Path | None) -> None:
        """Make the encodings of all categories, and look the rows up; a folder may keep the encodings of new rows."""
        no_lines = shuffle.encode_lines(
            self._shared, shuffle.sum_table(self._shared, self._run.source.schema.empty_table())
        )
        with contextlib.ExitStack() as stack:
            use: Callable[[Any], None] = ignore
            if model is not None:
                use = stack.enter_context(SavedTable(model, self.joined, no_lines)).add
            stack.enter_context(placing(self._run, self.joined))
            self._files.learn(self._shared, use)
        self._run.bytes_spilled = self._files.n_bytes

    def encode(self, chunk: Chunk, aside: Sequence[str]) -> Any:
        """Give the table that is written for a chunk."""
        encodings = self._files.encodings_of(chunk.first_row, chunk.table.num_rows)
        return with_columns(encodings, chunk.table.select(self.joined.beside_training(aside)))


def ignore(_: Any) -> None:
    """Keep no encodings."""


@contextlib.contextmanager
def placing(run: Run, joined: Joined) -> Iterator[None]:
    """Count time and rows while rows are looked up, key by key."""
    run.progress.stage("placing", run.source.n_rows * len(joined.keys))
    memory.release()
    with run.timed("placing"):
        yield
    memory.release()


def bytes_of_category(run: Run, joined: Joined, n_sums: int) -> float:
    """Bytes of the digits, values and encodings of a category, for the key that has most."""
    return 8 * n_sums + max(run.bytes_of_row(key.columns) + 8 * len(key.missing) for key in joined.keys)


def is_table(path: str | PathLike[str]) -> bool:
    """Whether a path is a folder of encodings."""
    return Path(path, "joined").is_dir()


class SavedEncodings:
    """A folder of the encodings of new rows.

    Parameters
    ----------
    path : path
    """

    def __init__(self, path: str | Path) -> None:
        self._path, self.joined = Path(path), Joined.read(str(path))
        self.files = sorted((self._path / "encodings").glob("*.parquet"))
        if not self.files:
            raise FileNotFoundError(f"{str(path)!r} is no folder of encodings: there is no encodings/*.parquet in it.")
        self.no_lines = parquet.read_schema(self.files[0]).empty_table()
        self.n_categories = sum(parquet.read_metadata(file).num_rows for file in self.files)

    @property
    def text(self) -> list[str]:
        """Columns that were text in training."""
        schema = self.no_lines.schema
        named = [pair for key in self.joined.keys for pair in zip(key.columns, key.stored, strict=True)]
        return sorted({name for name, stored in named if pa.types.is_string(schema.field(stored).type)})

    def describe(self) -> dict[str, Any]:
        """Describe the folder, so that a later run can tell it from others."""
        states = [path.stat() for path in [*self.files, *sorted((self._path / "joined").glob("*.parquet"))]]
        return {"the folder of encodings": [[state.st_size, state.st_mtime_ns] for state in states]}


def run_joining(rows: Source, destination: Any, saved: SavedEncodings, options: Options) -> Summary:
    """Do what `transform_dataset` does with a folder of encodings."""
    begun = time.perf_counter()
    refuse_resume(rows, options.resume)
    end_publication(destination)
    output = choose_destination(rows, destination, options.compression, options.overwrite)
    joined, names = saved.joined, rows.schema.names
    others = joined.beside_new(names)
    kind, no_rows = pa.from_numpy_dtype(joined.dtype), rows.schema.empty_table()
    encoded = pa.schema([(name, kind) for name in joined.outputs]).empty_table()
    empty = with_columns(encoded, no_rows.select(others))
    output.check_types(empty.schema)
    with (
        explain_full_disk(output.path),
        Staging(output, rows.stream is None) as staging,
        Progress(options.progress) as shown,
        memory.few_kept(options.limit),
        unseen_counted() as unseen,
    ):
        rows = hold_stream(rows, staging.folder, shown)
        run = Run(rows, output, staging, shown, options, begun)
        size = run.size(names, len(joined.keys), empty.num_columns)
        description = describe_run(rows, output, saved.describe())
        work = staging.begin(description, options.resume, lambda: {"part_rows": size.rows})
        files = look_up_rows(run, saved, options.limit, size)

        def encode_rows(chunk: Chunk) -> Any:
            return with_columns(files.encodings_of(chunk.first_row, chunk.table.num_rows), chunk.table.select(others))

        run.write(work["part_rows"], {name for key in joined.keys for name in key.columns}, empty, encode_rows, size)
        staging.publish()
    for name, n_rows in unseen.items():
        warn_of_share(name, n_rows, rows.n_rows)
    return run.summary(+unseen)


def look_up_rows(run: Run, saved: SavedEncodings, limit: int, size: Size) -> CategoryFiles:
    """Look all rows up in a folder of encodings, bucket by bucket."""
    joined = saved.joined
    number = number_of_buckets(saved.n_categories, bytes_of_category(run, joined, 0), limit)
    folder = run.staging.partial / "categories"
    files = CategoryFiles(joined, folder, number, size.rows, run.progress.advance)
    columns = sorted({name for key in joined.keys for name in key.columns})
    files.add_encodings(saved.files)
    # Counted as if each value were an output of 8 bytes.
    at_work = int(VALUES_AT_WORK * run.bytes_of_row(columns) / 8)
    with run.reading("measuring", columns, run.size(columns, len(joined.keys), at_work)) as chunks:
        for chunk in chunks:
            with run.timed("measuring"):
                for entry, key in enumerate(joined.keys):
                    files.add(entry, distinct_rows(chunk.table, key), chunk.first_row, None)
            del chunk
    with placing(run, joined):
        files.look_up(saved.no_lines)
    run.bytes_spilled = files.n_bytes
    return files
