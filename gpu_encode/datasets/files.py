"""Where rows come from: a file, several, a glob, a folder or a dataset of Arrow, as files in a defined order."""

import contextlib
import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs

from gpu_encode.datasets.formats import SUFFIXES, suffix_of
from gpu_encode.errors import datasets as errors

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class SourceFile:
    """A file of rows.

    Parameters
    ----------
    path : str
        As its file system knows it.
    relative : str
        Its path below the folder that was given, with slashes.
    suffix : str
        Tells the format.
    partition : mapping of str to str or None
        What the names of its folders (``day=3``) say of all its rows.
    filesystem : pyarrow.fs.FileSystem
    """

    path: str
    relative: str
    suffix: str
    partition: Mapping[str, str | None] = field(default_factory=dict)
    filesystem: Any = field(default_factory=pyarrow.fs.LocalFileSystem)

    @property
    def is_local(self) -> bool:
        """Whether the file is on this machine, as Python knows it."""
        return isinstance(self.filesystem, pyarrow.fs.LocalFileSystem)

    @property
    def format(self) -> str:
        """The format: "parquet", "csv" or "arrow"."""
        return SUFFIXES[self.suffix]

    def state(self) -> tuple[int, int]:
        """Size and time of the last change; they tell whether the file is still the same."""
        info = self.filesystem.get_file_info(self.path)
        if info.type == pyarrow.fs.FileType.NotFound:
            raise errors.source_is_gone(self.path)
        return int(info.size or 0), int(info.mtime_ns or 0)

    def open(self) -> Any:
        """Open the file to read anywhere in it."""
        try:
            return self.filesystem.open_input_file(self.path)
        except FileNotFoundError:
            raise errors.source_is_gone(self.path) from None
        except PermissionError:
            raise PermissionError(f"no permission to read the source file {self.path!r}.") from None


@contextlib.contextmanager
def explain_damage(file: SourceFile, place: str = "") -> Iterator[None]:
    """Say which file it is that Arrow cannot read."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, (FileNotFoundError, PermissionError)):
            raise
        raise ValueError(f"cannot read {file.path!r}{place}: {' '.join(str(error).split())}") from error


@dataclass(frozen=True)
class Found:
    """The files of a source.

    Parameters
    ----------
    files : list of SourceFile
        In the order of their rows.
    folder : Path, optional
        The folder that was given, if it was one.
    types : dict of str to pyarrow.DataType
        Types of what folders' names say, where a dataset of Arrow declares them.
    """

    files: list[SourceFile]
    folder: Path | None = None
    types: Mapping[str, Any] = field(default_factory=dict)


def find(source: Any) -> Found:
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
    if isinstance(source, (str, PathLike)):
        text = os.fspath(source)
        if Path(text).is_dir():
            return Found(find_in_folder(Path(text)), Path(text))
        if Path(text).exists():
            return Found(find_listed([text]))
        if not glob.has_magic(text):
            raise errors.no_such_source(text)
        return Found(find_matching(text))
    # A table is not a list of paths, though its columns' names may come one after another.
    if not isinstance(source, Iterable) or getattr(source, "ndim", 1) != 1:
        raise errors.not_a_source(type(source).__name__)
    paths = list(source)
    for path in paths:
        if not isinstance(path, (str, PathLike)):
            raise errors.not_a_source(f"list that holds a {type(path).__name__}")
    return Found(find_listed([os.fspath(path) for path in paths]))


def find_in_folder(folder: Path) -> list[SourceFile]:
    """Find the files below a folder, but for hidden ones and those of unknown formats, sorted by relative path."""
    relatives = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and suffix_of(path.name) and not is_hidden(path.relative_to(folder))
    )
    if not relatives:
        raise FileNotFoundError(
            f"source: the folder {str(folder)!r} holds no file of rows ({', '.join(list(SUFFIXES))}). Files and "
            "folders whose names begin with a dot or an underscore do not count."
        )
    return check_same_format([describe_file(folder / relative, relative) for relative in relatives])


def is_hidden(path: Path) -> bool:
    """Whether a file, or a folder above it, has a name that other programs reserve for their own."""
    return any(part.startswith((".", "_")) for part in path.parts)


def find_matching(pattern: str) -> list[SourceFile]:
    """Find the files that match a glob, sorted by path."""
    # Path.glob takes no absolute pattern.
    paths = sorted(path for path in glob.glob(pattern, recursive=True) if Path(path).is_file())  # noqa: PTH207
    if not paths:
        raise errors.no_such_source(pattern)
    base = Path(*fixed_parts(Path(pattern)))
    return check_same_format([describe_file(Path(path), Path(path).relative_to(base).as_posix()) for path in paths])


def fixed_parts(pattern: Path) -> list[str]:
    """Give the folders of a glob that stand before its first wildcard."""
    parts: list[str] = []
    for part in pattern.parts[:-1]:
        if glob.has_magic(part):
            break
        parts.append(part)
    return parts


def find_listed(paths: Sequence[str]) -> list[SourceFile]:
    """Give the files of a list, in its order."""
    if not paths:
        raise errors.no_sources()
    places = [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100 - links keep their names
    for path, place in zip(paths, places, strict=True):
        if not place.exists():
            raise errors.no_such_source(path)
        if not place.is_file():
            raise ValueError(f"source: {path!r} in the list is a folder. List its files, or give the folder alone.")
    for number, place in enumerate(places):
        if place in places[:number]:
            raise ValueError(
                f"source lists {paths[number]!r} twice, and its rows would count twice. List each file once."
            )
    base = Path(os.path.commonpath([str(place.parent) for place in places]))
    relatives = [place.relative_to(base).as_posix() for place in places]
    return check_same_format([describe_file(Path(path), name) for path, name in zip(paths, relatives, strict=True)])


def describe_file(path: Path, relative: str) -> SourceFile:
    """Describe one file on this machine."""
    suffix = suffix_of(path.name)
    if suffix is None:
        raise errors.unknown_format(str(path), list(SUFFIXES))
    return SourceFile(str(path), relative, suffix, partition_of(relative))


def partition_of(relative: str) -> dict[str, str | None]:
    """Read what the folders' names say.

    Examples
    --------
    >>> partition_of("year=2024/city=S%C3%A3o/rows.parquet")
    {'year': '2024', 'city': 'São'}
    """
    pairs = (part.partition("=") for part in PurePosixPath(relative).parts[:-1] if "=" in part)
    return {unquote(name): None if value == NO_VALUE else unquote(value) for name, _, value in pairs}


def check_same_format(files: list[SourceFile]) -> list[SourceFile]:
    """Refuse files of several formats, and folders that do not say the same things."""
    first = files[0]
    for other in files[1:]:
        if other.format != first.format:
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


def find_in_dataset(dataset: Any) -> Found:
    """Find the files of a dataset of Arrow, in its order."""
    if not isinstance(dataset, pyarrow.dataset.FileSystemDataset):
        raise errors.dataset_without_files(type(dataset).__name__)
    if dataset._scan_options:
        raise ValueError(
            "source is a dataset with a filter. Give the dataset itself; write the rows that are wanted first."
        )
    if not dataset.files:
        raise errors.no_sources()
    base = PurePosixPath(os.path.commonpath([str(PurePosixPath(path).parent) for path in dataset.files]))
    form, names = dataset.format.default_extname, dataset.schema.names
    files = [describe_fragment(fragment, base, form, names) for fragment in dataset.get_fragments()]
    types = {name: dataset.schema.field(name).type for name in files[0].partition}
    return Found(check_same_format(files), None, types)


def describe_fragment(fragment: Any, base: PurePosixPath, form: str, names: Sequence[str]) -> SourceFile:
    """Describe one file of a dataset of Arrow."""
    suffix = suffix_of(fragment.path) or {"parquet": ".parquet", "csv": ".csv", "ipc": ".arrow"}.get(form)
    if suffix is None:
        raise errors.unknown_format(fragment.path, list(SUFFIXES))
    values = pyarrow.dataset.get_partition_keys(fragment.partition_expression)
    # In the order of the columns: the expression has an order of its own.
    told = [name for name in names if name in values]
    partition = {name: None if values[name] is None else str(values[name]) for name in told}
    relative = PurePosixPath(fragment.path).relative_to(base).as_posix()
    return SourceFile(fragment.path, relative, suffix, partition, fragment.filesystem)
