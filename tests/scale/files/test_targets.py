"""Targets in files: numbers with a typing error, and more classes than the memory limit allows."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from gpu_encode import KFold, Ordered, TargetEncoder, WeightOfEvidenceEncoder, encode_dataset
from gpu_encode.scale.files import memory, source
from gpu_encode.scale.files import text as text_files
from gpu_encode.scale.files.source import open_source, refuse_stray_text
from tests.scale.files.encoded import names_in, write_pieces

N_ROWS = 3000


def write_csv(path: Path, cells: list[Any]) -> Path:
    path.write_text("city,y\n" + "".join(f"c{row % 7},{cell}\n" for row, cell in enumerate(cells)))
    return path


@pytest.fixture(params=["one file", "blocks"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read a CSV file in both ways: types from the whole file, and block by block."""
    if request.param == "blocks":
        monkeypatch.setattr(text_files, "BLOCK", 4096)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("cell", [lambda row: row * 7, lambda row: row % 2, lambda row: f"{row}.5e-1"])
def test_a_typing_error_among_numbers_is_named(tmp_path: Path, cell: Any) -> None:
    cells = [cell(row) for row in range(N_ROWS)]
    cells[2841] = cells[2900] = "n/a?"
    path = write_csv(tmp_path / "x.csv", cells)
    where = r"'n/a\?',? in row 2841 \(row 2841 of .*x\.csv\)"
    for encoder, says in (
        (TargetEncoder(), rf"^The target 'y' holds numbers in all but 2 of its rows, which hold text, such as {where}"),
        (TargetEncoder(target_type="continuous"), rf"^A continuous target needs numbers in y, but it holds {where}"),
        (
            WeightOfEvidenceEncoder(),
            rf"^The target 'y' holds numbers in all but 2 of its rows, which hold text, such as {where}",
        ),
    ):
        with pytest.raises(ValueError, match=says):
            encode_dataset(path, tmp_path / "codes.parquet", encoder, target="y", missing_text=["?"])
    assert names_in(tmp_path) == ["x.csv"]
    # A value that is read as missing is missing.
    choices = {"missing_text": ["n/a?"], "drop_missing_target": True}
    encoder = TargetEncoder(target_type="continuous")
    assert encode_dataset(path, tmp_path / "codes.parquet", encoder, target="y", **choices).rows == N_ROWS - 2


def test_the_row_is_told_in_its_file(tmp_path: Path) -> None:
    write_pieces(tmp_path / "in", pa.table({"city": ["a"] * 300, "y": [*["1", "0"] * 149, "1", "maybe"]}), 100)
    with pytest.raises(ValueError, match=r"'maybe', in row 299 \(row 99 of .*2\.parquet, row group 0\)"):
        encode_dataset(tmp_path / "in", tmp_path / "codes", TargetEncoder(), target=["y"])


@pytest.mark.parametrize("kind", ["auto", "multiclass", ["multiclass"]])
def test_text_classes_stay_fine(tmp_path: Path, kind: Any) -> None:
    # As many strays as 1 % of all rows.
    cells = ["1", "2", "3"] * (N_ROWS // 3)
    cells[:30] = ["x"] * 30
    encoder = TargetEncoder(target_type=kind)
    target: Any = ["y"] if isinstance(kind, list) else "y"
    encode_dataset(write_csv(tmp_path / "x.csv", cells), tmp_path / "codes.parquet", encoder, target=target)
    if kind != "auto":
        encode_dataset(write_csv(tmp_path / "y.csv", cells[20:]), tmp_path / "more.parquet", encoder, target=target)


def test_no_more_is_read_than_tells_text_from_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "SAMPLE_ROWS", 64)
    pyarrow.parquet.write_table(pa.table({"y": ["new", "old"] * (N_ROWS // 2)}), tmp_path / "x.parquet")
    rows, read = open_source(tmp_path / "x.parquet"), []
    tables = source.Source._tables

    def counted(*given: Any) -> Any:
        for table in tables(*given):
            read.append(table.num_rows)
            yield table

    monkeypatch.setattr(source.Source, "_tables", counted)
    refuse_stray_text(rows, {"y": "auto"})
    assert sum(read) <= 2 * 64


@pytest.mark.parametrize("scheme", [KFold(2), Ordered(shuffle=False)], ids=["folds", "an order"])
def test_classes_that_the_limit_has_no_room_for(tmp_path: Path, scheme: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "resident_bytes", lambda: 100 << 20)
    n_rows = 5000
    table = pa.table({"city": [f"c{row % 7}" for row in range(n_rows)], "y": np.arange(n_rows) * 3})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    encoder = TargetEncoder(cv=scheme, target_type="multiclass")
    with pytest.raises(ValueError, match=r"memory_limit is .* Give at least") as caught:
        encode_dataset(tmp_path / "x.parquet", tmp_path / "y.parquet", encoder, target="y", memory_limit="700 MiB")
    assert caught.value.__notes__[0].startswith("y has 5000 classes, each a column of encodings for every key. Pass")
    assert names_in(tmp_path) == ["x.parquet"]


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("cell", ['"1,{:03d}.50"', "${}.1", "{}  "])
def test_numbers_written_as_text_are_told(tmp_path: Path, kind: str, cell: str) -> None:
    says = {999: "was inferred to be multiclass with 999 classes", 1000: "would be 1000 classes"}
    for n_classes, told in says.items():
        cells = ["n/a?" if row % 10 == 7 else cell.format(row % (n_classes - 1)) for row in range(N_ROWS)]
        path = write_csv(tmp_path / f"{n_classes}.csv", cells)
        if kind == "parquet":
            table = pa.table(
                {"city": [f"c{row % 7}" for row in range(N_ROWS)], "y": [text.strip('"') for text in cells]}
            )
            path = tmp_path / f"{n_classes}.parquet"
            pyarrow.parquet.write_table(table, path)
        expected: Any = pytest.warns(UserWarning, match=rf"^y holds numbers written as text.* {told}.*'n/a\?'")
        if n_classes == 1000:
            expected = pytest.raises(ValueError, match=rf"^y holds numbers written as text.* {told}.* target_type=")
        with expected:
            encode_dataset(path, tmp_path / f"codes{n_classes}.parquet", TargetEncoder(cv=KFold(2)), target="y")
    assert "codes1000.parquet" not in names_in(tmp_path)
