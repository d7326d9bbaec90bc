"""Object stores and other file systems at URLs, through fsspec: files are read there, and whole outputs are put there.

Work is done in a folder on this machine.  No store can rename two objects at once.  So finished files are uploaded
beside their destination first; then a record lists the moves, and any later run that finds the record finishes them.
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pyarrow as pa

from gpu_encode.scale import messages
from gpu_encode.scale.files.files import (
    DELTA_LOG,
    SourceFile,
    SourceFiles,
    check_same_format,
    is_hidden,
    is_url,
    partition_of,
)
from gpu_encode.scale.files.formats import SUFFIXES, suffix_of

# The record: everything is uploaded, and these moves are left.
RECORD = "publishing.json"
# A file of at most this number of bytes is read in one piece.
SMALL = 1 << 22
# Names, in various stores, of the properties that change when an object is written again.
MARKS = (
    "ETag", "etag", "generation", "md5Hash", "content_md5", "Content-MD5", "Digest", "VersionId", "mtime", "created",
    "LastModified", "last_modified", "Last-Modified", "modificationTime",
)  # fmt: skip


def with_lower_scheme(url: str) -> str:
    """Give a URL with its scheme in lower case, as libraries of stores need it.

    Examples
    --------
    >>> with_lower_scheme("S3://Shop/Orders.parquet")
    's3://Shop/Orders.parquet'
    """
    scheme, mark, rest = url.partition("://")
    return f"{scheme.lower()}{mark}{rest}"


def reach(url: str) -> tuple[Any, str]:
    """Give the file system of a URL, and the path in it."""
    if "::" in url:
        raise ValueError(
            f"{url!r} is a chain of URLs, for which changes of files cannot be noticed. Give a single URL, or, as "
            "source, pyarrow.dataset.dataset(path, filesystem=fsspec.filesystem(...))."
        )
    if urlsplit(url).scheme in ("file", "local"):
        raise ValueError(f"{url!r} is on this machine: give its path, without a scheme.")
    try:
        from fsspec.core import url_to_fs

        filesystem, path = url_to_fs(url)
    except ImportError as error:
        raise ImportError(
            f"{url!r} needs fsspec, and the library for its scheme, such as s3fs, gcsfs, adlfs or aiohttp: "
            f"pip install fsspec ({error})"
        ) from error
    except Exception as error:
        raise ValueError(f"cannot reach {url!r}: {error}") from error
    return filesystem, path.rstrip("/")


@contextlib.contextmanager
def explained(url: str, doing: str) -> Iterator[None]:
    """Add the URL to an error, since libraries of stores raise errors of their own."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f"cannot {doing} {url!r}: there is no such file, folder or bucket: {error}") from error
    except Exception as error:
        kind = PermissionError if isinstance(error, PermissionError) else OSError
        reason = " ".join(str(error).split()) or type(error).__name__
        raise kind(f"cannot {doing} {url!r}: {reason}") from error


@dataclass(frozen=True)
class StoreFile(SourceFile):
    """A file of rows in a store; its path is a URL."""

    is_local: ClassVar[bool] = False
    failures: ClassVar[tuple[type[Exception], ...]] = (Exception,)

    def state(self) -> tuple[int, int]:
        """Size of the file, and a digest of its properties in the store."""
        with explained(self.path, "read"):
            # Properties in the cache may be out of date.
            self.filesystem.invalidate_cache()
            info = self.filesystem.info(self.path)
        marks = str([info.get(mark) for mark in MARKS])
        return int(info.get("size") or 0), int(hashlib.sha256(marks.encode()).hexdigest()[:15], 16)

    def open(self) -> Any:
        """Open the file to read anywhere in it."""
        with explained(self.path, "read"):
            # Arrow asks for pieces of a good size of a large file, column by column; reading ahead would read most
            # bytes twice.
            cache = "all" if (self.filesystem.size(self.path) or SMALL + 1) <= SMALL else "none"
            return pa.PythonFile(self.filesystem.open(self.path, "rb", cache_type=cache), mode="r")


def find(source: Any) -> SourceFiles:
    """Find the files of a URL, of a folder or glob in a store, or of a list of URLs.

    Examples
    --------
    >>> import fsspec
    >>> store = fsspec.filesystem("memory")
    >>> for name in ("b.csv", "a.csv", "_SUCCESS"):
    ...     store.pipe_file(f"/rows/{name}", b"city")
    >>> [file.relative for file in find("memory://rows").files]
    ['a.csv', 'b.csv']
    """
    if not is_url(source):
        return SourceFiles(check_same_format(describe_list(list(source))))
    source = with_lower_scheme(source)
    filesystem, path = reach(source)
    with explained(source, "read"):
        found = list_keys(filesystem, path)
    if found is None:
        return SourceFiles(describe_list([source]))
    base, keys = found
    if any(f"/{DELTA_LOG}/" in key for key in keys):
        raise messages.delta_table(source)
    relatives = {key.removeprefix(base).lstrip("/"): filesystem.unstrip_protocol(key) for key in keys}
    kept = [name for name in sorted(relatives) if suffix_of(name) and not is_hidden(PurePosixPath(name))]
    if not kept:
        raise messages.no_such_source(source)
    listed = check_same_format([describe_file(filesystem, relatives[name], name) for name in kept])
    return SourceFiles(listed, source if base == path else None)


def list_keys(filesystem: Any, path: str) -> tuple[str, list[str]] | None:
    """Give the folder of a path and its keys, or the keys that match a glob; give None for a single file."""
    filesystem.invalidate_cache()
    # The address of a web page may have a question mark, which is not a glob.
    if is_page(path) or filesystem.isfile(path):
        return None
    if (wildcard := re.search(r"[*?\[]", path)) is not None and not filesystem.exists(path):
        return path[: wildcard.start()].rpartition("/")[0], filesystem.glob(path)
    return path, filesystem.find(path)


def is_page(url: str) -> bool:
    """Whether a URL is a web address, where folders cannot be listed and nothing can be written."""
    return urlsplit(url).scheme in ("http", "https")


def describe_list(urls: Sequence[Any]) -> list[SourceFile]:
    """Give the files of a list of URLs, in its order."""
    for url in urls:
        if not is_url(url):
            raise ValueError(f"source lists URLs, and also {str(url)!r}, which is not a URL. Give files of one kind.")
    urls = [with_lower_scheme(url) for url in urls]
    reached = [reach(url) for url in urls]
    for number, one in enumerate(reached):
        if type(one[0]) is not type(reached[0][0]):
            raise ValueError(f"source lists {urls[0]!r} and {urls[number]!r} of another store. Give files of one.")
        if one in reached[:number]:
            raise ValueError(
                f"source lists {urls[number]!r} twice, and its rows would count twice. List each file once."
            )
    base = os.path.commonpath([PurePosixPath(path).parent for _, path in reached])
    return [
        describe_file(filesystem, url, PurePosixPath(path).relative_to(base).as_posix())
        for url, (filesystem, path) in zip(urls, reached, strict=True)
    ]


def describe_file(filesystem: Any, url: str, relative: str) -> StoreFile:
    """Describe one file in a store."""
    suffix = suffix_of(urlsplit(url).path if is_page(url) else url)
    if suffix is None:
        raise messages.unknown_format(url, list(SUFFIXES))
    return StoreFile(url, relative, suffix, partition_of(relative), filesystem)


@dataclass(frozen=True)
class Store:
    """The address of an output in a store.

    Parameters
    ----------
    url : str
        As the user gave it.
    filesystem : fsspec.AbstractFileSystem
    path : str
        Path in the file system.
    """

    url: str
    filesystem: Any
    path: str

    @classmethod
    def at(cls, url: str) -> "Store":
        """Give the address that a URL names."""
        url = with_lower_scheme(url)
        if is_page(url):
            raise ValueError(f"destination {url!r} can only be read. Name a file, or a URL of a store.")
        filesystem, path = reach(url)
        if not PurePosixPath(path).name or path == filesystem.root_marker:
            raise ValueError(f"destination {url!r} names no file or folder in its store.")
        return cls(url, filesystem, path)

    @property
    def name(self) -> str:
        """Name of the file or folder."""
        return PurePosixPath(self.path).name

    @property
    def hidden(self) -> str:
        """Folder beside it, in which finished files are kept until they are moved."""
        return f"{self.path.removesuffix(self.name)}.{self.name}.gpu-encode"

    def check_writable(self) -> None:
        """Check that the store can be written to, before any work is done."""
        probe = f"{self.hidden}/begun"
        with explained(self.url, "write to"):
            self._make_parent(probe)
            self.filesystem.pipe_file(probe, b"")
            self.filesystem.rm_file(probe)

    def publish(self, finished: Path) -> None:
        """Upload a finished file or folder, and move its files to their paths; a later run ends interrupted moves."""
        single = finished.is_file()
        folder = finished.parent if single else finished
        paths = [finished] if single else sorted(path for path in finished.rglob("*") if path.is_file())
        sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in paths}
        self.end_publication()
        with explained(self.url, "write"):
            self._clear()
            for name in sizes:
                self._make_parent(f"{self.hidden}/{name}")
                self.filesystem.put_file(str(folder / name), f"{self.hidden}/{name}")
            record = json.dumps({"single": single, "sizes": sizes}).encode()
            self.filesystem.pipe_file(f"{self.hidden}/{RECORD}", record)
        self.end_publication()

    def end_publication(self) -> bool:
        """Finish the moves of an earlier publication; tell whether there was one."""
        with explained(self.url, "write"):
            self.filesystem.invalidate_cache()
            if not self.filesystem.exists(f"{self.hidden}/{RECORD}"):
                return False
            record = json.loads(self.filesystem.cat_file(f"{self.hidden}/{RECORD}"))
            paths = {name: self.path if record["single"] else f"{self.path}/{name}" for name in record["sizes"]}
            for name, path in paths.items():
                if self.filesystem.exists(f"{self.hidden}/{name}"):
                    self._move(f"{self.hidden}/{name}", path)
                if (size := self.filesystem.info(path)["size"]) != record["sizes"][name]:
                    raise OSError(f"{path!r} has {size} bytes there, and {record['sizes'][name]} here")
            if not record["single"]:
                for key in set(self.filesystem.find(self.path)) - set(paths.values()):
                    self.filesystem.rm_file(key)
            self._clear()
        return True

    def _move(self, source: str, path: str) -> None:
        """Move a file, and replace an existing one."""
        from fsspec import AbstractFileSystem

        self._make_parent(path)
        if type(self.filesystem).mv is not AbstractFileSystem.mv:
            self.filesystem.mv(source, path)
            return
        # The move of fsspec itself treats names with brackets as globs.
        self.filesystem.cp_file(source, path)
        self.filesystem.rm_file(source)

    def _make_parent(self, key: str) -> None:
        """Make the folder of a file if the store has folders; in other stores this would make a bucket."""
        from fsspec.asyn import AsyncFileSystem

        if not isinstance(self.filesystem, AsyncFileSystem):
            self.filesystem.makedirs(key.rpartition("/")[0], exist_ok=True)

    def _clear(self) -> None:
        """Remove the hidden folder."""
        self.filesystem.invalidate_cache()
        for key in self.filesystem.find(self.hidden):
            self.filesystem.rm_file(key)
        with contextlib.suppress(Exception):  # most stores have no folders
            self.filesystem.rm(self.hidden, recursive=True)
