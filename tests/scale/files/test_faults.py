"""Files that are damaged, missing or not readable, and full disks: a clear error, and nothing changes."""

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from gpu_encode import GroupKFold, Ordered, TargetEncoder, encode_dataset
from gpu_encode.scale.files import encoding, staging
from gpu_encode.scale.files.files import SourceFile
from gpu_encode.scale.files.source import open_source
from gpu_encode.scale.files.writing import RowWriter
from gpu_encode.storage import archive
from tests.scale.files.encoded import assert_same_table, encode, in_memory, names_in, read_rows, write_pieces


@pytest.fixture
def folder(tmp_path: Path, orders: pa.Table) -> Path:
    """Four files of 112 rows."""
    return write_pieces(tmp_path / "in", orders, 112, row_group_size=40).parent


def read_sources(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "in").iterdir()}


def test_damage_within_a_file_is_named_by_row_group(folder: Path) -> None:
    path = folder / "in" / "2.parquet"
    group = pyarrow.parquet.read_metadata(path).row_group(1)
    content = bytearray(path.read_bytes())
    start = group.column(0).dictionary_page_offset or group.column(0).data_page_offset
    content[start : start + group.column(0).total_compressed_size] = b"\xff" * group.column(0).total_compressed_size
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"cannot read '.*2\.parquet', row group 1: "):
        encode(folder / "in", folder / "codes", TargetEncoder(columns=["city"]), "sold", chunk_rows=50)
    assert names_in(folder) == ["in"]


def test_a_file_that_goes_away_in_between(folder: Path) -> None:
    def remove(stage: str, done: int, _: int) -> None:
        if stage == "encoding" and done == 0:
            (folder / "in" / "3.parquet").unlink()

    with pytest.raises(FileNotFoundError, match=r"'.*3\.parquet' is not there any more") as caught:
        encode(folder / "in", folder / "codes", TargetEncoder(columns=["city"]), "sold", chunk_rows=50, progress=remove)
    assert "resume=True" in caught.value.__notes__[0]
    assert names_in(folder) == [".codes.gpu-encode", "in"]


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_pages_of_parquet_with_checksums_are_verified(tmp_path: Path) -> None:
    rows = pa.table({"city": ["a", "b"] * 500, "y": np.arange(1000) % 2, "x": np.arange(1000) / 7})
    options = {"compression": "none", "use_dictionary": False, "column_encoding": "PLAIN"}
    pyarrow.parquet.write_table(rows, tmp_path / "x.parquet", write_page_checksum=True, **options)
    column = pyarrow.parquet.read_metadata(tmp_path / "x.parquet").row_group(0).column(2)
    flip(tmp_path / "x.parquet", column.data_page_offset + column.total_compressed_size - 99)
    with pytest.raises(ValueError, match=r"cannot read '.*x\.parquet', row group 0: .*(CRC|checksum)"):
        encode_dataset(tmp_path / "x.parquet", tmp_path / "codes.parquet", TargetEncoder(columns=["city"]), target="y")
    assert names_in(tmp_path) == ["x.parquet"]


def test_output_in_parquet_carries_checksums(tmp_path: Path, rows: Path) -> None:
    path = tmp_path / "codes.parquet"
    encode_dataset(rows, path, TargetEncoder(columns=["city"]), target="sold")
    column = pyarrow.parquet.read_metadata(path).row_group(0).column(0)
    flip(path, column.data_page_offset + column.total_compressed_size // 2)
    with pytest.raises(OSError, match="CRC checksum"):
        pyarrow.parquet.read_table(path, page_checksum_verification=True)


def test_a_damaged_batch_of_arrow_is_named(tmp_path: Path) -> None:
    table = pa.table({"city": ["Bonn", "Lima"] * 50, "y": [0, 1] * 50})
    with pa.ipc.new_file(tmp_path / "x.arrow", table.schema) as writer:
        writer.write_table(table)
    content = (tmp_path / "x.arrow").read_bytes()
    offsets = np.arange(0, 404, 4, np.int32).tobytes()
    assert content.count(offsets) == 1
    (tmp_path / "x.arrow").write_bytes(content.replace(offsets, np.full(101, 1 << 30, np.int32).tobytes()))
    with pytest.raises(ValueError, match=r"cannot read '.*x\.arrow', row group 0: "):
        encode_dataset(tmp_path / "x.arrow", tmp_path / "codes.arrow", TargetEncoder(columns=["city"]), target="y")


def test_a_source_that_changed_leaves_nothing_to_go_on_with(folder: Path) -> None:
    def touch(stage: str, done: int, _: int) -> None:
        if stage == "encoding" and done == 0:
            os.utime(folder / "in" / "3.parquet")

    with pytest.raises(ValueError, match=r"'.*3\.parquet' changed while it was read. .* from the start") as caught:
        encode(folder / "in", folder / "codes", TargetEncoder(columns=["city"]), "sold", chunk_rows=50, progress=touch)
    assert not hasattr(caught.value, "__notes__")
    assert names_in(folder) == ["in"]


def test_a_model_on_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = TargetEncoder().fit([["a"], ["b"]], [0, 1])
    encoder.save(tmp_path / "x.model")
    before = (tmp_path / "x.model").read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(archive.os, "fsync", full)
    with pytest.raises(OSError, match=r"the disk is full .* which is '/.*'\): '.*x\.model' was not written") as caught:
        encoder.save(tmp_path / "x.model")
    assert caught.value.errno == errno.ENOSPC
    assert names_in(tmp_path) == ["x.model"]
    assert (tmp_path / "x.model").read_bytes() == before


def test_a_source_folder_without_permission(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir

    def closed(path: Any) -> Any:
        if Path(path).name == "in":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    monkeypatch.setattr(os, "access", lambda *_: False)
    for source in (folder, folder / "in", f"{folder}/in/*.parquet"):
        with pytest.raises(PermissionError, match=r"no permission to read the folder '.*in' of the source"):
            open_source(source)


def refuse(*_: object, **__: object) -> None:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def test_a_file_without_permission(folder: Path) -> None:
    closed = SimpleNamespace(open_input_file=refuse, get_file_info=pa.fs.LocalFileSystem().get_file_info)
    file = SourceFile(str(folder / "in" / "0.parquet"), "0.parquet", ".parquet", {}, closed)
    with pytest.raises(PermissionError, match=r"no permission to read the source file '.*0\.parquet'"):
        file.open()


def test_a_folder_without_permission(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(PermissionError, match="no permission to write to the folder"):
        encode(folder / "in", folder / "codes", TargetEncoder(columns=["city"]), "sold")


@pytest.mark.parametrize("name", ["codes", "codes.parquet"])
@pytest.mark.parametrize("allowed", [0, 3])
def test_a_disk_that_fills_up(
    folder: Path, orders: pa.Table, name: str, allowed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, calls = RowWriter.write, []

    def full(writer: RowWriter, table: Any) -> None:
        calls.append(1)
        if len(calls) > allowed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(writer, table)

    before = read_sources(folder)
    encoder, message = (
        TargetEncoder(columns=["city"]),
        r"the disk is full .* is '.*'\): '.*codes.*' was not written; an older file",
    )
    with monkeypatch.context() as patched:
        patched.setattr(RowWriter, "write", full)
        # Otherwise sums are saved only after a minute, and no folder is left.
        patched.setattr(encoding, "SAVE_AFTER", 0)
        with pytest.raises(OSError, match=message) as caught:
            encode(folder / "in", folder / name, encoder, "sold", chunk_rows=50)
    assert caught.value.errno == errno.ENOSPC
    assert names_in(folder) == [f".{name}.gpu-encode", "in"]
    assert read_sources(folder) == before
    assert not (folder / f".{name}.gpu-encode" / "partial").exists()
    encode(folder / "in", folder / name, encoder, "sold", resume=True)
    assert_same_table(read_rows(folder / name), in_memory(encoder, orders, "sold")[1])


def test_a_disk_without_space_for_notes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(staging.os, "fsync", full)
    with pytest.raises(OSError, match="the disk is full"):
        encode_dataset(folder / "in", folder / "codes", TargetEncoder(columns=["city"]), target="sold")
    assert names_in(folder) == ["in"]


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a disk of 300 kB, if this machine may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("name", ["codes", "codes.parquet", "codes.csv"])
@pytest.mark.parametrize("cv", [5, Ordered()], ids=["folds", "order"])
def test_a_disk_that_is_full_indeed(tmp_path: Path, tiny_disk: Path, name: str, cv: Any) -> None:
    numbers = np.random.default_rng(0).random(200_000)
    rows = pa.table(
        {"city": (numbers * 50).astype(np.int64), "price": numbers, "sold": (numbers > 0.5).astype(np.int8)}
    )
    pyarrow.parquet.write_table(rows, tmp_path / "rows.parquet")
    before, encoder = (tmp_path / "rows.parquet").read_bytes(), TargetEncoder(columns=["city"], cv=cv)
    with pytest.raises(OSError, match=r"the disk is full .* which is '.*disk'\): '.*codes.*' was not written"):
        encode(tmp_path / "rows.parquet", tiny_disk / name, encoder, "sold", chunk_rows=30_000)
    assert [path.name for path in tiny_disk.iterdir()] in ([], [f".{name}.gpu-encode"])
    assert (tmp_path / "rows.parquet").read_bytes() == before


@pytest.mark.parametrize(
    ("column", "value", "choices", "message"),
    [
        ("price", None, {"target": "price"}, r"row 250 \(row 26 of .*2\.parquet, row group 0\)"),
        ("weight", -1.0, {"target": "sold", "weight": "weight"}, r"row 250 \(row 26 of .*2\.parquet, row group 0\)"),
        ("shop", None, {"target": "sold", "groups": "shop"}, r"row 250 \(row 26 of .*2\.parquet, row group 0\)"),
        ("city", None, {"target": "sold"}, r"row \d+ \(row \d+ of .*\d\.parquet, row group \d\)"),
    ],
)
def test_errors_name_the_row_among_all_and_in_its_file(
    tmp_path: Path, orders: pa.Table, column: str, value: Any, choices: dict[str, Any], message: str
) -> None:
    values = orders[column].to_pylist()
    values[250] = value
    place = orders.column_names.index(column)
    table = orders.set_column(place, column, pa.array(values, orders.schema.field(column).type))
    write_pieces(tmp_path / "in", table, 112)
    cv = GroupKFold(3) if "groups" in choices else 5
    encoder = TargetEncoder(columns=["city"], cv=cv, handle_missing="error" if column == "city" else "category")
    with pytest.raises(ValueError, match=message) as caught:
        encode(tmp_path / "in", tmp_path / "codes", encoder, chunk_rows=100, **choices)
    said = str(caught.value)
    assert ("drop_missing_target=True (--drop-missing-target)" in said) is (column == "price")
    assert "Drop or fill" not in said or column != "price"
    assert not hasattr(caught.value, "__notes__")
    assert names_in(tmp_path) == ["in"]


def test_no_rows_at_all(tmp_path: Path, orders: pa.Table) -> None:
    pyarrow.parquet.write_table(orders.slice(0, 0), tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="a minimum of 1 is required"):
        encode(tmp_path / "x.parquet", tmp_path / "codes", TargetEncoder(columns=["city"]), "sold")
    assert names_in(tmp_path) == ["x.parquet"]


def test_a_column_called_like_an_output(tmp_path: Path, orders: pa.Table) -> None:
    table = orders.rename_columns({"sold": "city_unseen"})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    encoder = TargetEncoder(columns=["city"], indicators=True)
    with pytest.raises(ValueError, match="two columns named 'city_unseen'"):
        encode(tmp_path / "x.parquet", tmp_path / "codes", encoder, "city_unseen")
