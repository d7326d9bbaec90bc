"""Rows come back from every format as they went in; what a format cannot hold is said."""

import datetime
import decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from gpu_encode.cli import tables
from gpu_encode.cli.messages import UsageError
from gpu_encode.cli.tables import Writer, distinct_files, opened, suffix_of

SUFFIXES = [".parquet", ".pq", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".feather", ".arrow"]


@pytest.fixture
def rows() -> pa.Table:
    return pa.table(
        {
            "city": ["Bonn", None, 'a "b",\tc', "x\ny"],
            "price": [0.1, -1e300, 5e-324, None],
            "number": [1, 2, None, 2**62],
            "member": [True, False, None, True],
            "day": [datetime.date(2024, 1, day) for day in (1, 2, 3, 4)],
        }
    )


def written(path: Path, *pieces: pa.Table) -> Path:
    with Writer(path) as writer:
        for piece in pieces:
            writer.write(piece)
    return path


def read(path: Path, **options: list[str]) -> pa.Table:
    with opened(path, **options) as found:
        return found.all()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_round_trip_in_pieces(tmp_path: Path, rows: pa.Table, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "PIECE_ROWS", 3)
    path = written(tmp_path / f"rows{suffix}", rows.slice(0, 1), rows.slice(1))
    with opened(path) as found:
        pieces = list(found.pieces)
        assert found.n_rows == 4
    assert [piece.num_rows for piece in pieces] == [3, 1]
    assert pa.concat_tables(pieces).equals(rows)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_rows(tmp_path: Path, rows: pa.Table, suffix: str) -> None:
    table = read(written(tmp_path / f"rows{suffix}", rows.schema.empty_table()))
    assert table.num_rows == 0
    assert table.column_names == rows.column_names


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_dictionaries_that_differ_from_piece_to_piece(tmp_path: Path, suffix: str) -> None:
    cities = (["Bonn", "Lima"], ["Oslo", None])
    pieces = [pa.table({"city": pa.array(piece).dictionary_encode(), "price": [1, 2]}) for piece in cities]
    assert read(written(tmp_path / f"rows{suffix}", *pieces))["city"].to_pylist() == ["Bonn", "Lima", "Oslo", None]


def test_csv_knows_a_missing_value_from_the_same_words_in_quotes(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('country,price\n"NA",1.5\nNA,NA\n"",\n,2\nNone,3\n')
    table = read(path)
    assert table["country"].to_pylist() == ["NA", None, "", None, "None"]
    assert table["price"].to_pylist() == [1.5, None, None, 2.0, 3.0]


def test_csv_text_columns_keep_their_zeros(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("zip\n02138\n")
    assert read(path)["zip"].to_pylist() == [2138]
    assert read(path, text=["zip", "elsewhere"])["zip"].to_pylist() == ["02138"]


def test_csv_types_are_those_of_all_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("value\n" + "1\n" * 1_000_000 + "1.5\nx\n")
    assert read(path)["value"].type == pa.string()


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow"])
@pytest.mark.parametrize("kind", ["plain", "dictionary"])
def test_missing_text(tmp_path: Path, suffix: str, kind: str) -> None:
    cities = pa.array(["Bonn", "?", None, "-"])
    cities = cities.dictionary_encode() if kind == "dictionary" else cities
    path = written(tmp_path / f"rows{suffix}", pa.table({"city": cities, "number": [1, 2, 3, 4]}))
    table = read(path, missing_text=["?", "-"])
    assert table["city"].to_pylist() == ["Bonn", None, None, None]
    assert table["number"].to_pylist() == [1, 2, 3, 4]


def test_missing_text_in_csv_numbers(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("price,city\n1.5,a\n?,b\n")
    assert read(path, missing_text=["?"])["price"].to_pylist() == [1.5, None]


def test_csv_holds_decimals_as_text(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.csv", pa.table({"price": [decimal.Decimal("1.50")]}))
    assert path.read_text() == '"price"\n"1.50"\n'


def test_csv_refuses_lists(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"column 'tags' holds list<.*>, which CSV cannot: write Parquet"):
        written(tmp_path / "rows.csv", pa.table({"tags": [["a"]]}))


def test_pandas_notes_are_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pa.table({"a": [1]}).replace_schema_metadata({"pandas": "{}"}), path)
    assert read(path).schema.metadata is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("absent.csv", None, "there is no file '.*absent.csv'"),
        ("rows.xlsx", b"", "no known format has the suffix '.xlsx'"),
        ("rows.parqet", b"", r"no known format has the suffix '.parqet'; did you mean '.parquet'\?"),
        ("rows", b"", "no known format has the suffix ''"),
        ("rows.parquet", b"not parquet", "cannot read '.*rows.parquet'"),
        ("rows.arrow", b"not arrow", "cannot read '.*rows.arrow'"),
        ("rows.csv", b"", "cannot read '.*rows.csv': Empty CSV file"),
        ("rows.csv", b"a,b\n1,2\n3\n", "cannot read '.*rows.csv': .*Expected 2 columns"),
        ("rows.csv", b"a,b,a\n1,2,3\n", "'.*rows.csv' has several columns named 'a': rename them"),
    ],
)
def test_refusals(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message):
        read(tmp_path / name)


def test_one_file_for_two_roles_is_refused_through_links_too(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a\n1\n")
    (tmp_path / "link.csv").hardlink_to(tmp_path / "rows.csv")
    for other in ("rows.csv", "./rows.csv", "link.csv"):
        with pytest.raises(UsageError, match="INPUT and OUTPUT are the same file"):
            distinct_files(INPUT=tmp_path / "rows.csv", OUTPUT=tmp_path / other)


def test_suffixes_are_read_in_any_case() -> None:
    assert suffix_of(Path("ROWS.CSV.GZ")) == ".csv.gz"
