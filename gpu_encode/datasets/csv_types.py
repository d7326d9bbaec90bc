"""The types of a CSV file's columns: those that reading it whole would give, found block by block."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv

from gpu_encode.datasets.files import SourceFile, damage_explained
from gpu_encode.datasets.formats import csv_conversion, csv_parsing, uncompressed

# Bytes of text that are read at a time.
BLOCK = 1 << 22
# What Arrow tries on a column of a CSV file, one after the other, until one fits all its values.
LADDER = (
    pa.null(), pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), pa.timestamp("s"), pa.timestamp("ns"),
    pa.timestamp("s", "UTC"), pa.timestamp("ns", "UTC"), pa.float64(), pa.string(), pa.binary(),
)  # fmt: skip


def csv_schemas(files: Sequence[SourceFile], missing_text: Sequence[str], text: Sequence[str]) -> list[tuple[Any, int]]:
    """Read CSV files once, for the types of their columns, which they share, and the number of rows of each."""
    scans = []
    for file in files:
        with damage_explained(file):
            scans.append(scanned(file, missing_text))
    kinds: dict[str, set[Any]] = {}
    for names, found, _ in scans:
        for name, known in zip(names, found, strict=True):
            kinds.setdefault(name, set()).update(known)
    types = {}
    for name, known in kinds.items():
        having = [file for file, (names, _, _) in zip(files, scans, strict=True) if name in names]
        types[name] = pa.string() if name in text else joined(having, name, known, missing_text)
    return [(pa.schema([(name, types[name]) for name in names]), n_rows) for names, _, n_rows in scans]


def scanned(file: SourceFile, missing_text: Sequence[str]) -> tuple[list[str], list[set[Any]], int]:
    """Read one file: names of its columns, the types that they have block by block, and its number of rows."""
    names = names_in(file)
    kinds: list[set[Any]] = [set() for _ in names]
    n_rows = 0
    for batch in typed_batches(file, dict.fromkeys(names, pa.binary()), missing_text):
        n_rows += batch.num_rows
        for known, kind in zip(kinds, inferred(batch, missing_text), strict=True):
            known.add(kind)
    return names, kinds, n_rows


def names_in(file: SourceFile) -> list[str]:
    """Read the names of the columns off the beginning of a CSV file."""
    with file.open() as stream:
        opened = pyarrow.csv.open_csv(uncompressed(stream, file.suffix), parse_options=csv_parsing(file.suffix))
        return list(opened.schema.names)


def typed_batches(
    file: SourceFile, types: Mapping[str, Any], missing_text: Sequence[str], columns: Sequence[str] | None = None
) -> Iterator[Any]:
    """Read a CSV file block by block, in types that are given."""
    with file.open() as stream:
        yield from pyarrow.csv.open_csv(
            uncompressed(stream, file.suffix),
            read_options=pyarrow.csv.ReadOptions(block_size=BLOCK),
            parse_options=csv_parsing(file.suffix),
            convert_options=csv_conversion(missing_text, types, columns),
        )


def inferred(batch: Any, missing_text: Sequence[str]) -> list[Any]:
    """Give the types that the values of one block have, all of them read as text so far.

    Arrow's own reader decides, on the same cells written anew, so no rule of it is repeated here.
    """
    kinds: list[Any] = [pa.binary()] * batch.num_columns
    columns = {}
    for place in range(batch.num_columns):
        try:
            columns[str(place)] = batch.column(place).cast(pa.string())
        except pa.ArrowInvalid:
            continue  # bytes that are no text
    sink = pa.BufferOutputStream()
    if columns:
        # In quotes a value is never taken for a missing one.
        layout = pyarrow.csv.WriteOptions(quoting_style="all_valid")
        pyarrow.csv.write_csv(pa.table(columns), sink, layout)
        found = pyarrow.csv.read_csv(
            pa.BufferReader(sink.getvalue()),
            parse_options=csv_parsing(".csv"),
            convert_options=csv_conversion(missing_text, {}),
        )
        for one in found.schema:
            kinds[int(one.name)] = one.type
    return kinds


def joined(files: Sequence[SourceFile], name: str, kinds: set[Any], missing_text: Sequence[str]) -> Any:
    """Give the first type of the ladder that fits all blocks of a column, which have these types one by one."""
    places = {LADDER.index(kind) for kind in kinds} - {0}
    if len(places) <= 1:
        return LADDER[max(places, default=0)]
    found = {LADDER[place] for place in places}
    for kind in LADDER[max(places) :]:
        # Whole numbers are numbers, and all is text.
        known_to_fit = kind in (pa.string(), pa.binary()) or found == {pa.int64(), pa.float64()}
        if known_to_fit or all(fits(file, name, kind, missing_text) for file in files):
            break
    return kind


def fits(file: SourceFile, name: str, kind: Any, missing_text: Sequence[str]) -> bool:
    """Whether all values of a column can be read in this type."""
    try:
        for _ in typed_batches(file, {name: kind}, missing_text, [name]):
            pass
    except pa.ArrowInvalid:
        return False
    return True
