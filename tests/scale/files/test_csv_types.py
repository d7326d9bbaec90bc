"""The types of a CSV file's columns are those of reading it whole, for all sizes of blocks."""

import gzip
import io
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from gpu_encode.scale.files import text as text_files
from gpu_encode.scale.files.source import Size, open_source
from gpu_encode.scale.files.text import TextRules, conversion

VALUES = {
    "nothing": "",
    "whole": "12",
    "bit": "1",
    "truth": "true",
    "fraction": "-1.5",
    "day": "2024-02-03",
    "second": "2024-02-03 10:11:12",
    "nanosecond": "2024-02-03 10:11:12.000000001",
    "zone": "2024-02-03T10:11:12Z",
    "hour": "10:11:12",
    "word": "Bonn",
    "quoted number": '"7"',
    "quoted null": '"NA"',
}


def whole(text: bytes) -> pa.Table:
    rules = TextRules()
    return pyarrow.csv.read_csv(
        io.BytesIO(text), parse_options=rules.parsing(".csv"), convert_options=conversion(rules.words_of(""), {})
    )


@pytest.mark.parametrize(("first", "second"), list(product(VALUES, VALUES)))
def test_any_two_values_in_blocks_of_their_own(
    tmp_path: Path, first: str, second: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A second column keeps rows whose value is missing from being empty lines, and fills the blocks.
    lines = [f"{value},{'x' * 90}" for value in (VALUES[first], VALUES[second])]
    text = "\n".join(["value,filler", *[lines[0]] * 3, *[lines[1]] * 3, ""]).encode()
    path = tmp_path / "x.csv"
    path.write_bytes(text)
    monkeypatch.setattr(text_files, "BLOCK", 120)
    dataset = open_source(path)
    expected = whole(text)
    assert dataset.schema == expected.schema
    chunks = [chunk.table for chunk in dataset.chunks(dataset.schema.names, Size(4))]
    assert pa.concat_tables(chunks).equals(expected)


def test_types_are_shared_by_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,t,d\n1,1,2024-01-01\n")
    (tmp_path / "b.csv").write_text("n,t,d\n1.5,x,2024-01-01 10:00:00\n")
    schema = open_source(tmp_path).schema
    assert schema.types == [pa.float64(), pa.string(), pa.timestamp("s")]


@pytest.fixture(params=["whole", "in blocks"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the types from the whole file, or read it block by block."""
    if request.param == "in blocks":
        monkeypatch.setattr(text_files, "BLOCK", 4096)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("text", [[], ["a"], ["b"]])
@pytest.mark.parametrize("line", [1, 2, 1500, 3001])
def test_bytes_that_are_no_text_are_named_by_their_line(
    tmp_path: Path, line: int, text: list[str], packed: bool
) -> None:
    lines = ["a,b", *["ä,1"] * 3000]
    content = [row.encode() for row in lines]
    content[line - 1] = b"\xe4,2"
    whole_text = b"\n".join(content) + b"\n"
    path = tmp_path / ("x.csv.gz" if packed else "x.csv")
    path.write_bytes(gzip.compress(whole_text) if packed else whole_text)
    with pytest.raises(
        ValueError,
        match=rf"cannot read '.*': line {line} holds bytes .* not UTF-8.*--encoding latin-1.* iconv -f LATIN1",
    ):
        open_source(path, TextRules(text=text))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.usefixtures("blocks")
def test_a_row_of_too_few_cells_has_a_number(tmp_path: Path, threads: int) -> None:
    path, before = tmp_path / "x.csv", pa.cpu_count()
    path.write_text("a,b\n" + "1,2\n" * 2000 + "3\n" + "1,2\n" * 2000)
    try:
        pa.set_cpu_count(threads)
        with pytest.raises(ValueError, match=r"the header being row 1, row 2002: Expected 2 columns, got 1: 3"):
            open_source(path)
    finally:
        pa.set_cpu_count(before)


def test_a_row_larger_than_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n" + f'"{"x" * (3 << 20)}",3\n')
    monkeypatch.setattr(text_files, "BLOCK", 1 << 20)
    with pytest.raises(ValueError, match=r"x\.csv'.* larger than the 1 MiB .* quotation mark .* GPU_ENCODE_CSV_BLOCK"):
        open_source(path)
    monkeypatch.setattr(text_files, "BLOCK", 4 << 20)
    rows = open_source(path)
    assert sum(chunk.table.num_rows for chunk in rows.chunks(["a"], Size(4))) == 2


def test_text_on_request_keeps_its_zeros(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv.gz"
    path.write_bytes(gzip.compress(b"zip\trow\n02138\t1\n"))
    [chunk] = open_source(path, TextRules(text=["zip"])).chunks(["zip", "row"], Size(4))
    assert chunk.table.to_pylist() == [{"zip": "02138", "row": 1}]


def test_a_header_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n")
    dataset = open_source(path)
    assert (dataset.n_rows, dataset.schema.names) == (0, ["a", "b"])
    assert list(dataset.chunks(["a"], Size(4))) == []


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", b"", r"cannot read '.*x\.csv': "),
        ("x.csv", b"a,b\n1,2\n3\n", r"cannot read '.*x\.csv': "),
        ("x.csv", b"a,a\n1,2\n", "has several columns named 'a'"),
        ("x.csv.gz", gzip.compress(b"a\n" + b"123456\n" * 1000)[:-40], r"cannot read '.*x\.csv\.gz': "),
    ],
    ids=["no byte", "a short line", "two columns of one name", "a damaged archive"],
)
def test_what_is_no_table(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        open_source(tmp_path / name)
