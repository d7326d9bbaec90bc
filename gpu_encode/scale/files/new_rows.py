"""New rows of files: encode them with a fitted encoder or a folder of tables, or compare them with training rows."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyarrow.dataset import Dataset
from sklearn.utils.validation import check_is_fitted

from gpu_encode import storage
from gpu_encode.encoders.base import Encoder, check_encoder
from gpu_encode.fitting.drift import RowCounts
from gpu_encode.fitting.model import unseen_counted, warn_of_share
from gpu_encode.scale import messages
from gpu_encode.scale.files import memory
from gpu_encode.scale.files.disk_tables import CategoryFiles, bytes_of_category, number_of_buckets, placing
from gpu_encode.scale.files.encoding import plain_output
from gpu_encode.scale.files.formats import is_text
from gpu_encode.scale.files.look_up import Joined, distinct_rows
from gpu_encode.scale.files.run import Options, Run, Summary, open_destination
from gpu_encode.scale.files.source import Chunk, Size, Source, open_source, refuse_words, with_columns
from gpu_encode.scale.files.staging import describe_fitted, is_describable
from gpu_encode.scale.files.text import MOST_IN_FLOATS, WITH_FRACTIONS, WORDS_FOR_MISSING, TextRules
from gpu_encode.seam import devices
from gpu_encode.words.annotations import ArrowStream, FilePath, LazyFrame
from gpu_encode.words.progress import Teller

# Copies of the values of new rows that exist while distinct values are found, hashed and spilled.
VALUES_AT_WORK = 3
KINDS_OF_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)


def transform_dataset(
    source: FilePath | Sequence[FilePath] | Dataset | LazyFrame | ArrowStream,
    destination: FilePath,
    encoder: Encoder | FilePath,
    *,
    missing_text: Sequence[str] = (),
    missing_words: Sequence[str] | None = None,
    text: Sequence[str] = (),
    delimiter: str | None = None,
    quote: str | None = None,
    encoding: str | None = None,
    memory_limit: int | str | None = None,
    compression: str | None = None,
    overwrite: bool = False,
    resume: bool = False,
    progress: bool | Teller | None = None,
) -> Summary:
    r"""Encode new rows of files of any size with a fitted encoder, in one pass.

    Parameters
    ----------
    source, destination
        As in `encode_dataset`.
    encoder : TargetEncoder or path
        A fitted encoder; columns that it does not know pass through, last.  Or the `model` that `encode_dataset` saved:
        a file, or a folder of tables, which stay on disk.
    missing_text, missing_words, text, delimiter, quote, encoding
        As in `encode_dataset`.  Columns that were text in training are read as text, and words that the encoder knows
        as categories of such a column are not missing there.
    memory_limit, compression, overwrite, resume, progress
        As in `encode_dataset`.

    Returns
    -------
    Summary

    Raises
    ------
    ValueError, TypeError, OSError
        As in `encode_dataset`, and if a fitted column is missing.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyarrow
    >>> from gpu_encode import TargetEncoder, transform_dataset
    >>> encoder = TargetEncoder(smooth=0.0).fit(pyarrow.table({"city": ["Bonn", "Lima"]}), [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "new.csv").write_text("city\nLima\nOslo\n")
    ...     summary = transform_dataset(f"{folder}/new.csv", f"{folder}/encoded.csv", encoder)
    ...     Path(folder, "encoded.csv").read_text().split()
    ['"city"', '1', '0.5']
    """
    options = Options(memory.limit_of(memory_limit), compression, overwrite, resume, progress)
    rules = TextRules(missing_text, missing_words, text, delimiter, quote, encoding)
    if isinstance(encoder, (str, PathLike)):
        if is_table(encoder):
            saved = SavedEncodings(Path(encoder))
            return run_joining(open_new(source, saved.rules(rules)), destination, saved, options)
        encoder = storage.load(encoder)
    return run_transforming(open_new(source, fitted_rules(encoder, rules)), destination, encoder, options)


@devices.explain_memory()
def run_transforming(rows: Source, destination: Any, encoder: Any, options: Options) -> Summary:
    """Encode new rows with an encoder, as `transform_dataset` does."""
    output = open_destination(rows, destination, options)
    fitted = set(encoder.feature_names_in_)
    features = [name for name in rows.schema.names if name in fitted]
    others = [name for name in rows.schema.names if name not in fitted]
    require_columns(encoder, rows.schema.names)
    plain, model = plain_output(encoder), encoder._model
    selection = model.selection
    read = {model.feature_names[position] for position in (*selection.needed, *selection.dates)}
    passed = {model.feature_names[position] for position in selection.passed}
    rows = rows.copying([*passed, *others], read, {}, output.suffix)
    needed = {model.feature_names[position] for position in model.selection.needed}

    def encode_table(table: Any) -> Any:
        return with_columns(plain.transform(table.select(features)), table.select(others))

    empty = encode_table(rows.schema.empty_table())
    output.check_types(empty.schema)
    describable = is_describable([rule.statistic for rule in model.rules], options.resume)
    with Run.start(rows, output, options, describable) as run, unseen_counted() as unseen:
        size = run.size(rows.schema.names, len(model.keys), empty.num_columns)
        choices = describe_fitted(encoder) if describable else {}
        run.begin(choices, needed, lambda: {"part_rows": size.rows})
        size = run.overlapping(size, empty.num_columns)
        run.write(empty, lambda chunk: encode_table(chunk.table), size)
        run.staging.publish()
    return summary_of(run, unseen)


def summary_of(run: Run, unseen: Counter[str]) -> Summary:
    """Give the summary of a run over new rows; warn of values that fit has not seen."""
    for name, n_rows in unseen.items():
        warn_of_share(name, n_rows, run.encoded)
    return run.summary(+unseen)


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

    def rules(self, rules: TextRules) -> TextRules:
        """Give the rules by which text files are read like the training rows."""
        return known_rules(rules, self._columns())

    def _columns(self) -> Iterator[tuple[str, Any, Iterable[Any]]]:
        """Give the name, type and values of each column."""
        for name, stored in {pair for key in self.joined.keys for pair in zip(key.columns, key.stored, strict=True)}:
            values = (parquet.read_table(path, columns=[stored])[stored] for path in self.files)
            yield name, self.no_lines.schema.field(stored).type, values

    def describe(self) -> dict[str, Any]:
        """Describe the folder, so that a later run notices if it is another one."""
        states = [path.stat() for path in [*self.files, *sorted((self._path / "joined").glob("*.parquet"))]]
        return {"the folder of encodings": [[state.st_size, state.st_mtime_ns] for state in states]}


@devices.explain_memory()
def run_joining(rows: Source, destination: Any, saved: SavedEncodings, options: Options) -> Summary:
    """Encode new rows with a folder of encodings, as `transform_dataset` does."""
    output = open_destination(rows, destination, options)
    joined, names = saved.joined, rows.schema.names
    others = joined.beside_new(names)
    kind, no_rows = pa.from_numpy_dtype(joined.dtype), rows.schema.empty_table()
    encoded = pa.schema([(name, kind) for name in joined.outputs]).empty_table()
    empty = with_columns(encoded, no_rows.select(others))
    needed = {name for key in joined.keys for name in key.columns}
    rows = rows.copying(others, needed, {}, output.suffix)
    output.check_types(empty.schema)
    with Run.start(rows, output, options, True) as run, unseen_counted() as unseen:
        size = run.size(run.source.schema.names, len(joined.keys), empty.num_columns)
        run.begin(saved.describe(), needed, lambda: {"part_rows": size.rows})
        files = look_up_rows(run, saved, size)

        def encode_rows(chunk: Chunk) -> Any:
            return with_columns(files.encodings_of(chunk.first_row, chunk.table.num_rows), chunk.table.select(others))

        run.write(empty, encode_rows, size)
        run.staging.publish()
    return summary_of(run, unseen)


def look_up_rows(run: Run, saved: SavedEncodings, size: Size) -> CategoryFiles:
    """Look up all rows in a folder of encodings, bucket by bucket."""
    joined = saved.joined
    number = number_of_buckets(saved.n_categories, bytes_of_category(run, joined, 0), run.options.limit)
    folder = run.staging.partial / "categories"
    files = CategoryFiles(joined, folder, number, size.rows, run.options.limit, run.progress.advance)
    columns = sorted({name for key in joined.keys for name in key.columns})
    files.add_encodings(saved.files)
    # Each value is counted like an output of 8 bytes.
    at_work = int(VALUES_AT_WORK * run.bytes_of_row(columns) / 8)
    with run.reading("measuring", columns, run.size(columns, len(joined.keys), at_work)) as chunks:
        for chunk in chunks:
            with run.timed("measuring"):
                for entry, key in enumerate(joined.keys):
                    files.add(entry, distinct_rows(chunk.table, key), chunk.first_row, {})
            del chunk
    with placing(run, joined):
        files.look_up(saved.no_lines)
    run.bytes_spilled = files.n_bytes
    return files


def require_columns(encoder: Any, names: Sequence[str], *, passed: bool = True) -> None:
    """Refuse rows that lack a column that the encoder reads or, with `passed`, passes through."""
    model = encoder._model
    selection = model.selection
    through = selection.passed if passed else []
    for position in sorted({*selection.needed, *through, *selection.dates} - {*selection.optional}):
        if model.feature_names[position] not in names:
            role = "a column that passed through at fit" if position in through else "the encoder"
            raise messages.no_such_column(role, model.feature_names[position], names)


def open_new(source: Any, rules: TextRules) -> Source:
    """Open new rows, and refuse words where the encoder knows numbers, dates or times."""
    rows = open_source(source, rules)
    if rows.stream is None:
        refuse_words(rows, rules.numbers)
    return rows


def fitted_rules(encoder: Any, rules: TextRules) -> TextRules:
    """Give the rules by which text files are read like the training rows of an encoder."""
    check_encoder(encoder)
    check_is_fitted(encoder, "_model")
    model = encoder._model
    if model.feature_names is None:
        raise ValueError(
            "The encoder was fitted on an array without column names, and files have names: fit it on a table, or call "
            "its transform on arrays."
        )
    columns: list[tuple[str, Any, Any]] = []
    for key in model.keys:
        for number, (position, vocabulary) in enumerate(zip(key.entry.columns, key.vocabularies, strict=True)):
            values = vocabulary.values
            if vocabulary.kind == "text":
                has_both = pc.index(values.array, "").as_py() >= 0 and key.knows_missing(number)
                found = [values.array, pa.nulls(int(has_both), pa.string())]
                columns.append((model.feature_names[position], pa.string(), found))
            elif vocabulary.kind == "number":
                kind = WITH_FRACTIONS if values.dtype == "decimal" else pa.from_numpy_dtype(np.dtype(values.dtype))
                columns.append((model.feature_names[position], kind, [values.array]))
            elif vocabulary.kind in ("datetime", "time"):
                unit = "ns" if values.unit == "ns" else "us"
                kind = pa.timestamp(unit, values.timezone) if vocabulary.kind == "datetime" else pa.time64("ns")
                columns.append((model.feature_names[position], kind, []))
    return known_rules(rules, columns)


def known_rules(rules: TextRules, columns: Iterable[tuple[str, Any, Iterable[Any]]]) -> TextRules:
    """Give the rules by which text files are read if an encoder knows columns of these types with these values.

    In a text file, the texts 02138 and 2138 would be the same number.
    """
    known: dict[str, set[str | None]] = {}
    numbers = {}
    for name, kind, values in columns:
        if is_text(kind):
            known.setdefault(name, set()).update(*map(words_among, values))
        elif any(is_kind(kind) for is_kind in KINDS_OF_NUMBERS):
            # Floats hold all whole numbers of 32 bits, and no other number is one of these categories.
            is_small = pa.types.is_integer(kind) and all(map(are_small, values))
            numbers[name] = pa.int32() if is_small else kind
        elif pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
            numbers[name] = kind
    return replace(rules, known=known, numbers=numbers)


def are_small(values: Any) -> bool:
    """Tell whether floats hold all of these whole numbers, and no float stands for several of them."""
    return not bool((np.abs(np.asarray(values, np.float64)) >= MOST_IN_FLOATS).any())


def words_among(values: Any) -> set[str | None]:
    """Give the texts that would mean a missing value, if they were no categories, and None for missing values."""
    words = pa.array([None, "", *WORDS_FOR_MISSING], values.type)
    return {*values.filter(pc.is_in(values, value_set=words)).to_pylist()}


def drift_dataset(
    source: FilePath | Sequence[FilePath] | Dataset | LazyFrame | ArrowStream,
    encoder: Encoder,
    *,
    missing_text: Sequence[str] = (),
    missing_words: Sequence[str] | None = None,
    text: Sequence[str] = (),
    delimiter: str | None = None,
    quote: str | None = None,
    encoding: str | None = None,
    memory_limit: int | str | None = None,
) -> list[dict[str, str | int | float]]:
    r"""Compare files of any size with the training rows of an encoder, in one pass.

    Parameters
    ----------
    source, missing_text, missing_words, text, delimiter, quote, encoding, memory_limit
        As in `transform_dataset`.
    encoder : TargetEncoder
        A fitted encoder; columns that it does not know are not read.

    Returns
    -------
    list of dict
        The result of the encoder's method `drift`.

    Raises
    ------
    ValueError, TypeError, OSError
        As in `drift`, and as in `transform_dataset`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyarrow
    >>> from gpu_encode import CountEncoder, drift_dataset
    >>> encoder = CountEncoder().fit(pyarrow.table({"city": ["Bonn", "Lima"]}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "new.csv").write_text("city\nLima\nOslo\n")
    ...     (row,) = drift_dataset(f"{folder}/new.csv", encoder)
    >>> row["rows"], row["unknown"]
    (2, 0.5)
    """
    check_encoder(encoder)
    model, limit = encoder._counted(), memory.limit_of(memory_limit)
    rules = TextRules(missing_text, missing_words, text, delimiter, quote, encoding)
    rows = open_new(source, fitted_rules(encoder, rules))
    require_columns(encoder, rows.schema.names, passed=False)
    read = [name for name in rows.schema.names if name in (model.feature_names or ())]
    counts = RowCounts()
    with rows.naming_rows():
        for table in tables_of(rows, read, limit, len(model.keys)):
            counts += encoder._count_rows(table.select(read))
            memory.release()
    return counts.beside(model)


def tables_of(rows: Source, columns: Sequence[str], limit: int, n_keys: int) -> Iterator[Any]:
    """Yield all rows, one part at a time; a query yields its own parts."""
    if rows.stream is not None:
        yield from rows.stream.tables()
        return
    row_bytes = rows.row_bytes()
    n_bytes = max(1.0, sum(row_bytes[name] for name in columns))
    size = memory.chunk_size(
        limit,
        memory.PassBytes(
            n_bytes, n_keys, n_rows=rows.n_rows, reading=rows.files[0].format.buffers(rows.contents, columns)
        ),
    )
    for chunk in rows.chunks(columns, size):
        yield chunk.table
