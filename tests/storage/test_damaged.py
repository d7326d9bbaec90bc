"""A damaged file gives a ValueError that names it; if a changed file still loads, it is the model that was saved."""

import json
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpu_encode
from tests.storage.altered import archive_of, assert_refused, changed, load_or_refuse, members_of, stream_of
from tests.storage.fitted import NEW

FLIPS = 300


FOREIGN = {
    **{str(content): (content, "it is no ZIP archive. Give a file that") for content in (b"", b"PK", b"PAR1" * 100)},
    "no document": (archive_of({"word/document.xml": b"<xml>"}), "it has no model.json"),
    "a list": (archive_of({"model.json": b"[]"}), "its model.json is of something else"),
    "keras": (archive_of({"model.json": b'{"format": "keras", "version": 1}'}), "its model.json is of something else"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files(name: str, path: Path) -> None:
    content, message = FOREIGN[name]
    assert_refused(path, content, f"is not a gpu-encode model: {message}")


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match=r"is a folder, and no model\. gpu-encode transform --model and"):
        gpu_encode.load(tmp_path)


NEWER = r"was written by a newer gpu-encode \(format 2\); this one reads up to 1: upgrade"
VERSIONS = [(2, NEWER), *((version, "is damaged: its format version is") for version in (0, None, "1", 1.0, True))]


@pytest.mark.parametrize(("version", "message"), VERSIONS)
def test_a_version_that_is_another(version: Any, message: str, saved: Any, path: Path) -> None:
    assert_refused(path, changed(saved[0], lambda document: document.update(version=version)), message)


@pytest.mark.parametrize("document", [b"", b"{", b"\xff", b'{"format": NaN}', b"[" * 100_000, b"9" * 5000])
def test_a_document_that_is_no_json(document: bytes, saved: Any, path: Path) -> None:
    assert_refused(path, archive_of(members_of(saved[0]) | {"model.json": document}), "is damaged: ")


def test_truncated_files(saved: Any, path: Path) -> None:
    content = saved[0]
    for length in (*range(4, len(content), len(content) // 40), len(content) - 1):
        assert_refused(path, content[:length], "is damaged: it is truncated")


def test_missing_and_stray_members(saved: Any, path: Path) -> None:
    members = members_of(saved[0])
    for name in members:
        if name != "model.json":
            less = {other: member for other, member in members.items() if other != name}
            assert_refused(path, archive_of(less), f"is damaged: the array '{name}' is missing")
    assert_refused(path, archive_of(members | {"a": b""}), "is damaged: it holds 'a', which nothing refers to")


def with_flip(content: bytes, position: int, bit: int) -> bytes:
    return content[:position] + bytes([content[position] ^ 1 << bit]) + content[position + 1 :]


def test_altered_members(saved: Any, path: Path) -> None:
    for name, member in members_of(saved[0]).items():
        altered = with_flip(saved[0], saved[0].index(member) + len(member) // 2, 2)
        assert_refused(path, altered, f"is damaged: Bad CRC-32 for file '{name}'")


def test_archives_that_unfold(saved: Any, path: Path) -> None:
    members = members_of(saved[0])
    reason = "is damaged: its members are compressed, repeated or larger than the file"
    for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA):
        assert_refused(path, archive_of(members | {"bomb": bytes(10_000_000)}, compression), reason)
    with zipfile.ZipFile(path, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("model.json", members["model.json"])
    assert_refused(path, path.read_bytes(), reason)


ARRAYS = {
    "another name": (stream_of(pa.array([1]), "other"), "not int64"),
    "another type": (stream_of(pa.array([1.5])), "not int64"),
    "text": (stream_of(pa.array(["1"])), "not int64"),
    "nulls": (stream_of(pa.array([1, None])), "holds nulls"),
    "pieces": (stream_of(pa.array([1]), pieces=2), "is in 2 pieces"),
    "nothing": (stream_of(pa.array([1]), pieces=0), "is in 0 pieces"),
    "compressed": (
        stream_of(pa.array(np.zeros(10_000_000, np.int64)), options=pa.ipc.IpcWriteOptions(compression="zstd")),
        "is compressed, which no model is",
    ),
    "short": (stream_of(pa.array([1, 2])), "cannot reshape"),
    "no stream": (b"no stream at all", ""),
    "empty": (b"", ""),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_are_not_what_they_should_be(name: str, saved: Any, path: Path) -> None:
    content, message = ARRAYS[name]
    members = members_of(saved[0])
    accumulators = json.loads(members["model.json"])["model"]["statistics"][0][0]["cells"]["array"]
    assert_refused(path, archive_of(members | {accumulators: content}), f"is damaged: .*{message}")


def test_a_flipped_bit_is_found_or_changes_nothing(saved: Any, path: Path) -> None:
    content, encoder = saved
    chosen = random.Random(0)
    expected = encoder.transform(NEW)
    # Half of the flips hit the list of members at the end, which no checksum covers.
    starts = [0, content.rindex(b"PK\x01\x02") - 500] * (FLIPS // 2)
    for position in [chosen.randrange(start, len(content)) for start in starts]:
        again = load_or_refuse(path, with_flip(content, position, chosen.randrange(8)))
        assert again is None or again.transform(NEW).equals(expected), position
        assert again is None or repr(again.get_params()) == repr(encoder.get_params())
