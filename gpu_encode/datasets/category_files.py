"""Categories that have no room in memory: their sums and encodings lie in files, one for each place of a key.

Rows become lines of digits, one a category, which are spilled by place; place by place they are added up, and become
encodings.  Rows are spilled by the same places, looked up place by place, and their encodings are spilled by chunk.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from cpu_fallback.types import Array
from gpu_encode.datasets import memory, shuffle
from gpu_encode.datasets.look_up import Joined, PlaceTable, lines_by_place, of_new_rows, rows_by_place
from gpu_encode.datasets.spilling import SpillFiles, SpillTables
from gpu_encode.errors.values import RowError

# The number of a row among all rows, and its view.
ROW, VIEW = "row", "view"
# More places are smaller pieces.
MOST_PLACES = 1 << 10
# Lines that are gathered before they are added up, and that are encoded at a time.
GATHERED, ENCODED = 1 << 17, 1 << 15
# Bytes of a category beside its digits, values and encodings, while its place is looked through.
WORK_OF_CATEGORY = 256


def number_of_places(n_rows: int, bytes_of_category: float, limit: int) -> int:
    """Choose how many places the categories of so many rows, or lines, are dealt to.

    Parameters
    ----------
    n_rows : int
        Each may have a category of its own.
    bytes_of_category : float
        Its digits, values and encodings.
    limit : int
        Bytes that the process may take: a third of what is free is for the categories of a place.
    """
    memory.release()
    free = max(limit - max(memory.resident_bytes(), memory.LOADED), 1)
    places = -(-int(3 * n_rows * (3 * bytes_of_category + WORK_OF_CATEGORY)) // free)
    return max(1, min(places, MOST_PLACES))


class CategoryFiles:
    """Encodings of all categories in files, and the rows that are looked up in them.

    Parameters
    ----------
    joined : Joined
    folder : Path
        For files that are there as long as they are needed.
    number : int
        Of the places of each key.
    chunk_rows : int
        Rows are asked for between multiples of this number.
    """

    def __init__(self, joined: Joined, folder: Path, number: int, chunk_rows: int) -> None:
        self._joined, self._number, self._chunk_rows = joined, number, chunk_rows
        self._lines = SpillTables(folder / "lines")
        self._encodings = SpillTables(folder / "encodings")
        self._rows = SpillTables(folder / "rows")
        self._by_chunk = SpillFiles(folder / "by-chunk")
        self._empty: Any = None

    def add_lines(self, lines: Any) -> None:
        """Spill lines of `shuffle.sum_table` by place."""
        for number, own in self._by_place(lines):
            self._lines.add(number, own)

    def add_rows(self, table: Any, first_row: int, views: Array | None) -> None:
        """Spill what rows are looked up by: the values of their keys, and the view of each in training."""
        numbers = pa.array(np.arange(first_row, first_row + len(table)))
        for entry, key in enumerate(self._joined.keys):
            values = [shuffle.in_one_form(table[name]) for name in key.columns]
            rows = pa.table([*values, numbers], [*key.columns, f"{ROW} of {entry}"])
            if views is not None:
                rows = rows.append_column(f"{VIEW} of {entry}", pa.array(views))
            for place, at in rows_by_place(rows, key.columns, self._number).items():
                self._rows.add(entry * self._number + place, rows.take(pa.array(at)))

    def encode(self, shared: shuffle.ShuffledSums, no_rows: Any) -> None:
        """Make the encodings of each place from its lines, which are then gone."""
        self._empty = shuffle.encode_lines(shared, no_rows)
        for number in range(len(self._joined.keys) * self._number):
            lines = add_up(self._lines.read(number))
            self._lines.remove(number)
            for start in range(0, 0 if lines is None else len(lines), ENCODED):
                self._encodings.add(number, shuffle.encode_lines(shared, lines.slice(start, ENCODED)))
            del lines
            memory.release()

    def read(self, path: Path) -> None:
        """Take the encodings that `write` wrote, by whatever engine."""
        for name in sorted(Path(path, "encodings").glob("*.parquet")):
            with parquet.ParquetFile(name) as file:
                self._empty = file.schema_arrow.empty_table() if self._empty is None else self._empty
                for batch in file.iter_batches(1 << 16):
                    for number, own in self._by_place(pa.Table.from_batches([batch])):
                        self._encodings.add(number, own)

    def write(self, path: Path) -> None:
        """Write what new rows need to a folder: `encodings` and `joined`, as `DistributedEncoder` does."""
        Path(path, "encodings").mkdir(parents=True)
        schema = of_new_rows(self._joined, self._empty).schema
        for number in range(len(self._joined.keys) * self._number):
            pieces = list(self._encodings.read(number))
            if pieces:
                table = of_new_rows(self._joined, pa.concat_tables(pieces, promote_options="permissive"))
                parquet.write_table(table.cast(schema), Path(path, "encodings", f"part-{number}.parquet"))
        self._joined.of_new_rows().write(str(path))

    def look_up(self) -> None:
        """Look all rows up, place by place."""
        for entry, key in enumerate(self._joined.keys):
            for number in range(entry * self._number, (entry + 1) * self._number):
                lines = pa.concat_tables([self._empty, *self._encodings.read(number)], promote_options="permissive")
                table = PlaceTable(key, lines, self._joined.dtype)
                del lines
                for piece in self._rows.read(number):
                    self._look_up_piece(entry, table, piece)
                self._rows.remove(number)
                memory.release()

    def encodings_of(self, first_row: int, n_rows: int) -> Any:
        """Give the encodings of the rows of a chunk, as a table."""
        columns = {}
        for entry, key in enumerate(self._joined.keys):
            encodings = np.empty((n_rows, len(key.outputs)), self._joined.dtype, "F")
            for rows, values in self._by_chunk.read(self._chunk_of(first_row) * len(self._joined.keys) + entry):
                here = (rows >= first_row) & (rows < first_row + n_rows)
                encodings[rows[here] - first_row] = values[here]
            columns |= dict(zip(key.outputs, encodings.T, strict=True))
        return pa.table(columns)

    def _by_place(self, lines: Any) -> Iterator[tuple[int, Any]]:
        """Give lines by the number of their key and place."""
        keys = [key.stored for key in self._joined.keys]
        for (entry, place), own in lines_by_place(lines, keys, [self._number] * len(keys)):
            yield entry * self._number + place, own

    def _chunk_of(self, row: Any) -> Any:
        """Give the number of the chunk that has a row."""
        return row // self._chunk_rows

    def _look_up_piece(self, entry: int, table: PlaceTable, piece: Any) -> None:
        """Look some rows of a place up, and spill their encodings by chunk."""
        key, n_keys = self._joined.keys[entry], len(self._joined.keys)
        rows = piece[f"{ROW} of {entry}"].to_numpy()
        views = piece[f"{VIEW} of {entry}"].to_numpy() if f"{VIEW} of {entry}" in piece.column_names else None
        try:
            encodings = table.look_up(piece.select(key.columns), views)
        except RowError as error:
            raise RowError(error.before, int(rows[error.row]), error.after) from error
        # Rows are in the order in which they were read.
        chunks, starts = np.unique(self._chunk_of(rows), return_index=True)
        pieces = zip(chunks.tolist(), np.split(rows, starts[1:]), np.split(encodings, starts[1:]), strict=True)
        for chunk, some, values in pieces:
            self._by_chunk.add(chunk * n_keys + entry, [some, values])


def add_up(pieces: Iterable[Any]) -> Any:
    """Add up the lines of a place, some at a time; None if there are none."""
    gathered: list[Any] = []
    n_lines = most = 0
    for piece in pieces:
        gathered.append(piece)
        n_lines += len(piece)
        if n_lines > max(GATHERED, 2 * most):
            gathered = [shuffle.add_lines(gathered)]
            n_lines = most = len(gathered[0])
    return shuffle.add_lines(gathered) if gathered else None
