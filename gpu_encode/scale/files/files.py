"""The files of a source in a defined order; a source is a file, several files, a glob, a folder or an Arrow dataset.

All files of a source are read in one schema; it is found here, too.
"""

import glob
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from operator import attrgetter
from os import PathLike
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs

from gpu_encode.scale import messages
from gpu_encode.scale.files.formats import FORMATS, SUFFIXES, Format, is_text, suffix_of, value_type
from gpu_encode.scale.files.pandas_note import join_notes, with_ranges
from gpu_encode.scale.files.text import TextRules

KINDS_OF_SOURCES = (
    "the path of a file or folder, a glob, a list of paths, a URL, a pyarrow.dataset.Dataset of files, a "
    "deltalake.DeltaTable, or a query: a LazyFrame of polars, a relation of DuckDB, a stream of Arrow"
)
TABLES = ("DataFrame", "Table", "ndarray")

# The scheme of a URL; schemes of fsspec that wrap another scheme may stand before it: simplecache::s3://.
URL = re.compile(r"([a-z0-9+.-]+::)*[a-z][a-z0-9+.-]*://", re.IGNORECASE)
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
# A whole number that has no other spelling: 501, and not 00501.
WHOLE_NUMBER = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)
# A whole number, whatever zeros it begins with.
INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)
# Units of time, the finest last.
UNITS = ("s", "ms", "us", "ns")
# The folder of a Delta table has this folder in it.
DELTA_LOG = "_delta_log"


def is_url(text: Any) -> bool:
    """Whether a text names something that fsspec reaches.

    Examples
    --------
    >>> is_url("s3://shop/orders.parquet"), is_url("orders.parquet")
    (True, False)
    """
    return isinstance(text, str) and URL.match(text) is not None


@dataclass(frozen=True)
class SourceFile:
    """A file of rows.

    Parameters
    ----------
    path : str
        The path of the file in its file system.
    relative : str
        Its path below the given folder, with slashes.
    suffix : str
        The end of the name, which tells the format.
    partition : mapping of str to str or None
        Values that the names of the file's folders (``day=3``) give to all its rows; None stands for a missing value.
    filesystem : pyarrow.fs.FileSystem
    failures : tuple of type
        Errors that reading a damaged file may raise.
    """

    path: str
    relative: str
    suffix: str
    partition: Mapping[str, str | None] = field(default_factory=dict)
    filesystem: Any = field(default_factory=pyarrow.fs.LocalFileSystem)
    failures: ClassVar[tuple[type[Exception], ...]] = (pa.ArrowException, OSError, UnicodeDecodeError)

    @property
    def is_local(self) -> bool:
        """Whether the file is on this machine, so that Python can open its path."""
        return isinstance(self.filesystem, pyarrow.fs.LocalFileSystem)

    @property
    def format(self) -> Format:
        """The format by which the file is read."""
        return SUFFIXES[self.suffix]

    def state(self) -> tuple[int, int]:
        """Size of the file and time of its last change, which show whether the file is still the same."""
        info = self.filesystem.get_file_info(self.path)
        if info.type == pyarrow.fs.FileType.NotFound:
            raise _source_is_gone(self.path)
        return int(info.size or 0), int(info.mtime_ns or 0)

    def open(self) -> Any:
        """Open the file to read anywhere in it."""
        try:
            return self.filesystem.open_input_file(self.path)
        except FileNotFoundError:
            raise _source_is_gone(self.path) from None
        except PermissionError:
            raise PermissionError(f"no permission to read the source file {self.path!r}.") from None


def _source_is_gone(path: str) -> FileNotFoundError:
    """Give the error for a file that existed when it was found, but no longer does."""
    return FileNotFoundError(f"the source file {path!r} is not there any more. Put it back, and run again.")


@dataclass(frozen=True)
class SourceFiles:
    """The files of a source.

    Parameters
    ----------
    files : list of SourceFile
        In the order of their rows.
    folder : Path or str, optional
        The folder, if the source is a folder; a str is a URL.
    types : dict of str to pyarrow.DataType
        Types of the columns that names of folders make, if a dataset of Arrow declares them.
    """

    files: list[SourceFile]
    folder: Path | str | None = None
    types: Mapping[str, Any] = field(default_factory=dict)


def find(source: Any) -> SourceFiles:
    """Find the files of a source.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b.csv", "a.csv", "_SUCCESS"):
    ...         _ = Path(folder, name).write_text("city")
    ...     [file.relative for file in find(folder).files]
    ['a.csv', 'b.csv']
    """
    if isinstance(source, pyarrow.dataset.Dataset):
        return find_in_dataset(source)
    if type(source).__module__.partition(".")[0] == "deltalake" and hasattr(source, "to_pyarrow_dataset"):
        return find_in_delta(source)
    if isinstance(source, (str, PathLike)):
        return find_at(os.fspath(source))
    # Iterating over a table gives its columns or their names, but a table is not a list of paths.
    if len(getattr(source, "shape", ())) > 1:
        raise TypeError(
            f"source is a table ({type(source).__name__}), which encoders take directly: encoder.fit_transform(X, y), "
            f"encoder.transform(X). Here give {KINDS_OF_SOURCES}, such as frame.lazy() of polars or table.to_reader() "
            "of Arrow."
        )
    if not isinstance(source, Iterable):
        raise _not_a_source(type(source).__name__)
    paths = list(source)
    for path in paths:
        if not isinstance(path, (str, PathLike)):
            raise _not_a_source(f"list that holds a {type(path).__name__}")
    return SourceFiles(describe_list([os.fspath(path) for path in paths]))


def _not_a_source(type_name: str) -> TypeError:
    """Give the error for a source that names no files."""
    held = " A table in memory goes to encoder.fit_transform(X, y)." if type_name in TABLES else ""
    return TypeError(f"source is a {type_name}. Give {KINDS_OF_SOURCES}.{held}")


def find_at(text: str) -> SourceFiles:
    """Find the files of one path: a file, a folder, a table of Delta Lake or a glob."""
    if Path(text, DELTA_LOG).is_dir():
        return find_in_delta(open_delta(text))
    if Path(text).is_dir():
        return SourceFiles(find_in_folder(Path(text)), Path(text))
    if glob.has_magic(text) and not Path(text).exists():
        return SourceFiles(find_matching(text))
    return SourceFiles(describe_list([text]))


def find_in_folder(folder: Path) -> list[SourceFile]:
    """Find the files below a folder, sorted by relative path; leave out hidden files and unknown formats."""
    relatives = sorted(
        path.relative_to(folder).as_posix()
        for path in walk(folder)
        if path.is_file() and suffix_of(path.name) and not is_hidden(path.relative_to(folder))
    )
    if not relatives:
        raise FileNotFoundError(
            f"source: the folder {str(folder)!r} holds no file of rows ({', '.join(SUFFIXES)}). Files and "
            "folders whose names begin with a dot or an underscore do not count."
        )
    return check_same_format([describe_file(folder / relative, relative) for relative in relatives])


def walk(folder: Path) -> Iterator[Path]:
    """Give the files below a folder; leave out hidden folders, and refuse folders that may not be read."""

    def refuse(error: OSError) -> None:
        if isinstance(error, PermissionError):
            raise _closed_folder(str(error.filename)) from None
        raise error

    for base, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not is_hidden(Path(name))]
        yield from (Path(base, name) for name in names)


def is_hidden(path: PurePath) -> bool:
    """Whether a file, or a folder above it, has a name that begins with a dot or an underscore."""
    return any(part.startswith((".", "_")) for part in path.parts)


def find_matching(pattern: str) -> list[SourceFile]:
    """Find the files that match a glob, sorted by path."""
    # Path.glob takes no absolute pattern.
    paths = sorted(path for path in glob.glob(pattern, recursive=True) if Path(path).is_file())  # noqa: PTH207
    # The folders before the first wildcard.
    base = Path(*takewhile(lambda part: not glob.has_magic(part), Path(pattern).parts[:-1]))
    if not paths:
        if base.is_dir() and not os.access(base, os.R_OK | os.X_OK):
            raise _closed_folder(str(base))
        raise messages.no_such_source(pattern)
    return check_same_format([describe_file(Path(path), Path(path).relative_to(base).as_posix()) for path in paths])


def _closed_folder(path: str) -> PermissionError:
    """Give the error for a folder that may not be read."""
    return PermissionError(f"no permission to read the folder {path!r} of the source.")


def describe_list(texts: Sequence[str]) -> list[SourceFile]:
    """Give the files of a list, in its order."""
    if not texts:
        raise _no_sources()
    paths: list[Path] = []
    for text in texts:
        path = Path(os.path.abspath(text))  # noqa: PTH100 - links keep their names
        if text == "-" or (path.exists() and not (path.is_file() or path.is_dir())):
            raise ValueError(
                f"source {text!r} is no file or folder. Rows are read several times, which standard input, pipes and "
                "devices cannot do: write them to a file first."
            )
        if not path.exists():
            raise messages.no_such_source(text)
        if not path.is_file():
            raise ValueError(f"source: {text!r} in the list is a folder. List its files, or give the folder alone.")
        if path in paths:
            raise ValueError(f"source lists {text!r} twice, and its rows would count twice. List each file once.")
        paths.append(path)
    base = Path(os.path.commonpath(map(os.path.dirname, paths)))
    return check_same_format(
        [describe_file(Path(text), path.relative_to(base).as_posix()) for text, path in zip(texts, paths, strict=True)]
    )


def describe_file(path: Path, relative: str) -> SourceFile:
    """Describe one file on this machine."""
    suffix = suffix_of(path.name)
    if suffix is None:
        raise messages.unknown_format(str(path), list(SUFFIXES))
    return SourceFile(str(path), relative, suffix, partition_of(relative))


def partition_of(relative: str) -> dict[str, str | None]:
    """Read the values in the names of a file's folders.

    Examples
    --------
    >>> partition_of("year=2024/city=S%C3%A3o/rows.parquet")
    {'year': '2024', 'city': 'São'}
    """
    pairs = (part.partition("=") for part in PurePosixPath(relative).parts[:-1] if "=" in part)
    return {unquote(name): None if value == NO_VALUE else unquote(value) for name, _, value in pairs}


def check_same_format(files: list[SourceFile]) -> list[SourceFile]:
    """Refuse files of several formats, and folders whose names make different columns."""
    first = files[0]
    for other in files[1:]:
        if other.format is not first.format:
            raise ValueError(
                f"source has files of several formats: {first.path!r} and {other.path!r}. Give files of one format."
            )
        if list(other.partition) != list(first.partition):
            raise ValueError(
                f"The folders of {first.path!r} name the columns {list(first.partition)}, but those of "
                f"{other.path!r} name {list(other.partition)}. All files of a source must lie in folders of the "
                "same names, such as day=1/city=Bonn."
            )
    return files


def open_delta(folder: str) -> Any:
    """Open a table of Delta Lake; its log says which files of the folder still belong to it."""
    try:
        from deltalake import DeltaTable
    except ImportError:
        raise messages.delta_table(folder) from None
    return DeltaTable(folder)


def find_in_delta(table: Any) -> SourceFiles:
    """Find the files of one version of a table of Delta Lake, sorted by path."""
    try:
        dataset = table.to_pyarrow_dataset()
    except Exception as error:
        raise ValueError(
            f"cannot read the files of the Delta table {table.table_uri!r}: {error}. Give its rows as a query: "
            "polars.scan_delta(...)."
        ) from error
    listing = find_in_dataset(dataset, table.metadata().partition_columns)
    uri = urlsplit(table.table_uri)
    folder = Path(url2pathname(uri.path)) if uri.scheme == "file" else None
    return SourceFiles(sorted(listing.files, key=lambda file: file.relative), folder, listing.types)


def find_in_dataset(dataset: Any, partitions: Collection[str] | None = None) -> SourceFiles:
    """Find the files of an Arrow dataset, in its order; `partitions` are the columns that its folder names make."""
    if not isinstance(dataset, pyarrow.dataset.FileSystemDataset):
        raise TypeError(f"source is a {type(dataset).__name__}, which is not made of files. Give {KINDS_OF_SOURCES}.")
    if dataset._scan_options:
        raise ValueError(
            "source is a dataset with a filter. Give the dataset itself; write the rows that are wanted first."
        )
    if not dataset.files:
        raise _no_sources()
    base = PurePosixPath(os.path.commonpath([str(PurePosixPath(path).parent) for path in dataset.files]))
    files = [describe_fragment(fragment, base, dataset, partitions) for fragment in dataset.get_fragments()]
    types = {name: dataset.schema.field(name).type for name in files[0].partition}
    return SourceFiles(check_same_format(files), None, types)


def _no_sources() -> ValueError:
    """Give the error for a list or dataset of no files."""
    return ValueError(f"source names no file. Give {KINDS_OF_SOURCES}.")


def describe_fragment(
    fragment: Any, base: PurePosixPath, dataset: Any, partitions: Collection[str] | None = None
) -> SourceFile:
    """Describe one file of a dataset of Arrow."""
    by_extension = {form.extension: f".{form.name}" for form in FORMATS}
    suffix = suffix_of(fragment.path) or by_extension.get(dataset.format.default_extname)
    if suffix is None:
        raise messages.unknown_format(fragment.path, list(SUFFIXES))
    values = pyarrow.dataset.get_partition_keys(fragment.partition_expression)
    # Names are in the order of the columns, which differs from that of the expression.
    names = [name for name in dataset.schema.names if name in values and (partitions is None or name in partitions)]
    partition = {name: None if values[name] is None else str(values[name]) for name in names}
    relative = PurePosixPath(fragment.path).relative_to(base).as_posix()
    return SourceFile(fragment.path, relative, suffix, partition, fragment.filesystem)


def unify_schemas(files: Sequence[SourceFile], schemas: Sequence[Any]) -> Any:
    """Give the schema in which all files are read.

    Parameters
    ----------
    files : sequence of SourceFile
    schemas : sequence of pyarrow.Schema
        One for each file.

    Raises
    ------
    ValueError
        If a file lacks a column, or the column has another type; the message names both files and the column.
    """
    schemas = with_ranges(schemas)
    refuse_repeated(files[0], schemas[0])
    fields = dict(zip(schemas[0].names, schemas[0], strict=True))
    # The file that decided the type of each column; it need not be the first one, whose values may all be null.
    origin = dict.fromkeys(fields, files[0])
    for file, schema in zip(files[1:], schemas[1:], strict=True):
        refuse_repeated(file, schema)
        for name in [*fields, *schema.names]:
            if name not in schema.names:
                raise _column_in_one_file(name, files[0].path, file.path)
            if name not in fields:
                raise _column_in_one_file(name, file.path, files[0].path)
            known, other = fields[name], schema.field(name)
            kind = common_type(known.type, other.type)
            if kind is None:
                raise differing_types(name, (known.type, origin[name].path), (other.type, file.path))
            if not kind.equals(known.type):
                origin[name] = file
            fields[name] = known.with_type(kind).with_nullable(known.nullable or other.nullable)
    return join_notes(pa.schema(list(fields.values()), metadata=schemas[0].metadata), schemas)


def differing_types(column: str, one: tuple[Any, str], other: tuple[Any, str], reason: str = "") -> ValueError:
    """Error for a column of types that have no common type, or of values that would change; each with its file."""
    return ValueError(
        f"column {column!r} is {one[0]!s} in {one[1]!r}, but {other[0]!s} in {other[1]!r}{reason}. All files of a "
        "source must have the same types: write one of them anew."
    )


def _column_in_one_file(column: str, having: str, lacking: str) -> ValueError:
    """Give the error for a column that not all files have."""
    return ValueError(
        f"column {column!r} is in {having!r}, but not in {lacking!r}. All files of a source must have the same columns."
    )


def refuse_repeated(file: SourceFile, schema: Any) -> None:
    """Refuse a file in which a name stands for two columns, or for a column and a folder."""
    for name, count in Counter(schema.names).items():
        if count > 1:
            raise ValueError(f"{file.path!r} has several columns named {name!r}: rename them.")
        if name in file.partition:
            raise ValueError(
                f"{file.path!r} has a column {name!r}, and a folder {name}=... above it says the same. Rename one."
            )


def common_type(one: Any, other: Any) -> Any:
    """Give the type in which the values of two files are read, or None if there is no such type.

    Examples
    --------
    >>> common_type(pa.dictionary(pa.int32(), pa.string()), pa.string())
    DataType(string)
    >>> common_type(pa.int32(), pa.int64()), common_type(pa.int64(), pa.string())
    (DataType(int64), None)
    """
    if one.equals(other) or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if is_text(value_type(one)) and is_text(value_type(other)):
        small = all(pa.types.is_string(value_type(kind)) for kind in (one, other))
        return pa.string() if small else pa.large_string()
    if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in (one, other)):
        return common_number(one, other)
    return finest_type(one, other)


def common_number(one: Any, other: Any) -> Any:
    """Give the type in which numbers of two types are read; a value that it does not hold is an error later."""
    if pa.types.is_floating(one) != pa.types.is_floating(other):
        return pa.float64()
    if pa.types.is_signed_integer(one) != pa.types.is_signed_integer(other):
        return pa.int64()
    return max(one, other, key=attrgetter("bit_width"))


def finest_type(one: Any, other: Any) -> Any:
    """Give the one of two types of times, durations or decimals that holds the values of both; None for other types."""
    of_times = pa.types.is_timestamp(one) and pa.types.is_timestamp(other) and one.tz == other.tz
    of_days = pa.types.is_time(one) and pa.types.is_time(other)
    if of_times or of_days or (pa.types.is_duration(one) and pa.types.is_duration(other)):
        return max(one, other, key=lambda kind: UNITS.index(kind.unit))
    if pa.types.is_decimal(one) and pa.types.is_decimal(other) and one.scale == other.scale:
        return max(one, other, key=attrgetter("precision"))
    return None


def partition_types(files: Sequence[SourceFile], declared: Mapping[str, Any], rules: TextRules) -> dict[str, Any]:
    """Give the type of each column that folder names make: integer if all its values are whole numbers, else text.

    A column is also text if the rules say so, or if a value has a zero or a sign that its number would lose, unless the
    column holds numbers to a fitted encoder.

    Examples
    --------
    >>> files = [SourceFile("a", "a", ".csv", {"day": "1"}), SourceFile("b", "b", ".csv", {"day": "12"})]
    >>> partition_types(files, {}, TextRules()), partition_types(files, {}, TextRules(text=["day"]))
    ({'day': DataType(int32)}, {'day': DataType(string)})
    """
    types = {}
    for name in files[0].partition:
        kind, words = declared.get(name), [str(word) for word in {file.partition[name] for file in files} - {None}]
        if kind is None:
            is_word = not words or name in rules.text or name in rules.known
            is_short = all(WHOLE_NUMBER.fullmatch(word) and -(1 << 31) <= int(word) < 1 << 31 for word in words)
            is_whole = all(map(WHOLE_NUMBER.fullmatch, words))
            kind = pa.string() if is_word or not is_whole else pa.int32() if is_short else pa.int64()
        if is_text(kind) and name in rules.numbers and all(map(INTEGER.fullmatch, words)):
            kind = pa.int64()
        types[name] = kind
    return types
