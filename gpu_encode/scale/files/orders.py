"""Ordered schemes over chunks: sums are carried from row to row; for other orders, rows are first sorted into files."""

from collections.abc import Callable, Iterator

from gpu_encode.scale.files.run import Run
from gpu_encode.scale.files.source import Roles, Size
from gpu_encode.scale.files.spilling import SpillFiles
from gpu_encode.scale.parts import (
    CategoryMeanDeltas,
    CategoryMeanScan,
    EncodingTables,
    OrderedRows,
    OrderedScan,
    Part,
    RowEncodings,
    shuffle,
    with_categories,
)

# Gives, for each order, the encodings of the rows of a part; None if the scheme is not ordered.
Placing = Callable[[Part], list[list[RowEncodings]] | None]


class Orders:
    """The orders of an ordered scheme.

    Parameters
    ----------
    run : Run
    tables : EncodingTables
    roles : Roles
    columns : list of str
        The columns that decide the ranks of rows.
    size : Size
        Size of the chunks of these columns that are read to find ranks.
    """

    def __init__(self, run: Run, tables: EncodingTables, roles: Roles, columns: list[str], size: Size) -> None:
        self._run, self._tables, self._roles = run, tables, roles
        self._columns, self._size, self._folder = columns, size, run.staging.partial
        self._n_groups = -(-run.source.n_rows // size.rows)

    def placing(self) -> tuple[EncodingTables, Placing]:
        """Give the tables, and the function that encodes each chunk.

        In the order of the rows, the function needs all chunks, from the first to the last.  In other orders, each
        chunk must be between two multiples of ``size.rows``.
        """
        return self._in_rows() if self._tables.encoding_plan.order == "rows" else self._shuffled()

    def _in_rows(self) -> tuple[EncodingTables, Placing]:
        """Scan rows in their own order."""
        tables = self._tables
        if tables.needs_categories:
            means = CategoryMeanScan(tables)

            def add(orders: list[list[OrderedRows]]) -> None:
                for rows in orders[0]:
                    means.add(rows)

            self._shuffle_chunks(1, add)
            tables = with_categories(tables, [means.deltas()])
        scan = OrderedScan(tables)
        return tables, lambda part: [[scan.encode(rows) for rows in order] for order in shuffle(tables, part)]

    def _shuffled(self) -> tuple[EncodingTables, Placing]:
        """Write rows into files by rank, encode them file by file, and write the encodings into files by row number."""
        tables, chunk_rows = self._tables, self._size.rows
        by_rank = self._write_by_rank()
        if tables.needs_categories:
            tables = with_categories(tables, [self._mean_deltas(*order) for order in enumerate(by_rank)])
        by_row = [self._encode_by_rank(tables, *order) for order in enumerate(by_rank)]

        def read_encodings(part: Part) -> list[list[RowEncodings]]:
            start, stop = part.first_row, part.first_row + part.X.num_rows
            orders = []
            for files in by_row:
                pieces = (RowEncodings(*arrays).between(start, stop) for arrays in files.read(start // chunk_rows))
                orders.append([piece for piece in pieces if len(piece.rows)])
            return orders

        return tables, read_encodings

    def _shuffle_chunks(self, n_groups: int, use: Callable[[list[list[OrderedRows]]], None]) -> None:
        """Read all rows, and pass on the rows of each chunk: for each order, in groups of neighbouring ranks."""
        with self._run.reading("placing", self._columns, self._size) as chunks:
            for chunk in chunks:
                with self._run.timed("placing"):
                    use(shuffle(self._tables, self._roles.part(chunk), n_groups))

    def _write_by_rank(self) -> list[SpillFiles]:
        """Write all rows into files by rank, for each order."""
        by_rank: list[SpillFiles] = []

        def write(orders: list[list[OrderedRows]]) -> None:
            for number, groups in enumerate(orders):
                if number == len(by_rank):
                    by_rank.append(SpillFiles(self._folder / f"by-rank-{number}"))
                for group, rows in enumerate(groups):
                    if len(rows):
                        arrays = [rows.rows, rows.begins, rows.ties, *rows.codes, *rows.targets, *rows.weights]
                        by_rank[number].add(group, arrays)

        self._shuffle_chunks(self._n_groups, write)
        return by_rank

    def _in_order(self, by_rank: SpillFiles) -> Iterator[tuple[int, OrderedRows]]:
        """Yield the rows of one order group by group, from the first rank to the last."""
        n_targets, n_keys = len(self._tables.model.targets), len(self._tables.model.keys)
        for group in range(self._n_groups):
            pieces = []
            for rows, begins, ties, *columns in by_rank.read(group):
                codes, others = columns[:n_keys], columns[n_keys:]
                pieces.append(OrderedRows(rows, begins, ties, codes, others[:n_targets], others[n_targets:]))
            if pieces:
                yield group, OrderedRows.join(pieces)

    def _mean_deltas(self, number: int, by_rank: SpillFiles) -> CategoryMeanDeltas:
        """Scan one order for the means of all categories."""
        means = CategoryMeanScan(self._tables, number)
        with self._run.timed("placing"):
            for _, rows in self._in_order(by_rank):
                means.add(rows)
        return means.deltas()

    def _encode_by_rank(self, tables: EncodingTables, number: int, by_rank: SpillFiles) -> SpillFiles:
        """Encode all rows in one order, and write the encodings into files with as many rows as a chunk."""
        by_row, chunk_rows = SpillFiles(self._folder / f"by-row-{number}"), self._size.rows
        scan = OrderedScan(tables, number)
        with self._run.timed("placing"):
            for group, rows in self._in_order(by_rank):
                by_rank.remove(group)
                encodings = scan.encode(rows)
                for chunk in sorted(set((encodings.rows // chunk_rows).tolist())):
                    piece = encodings.between(chunk * chunk_rows, (chunk + 1) * chunk_rows)
                    by_row.add(chunk, [piece.rows, piece.values, piece.unseen])
        return by_row
