"""The file: an uncompressed ZIP with a JSON document and an Arrow IPC stream for each array.

Nothing is compressed, so the bytes depend only on the content.  Before a file's content takes memory, the bytes that it
needs are counted; they may be eight times the file's size.
"""

import contextlib
import errno
import hashlib
import io
import json
import os
import secrets
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Self, cast

import pyarrow as pa

from gpu_encode.words.errors.resources import FULL, DiskFullError

FORMAT = "gpu-encode"
VERSION = 1
DOCUMENT = "model.json"
_COLUMN = "values"
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_FIRST_BYTES = b"PK\x03\x04"
# The most bytes of memory that reading may take for each byte of a file; a small file may take the second number of
# bytes in all.
UNFOLDED = 8
UNFOLDED_LEAST = 1 << 26
# At most a quarter of a file's bytes may be its list of members: a member takes at least 300 bytes of the file, and
# its entry in the list a fifth of these.
LISTED_SHARE = 4
LISTED_LEAST = 1 << 17
# Bytes that Python needs for an object, an array, a text and a number of JSON, and for each element of an object or
# array.
DICT_BYTES, LIST_BYTES, TEXT_BYTES, NUMBER_BYTES, ELEMENT_BYTES = 240, 150, 56, 32, 8
# Bytes that zipfile needs for a member of the archive.
MEMBER_BYTES = 1_000
# Arrow writes each buffer at a multiple of so many bytes, and kernels rely on it.
ALIGNMENT = 8
# What the system says of files in folders that may not be changed.
FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)
# Fields of Arrow's messages and record batches, by their numbers in its FlatBuffers.
_HEADER, _COMPRESSION = 2, 3


class UnreadableError(Exception):
    """Error for a file that is not a model, or that this release cannot read; the text follows the file's name."""


@contextlib.contextmanager
def explain_unwritten(path: Path) -> Iterator[None]:
    """Name the file that was being written in an error about a full disk, or about a folder that nothing may change."""
    try:
        yield
    except OSError as error:
        if isinstance(error, DiskFullError):
            raise
        if error.errno in FULL:
            explained: OSError = _disk_is_full(path, error.errno)
        elif error.errno in FORBIDDEN and is_of_ours(error.filename, path):
            reason = f"{os.strerror(error.errno)}, so that nothing was written. Write elsewhere"
            explained = OSError(error.errno, reason, str(path))
        else:
            raise
        for note in getattr(error, "__notes__", []):
            explained.add_note(note)
        raise explained from error


def is_of_ours(filename: Any, path: Path) -> bool:
    """Tell whether an error names no file, the file to write, a folder above it, or a hidden file of ours beside it."""
    if filename is None:
        return True
    failed, target = Path(os.path.realpath(os.fsdecode(filename))), Path(os.path.realpath(path))
    hidden = failed.is_relative_to(target.parent) and failed.relative_to(target.parent).parts[:1]
    return failed in (target, *target.parents) or bool(hidden and hidden[0].startswith("."))


def _disk_is_full(path: Path, number: int | None) -> DiskFullError:
    """Error for a file for which the disk has no room."""
    folders = (path.parent, *path.parent.parents)
    disk = next((folder for folder in folders if folder.is_mount()), folders[-1])
    return DiskFullError(
        number,
        f"the disk is full (no space left on device, which is {str(disk)!r}): {str(path)!r} was not written; an older "
        "file is unchanged. Free some space, or write elsewhere",
    )


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Give a file to write; it appears at `path` when it is complete, and not at all after an error."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder. Name a file in it.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(target.parent)!r} to write {target.name!r} to.")
    temporary = target.with_name(f".partial-{secrets.token_hex(4)}-{target.name[-80:]}")
    try:
        with explain_unwritten(Path(path)), temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with explain_unwritten(Path(path)):
            if target.exists():
                temporary.chmod(target.stat().st_mode & 0o777)
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(target.parent)


def sync_file(path: Path) -> None:
    """Wait until the content of a file is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Wait until a new file name is on the disk, if the system supports this."""
    with contextlib.suppress(OSError):
        sync_file(folder)


class Writer:
    """An archive that is being written: first arrays, equal ones only once, and last the document."""

    def __init__(self, file: IO[bytes] | io.RawIOBase) -> None:
        self._zip = zipfile.ZipFile(cast("IO[bytes]", file), "w", zipfile.ZIP_STORED)
        self._names: dict[bytes, str] = {}
        # The digest of each array that was written, by its name in the archive.
        self.digests: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def add(self, array: Any) -> str:
        """Write an Arrow array without null, and give its name in the archive."""
        batch = pa.record_batch([array], names=[_COLUMN])
        # The stream is made twice, and never held in memory: a copy of large sums would be the largest array of a call.
        digest = Digest()
        write_batch(batch, digest)
        mark = digest.content.digest()
        if mark not in self._names:
            self._names[mark] = f"arrays/{len(self._names)}.arrow"
            self.digests[self._names[mark]] = mark.hex()
            with self._open(self._names[mark], digest.n_bytes) as member:
                write_batch(batch, member)
        return self._names[mark]

    def finish(self, document: dict[str, Any]) -> None:
        """Write the document."""
        headed = {"format": FORMAT, "version": VERSION, **document}
        content = json.dumps(headed, allow_nan=False, separators=(",", ":")).encode("ascii")
        with self._open(DOCUMENT, len(content)) as member:
            member.write(content)

    def _open(self, name: str, n_bytes: int) -> IO[bytes]:
        entry = zipfile.ZipInfo(name, _NO_TIME)
        entry.create_system = 3
        entry.external_attr = 0o644 << 16
        return self._zip.open(entry, "w", force_zip64=n_bytes >= zipfile.ZIP64_LIMIT)


class Digest(io.RawIOBase):
    """A file that keeps only the digest of its content, and its size."""

    def __init__(self) -> None:
        self.content, self.n_bytes = hashlib.sha256(), 0

    def writable(self) -> bool:
        """Whether it can be written to."""
        return True

    def write(self, piece: Any) -> int:
        """Count a piece."""
        self.content.update(piece)
        self.n_bytes += len(memoryview(piece).cast("B"))
        return len(piece)


def write_batch(batch: Any, file: Any) -> None:
    """Write a record batch as a stream of Arrow."""
    with pa.PythonFile(file, "w") as sink, pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)


class BoundedFile:
    """A file from which at most `most` bytes may be read at once."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file = file
        self.most = most

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int = -1) -> bytes:
        """Read `size` bytes; raise ValueError if these are too many."""
        left = os.fstat(self._file.fileno()).st_size - self._file.tell()
        if (left if size < 0 else min(size, left)) > self.most:
            raise ValueError("its list of members is larger than that of any model")
        return self._file.read(size)


class Reader:
    """An archive that is being read; its kind, its version and the sizes of its members have been checked.

    Raises
    ------
    UnreadableError
        If it is not a model, or has a newer format.
    """

    def __init__(self, file: IO[bytes]) -> None:
        size = os.fstat(file.fileno()).st_size
        self._left = max(UNFOLDED_LEAST, UNFOLDED * size)
        first = file.read(len(_FIRST_BYTES))
        bounded = BoundedFile(file, max(LISTED_LEAST, size // LISTED_SHARE))
        try:
            self._zip = zipfile.ZipFile(bounded)
        except zipfile.BadZipFile:
            if first == _FIRST_BYTES:
                raise ValueError("it is truncated, or its list of members is altered") from None
            raise foreign("it is no ZIP archive") from None
        bounded.most = size
        self._sizes = check_sizes(self._zip.infolist(), size)
        if DOCUMENT not in self._sizes:
            raise foreign(f"it has no {DOCUMENT}")
        self._used = {DOCUMENT}
        self._texts: dict[str, Any] = {}
        # Objects that several keys share, by their descriptions: each is made once.
        self.shared: dict[str, Any] = {}
        self.spend(MEMBER_BYTES * len(self._sizes))
        self.document: dict[str, Any] = self._read_document()
        if not isinstance(self.document, dict) or self.document.get("format") != FORMAT:
            raise foreign(f"its {DOCUMENT} is of something else")
        version = self.document.get("version")
        if type(version) is not int or version < 1:
            raise ValueError(f"its format version is {version!r}")
        if version > VERSION:
            raise UnreadableError(
                f"was written by a newer gpu-encode (format {version}); this one reads up to {VERSION}: upgrade."
            )

    def _read_document(self) -> Any:
        content = self._zip.read(DOCUMENT)
        if not content.isascii():
            raise ValueError(f"{DOCUMENT} is not in ASCII")
        self.spend(2 * len(content) + json_bytes(content))
        return json.loads(content, parse_constant=refuse_constant)

    def affords(self, n_bytes: int) -> bool:
        """Tell whether the file may take `n_bytes` more bytes of memory."""
        return n_bytes <= self._left

    def spend(self, n_bytes: int) -> None:
        """Count bytes of memory that the file is about to take; raise ValueError if these are too many."""
        if not self.affords(n_bytes):
            raise ValueError(f"it unfolds to more than {UNFOLDED} times its size")
        self._left -= n_bytes

    def array(self, name: Any, *allowed: Any) -> Any:
        """Read an Arrow array of one of the allowed types, whole and without null."""
        if not isinstance(name, str) or name not in self._sizes:
            raise ValueError(f"the array {name!r} is missing")
        self._used.add(name)
        # Many keys may share a vocabulary, whose text is then kept only once.
        if name in self._texts and self._texts[name].type in allowed:
            return self._texts[name]
        array = self._read_array(name, allowed)
        if array.type in (pa.large_string(), pa.large_binary()):
            self._texts[name] = array
        return array

    def _read_array(self, name: str, allowed: tuple[Any, ...]) -> Any:
        self.spend(self._sizes[name])
        content = pa.py_buffer(self._zip.read(name))
        check_batches(content, name)
        with pa.ipc.open_stream(content) as stream:
            if stream.schema.names != [_COLUMN] or stream.schema.field(0).type not in allowed:
                raise ValueError(f"{name} holds {stream.schema.to_string()!r}, not {' or '.join(map(str, allowed))}")
            array = stream.read_next_batch().column(0)
        # Arrow reads past the end of buffers that are too short for the length that a file claims: nothing is asked of
        # an array before this.
        array.validate(full=True)
        if any(buffer.address % ALIGNMENT for buffer in array.buffers() if buffer is not None):
            raise ValueError(f"a buffer of {name} does not begin at a multiple of {ALIGNMENT} bytes")
        if array.nbytes > self._sizes[name]:
            raise ValueError(f"{name} unfolds to more than it takes in the file")
        if array.null_count:
            raise ValueError(f"{name} holds nulls")
        return array

    def check_all_used(self) -> None:
        """Raise ValueError for members of the archive that the document does not name."""
        if stray := sorted(set(self._sizes) - self._used):
            raise ValueError(f"it holds {stray[0]!r}, which nothing refers to")


def foreign(reason: str) -> UnreadableError:
    """Error for a file that is not a model."""
    return UnreadableError(
        f"is not a gpu-encode model: {reason}. Give a file that encoder.save, or fit-transform --model, wrote."
    )


def check_sizes(members: list[zipfile.ZipInfo], size: int) -> dict[str, int]:
    """Give the size of each member; raise ValueError if members are compressed, repeated or too large."""
    sizes = {member.filename: member.file_size for member in members}
    plain = all(
        member.compress_type == zipfile.ZIP_STORED and member.compress_size == member.file_size for member in members
    )
    if DOCUMENT in sizes and (not plain or len(sizes) < len(members) or sum(sizes.values()) > size):
        raise ValueError("its members are compressed, repeated or larger than the file")
    return sizes


def check_batches(content: Any, name: str) -> None:
    """Raise ValueError unless an Arrow stream is one record batch whose buffers are not compressed.

    Arrow would decompress a buffer to any size that the file claims, without a check.
    """
    pieces = 0
    for message in pa.ipc.MessageReader.open_stream(content):
        if message.type not in ("schema", "record batch"):
            raise ValueError(f"{name} holds a {message.type}")
        if message.type == "record batch":
            metadata = memoryview(message.metadata)
            batch = follow(metadata, find_field(metadata, follow(metadata, 0), _HEADER))
            if find_field(metadata, batch, _COMPRESSION):
                raise ValueError(f"{name} is compressed, which no model is")
            pieces += 1
    if pieces != 1:
        raise ValueError(f"{name} is in {pieces} pieces")


def follow(content: memoryview, position: int) -> int:
    """Give the position in FlatBuffers to which the offset at a position leads."""
    offset: int = struct.unpack_from("<I", content, position)[0]
    return position + offset


def find_field(content: memoryview, table: int, number: int) -> int:
    """Give the position of a field of a table of FlatBuffers; 0 if the table has no such field."""
    layout = table - struct.unpack_from("<i", content, table)[0]
    entry = 4 + 2 * number
    inside = entry < struct.unpack_from("<H", content, layout)[0]
    offset: int = struct.unpack_from("<H", content, layout + entry)[0] if inside else 0
    return table + offset if offset else 0


def json_bytes(content: bytes) -> int:
    """Give an upper bound for the memory that Python needs for a JSON document."""
    commas, texts = content.count(b","), content.count(b'"') // 2
    lists, dicts = content.count(b"["), content.count(b"{")
    return (
        DICT_BYTES * dicts
        + LIST_BYTES * lists
        + TEXT_BYTES * texts
        + NUMBER_BYTES * max(0, commas + lists + dicts - texts)
        + ELEMENT_BYTES * commas
    )


def refuse_constant(name: str) -> None:
    """Raise ValueError for the words NaN and Infinity, which are not JSON."""
    raise ValueError(f"{DOCUMENT} holds {name}")
