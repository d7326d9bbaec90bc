"""The files of a source and their order, and errors about files that do not fit together."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest

from gpu_encode import TargetEncoder, encode_dataset, transform_dataset
from gpu_encode.scale.files import files, formats
from gpu_encode.scale.files import text as text_files
from gpu_encode.scale.files.source import Size, open_source
from tests.scale.files.encoded import read_rows


def write(path: Path, table: pa.Table | None = None, **choices: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"city": ["Bonn", "Lima"], "price": [1, 2]}) if table is None else table
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, **choices)
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, **choices)
    else:
        pyarrow.csv.write_csv(table, path)
    return path


@pytest.mark.parametrize("given", ["file", "path", "folder", "glob", "deep glob", "list"])
def test_every_way_to_name_files(tmp_path: Path, given: str) -> None:
    names = ["b.parquet", "a.parquet", "c/d.parquet"]
    paths = [write(tmp_path / "in" / name) for name in names]
    for ignored in ("_SUCCESS", ".hidden.parquet", "notes.txt", "_temporary/x.parquet"):
        (tmp_path / "in" / ignored).parent.mkdir(exist_ok=True)
        (tmp_path / "in" / ignored).write_text("no rows")
    sources: dict[str, tuple[Any, list[str]]] = {
        "file": (str(paths[0]), ["b.parquet"]),
        "path": (paths[0], ["b.parquet"]),
        "folder": (tmp_path / "in", ["a.parquet", "b.parquet", "c/d.parquet"]),
        "glob": (f"{tmp_path}/in/*.parquet", ["a.parquet", "b.parquet"]),
        "deep glob": (f"{tmp_path}/in/[abc]/*.parquet", ["c/d.parquet"]),
        "list": (paths, names),
    }
    source, expected = sources[given]
    assert [file.relative for file in files.find(source).files] == expected


def test_folders_make_columns(tmp_path: Path) -> None:
    for number, folder in enumerate(["year=7/land=a%20b", "year=-12/land=__HIVE_DEFAULT_PARTITION__"]):
        write(tmp_path / "in" / folder / "x.parquet", pa.table({"row": [number]}))
    expected = pa.table({"row": [1, 0], "year": pa.array([-12, 7], pa.int32()), "land": [None, "a b"]})
    assert read_rows(tmp_path / "in").equals(expected)
    theirs = pyarrow.dataset.dataset(tmp_path / "in", partitioning="hive")
    assert read_rows(theirs).equals(expected)
    assert theirs.to_table().sort_by("row").equals(expected.sort_by("row"))


@pytest.mark.parametrize(
    ("words", "text", "values"),
    [
        (["501", "-7"], [], [501, -7]),
        (["0", "12"], [], [0, 12]),
        (["00501", "501"], [], ["00501", "501"]),
        (["01", "12"], [], ["01", "12"]),
        (["+1", "2"], [], ["+1", "2"]),
        (["-0", "2"], [], ["-0", "2"]),
        (["501", "7"], ["zip"], ["501", "7"]),
        (["501", "7"], ["a"], [501, 7]),
        (["3000000000", "1"], [], [3000000000, 1]),
        (["1" * 19, "1"], [], ["1" * 19, "1"]),
        (["__HIVE_DEFAULT_PARTITION__", "007"], [], [None, "007"]),
        (["__HIVE_DEFAULT_PARTITION__", "7"], [], [None, 7]),
        (["\u0663", "1"], [], ["\u0663", "1"]),
    ],
)
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_names_of_folders_are_numbers_only_where_no_text_is_lost(
    tmp_path: Path, words: list[str], text: list[str], values: list[Any], suffix: str
) -> None:
    for number, word in enumerate(words):
        write(tmp_path / "in" / f"a={number}" / f"zip={word}" / f"x{suffix}", pa.table({"row": [number]}))
    assert read_rows(tmp_path / "in", text=text)["zip"].to_pylist() == values


@pytest.mark.parametrize("tables", ["memory", "disk"])
@pytest.mark.parametrize("trained", [["1", "2"], ["01", "02"]])
def test_the_model_decides_how_new_folders_are_read(tmp_path: Path, trained: list[str], tables: Any) -> None:
    for word, sold in zip(trained, [[0, 0], [1, 1]], strict=True):
        write(tmp_path / "in" / f"month={word}" / "x.parquet", pa.table({"sold": sold}))
    encoder, model = TargetEncoder(columns=["month"], cv=2, smooth=0.0), tmp_path / "model"
    encode_dataset(tmp_path / "in", tmp_path / "out.parquet", encoder, target="sold", tables=tables, model=model)
    for number, word in enumerate(trained if trained[0] == "01" else ["01", "002"]):
        write(tmp_path / f"new{number}" / f"month={word}" / "x.parquet", pa.table({"other": [1]}))
        transform_dataset(tmp_path / f"new{number}", tmp_path / f"new{number}.parquet", model)
        assert read_rows(tmp_path / f"new{number}.parquet")["month"].to_pylist() == [float(number)]


def test_a_dataset_may_declare_the_types_of_its_folders(tmp_path: Path) -> None:
    write(tmp_path / "in" / "year=007" / "x.parquet", pa.table({"row": [1]}))
    for kind in (pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.int64()):
        known = {"year": pa.array(["007"])} if pa.types.is_dictionary(kind) else None
        scheme = pyarrow.dataset.partitioning(pa.schema([("year", kind)]), flavor="hive", dictionaries=known)
        column = read_rows(pyarrow.dataset.dataset(tmp_path / "in", partitioning=scheme))["year"]
        assert column.type == kind
        assert column.to_pylist() == [7 if pa.types.is_integer(kind) else "007"]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
@pytest.mark.parametrize("rows", [1, 2, 3, 10])
@pytest.mark.parametrize("start", [0, 4, 5, 9])
def test_chunks_end_at_multiples_wherever_they_begin(tmp_path: Path, suffix: str, rows: int, start: int) -> None:
    groups = {".parquet": {"row_group_size": 2}, ".arrow": {"max_chunksize": 2}, ".csv": {}}[suffix]
    for number, values in enumerate([[0, 1, 2, 3, 4], [], [5, 6, 7, 8, 9]]):
        table = pa.table({"row": pa.array(values, pa.int64()), "text": [str(value) for value in values]})
        write(tmp_path / "in" / f"{number}{suffix}", table, **groups)
    dataset = open_source(tmp_path / "in")
    chunks = list(dataset.chunks(["row"], Size(rows, batch_rows=2), start))
    assert dataset.n_rows == 10
    assert [row for chunk in chunks for row in chunk.table["row"].to_pylist()] == list(range(start, 10))
    stops = [chunk.first_row + chunk.table.num_rows for chunk in chunks]
    assert [chunk.first_row for chunk in chunks] == [start, *stops[:-1]]
    assert all(stop % rows == 0 for stop in stops[:-1])
    assert all(chunk.table.column_names == ["row", "text"] for chunk in chunks)
    assert all(chunk.table["text"].null_count == chunk.table.num_rows for chunk in chunks)


def test_chunks_end_early_where_rows_are_wide(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", pa.table({"text": ["x" * 1000] * 8}))
    chunks = open_source(path).chunks(["text"], Size(5, n_bytes=2500, batch_rows=1))
    assert [chunk.table.num_rows for chunk in chunks] == [3, 2, 3]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
@pytest.mark.parametrize("n_values", [3, 4000], ids=["a dictionary of texts", "texts as they are"])
def test_pieces_stay_small_where_texts_grow(
    tmp_path: Path, suffix: str, n_values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("BATCH_BYTES", 1 << 14), ("DECODED_ROWS", 1 << 6)):
        monkeypatch.setattr(formats, name, value)
    monkeypatch.setattr(text_files, "FIRST_BLOCK", 1 << 14)
    texts = [f"{row % n_values}" + "x" * 1000 * (row >= 3000) for row in range(4000)]
    source = open_source(write(tmp_path / f"x{suffix}", pa.table({"row": list(range(4000)), "text": texts})))
    pieces = [*source._tables(["row", "text"], 1 << 12, 0)]
    assert pa.concat_tables(pieces)["text"].to_pylist() == texts
    # A piece of Parquet is decoded before anybody knows how long its texts are.
    assert max(piece.nbytes for piece in pieces) <= (1 << 14) + (suffix == ".parquet") * (1 << 6) * 1020
    assert len(pieces) < 200


def test_rows_longer_than_a_block_of_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"row": list(range(300)), "text": ["x" * (9000 if row % 100 == 99 else 7) for row in range(300)]})
    path = write(tmp_path / "x.csv", table)
    monkeypatch.setattr(text_files, "FIRST_BLOCK", 1 << 12)
    assert read_rows(path).equals(table)
    monkeypatch.setattr(text_files, "BLOCK", 1 << 11)
    with pytest.raises(ValueError, match="a row is larger than the"):
        read_rows(path)


def test_only_columns_that_are_wanted_are_read(tmp_path: Path) -> None:
    table = pa.table({"row": list(range(5000)), "text": [str(row) * 20 for row in range(5000)]})
    dataset = open_source(write(tmp_path / "x.parquet", table))
    assert dataset.read_bytes(["row"]) < dataset.read_bytes(["row", "text"]) / 3
    [chunk] = dataset.chunks(["row"], Size(10000))
    assert 8 * 5000 <= chunk.n_bytes < 9 * 5000


@pytest.mark.parametrize(
    ("kinds", "common"),
    [
        ((pa.int32(), pa.int64()), pa.int64()),
        ((pa.int64(), pa.int8(), pa.int16()), pa.int64()),
        ((pa.int8(), pa.uint8()), pa.int64()),
        ((pa.uint64(), pa.int8()), pa.int64()),
        ((pa.uint64(), pa.uint8()), pa.uint64()),
        ((pa.int64(), pa.float64()), pa.float64()),
        ((pa.null(), pa.uint8(), pa.float32()), pa.float64()),
        ((pa.float32(), pa.float64()), pa.float64()),
        ((pa.timestamp("us"), pa.timestamp("ns")), pa.timestamp("ns")),
        ((pa.timestamp("ns", "UTC"), pa.timestamp("s", "UTC"), pa.null()), pa.timestamp("ns", "UTC")),
        ((pa.duration("ms"), pa.duration("s")), pa.duration("ms")),
        ((pa.time32("s"), pa.time64("us")), pa.time64("us")),
        ((pa.decimal128(9, 2), pa.decimal128(12, 2)), pa.decimal128(12, 2)),
        ((pa.timestamp("us"), pa.timestamp("us", "UTC")), None),
        ((pa.int64(), pa.string()), None),
        ((pa.int64(), pa.bool_()), None),
        ((pa.int64(), pa.timestamp("us")), None),
        ((pa.decimal128(9, 2), pa.decimal128(9, 3)), None),
    ],
)
@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_files_may_differ_in_the_width_of_a_type(
    tmp_path: Path, kinds: tuple[Any, ...], common: Any, suffix: str
) -> None:
    for order in (kinds, kinds[::-1]):
        paths, parts = [], []
        for number, kind in enumerate(order):
            values = [None, None] if pa.types.is_null(kind) else pa.array([1, None]).cast(pa.int8())
            if not pa.types.is_null(kind):
                whole = pa.types.is_temporal(kind) or pa.types.is_duration(kind)
                width = pa.int32() if pa.types.is_time32(kind) else pa.int64()
                values = values.cast(width).cast(kind) if whole else values.cast(kind)
            table = pa.table({"value": pa.array(values, kind) if isinstance(values, list) else values})
            paths.append(write(tmp_path / f"{number}-{order is kinds}{suffix}", table))
            parts.append(table["value"])
        if common is None:
            with pytest.raises(ValueError, match=r"column 'value' is .* but .*must have the same types: write one of"):
                open_source(paths)
            continue
        column = read_rows(paths)["value"]
        assert column.type == common
        assert column.equals(pa.chunked_array([part.cast(common) for part in parts]))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([2**53 + 1]), pa.array([0.5])),
        (pa.array([2**63], pa.uint64()), pa.array([-1])),
        (pa.array([10**15]).cast(pa.timestamp("ms")), pa.array([1]).cast(pa.timestamp("ns"))),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_a_common_type_that_would_change_a_value_is_an_error(
    tmp_path: Path, one: pa.Array, other: pa.Array, turned: bool
) -> None:
    pair = [other, one] if turned else [one, other]
    paths = [write(tmp_path / f"{number}.parquet", pa.table({"v": part})) for number, part in enumerate(pair)]
    names = (
        rf"column 'v' is {one.type} in .*{int(turned)}.parquet', but {other.type} in .*{1 - turned}.parquet', and no"
    )
    with pytest.raises(ValueError, match=names.replace("[", r"\[")):
        read_rows(paths)


def test_files_may_differ_in_how_they_hold_text(tmp_path: Path) -> None:
    dictionary = pa.array(["Bonn", "Lima"]).dictionary_encode()
    for number, column in enumerate([pa.nulls(2), dictionary, pa.array(["Oslo", None])]):
        write(tmp_path / "in" / f"{number}.parquet", pa.table({"city": column}))
    assert read_rows(tmp_path / "in").equals(pa.table({"city": [None, None, "Bonn", "Lima", "Oslo", None]}))


def test_columns_are_matched_by_name(tmp_path: Path) -> None:
    write(tmp_path / "in" / "0.parquet", pa.table({"a": [1], "b": ["x"]}))
    write(tmp_path / "in" / "1.parquet", pa.table({"b": ["y"], "a": [2]}))
    assert read_rows(tmp_path / "in").equals(pa.table({"a": [1, 2], "b": ["x", "y"]}))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
def test_missing_text(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    if suffix == ".csv":
        # Quoted words are not missing values.
        path.write_text("city,row\nBonn,1\n?,2\n-,3\n")
    else:
        write(path, pa.table({"city": ["Bonn", "?", "-"], "row": [1, 2, 3]}))
    assert read_rows(path, missing_text=["?", "-"])["city"].to_pylist() == ["Bonn", None, None]


def test_rows_that_are_longer_than_expected_are_not_held(tmp_path: Path) -> None:
    # A dictionary of few long texts takes a few bytes a row in the file.
    notes = ["a"] * 6000 + ["b" * 5000, "c" * 5000] * 1000
    source = open_source(write(tmp_path / "rows.parquet", pa.table({"city": range(8000), "note": notes})))
    assert source.n_rows * sum(source.row_bytes().values()) < 1 << 20
    assert 10_000_000 < source.count_bytes() < 11_000_000
    assert source.load(9_000_000).loaded is None
    assert source.load(11_000_000).loaded["note"].to_pylist() == notes


def test_rows_that_are_left_out(tmp_path: Path) -> None:
    for number, prices in enumerate([[1.0, None, 3.0], [None], [float("nan"), 6.0]]):
        table = pa.table({"row": [10 * number + place for place in range(len(prices))], "price": pa.array(prices)})
        write(tmp_path / "in" / f"{number}.parquet", table, row_group_size=2)
    dataset = open_source(tmp_path / "in").without_incomplete(["price"])
    assert dataset.rows == [2, 0, 1]
    for start in range(3):
        chunks = dataset.chunks(["row"], Size(2, batch_rows=1), start)
        assert [row for chunk in chunks for row in chunk.table["row"].to_pylist()] == [0, 2, 21][start:]


def test_rows_are_named_by_file_and_row_group(tmp_path: Path) -> None:
    for number, rows in enumerate([5, 0, 3]):
        write(tmp_path / "in" / f"{number}.parquet", pa.table({"row": list(range(rows))}), row_group_size=2)
    dataset = open_source(tmp_path / "in")
    places = [dataset.named(row) for row in range(8)]
    first = [(f"0.parquet, row group {row // 2}", row % 2) for row in range(5)]
    last = [(f"2.parquet, row group {row // 2}", row % 2) for row in range(3)]
    assert [(Path(place).name, row) for place, row in places] == first + last


def two_files(folder: Path, one: pa.Table, other: pa.Table) -> Path:
    write(folder / "in" / "0.parquet", one)
    write(folder / "in" / "1.parquet", other)
    return folder / "in"


def truncate_file(folder: Path) -> Path:
    path = write(folder / "in" / "1.parquet")
    write(folder / "in" / "0.parquet")
    path.write_bytes(path.read_bytes()[:-20])
    return folder / "in"


def write_delta_log(folder: Path) -> Path:
    (folder / "in" / "_delta_log").mkdir(parents=True)
    return write(folder / "in" / "0.parquet").parent


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: 3, "source is a int. Give the path of a file or folder, a glob, a list"),
        (lambda folder: [3], "source is a list that holds a int"),
        (lambda folder: [], "source names no file"),
        (lambda folder: folder / "absent.parquet", "there is no file or folder '.*absent.parquet'"),
        (lambda folder: [folder / "absent.parquet"], "there is no file or folder '.*absent.parquet'"),
        (lambda folder: f"{folder}/*.parquet", "as a glob it matches nothing"),
        (lambda folder: folder, "the folder '.*' holds no file of rows"),
        (lambda folder: [write(folder / "in" / "x.csv").parent], "'.*in' in the list is a folder"),
        (lambda folder: [write(folder / "x.csv")] * 2, "source lists '.*x.csv' twice"),
        (lambda folder: write(folder / "x.csv").rename(folder / "x.txt"), "'.*x.txt': no known format"),
        (lambda folder: [write(folder / "x.csv"), write(folder / "y.parquet")], "several formats: '.*csv' and '.*"),
        (
            lambda folder: (
                write(folder / "in" / "a=1" / "x.parquet").parent.parent if write(folder / "in" / "y.parquet") else None
            ),
            r"The folders of '.*x.parquet' name the columns \['a'\], but those of '.*y.parquet' name \[\]",
        ),
        (
            lambda folder: write(folder / "in" / "city=1" / "x.parquet").parent.parent,
            "'.*x.parquet' has a column 'city', and a folder city=... above",
        ),
        (
            lambda folder: two_files(folder, pa.table({"a": [1], "b": [1]}), pa.table({"a": [1]})),
            "column 'b' is in '.*0.parquet', but not in '.*1.parquet'",
        ),
        (
            lambda folder: two_files(folder, pa.table({"a": [1]}), pa.table({"a": [1], "b": [1]})),
            "column 'b' is in '.*1.parquet', but not in '.*0.parquet'",
        ),
        (
            lambda folder: two_files(folder, pa.table({"a": [1]}), pa.table({"a": ["1"]})),
            "column 'a' is int64 in '.*0.parquet', but string in '.*1.parquet'",
        ),
        (lambda _: pd.DataFrame({"a": [1]}), r"source is a table \(DataFrame\).*Here give the path of a file"),
        (write_delta_log, r"'.*in' is a Delta table: its log says.*Give deltalake.DeltaTable\('.*in'\)"),
        (truncate_file, "cannot read '.*1.parquet': .*"),
        (lambda folder: pyarrow.dataset.dataset(pa.table({"a": [1]})), "source is a InMemoryDataset"),
        (
            lambda folder: pyarrow.dataset.dataset(write(folder / "x.parquet")).filter(
                pyarrow.dataset.field("price") > 1
            ),
            "source is a dataset with a filter",
        ),
    ],
)
def test_sources_that_are_refused(
    tmp_path: Path, make: Callable[[Path], Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises((ValueError, TypeError, FileNotFoundError, ImportError), match=message):
        open_source(make(tmp_path))


def test_a_file_that_changes_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet")
    dataset = open_source(path)
    os.utime(path, (1, 1))
    with pytest.raises(ValueError, match=r"'.*x\.parquet' changed while it was read"):
        list(dataset.chunks(["city"], Size(10)))
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"'.*x\.parquet' is not there any more"):
        list(dataset.chunks(["city"], Size(10)))
