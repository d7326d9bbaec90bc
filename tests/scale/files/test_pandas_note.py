"""Whatever pandas writes, pandas reads back after encoding: the index, and columns that pass through, by type."""

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_encode import CountEncoder, KFold, Ordered, TargetEncoder, encode_dataset, transform_dataset
from gpu_encode.cli import main
from tests.bits import assert_same_bits
from tests.scale.files.encoded import encode
from tests.strategies import examples

pytestmark = pytest.mark.host
N_ROWS = 12
ENCODER = TargetEncoder(columns=["key"], cv=KFold(2), smooth=1.0)

# Values of 12 rows, of which some are missing, for each type of a column.
COLUMNS: dict[str, Callable[[], Any]] = {
    "int": lambda: range(N_ROWS),
    "Int64": lambda: pd.array([9007199254740993, None, -1] * 4, dtype="Int64"),
    "UInt8": lambda: pd.array([255, None, 0] * 4, dtype="UInt8"),
    "Float32": lambda: pd.array([0.1, None, 2.5] * 4, dtype="Float32"),
    "boolean": lambda: pd.array([True, None, False] * 4, dtype="boolean"),
    "bool": lambda: [True, False] * 6,
    "str": lambda: ["a", None, ""] * 4,
    "string": lambda: pd.array(["a", None, "007"] * 4, dtype="string"),
    "arrow": lambda: pd.array([1, None, 3] * 4, dtype="int16[pyarrow]"),
    "decimal": lambda: pd.array([1, None, 3] * 4, dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
    "category": lambda: pd.Categorical(["b", None, "a"] * 4, categories=["z", "b", "a"]),
    "ordered": lambda: pd.Categorical(["b", "z", "a"] * 4, categories=["z", "b", "a"], ordered=True),
    "zone": lambda: pd.date_range("2024-03-30", periods=N_ROWS, freq="7h", tz="Europe/Berlin"),
    "seconds": lambda: pd.Series(pd.date_range("1900-01-01", periods=N_ROWS, unit="s")).where(np.arange(N_ROWS) != 3),
    "duration": lambda: pd.to_timedelta(np.arange(N_ROWS), unit="h"),
    "period": lambda: pd.period_range("2024-01", periods=N_ROWS, freq="M"),
    "interval": lambda: pd.interval_range(0, N_ROWS),
    "objects": lambda: [b"a", None, b"c"] * 4,
}
INDEXES: dict[str, Callable[[], Any]] = {
    "range": lambda: pd.RangeIndex(N_ROWS),
    "a range from 10": lambda: pd.RangeIndex(10, 10 + 3 * N_ROWS, 3, name="row"),
    "a range down": lambda: pd.RangeIndex(N_ROWS, 0, -1),
    "shuffled": lambda: pd.Index(np.random.default_rng(0).permutation(N_ROWS)),
    "named": lambda: pd.Index(np.arange(N_ROWS)[::-1] * 10, name="order_id"),
    "text": lambda: pd.Index([f"r{row}" for row in range(N_ROWS)], name="row"),
    "text without a name": lambda: pd.Index([f"{row:03d}" for row in range(N_ROWS)]),
    "repeated": lambda: pd.Index([1, 1, 2] * 4),
    "dates": lambda: pd.date_range("2024-01-01", periods=N_ROWS, tz="Asia/Tokyo", name="day"),
    "nullable": lambda: pd.Index(pd.array([1, None, 3] * 4, dtype="Int64"), name="id"),
    "categories": lambda: pd.CategoricalIndex(["x", "y", "x"] * 4),
    "levels": lambda: pd.MultiIndex.from_product([["a", "b"], range(6)], names=["one", "two"]),
    "levels without names": lambda: pd.MultiIndex.from_product([["a", "b", "c"], range(4)], names=[None, "two"]),
}


def make_frame(index: str, columns: list[str]) -> pd.DataFrame:
    frame = pd.DataFrame({"key": list("xyxxyz") * 2, "target": [0, 1, 1, 0, 1, 0] * 2})
    for name in columns:
        frame[f"of {name}"] = COLUMNS[name]()
    return frame.set_axis(INDEXES[index](), axis=0)


def write(frame: pd.DataFrame, path: Path, **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        frame.to_parquet(path, **options)
        return
    table = pa.Table.from_pandas(frame)
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def read(path: Any) -> pd.DataFrame:
    if str(path).endswith(".arrow"):
        with pa.ipc.open_file(path) as reader:
            return reader.read_pandas()
    return pd.read_parquet(path)


def assert_read_back(source: Path, out: Any, encoded: tuple[str, ...] = ("key",)) -> None:
    before, after = read(source), read(out)
    pd.testing.assert_index_equal(after.index, before.index, exact=True if after.index.nlevels == 1 else "equiv")
    others = [name for name in before.columns if name not in encoded]
    assert set(others) <= set(after.columns)
    pd.testing.assert_frame_equal(after[others], before[others], check_freq=False, check_column_type=False)
    for name in encoded:
        assert after[name].dtype == "float64"


drawn = given(
    index=st.sampled_from([*INDEXES]),
    columns=st.lists(st.sampled_from([*COLUMNS]), unique=True, max_size=6),
    suffix=st.sampled_from([".parquet", ".arrow"]),
    n_files=st.sampled_from([1, 3]),
    as_folder=st.booleans(),
    chunk_rows=st.sampled_from([None, 5]),
)


@examples(40)
@drawn
def test_whatever_pandas_writes_pandas_reads_back(
    tmp_path_factory: pytest.TempPathFactory,
    index: str,
    columns: list[str],
    suffix: str,
    n_files: int,
    as_folder: bool,
    chunk_rows: int | None,
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    frame = make_frame(index, columns)
    pieces = np.array_split(np.arange(N_ROWS), n_files)
    for number, rows in enumerate(pieces):
        write(frame.iloc[rows], folder / "in" / f"{number}{suffix}")
    source = folder / "in" if n_files > 1 else folder / "in" / f"0{suffix}"
    out = folder / "out" if as_folder else folder / f"out{suffix}"
    encode(source, f"{out}/" if as_folder else out, ENCODER, "target", chunk_rows=chunk_rows)
    if as_folder and n_files > 1:
        for number in range(n_files):
            assert_read_back(folder / "in" / f"{number}{suffix}", out / f"{number}{suffix}")
        return
    write(frame, folder / f"whole{suffix}")
    after = out
    if as_folder:
        parts = sorted(out.iterdir())
        after = folder / f"joined{suffix}"
        write(pd.concat([read(part) for part in parts]), after)
    assert_read_back(folder / f"whole{suffix}", after)


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("way", ["encode", "disk", "transform", "command line", "store"])
def test_the_index_is_no_feature_and_comes_back(tmp_path: Path, index: str, way: str) -> None:
    frame = make_frame(index, ["Int64", "string", "zone"])
    write(frame, source := tmp_path / "in.parquet")
    out: Any = tmp_path / "out.parquet"
    encoder = TargetEncoder(columns=None if way == "encode" else ["key"], cv=KFold(2), smooth=1.0)
    if way == "command line":
        assert main(["fit-transform", str(source), str(out), "--target", "target"]) == 0
        assert_read_back(source, out, ("key", "of string"))
        return
    if way == "store":
        out = "memory://noted/out.parquet"
    model = tmp_path / "model" if way in ("disk", "transform") else None
    tables = "disk" if way == "disk" else "auto"
    encode_dataset(source, out, encoder, target="target", model=model, tables=tables, overwrite=True)
    if way == "encode":
        assert [*encoder.feature_names_in_] == ["key", "of Int64", "of string", "of zone"]
        assert len(encoder.transform(frame.drop(columns="target"))) == N_ROWS
    assert_read_back(source, out, tuple(encoder.feature_names_in_) if way == "encode" else ("key",))
    if model is not None:
        transform_dataset(source, tmp_path / "new.parquet", model)
        assert_read_back(source, tmp_path / "new.parquet")


@pytest.mark.parametrize("columns", [None, "categorical", ["key"]])
@pytest.mark.parametrize("index", INDEXES)
def test_the_index_of_a_table_in_memory_is_no_feature(index: str, columns: Any) -> None:
    frame = make_frame(index, ["int", "str"])
    table, X = pa.Table.from_pandas(frame), frame.drop(columns="target")
    encoder = TargetEncoder(columns=columns, cv=KFold(2), smooth=1.0)
    expected = encoder.fit_transform(X, frame["target"])
    later, names = encoder.transform(X), [*expected.columns]
    for rows in (table.drop_columns(["target"]), table.drop_columns(["target"]).combine_chunks().to_batches()[0]):
        found = encoder.fit_transform(rows, table["target"])
        assert found.select(names).to_pydict() == pa.Table.from_pandas(expected, preserve_index=False).to_pydict()
        for new in (rows, pa.Table.from_pandas(X, preserve_index=False)):
            assert encoder.transform(new).select(names).to_pydict() == pa.table(later).select(names).to_pydict()


@pytest.mark.parametrize("index", INDEXES)
def test_the_index_of_tables_of_targets_and_weights_is_no_target(index: str) -> None:
    frame = make_frame(index, ["int", "str"])
    y = pd.DataFrame({"one": np.arange(N_ROWS) % 3 / 2, "two": np.arange(N_ROWS) % 5 / 4}, frame.index)
    encoder, weight = TargetEncoder(cv=2, target_type="continuous"), y[["two"]] + 1.0
    for targets in (["one"], ["one", "two"]):
        expected = encoder.fit_transform(frame, y[targets], sample_weight=weight["two"]).to_numpy()
        tables = (pa.Table.from_pandas(y[targets]), pa.Table.from_pandas(y[targets]).to_batches()[0])
        for table in tables:
            found = encoder.fit_transform(frame, table, sample_weight=pa.Table.from_pandas(weight)).to_numpy()
            assert_same_bits(found, expected)
    named = pa.Table.from_pandas(y.reset_index(drop=True).set_index("one")[[]])
    assert encoder.fit(frame, named).target_mean_ == pytest.approx(y["one"].mean())


@pytest.mark.filterwarnings("ignore:1 rows see no rows")
def test_an_index_that_a_parameter_names_is_a_feature(tmp_path: Path) -> None:
    frame = make_frame("named", ["int"])
    write(frame, source := tmp_path / "in.parquet")
    encoder = CountEncoder(columns=["order_id"])
    encode_dataset(source, tmp_path / "out.parquet", encoder)
    out = read(tmp_path / "out.parquet")
    assert out["order_id"].tolist() == [1] * N_ROWS
    assert out.index.equals(pd.RangeIndex(N_ROWS))
    in_time = TargetEncoder(columns=["key"], cv=Ordered(time="order_id"))
    encode_dataset(source, tmp_path / "in_time.parquet", in_time, target="target")
    assert_read_back(source, tmp_path / "in_time.parquet")


@pytest.mark.parametrize("levels", ["range", "levels without names", "text"])
def test_files_of_which_some_hold_an_index_and_others_a_range(tmp_path: Path, levels: str) -> None:
    frame = make_frame(levels, ["int"])
    rows = [[0, 1, 2, 3], [7, 4, 11], [5, 6], [8, 10]]
    for number, some in enumerate(rows):
        write(frame.iloc[some], tmp_path / "in" / f"{number}.parquet")
    encode_dataset(tmp_path / "in", tmp_path / "out.parquet", ENCODER, target="target")
    write(frame.iloc[[*chain(*rows)]], tmp_path / "whole.parquet")
    assert_read_back(tmp_path / "whole.parquet", tmp_path / "out.parquet")


def test_folders_that_pandas_divides_by_a_column(tmp_path: Path) -> None:
    frame = make_frame("shuffled", ["Int64", "boolean", "category"])
    frame["day"] = [1, 2, 3] * 4
    frame.to_parquet(tmp_path / "in", partition_cols=["day"])
    encode_dataset(tmp_path / "in", tmp_path / "out", ENCODER, target="target")
    assert_read_back(tmp_path / "in", tmp_path / "out")


def test_labels_of_columns_and_attributes(tmp_path: Path) -> None:
    frame = make_frame("dates", ["Int64"])
    frame.columns.name, frame.attrs = "what", {"unit": "kg"}
    write(frame, source := tmp_path / "in.parquet")
    encode_dataset(
        source, tmp_path / "out.parquet", TargetEncoder(columns=["key", ("key", "of Int64")]), target="target"
    )
    out = read(tmp_path / "out.parquet")
    assert (out.columns.name, out.attrs) == ("what", {"unit": "kg"})
    pairs = pd.MultiIndex.from_tuples([("g", "key"), ("g", "target"), ("h", "a")], names=["one", "two"])
    wide = pd.DataFrame([["x", 0, 1], ["y", 1, 2], ["x", 1, 3], ["y", 0, 4]], columns=pairs)
    for labels, keys in ((pairs, ["('g', 'key')", "('g', 'target')"]), (pd.Index([7, 8, 9]), ["7", "8"])):
        wide.columns = labels
        write(wide, source)
        for joint in (False, True):
            encoder = TargetEncoder(columns=[keys[0], (keys[0], str(labels[2]))][: 1 + joint], cv=2)
            encode_dataset(source, tmp_path / "out.parquet", encoder, target=keys[1], overwrite=True)
            out = read(tmp_path / "out.parquet")
            if not joint:
                assert {*out.columns} == {*labels}
                assert out.columns.names == labels.names
            assert next(map(str, out.columns)) == keys[0]


@pytest.mark.parametrize("note", [b"{", b"[]", b'{"index_columns": [{}], "columns": []}', b'{"index_columns": ["id"]}'])
def test_a_damaged_note_is_ignored(tmp_path: Path, note: bytes) -> None:
    table = pa.table({"key": ["x", "y"] * 4, "id": range(8), "target": [0, 1, 1, 0] * 2})
    pq.write_table(table.replace_schema_metadata({b"pandas": note}), tmp_path / "in.parquet")
    encode_dataset(tmp_path / "in.parquet", tmp_path / "out.parquet", ENCODER, target="target")
    assert pq.read_table(tmp_path / "out.parquet").column_names == ["key", "id", "target"]


def test_files_whose_nullable_types_differ(tmp_path: Path) -> None:
    frame = make_frame("shuffled", ["Int64", "str"])
    for number, kind in enumerate(["Int64", "Int64", "Int64"]):
        piece = frame.iloc[4 * number : 4 * number + 4].astype({"of Int64": kind})
        if number == 1:
            piece["of str"] = None
        write(piece, tmp_path / "in" / f"{number}.parquet")
    encode_dataset(tmp_path / "in", tmp_path / "out.parquet", ENCODER, target="target")
    out = read(tmp_path / "out.parquet")
    assert out["of Int64"].equals(frame["of Int64"])
    assert out["of str"].dropna().equals(frame["of str"].drop(frame.index[4:8]).dropna())
