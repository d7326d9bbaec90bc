"""Destinations: formats, types and metadata of the output, and errors before any work."""

import decimal
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from gpu_encode import TargetEncoder, encode_dataset, load, transform_dataset
from gpu_encode.scale.files import writing
from gpu_encode.scale.files.new_rows import run_transforming
from gpu_encode.scale.files.run import Options, OutputFiles
from gpu_encode.scale.files.source import open_source
from gpu_encode.scale.files.staging import Staging
from gpu_encode.scale.files.writing import Destination, Output, RowWriter, choose_destination
from tests.scale.files.conftest import read_folder
from tests.scale.files.encoded import assert_same_table, encode, in_memory, names_in, read_rows, write_pieces

SUFFIXES = [".parquet", ".pq", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".feather", ".arrow"]


@pytest.mark.parametrize("source", SUFFIXES)
@pytest.mark.parametrize("destination", [".parquet", ".csv.gz", ".arrow"])
def test_every_format(tmp_path: Path, orders: pa.Table, source: str, destination: str) -> None:
    path = tmp_path / f"orders{source}"
    with RowWriter(path, orders.schema) as writer:
        for start in range(0, len(orders), 100):
            writer.write(orders.slice(start, 100))
    # A type would not keep the zeros of these numbers.
    text = {"text": ["zip"]}
    table = read_rows(path, **text)
    encoder = TargetEncoder(columns=["city", ("device", "day")], cv=4)
    place = tmp_path / f"codes{destination}"
    encode(path, place, encoder, "sold", chunk_rows=90, **text)
    expected = in_memory(encoder, table, "sold")[1]
    output = read_rows(place)
    if destination == ".csv.gz":
        # Numbers are written with all the digits that they need.
        assert [output[name].to_pylist() == expected[name].to_pylist() for name in ("city", "sold")] == [True, True]
        assert output.column_names == expected.column_names
    else:
        assert_same_table(output, expected)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_dictionaries_that_grow_from_piece_to_piece(tmp_path: Path, suffix: str) -> None:
    cities = (["Bonn", "Lima"], ["Oslo", None, "Lima"], [None])
    pieces = [pa.table({"city": pa.array(piece, pa.string()).dictionary_encode()}) for piece in cities]
    path = tmp_path / f"x{suffix}"
    with RowWriter(path, pieces[0].schema) as writer:
        for piece in pieces:
            writer.write(piece)
    expected = ["Bonn", "Lima", "Oslo", None, "Lima", None]
    # A line with nothing on it is no row of a CSV file.
    assert [city for city in read_rows(path)["city"].to_pylist() if city] == [city for city in expected if city]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_groups_end_where_texts_are_longer_than_expected(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "GROUP_BYTES", 1000)
    monkeypatch.setattr(writing, "FEWEST_ROWS", 8)
    texts = [["x" * 100] * (row % 3) if row > 150 else ["x"] for row in range(300)]
    table = pa.table({"row": list(range(300)), "texts": texts, "text": ["".join(of_row) for of_row in texts]})
    written = set()
    for number, rows in enumerate((300, 90, 7)):
        path = tmp_path / f"{number}{suffix}"
        with RowWriter(path, table.schema, group_rows=64) as writer:
            for start in range(0, len(table), rows):
                writer.write(table.slice(start, rows))
        written.add(path.read_bytes())
    assert len(written) == 1
    source = open_source(path)
    assert read_rows(path).equals(table)
    [rows_of_groups] = [contents.group_rows for contents in source.contents]
    assert rows_of_groups[0] == 64
    assert min(rows_of_groups[:-1]) % 8 == 0
    # A group takes one step beyond the bytes that it may have.
    assert max(rows_of_groups[3:]) <= 8 + 2000 // 200 + 8


def test_types_and_metadata_of_columns_pass_through(tmp_path: Path) -> None:
    fields = [
        pa.field("city", pa.string()),
        pa.field("price", pa.decimal128(9, 2), metadata={"unit": "EUR"}),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("land", pa.dictionary(pa.int32(), pa.string())),
        pa.field("time", pa.timestamp("us", "Europe/Berlin"), nullable=False),
        pa.field("y", pa.int8(), nullable=False, metadata={"kind": "label"}),
    ]
    schema = pa.schema(fields, metadata={"owner": "sales", "pandas": "{}"})
    table = pa.table(
        [
            ["Bonn", "Lima", "Bonn", None],
            [decimal.Decimal("1.50"), None, decimal.Decimal("2.25"), decimal.Decimal(0)],
            [["a"], None, [], ["b", None]],
            pa.array(["x", None, "y", "x"]).dictionary_encode(),
            pa.array([1, 2, 3, 4], pa.timestamp("us", "Europe/Berlin")),
            pa.array([0, 1, 1, 0], pa.int8()),
        ],
        schema=schema,
    )
    for suffix in (".parquet", ".arrow"):
        pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
        place = tmp_path / f"codes{suffix}"
        encode(tmp_path / "x.parquet", place, TargetEncoder(columns=["city"], cv=2), "y", chunk_rows=3)
        output = pyarrow.parquet.read_schema(place) if suffix == ".parquet" else open_source(place).schema
        assert output.names == ["city", "price", "tags", "land", "time", "y"]
        for name in output.names[1:]:
            assert output.field(name).type == schema.field(name).type
            assert output.field(name).nullable == schema.field(name).nullable
        for name in ("price", "y"):
            kept = {key: text for key, text in output.field(name).metadata.items() if key != b"PARQUET:field_id"}
            assert kept == schema.field(name).metadata
        assert output.metadata == {b"owner": b"sales"}
        assert_same_table(read_rows(place).drop_columns(["city"]), table.drop_columns(["city"]))


@pytest.mark.parametrize(("of_source", "given", "expected"), [
    ("gzip", None, "GZIP"), ("none", None, "UNCOMPRESSED"), ("zstd", None, "ZSTD"), ("snappy", "brotli", "BROTLI"),
])  # fmt: skip
def test_compression(tmp_path: Path, orders: pa.Table, of_source: str, given: str | None, expected: str) -> None:
    pyarrow.parquet.write_table(orders, tmp_path / "x.parquet", compression=of_source)
    encode(tmp_path / "x.parquet", tmp_path / "y.parquet", TargetEncoder(columns=["city"]), "sold", compression=given)
    group = pyarrow.parquet.read_metadata(tmp_path / "y.parquet").row_group(0)
    assert {group.column(place).compression for place in range(group.num_columns)} == {expected}


def test_the_target_may_be_left_out(tmp_path: Path, rows: Path) -> None:
    encoder = TargetEncoder(columns=["city"])
    encode_dataset(rows, tmp_path / "y.parquet", encoder, target="sold", weight="weight", keep_target=False)
    assert not {"sold", "weight"} & set(pyarrow.parquet.read_schema(tmp_path / "y.parquet").names)


def test_rows_without_a_target_are_left_out_when_asked(tmp_path: Path, orders: pa.Table) -> None:
    prices = pa.array([None, float("nan"), *orders["price"].to_pylist()[2:-1], None])
    table = orders.drop_columns(["price"]).append_column("price", prices)
    sources = write_pieces(tmp_path / "in", table, 224)
    encoder = TargetEncoder(columns=["city"], cv=3)
    with pytest.raises(ValueError, match=r"row 0"):
        encode(sources, tmp_path / "codes", encoder, "price", chunk_rows=64)
    encode(sources, tmp_path / "codes", encoder, "price", chunk_rows=64, drop_missing_target=True)
    expected = in_memory(encoder, table.slice(2, len(table) - 3), "price")[1]
    assert_same_table(read_folder(tmp_path / "codes"), expected)
    paths = sorted((tmp_path / "codes").iterdir())
    assert [pyarrow.parquet.read_metadata(path).num_rows for path in paths] == [222, 223]


@pytest.mark.parametrize("chunk_rows", [1000, 50])
def test_new_rows_are_encoded_in_one_pass(tmp_path: Path, partitioned: Path, orders: pa.Table, chunk_rows: int) -> None:
    encoder = TargetEncoder(columns=["city", ("device", "shop")]).fit(
        orders.drop_columns(["sold"]), orders["sold"].to_numpy()
    )
    encoder.save(tmp_path / "model")
    again = load(tmp_path / "model")
    run_transforming(open_source(partitioned), tmp_path / "new", again, Options(1 << 40, chunk_rows=chunk_rows))
    table = read_folder(partitioned)
    expected = encoder.transform(table.drop_columns(["sold"])).append_column("sold", table["sold"])
    assert_same_table(read_folder(tmp_path / "new"), expected)


def test_columns_of_text_stay_text_in_new_csv_files(tmp_path: Path) -> None:
    encoder = TargetEncoder(smooth=0.0).fit(pa.table({"zip": ["02138", "2138"]}), [0.5, 1.0])
    (tmp_path / "x.csv").write_text("zip\n02138\n2138\n")
    transform_dataset(tmp_path / "x.csv", tmp_path / "y.csv", encoder)
    assert (tmp_path / "y.csv").read_text().split() == ['"zip"', "0.5", "1"]


def test_new_rows_without_a_fitted_column_are_refused_at_once(tmp_path: Path, rows: Path) -> None:
    encoder = TargetEncoder(columns=["elsewhere"]).fit(pa.table({"elsewhere": ["a", "b"]}), [0, 1])
    with pytest.raises(ValueError, match="the source has no column 'elsewhere'"):
        transform_dataset(rows, tmp_path / "y.parquet", encoder)
    unnamed = TargetEncoder().fit([["a"], ["b"]], [0, 1])
    with pytest.raises(ValueError, match="fitted on an array without column names"):
        transform_dataset(rows, tmp_path / "y.parquet", unnamed)
    assert names_in(tmp_path) == ["orders.parquet"]


@pytest.mark.parametrize("container", ["pandas", "default"])
def test_set_output_plays_no_part_in_files(container: str, tmp_path: Path, rows: Path, orders: pa.Table) -> None:
    encoder = TargetEncoder(columns=["city"]).set_output(transform=container)
    encode(rows, tmp_path / "y.parquet", encoder, "sold")
    assert_same_table(
        pyarrow.parquet.read_table(tmp_path / "y.parquet"),
        in_memory(TargetEncoder(columns=["city"]), orders, "sold")[1],
    )
    kind = {"pandas": "DataFrame", "default": "ndarray"}[container]
    transform_dataset(rows, tmp_path / "new.parquet", encoder)
    assert pyarrow.parquet.read_schema(tmp_path / "new.parquet").names[0] == "city"
    assert type(encoder.transform(orders.drop_columns(["sold"]))).__name__ == kind


def test_a_file_is_replaced_only_when_asked(tmp_path: Path, rows: Path) -> None:
    (tmp_path / "y.parquet").write_text("old")
    encoder = TargetEncoder(columns=["city"])
    with pytest.raises(FileExistsError, match="overwrite=True"):
        encode_dataset(rows, tmp_path / "y.parquet", encoder, target="sold")
    assert (tmp_path / "y.parquet").read_text() == "old"
    encode_dataset(rows, tmp_path / "y.parquet", encoder, target="sold", overwrite=True)
    assert pyarrow.parquet.read_metadata(tmp_path / "y.parquet").num_rows == 448


def test_a_folder_that_is_there(tmp_path: Path, rows: Path) -> None:
    encoder, folder = TargetEncoder(columns=["city"]), tmp_path / "codes"
    encode_dataset(rows, folder, encoder, target="sold")
    (folder / "part-00001.parquet").write_text("old")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        encode_dataset(rows, folder, encoder, target="sold")
    encode_dataset(rows, folder, encoder, target="sold", overwrite=True)
    assert names_in(tmp_path) == ["codes", "orders.parquet"]
    assert names_in(folder) == ["part-00000.parquet"]
    # Other files would be deleted together with the folder.
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"holds 'notes\.txt', which is no file of rows"):
        encode_dataset(rows, folder, encoder, target="sold", overwrite=True)
    assert names_in(folder) == ["notes.txt", "part-00000.parquet"]
    with pytest.raises(FileExistsError, match="is to be a folder, and is a file"):
        encode_dataset(rows, f"{folder}/notes.txt/", encoder, target="sold", overwrite=True)


def test_an_empty_folder_may_be_there(tmp_path: Path, rows: Path) -> None:
    (tmp_path / "codes").mkdir()
    encode_dataset(rows, f"{tmp_path}/codes", TargetEncoder(columns=["city"]), target="sold")
    assert names_in(tmp_path / "codes") == ["part-00000.parquet"]


@pytest.mark.parametrize(
    ("source", "destination", "choices", "message"),
    [
        ("orders.parquet", "orders.parquet", {}, "destination '.*' is, or holds, a file of the source"),
        ("orders.parquet", "link.parquet", {}, "destination '.*' is, or holds, a file of the source"),
        ("orders.parquet", "", {}, "destination '.*' is, or holds, a file of the source"),
        ("in", "in/codes.parquet", {}, "destination '.*' is in the source folder"),
        ("in", "in", {}, "is, or holds, a file of the source"),
        ("orders.parquet", "full", {}, "destination '.*full' is there already. Give overwrite=True"),
        ("orders.parquet", "codes.xlsx", {}, "'.*codes.xlsx': no known format .* a folder of this name write"),
        ("orders.parquet", "absent/codes.parquet", {}, "no folder '.*absent' to write 'codes.parquet' to"),
        ("orders.parquet", "y.parquet", {"compression": "zip"}, "compression 'zip' is not one of .parquet files"),
        ("orders.parquet", "y.csv", {"compression": "gzip"}, "Leave it out: the suffix .csv.gz compresses"),
        ("orders.parquet", "y.parquet", {"target": "slod"}, "target: the source has no column 'slod'. Did you mean"),
        ("orders.parquet", "y.parquet", {"target": []}, "no columns but those of the target"),
        ("orders.parquet", "y.parquet", {"target": 3}, "target must be the name of a column or a list of them"),
        ("orders.parquet", "y.parquet", {"groups": ["city"]}, "groups must be the name of a column, a str. Got a list"),
        ("orders.parquet", "y.parquet", {"missing_text": "NA?"}, "missing_text must be a list of words. Got the word"),
        ("orders.parquet", "y.parquet", {"text": "city"}, "text must be a list of words. Got the word 'city'"),
        ("orders.parquet", "y.parquet", {"weight": "sold"}, "column 'sold' is the target and the weight"),
        ("orders.parquet", "y.parquet", {"memory_limit": "2 bits"}, "memory_limit must be a whole number of bytes"),
        ("orders.parquet", "y.parquet", {"memory_limit": 1 << 20}, "memory_limit is 1 MiB, .* Give at least"),
        ("orders.parquet", "y.parquet", {"progress": "yes"}, "progress must be True, None or a function"),
        ("orders.parquet", "y.parquet", {"encoder": {"columns": ["sity"]}}, "'sity'"),
        ("orders.parquet", "y.parquet", {"encoder": {"random_state": None}, "resume": True}, "state is not an int"),
    ],
)
def test_refusals_come_before_any_work(
    tmp_path: Path, rows: Path, source: str, destination: str, choices: dict[str, Any], message: str
) -> None:
    for folder in ("in", "full"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.parquet").write_bytes(rows.read_bytes())
    (tmp_path / "link.parquet").hardlink_to(rows)
    before = names_in(tmp_path)
    encoder = TargetEncoder(**({"columns": ["city"]} | choices.pop("encoder", {})))
    with pytest.raises((ValueError, TypeError, OSError), match=message):
        encode_dataset(tmp_path / source, tmp_path / destination, encoder, **({"target": "sold"} | choices))
    assert names_in(tmp_path) == before
    assert not hasattr(encoder, "encodings_")


@pytest.mark.parametrize(
    ("encoder", "hint"),
    [
        ("a.model", r" instead. Load a saved one, gpu_encode.load\('a.model'\)\."),
        (TargetEncoder, r" instead. Write TargetEncoder\(\)\."),
        (None, r" instead. A saved one is read by gpu_encode.load\(path\)\.$"),
    ],
)
def test_what_is_no_encoder(tmp_path: Path, rows: Path, encoder: Any, hint: str) -> None:
    message = rf"encoder must be an encoder of gpu_encode, such as TargetEncoder\(\). Got a \w+{hint}"
    with pytest.raises(TypeError, match=message):
        encode_dataset(rows, tmp_path / "codes.parquet", encoder, target="sold")
    # The path of a saved encoder stands for the encoder.
    kind, message = (FileNotFoundError, "a.model") if isinstance(encoder, str) else (TypeError, message)
    with pytest.raises(kind, match=message):
        transform_dataset(rows, tmp_path / "codes.parquet", encoder)


@pytest.mark.parametrize("size", [1, 3, 4, 10])
def test_files_follow_the_plan_whatever_pieces_come(tmp_path: Path, size: int) -> None:
    table = pa.table({"row": list(range(10))})
    spans = [(0, 4), (4, 4), (4, 5), (5, 10), (10, 10)]
    outputs = [Output(f"{number}.parquet", *span) for number, span in enumerate(spans)]
    staging = Staging(Destination(tmp_path / "out", True, ".parquet", None))
    staging.partial.mkdir(parents=True)
    writer = OutputFiles(outputs, lambda _: table.schema, None, staging)
    for start in range(0, 10, size):
        writer.write(table.slice(start, size))
    writer.end()
    done = [staging.finished / output.relative for output in outputs]
    assert names_in(staging.finished) == [path.name for path in done]
    rows = [pyarrow.parquet.read_table(path)["row"].to_pylist() for path in done]
    assert rows == [[0, 1, 2, 3], [], [4], [5, 6, 7, 8, 9], []]
    assert writer.n_bytes == sum(path.stat().st_size for path in done)


@pytest.mark.parametrize(("name", "is_folder"), [("x.csv", False), ("x", True), ("x.csv/", True), ("there.csv", True)])
def test_what_is_a_folder(tmp_path: Path, rows: Path, name: str, is_folder: bool) -> None:
    (tmp_path / "there.csv").mkdir()
    output = choose_destination(open_source(rows), f"{tmp_path}{os.sep}{name}", None, overwrite=False)
    assert isinstance(output, Destination)
    assert output.is_folder is is_folder
    assert output.suffix == (".parquet" if is_folder else ".csv")


def test_only_values_that_repeat_have_a_dictionary(tmp_path: Path) -> None:
    rows = np.arange(1 << 18)
    table = pa.table(
        {
            "id": rows,
            "price": pa.array(rows / 7, mask=rows % 5 == 0),
            "shop": rows % 1000,
            "city": pa.array(rows % 9).cast(pa.string()),
            "days": pa.array([[row % 3] for row in rows.tolist()]),
        }
    )
    with RowWriter(tmp_path / "rows.parquet", table.schema) as writer:
        writer.write(table)
    assert pa.parquet.read_table(tmp_path / "rows.parquet").equals(table)
    group = pa.parquet.ParquetFile(tmp_path / "rows.parquet").metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    having = {column.path_in_schema for column in columns if column.has_dictionary_page}
    assert having == {"shop", "city", "days.list.element"}
