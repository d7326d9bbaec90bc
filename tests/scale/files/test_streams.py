"""Queries of polars and DuckDB, and streams of Arrow: rows that can be read once give the bits of one table."""

import datetime
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from gpu_encode import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    OneHotEncoder,
    Ordered,
    OrdinalEncoder,
    TargetEncoder,
    encode_dataset,
    transform_dataset,
)
from gpu_encode.scale.files import encoding
from tests.scale.files.encoded import assert_same_table, encode, in_memory, names_in, read_rows

pytestmark = pytest.mark.host


def of_polars(table: pa.Table) -> Any:
    return pl.DataFrame(table).lazy()


def of_duckdb(table: pa.Table) -> Any:
    return pytest.importorskip("duckdb").connect().from_arrow(table)


def of_arrow(table: pa.Table) -> Any:
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=70))


def rows_of(query: Any) -> pa.Table:
    """Return the types that the engine itself makes of the stream."""
    if isinstance(query, pl.LazyFrame):
        return query.collect().to_arrow()
    return query.read_all() if isinstance(query, pa.RecordBatchReader) else query.to_arrow_table()


LIBRARIES = [of_polars, of_duckdb, of_arrow]
ENCODERS = [
    TargetEncoder(columns=["city", ("device", "zip")], cv=3),
    TargetEncoder(columns=["city"], cv=KFold(3, by=["day", "amount"])),
    TargetEncoder(columns=["city"], cv=GroupKFold(3, groups="shop")),
    TargetEncoder(columns=["city"], cv=Ordered()),
    TargetEncoder(columns=["device"], cv=LeaveOneOut(), target_type="multiclass"),
]


@pytest.mark.parametrize(
    ("library", "encoder"),
    [*((library, ENCODERS[0]) for library in LIBRARIES), *((of_arrow, encoder) for encoder in ENCODERS[1:])],
)
def test_bits_of_one_table(tmp_path: Path, orders: pa.Table, library: Callable[..., Any], encoder: Any) -> None:
    target = "kind" if encoder.target_type == "multiclass" else "price"
    table = rows_of(library(orders))
    expected = in_memory(encoder, table, target)[1]
    encode(library(orders), tmp_path / "codes.arrow", encoder, target, chunk_rows=100)
    assert_same_table(read_rows(tmp_path / "codes.arrow"), expected)
    assert names_in(tmp_path) == ["codes.arrow"]


def test_types_pass_through_as_they_are(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "size": pl.Series(["s", "l", None, "s", "m"], dtype=pl.Enum(["l", "m", "s", "xl"])),
            "city": pl.Series(["Bonn", None, "Lima", "Bonn", "Bonn"], dtype=pl.Categorical),
            "tags": [["a"], None, [], ["b"], ["c"]],
            "time": [datetime.timedelta(seconds=number) for number in range(5)],
            "y": [0, 1, 0, 1, 1],
        }
    )
    for encoder in (OrdinalEncoder(columns=["size"]), OneHotEncoder(columns=["city"], sparse_output=False)):
        encode(frame.lazy(), tmp_path / "codes.arrow", encoder, "y", overwrite=True, chunk_rows=2)
        assert_same_table(read_rows(tmp_path / "codes.arrow"), in_memory(encoder, frame.to_arrow(), "y")[1])
    query = pytest.importorskip("duckdb").sql(
        "select i % 2 as y, i::varchar as city, interval (i) day as wait from range(5) t(i)"
    )
    encode_dataset(query, tmp_path / "codes.arrow", TargetEncoder(columns=["city"], cv=2), target="y", overwrite=True)
    assert read_rows(tmp_path / "codes.arrow")["wait"].equals(query.to_arrow_table()["wait"])


@pytest.mark.parametrize("library", LIBRARIES)
def test_new_rows(tmp_path: Path, orders: pa.Table, library: Callable[..., Any]) -> None:
    encoder = TargetEncoder(columns=["city"]).fit(orders.select(["city"]), orders["price"])
    new = orders.select(["city", "sold"])
    summary = transform_dataset(library(new), tmp_path / "codes.arrow", encoder)
    assert read_rows(tmp_path / "codes.arrow")["city"].equals(encoder.transform(new.select(["city"]))["city"])
    assert (summary.rows, summary.columns) == (len(orders), 2)


class Counted:
    """A query of polars that counts how often it runs, and gives its rows in another order each time."""

    def __init__(self, table: pa.Table) -> None:
        self.runs = 0
        self.frame = pl.DataFrame(table).lazy().map_batches(self._shuffle)

    def _shuffle(self, rows: pl.DataFrame) -> pl.DataFrame:
        self.runs += 1
        return rows.sample(fraction=1.0, shuffle=True, seed=self.runs)


def test_a_query_runs_once_whatever_its_order(tmp_path: Path, orders: pa.Table) -> None:
    query = Counted(orders)
    encode(query.frame, tmp_path / "codes.arrow", TargetEncoder(columns=["city"], cv=3), "price", chunk_rows=50)
    assert query.runs == 1
    table = pl.DataFrame(orders).sample(fraction=1.0, shuffle=True, seed=1).to_arrow()
    expected = in_memory(TargetEncoder(columns=["city"], cv=3), table, "price")[1]
    assert_same_table(read_rows(tmp_path / "codes.arrow"), expected)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"target": "prices"}, "no column 'prices'. Did you mean 'price'"),
        ({"target": "price", "columns": ["town"]}, "town"),
        ({"target": "price", "resume": True}, "resume=True needs files.*source is a LazyFrame of polars"),
        ({"target": "price", "place": "codes.xlsx"}, "no known format"),
    ],
)
def test_what_is_wrong_is_said_before_the_query_runs(
    tmp_path: Path, orders: pa.Table, choices: dict[str, Any], message: str
) -> None:
    query = Counted(orders)
    place = tmp_path / choices.pop("place", "codes.parquet")
    encoder = TargetEncoder(columns=choices.pop("columns", ["city"]))
    with pytest.raises(ValueError, match=message):
        encode_dataset(query.frame, place, encoder, **choices)
    assert query.runs == 0
    assert names_in(tmp_path) == []


def failing(table: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from table.to_batches(max_chunksize=100)[:2]
    raise OSError("the connection was lost")


def test_a_query_that_fails_leaves_nothing(tmp_path: Path, orders: pa.Table) -> None:
    stream = pa.RecordBatchReader.from_batches(orders.schema, failing(orders))
    with pytest.raises(OSError, match="the connection was lost") as caught:
        encode_dataset(stream, tmp_path / "codes.parquet", TargetEncoder(columns=["city"]), target="price")
    assert caught.value.__notes__ == ["while the rows of the source, a stream of Arrow (RecordBatchReader), were read"]
    assert names_in(tmp_path) == []


def test_a_run_that_fails_keeps_nothing(tmp_path: Path, orders: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "fit", None)
    with pytest.raises(TypeError) as caught:
        encode(of_arrow(orders), tmp_path / "codes.parquet", TargetEncoder(columns=["city"]), "price", chunk_rows=50)
    assert not hasattr(caught.value, "__notes__")
    assert names_in(tmp_path) == []


def test_a_row_is_named_by_its_query(tmp_path: Path, orders: pa.Table) -> None:
    table = pa.table({"city": orders["city"], "y": pa.array([1.0] * 99 + [None] * (len(orders) - 99))})
    with pytest.raises(ValueError, match=r"\(row 99 of the relation of DuckDB\)"):
        encode(of_duckdb(table), tmp_path / "codes.parquet", TargetEncoder(columns=["city"]), "y", chunk_rows=40)
    encoder = TargetEncoder(columns=["city"], cv=2)
    encode(of_duckdb(table), tmp_path / "codes.parquet", encoder, "y", drop_missing_target=True)
    assert len(read_rows(tmp_path / "codes.parquet")) == 99


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
def test_what_a_killed_run_held_is_removed_by_the_next(
    tmp_path: Path, orders: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "measure", lambda *_: os._exit(9))
    if (child := os.fork()) == 0:
        encode(of_arrow(orders), tmp_path / "codes.parquet", TargetEncoder(columns=["city"], cv=2), "price")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    monkeypatch.undo()
    assert (tmp_path / ".codes.parquet.gpu-encode" / "rows.arrow").exists()
    encode(of_arrow(orders), tmp_path / "codes.parquet", TargetEncoder(columns=["city"], cv=2), "price")
    assert names_in(tmp_path) == ["codes.parquet"]


def test_a_folder_gets_parts_of_parquet(tmp_path: Path, orders: pa.Table) -> None:
    encode(of_polars(orders), tmp_path / "codes", TargetEncoder(columns=["city"], cv=2), "price", chunk_rows=200)
    assert names_in(tmp_path / "codes") == [f"part-{number:05d}.parquet" for number in range(3)]


def test_tables_in_memory_are_no_streams(tmp_path: Path, orders: pa.Table) -> None:
    for table in (orders, pl.DataFrame(orders)):
        with pytest.raises(TypeError, match=r"which encoders take directly.*Here give the path of.*frame.lazy\(\)"):
            encode_dataset(table, tmp_path / "codes.parquet", TargetEncoder(), target="price")


def twice_named(library: str) -> Any:
    if library == "duckdb":
        return pytest.importorskip("duckdb").sql("select 'a' as city, 1 as y, 'b' as city")
    schema = pa.schema([("city", pa.string()), ("y", pa.int64()), ("city", pa.string())])
    return pa.RecordBatchReader.from_batches(schema, [pa.record_batch([["a"], [1], ["b"]], schema=schema)])


def wide_numbers() -> Any:
    return pl.LazyFrame({"y": [0, 1]}).with_columns(pl.col("y").cast(pl.Int128).alias("key"))


def one_of_several_types() -> Any:
    return pytest.importorskip("duckdb").sql("select 1 as y, union_value(number := 2) as key")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (lambda: twice_named("arrow"), r"'stream of Arrow \(RecordBatchReader\)' has several columns named 'city'"),
        (lambda: twice_named("duckdb"), "'relation of DuckDB' has several columns named 'city'"),
        (wide_numbers, "column 'key' holds Int128, which Arrow cannot: cast it in the query"),
        (one_of_several_types, "column 'key' holds sparse_union.*, which a table cannot: cast it in the query"),
    ],
)
def test_columns_that_no_file_has_are_refused(tmp_path: Path, query: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encode_dataset(query(), tmp_path / "codes.arrow", TargetEncoder(columns=["city"]), target="y")


@pytest.mark.parametrize(("suffix", "format_name"), [("parquet", "Parquet"), ("csv", "CSV")])
def test_intervals_are_written_to_arrow_alone_and_refused_before_a_query_runs(
    tmp_path: Path, suffix: str, format_name: str
) -> None:
    table = pa.table({"city": ["a", "b"] * 5, "y": range(10), "wait": [pa.MonthDayNano([1, 2, 3])] * 10})
    encoder = TargetEncoder(columns=["city"], target_type="continuous").fit(table.select(["city"]), table["y"])
    for call, options in ((encode_dataset, {"target": "y"}), (transform_dataset, {})):
        query = table.to_reader()
        with pytest.raises(ValueError, match=rf"'wait' holds .*interval, which {format_name} cannot: write Arrow"):
            call(query, tmp_path / f"codes.{suffix}", encoder, **options)
        assert query.read_all().equals(table), "the query ran"
        call(table.to_reader(), tmp_path / "codes.arrow", encoder, **options, overwrite=True)
        assert read_rows(tmp_path / "codes.arrow")["wait"].equals(table["wait"])
