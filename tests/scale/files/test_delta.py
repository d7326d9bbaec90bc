"""Tables of Delta Lake: the files of one version, which its log names."""

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from gpu_encode import KFold, TargetEncoder, encode_dataset
from gpu_encode.scale.files import encoding
from tests.scale.files.conftest import read_folder
from tests.scale.files.encoded import assert_same_table, encode, in_memory, read_rows

deltalake = pytest.importorskip("deltalake")
pytestmark = pytest.mark.host


@pytest.fixture
def table(tmp_path: Path, orders: pa.Table) -> Any:
    """A table of four versions: some rows are deleted, but the files that held them still exist."""
    place = tmp_path / "table"
    cut = orders.select(["city", "zip", "price", "shop"]).cast(
        pa.schema({"city": pa.string(), "zip": pa.string(), "price": pa.float64(), "shop": pa.int32()})
    )
    # A file with a column without values; its statistics show that.
    bare = cut.slice(0, 40).set_column(0, "city", pa.nulls(40, pa.string()))
    for piece in (bare, cut.slice(40, 200), cut.slice(240)):
        deltalake.write_deltalake(place, piece, partition_by=["shop"], mode="append")
    result = deltalake.DeltaTable(place)
    result.delete("zip = '01003'")
    return result


def test_rows_that_count(tmp_path: Path, table: Any) -> None:
    wanted = pl.scan_delta(table.table_uri).collect()
    files = len(list((tmp_path / "table").rglob("*.parquet")))
    for number, source in enumerate((table, tmp_path / "table")):
        rows = read_rows(source)
        assert pl.DataFrame(rows).select(wanted.columns).sort(pl.all()).equals(wanted.sort(pl.all()))
        encoder = TargetEncoder(columns=["city"], cv=KFold(3))
        summary = encode(source, tmp_path / f"{number}", encoder, "price", chunk_rows=50)
        assert summary.files == len(table.file_uris()) < files
        expected = in_memory(encoder, rows, "price")[1]
        assert_same_table(read_folder(tmp_path / f"{number}"), expected.drop_columns("shop"))


def test_an_earlier_version(table: Any) -> None:
    table.load_as_version(0)
    assert len(read_rows(table)) == 40


def test_a_run_is_gone_on_with(tmp_path: Path, table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = TargetEncoder(columns=["city"], cv=KFold(3))
    with monkeypatch.context() as patch:
        patch.setattr(encoding, "fit", None)
        with pytest.raises(TypeError):
            encode(table, tmp_path / "codes", encoder, "price", chunk_rows=50)
    with monkeypatch.context() as patch:
        patch.setattr(encoding, "measure", None)
        encode(table, tmp_path / "codes", encoder, "price", chunk_rows=50, resume=True)
    encode(table, tmp_path / "whole", encoder, "price", chunk_rows=50)
    assert read_folder(tmp_path / "codes").equals(read_folder(tmp_path / "whole"))


def test_what_is_refused(tmp_path: Path, table: Any) -> None:
    for place in ("table", "table/codes.parquet"):
        with pytest.raises(ValueError, match="is in the source folder"):
            encode_dataset(table, tmp_path / place, TargetEncoder(columns=["city"]), target="price")
    vectors = tmp_path / "vectors"
    rows = pa.table({"city": ["Bonn", "Lima"], "y": [0, 1]})
    deltalake.write_deltalake(vectors, rows, configuration={"delta.enableDeletionVectors": "true"})
    with pytest.raises(ValueError, match=r"cannot read the files of the Delta table '.*vectors/'.*polars.scan_delta"):
        encode_dataset(vectors, tmp_path / "x.parquet", TargetEncoder(), target="y")
