"""Files that are changed on purpose, for tests of errors."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gpu_encode import load

Members = dict[str, bytes]


def members_of(content: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(members: Members, compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return file.getvalue()


def changed(content: bytes, change: Callable[[Any], Any]) -> bytes:
    """Give a complete archive with another document."""
    members = members_of(content)
    document = json.loads(members["model.json"])
    change(document)
    return archive_of(members | {"model.json": json.dumps(document).encode()})


def stream_of(array: Any, name: str = "values", pieces: int = 1, options: Any = None) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([array], names=[name])
    with pa.ipc.new_stream(sink, batch.schema, options=options) as stream:
        for _ in range(pieces):
            stream.write_batch(batch)
    return sink.getvalue().to_pybytes()


def assert_refused(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def with_numbers(content: bytes, name_of: Callable[[Any], Any], change: Callable[[Any], Any]) -> bytes:
    members = members_of(content)
    name = name_of(json.loads(members["model.json"])["model"])
    with pa.ipc.open_stream(members[name]) as stream:
        numbers = stream.read_all().column(0).to_numpy().copy()
    return archive_of(members | {name: stream_of(pa.array(change(numbers)))})


def load_or_refuse(path: Path, content: bytes) -> Any:
    """Load a file that may be damaged: an encoder, or None after a ValueError; anything else fails."""
    path.write_bytes(content)
    reason = str(path)
    try:
        return load(path)
    except ValueError as error:
        reason = str(error)
    assert reason.startswith(str(path))
    return None
