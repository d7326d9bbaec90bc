"""Text files: cells that pass through stay as they are; the same cells are missing, numbers and text as in pandas."""

import gzip
import math
import warnings
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_encode import (
    CountEncoder,
    GroupKFold,
    KFold,
    Ordered,
    TargetEncoder,
    drift_dataset,
    encode_dataset,
    load,
    transform_dataset,
)
from gpu_encode.cli import main
from gpu_encode.scale.files import text as text_files
from gpu_encode.scale.files.source import open_source
from gpu_encode.scale.files.staging import describe_run
from gpu_encode.scale.files.text import TextRules
from tests.bits import learned
from tests.scale.files.encoded import assert_same_table, encode, read_rows
from tests.strategies import examples

pytestmark = pytest.mark.host
TYPED = ["007", "7", "1.10", "1.1", "0.10", "3", "12e4", "+1", "-0", "0x1F", "TRUE", "true", "False", "2024-01-01",
         "2024-01-01 10:00", "2024-01-01T10:00:00Z", "10:00:00", "12345678901234567890", "-9223372036854775809", "inf",
         "1e400", "9" * 40, " 5 ", "5.", "1,204.50", "$5.1"]  # fmt: skip
CELLS = st.one_of(
    st.sampled_from([*TYPED, "", *text_files.WORDS_FOR_MISSING]),
    st.text(st.characters(codec="utf-8"), max_size=5),
    st.text('",;\t\n\r a', max_size=4),
)
SUFFIXES = [".csv", ".tsv", ".csv.gz", ".tsv.gz"]


def as_text(rows: list[list[str]], delimiter: str, quoted: Any) -> bytes:
    """Write rows; a cell is in quotes if it has to be, or if `quoted` draws it."""
    needed = {'"', "\r", "\n", delimiter}
    lines = [
        delimiter.join(
            '"' + cell.replace('"', '""') + '"' if needed & {*cell} or quoted.random() < 0.3 else cell for cell in row
        )
        for row in rows
    ]
    return "".join(line + "\n" for line in lines).encode()


def pack(path: Path, text: bytes) -> Path:
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def unpack(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
@examples(12)
@given(data=st.data())
def test_cells_that_pass_through_are_copied(tmp_path_factory: Any, suffix: str, data: Any) -> None:
    columns = st.one_of(st.lists(CELLS, min_size=5, max_size=5), st.sampled_from(TYPED).map(lambda cell: [cell] * 5))
    cells, y = data.draw(st.lists(columns, min_size=1, max_size=3)), data.draw(columns)
    tmp_path = tmp_path_factory.getbasetemp()
    names = ["key", *(f"c{number}" for number in range(len(cells))), "y"]
    rows = [names, *(list(row) for row in zip("aabab", *cells, y, strict=True))]
    random, delimiter = data.draw(st.randoms(use_true_random=False)), "\t" if suffix.startswith(".tsv") else ","
    text = as_text(rows, delimiter, random)
    source, output = pack(tmp_path / f"in{suffix}", text), tmp_path / f"out{suffix}"
    with pytest.MonkeyPatch.context() as patch:
        # Blocks of a few rows, so that quoted cells lie across their ends.
        patch.setattr(text_files, "FIRST_BLOCK", data.draw(st.sampled_from([16, 64, 1 << 20])))
        encode(source, output, CountEncoder(columns=["key"]), None, overwrite=True)
        found, expected = cells_of(unpack(output), delimiter), cells_of(text, delimiter)
        assert [row[1:] for row in found[1:]] == [row[1:] for row in expected[1:]]
        for other in (".parquet", ".feather"):
            encode(source, tmp_path / f"out{other}", CountEncoder(columns=["key"]), None, overwrite=True)
            table = read_rows(tmp_path / f"out{other}")
            for number, name in enumerate(names[1:], 1):
                check_kept(table[name], [row[number] for row in rows[1:]])


@pytest.mark.parametrize("where", ["folder", "store"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz"])
@examples(4)
@given(data=st.data())
def test_cells_in_folders_and_stores_are_copied(tmp_path_factory: Any, where: str, suffix: str, data: Any) -> None:
    folder, delimiter = tmp_path_factory.mktemp("rows"), "\t" if suffix.startswith(".tsv") else ","
    (folder / "in").mkdir()
    rows = [[key, data.draw(CELLS), data.draw(st.sampled_from(TYPED))] for key in "aabab"]
    texts = [
        as_text([["key", "c", "y"], *some], delimiter, data.draw(st.randoms(use_true_random=False)))
        for some in (rows[:2], rows[2:])
    ]
    for number, text in enumerate(texts):
        pack(folder / "in" / f"{number}{suffix}", text)
    base = str(folder)
    if where == "store":
        fsspec.filesystem("memory").put(str(folder / "in"), base + "/in", recursive=True)
        base = "memory:/" + base
    encode(f"{base}/in", f"{base}/out/", CountEncoder(columns=["key"]), None)
    if where == "store":
        fsspec.filesystem("memory").get(f"{folder}/out", str(folder / "out"), recursive=True)
    for number, text in enumerate(texts):
        found, expected = cells_of(unpack(folder / "out" / f"{number}{suffix}"), delimiter), cells_of(text, delimiter)
        assert [row[1:] for row in found[1:]] == [row[1:] for row in expected[1:]]


def cells_of(text: bytes, delimiter: str) -> list[list[str]]:
    """Split text into cells with their quotation marks, sign by sign."""
    rows, cell, inside = [[]], "", False
    for sign in text.decode():
        inside ^= sign == '"'
        if not inside and sign in (delimiter, "\n"):
            rows[-1].append(cell)
            cell = ""
            if sign == "\n":
                rows.append([])
        else:
            cell += sign
    return rows[:-1]


def check_kept(column: Any, cells: list[str]) -> None:
    """Demand that the cells follow from a column: its texts, or one spelling of its values and of missing ones."""
    values = column.to_pylist()
    if pa.types.is_string(column.type):
        assert [value or "" for value in values] == cells
        return
    missing = {cell for cell, value in zip(cells, values, strict=True) if value is None}
    assert len(missing) <= 1
    assert missing <= {"", *text_files.WORDS_FOR_MISSING}
    present = [cell for cell, value in zip(cells, values, strict=True) if value is not None]
    # Parquet knows no unit above milliseconds.
    written = [cell.replace(".000", "") for cell in column.cast(pa.string()).drop_null().to_pylist()]
    as_python = [str(value) for value in values if value is not None]
    assert present in (written, as_python, [cell.replace(" ", "T") for cell in written])


CELLS_OF = {
    "whole": ["1", "2", "30", "-4"],
    "zeros": ["007", "07", "7", "010"],
    "reals": ["1.5", "2.50", "3", "1e3", "-0.0"],
    "words": ["a", "b b", "ü", "x,y", "x\ny", '"'],
    "truths": ["TRUE", "FALSE"],
    "dates": ["2024-01-01", "2023-05-06"],
    "times": ["2024-01-01 10:00:00", "2024-01-01T10:00:00Z"],
    "hours": ["10:00", "11:30"],
    "mixed": ["1", "a", "2.0", "1_000", "0x1F"],
    "money": ["1,204.50", "3.00", "$5.1", "5%"],
    "spaces": [" 5", "5", " a"],
}
NUMBERS_BEYOND = {"large": ["12345678901234567890", "9223372036854775808"], "digits": ["1" * 22, "2" * 22]}


@examples(50)
@given(data=st.data())
def test_the_command_line_learns_what_python_learns_of_what_pandas_reads(tmp_path_factory: Any, data: Any) -> None:
    """With missing cells, pandas keeps whole numbers beyond int64 as text, and words for missing as categories."""
    kinds = data.draw(st.lists(st.sampled_from([*CELLS_OF, *NUMBERS_BEYOND]), min_size=1, max_size=4, unique=True))
    columns = {}
    for kind in kinds:
        words = st.sampled_from([*text_files.WORDS_FOR_MISSING, "-", "?", "none"])
        missing = [] if kind in NUMBERS_BEYOND else data.draw(st.lists(words, max_size=2))
        cells = st.sampled_from([*(CELLS_OF | NUMBERS_BEYOND)[kind], *missing])
        columns[kind] = data.draw(st.lists(cells, min_size=12, max_size=12))
    path = tmp_path_factory.getbasetemp() / "read.csv"
    rows = [[*kinds, "y"], *([*row] for row in zip(*columns.values(), "010110101011", strict=True))]
    path.write_bytes(as_text(rows, ",", data.draw(st.randoms(use_true_random=False))))
    frame, output, model = pd.read_csv(path), path.with_suffix(".parquet"), path.with_suffix(".model")
    encoder = TargetEncoder(columns=kinds, cv=3, target_type="binary")
    words = f"--target y --columns {','.join(kinds)} --cv 3 --target-type binary --overwrite".split()
    assert main(["fit-transform", f"{path}", f"{output}", "--model", f"{model}", *words]) == 0
    expected = encoder.fit_transform(frame[kinds], frame["y"])
    assert_same_table(read_rows(output).select(kinds), pa.Table.from_pandas(expected))
    found, fitted = learned(load(model)), learned(encoder)
    # The page says so: dates and times are read as such, where pandas keeps text, and large numbers as decimals.
    announced = {*kinds} & {"dates", "times", "hours", "digits"}
    assert {name for name in fitted if found[name] != fitted[name]} <= ({"categories_"} if announced else set())


CATEGORIES = {
    "int64": st.sampled_from(
        [0, 1, -7, 1000, *(sign * 2**53 + step for sign in (1, -1) for step in range(4)), 2**63 - 1]
    ),
    "uint64": st.sampled_from([0, 1000, *(2**63 + step for step in range(4)), 2**64 - 1]),
    "decimal": st.sampled_from([Decimal("0.10"), Decimal("1000.00"), Decimal("9007199254740993.01"), Decimal("-2.50")]),
    "double": st.sampled_from([0.1, 1000.0, 2.0**53, 2.0**53 + 2, 1e18, -2.5]),
}


@pytest.mark.parametrize("kind", CATEGORIES)
@examples(8)
@given(data=st.data())
def test_new_numbers_are_the_categories_that_they_equal(tmp_path_factory: Any, kind: str, data: Any) -> None:
    """A cell with a fraction or an exponent does not change what the others are."""
    values = data.draw(st.lists(CATEGORIES[kind], min_size=2, max_size=5, unique=True))
    near = [
        cell for value in values for cell in (f"{value}", f"{value}{'.0' * isinstance(value, int)}", f"{value:.0f}")
    ]
    cells = [*data.draw(st.lists(st.sampled_from([*near, "1e3", "10e2", "0.1", ""]), max_size=8)), *near]
    cells.insert(data.draw(st.integers(0, len(cells))), data.draw(st.sampled_from(["1.5", "7", "-2.5e0", "9" * 17])))
    folder = tmp_path_factory.mktemp("rows")
    column = pa.array(values, pa.decimal128(20, 2) if kind == "decimal" else kind)
    pyarrow.parquet.write_table(pa.table({"k": column, "y": range(1, len(values) + 1)}), folder / "in.parquet")
    (folder / "new.csv").write_text("k,other\n" + "".join(cell + ",x\n" for cell in cells))
    exact = float if kind == "double" else Fraction
    encodings = dict(zip(map(exact, values), map(float, range(1, len(values) + 1)), strict=True))
    expected = [encodings.get(exact(cell)) if cell else None for cell in cells]
    tables, model = data.draw(st.sampled_from(["memory", "disk"])), folder / "model"
    encoder = TargetEncoder(
        columns=["k"], cv=2, smooth=0.0, target_type="continuous", handle_unknown="nan", handle_missing="nan"
    )
    encode(folder / "in.parquet", folder / "out.parquet", encoder, "y", tables=tables, model=model)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "FIRST_BLOCK", data.draw(st.sampled_from([16, 1 << 20])))
        transform_dataset(folder / "new.csv", folder / "new.parquet", model)
    found = read_rows(folder / "new.parquet")["k"].to_pylist()
    assert [None if math.isnan(number) else number for number in found] == expected


@pytest.mark.parametrize("tables", ["memory", "disk"])
def test_numbers_that_no_category_can_be_are_unknown(tmp_path: Path, tables: Any) -> None:
    pyarrow.parquet.write_table(pa.table({"k": [1, 2, None, 2], "y": [0, 1, 0, 1]}), tmp_path / "in.parquet")
    encoder = TargetEncoder(columns=["k"], cv=2, smooth=0.0, handle_unknown=-1.0)
    encode(tmp_path / "in.parquet", tmp_path / "out.csv", encoder, "y", tables=tables, model=tmp_path / "model")
    (tmp_path / "new.csv").write_text("k,z\n1,\n1e300,\n12345678901234567890123,\n1.5,\n2.0,\n")
    transform_dataset(tmp_path / "new.csv", tmp_path / "new.parquet", tmp_path / "model")
    assert read_rows(tmp_path / "new.parquet")["k"].to_pylist() == [0.0, -1.0, -1.0, -1.0, 1.0]


@pytest.mark.parametrize("tables", ["memory", "disk"])
@pytest.mark.parametrize("key", ["k", ("k", "z")], ids=str)
@pytest.mark.parametrize(
    ("cells", "rules", "expected"),
    [
        (["", "NA", "a"], {}, [0.0, 1.0, 5.0]),
        (["", "NA", "a", None], {}, [7.0, 1.0, 5.0]),
        (["NA", "a"], {}, [-1.0, 1.0, 5.0]),
        (["", "NA", "a"], {"missing_words": ["NA"]}, [-1.0, -1.0, 5.0]),
        (["", "NA", "a"], {"text": ["k"]}, [0.0, 1.0, 5.0]),
    ],
    ids=str,
)
def test_an_empty_cell_is_the_empty_text_if_the_encoder_knows_no_missing_value(
    tmp_path: Path, cells: Any, rules: Any, expected: Any, key: Any, tables: Any
) -> None:
    """As a frame has it whose missing values were filled by the empty text, or read with keep_default_na=False."""
    y = [{"": 0.0, "NA": 1.0, "a": 5.0, None: 7.0}[cell] for cell in cells]
    rows = pa.table({"k": pa.array(cells, pa.string()), "z": ["x"] * len(cells), "y": y})
    pyarrow.parquet.write_table(pa.concat_tables([rows, rows]), tmp_path / "in.parquet")
    encoder = TargetEncoder(columns=[key], cv=2, smooth=0.0, target_type="continuous", handle_unknown=-1.0)
    encode(tmp_path / "in.parquet", tmp_path / "out.csv", encoder, "y", tables=tables, model=tmp_path / "model")
    for quote in ("", '"'):
        (tmp_path / "new.csv").write_text("k,z\n" + "".join(f"{quote}{cell}{quote},x\n" for cell in ("", "NA", "a")))
        transform_dataset(tmp_path / "new.csv", tmp_path / "new.parquet", tmp_path / "model", overwrite=True, **rules)
        table = read_rows(tmp_path / "new.parquet")
        assert table[table.column_names[0]].to_pylist() == expected


DAY = date(2024, 1, 1)


@pytest.mark.parametrize(
    ("fitted", "cells", "message"),
    [
        (
            [2**53, 2**53 + 1],
            ["9007199254740993", "1e-30"],
            "the encoder knows numbers of the type int64 in this column",
        ),
        ([Decimal("1.10")], ["1e30", "1.5"], r"column 'k': the encoder knows numbers of the type decimal128"),
        ([1, 2], ["1", "2", "none"], r"was fitted on number .* text values: 'none' in row 2 .*missing_text=\['none'\]"),
        (
            [1.5, 2],
            ["1", "5%"],
            r"was fitted on number values and now holds text values: '5%' in row 1 \(row 1 of .*csv\)",
        ),
        ([True, False], ["TRUE", "false", "0", "no"], r"text values: 'no' in row 3 .* or fit the encoder on text"),
        ([2, 3], ["0x1F", "2"], r"text values: '0x1F' in row 0"),
        ([True, False], ["true", "1", "false"], r"was fitted on boolean values and .* text values: '1' in row 1"),
        ([DAY], ["2024-01-01", "soon"], r"was fitted on datetime values and .* text values: 'soon' in row 1"),
        ([DAY], ["2024-02-28", "", "2024-02-30", "soon"], r"text values: '2024-02-30' in row 2"),
        ([datetime(2024, 1, 1, 5)], ["2024-01-01 05:00:00.123456", "x"], r"on datetime .* text values: 'x' in row 1"),
        ([datetime(2024, 1, 1, tzinfo=UTC)], ["2024-01-01T05:00Z", "2024-01-01 05:00"], r"'2024-01-01 05:00' in row 1"),
        ([time(5, 30)], ["05:30:00", "5 o'clock"], r"was fitted on time .* text values: \"5 o'clock\" in row 1"),
    ],
)
def test_new_numbers_that_cannot_be_compared(tmp_path: Path, fitted: Any, cells: Any, message: str) -> None:
    encoder = CountEncoder(columns=["k"]).fit(pa.table({"k": fitted}))
    (tmp_path / "new.csv").write_text("k,other\n" + "".join(cell + ",x\n" for cell in cells))
    with pytest.raises(ValueError, match=message):
        transform_dataset(tmp_path / "new.csv", tmp_path / "out.csv", encoder)
    with pytest.raises(ValueError, match=message):
        drift_dataset(tmp_path / "new.csv", encoder)


LINES = [["city", "code", "price", "y"], ["Bonn", "01234", "3.1", "1"], ["Köln", "1234", "3.10", "0"]]
LINES += [["Bonn", "01234", "2", "1"], ["Köln", "7", "2", "0"]]


def write_lines(path: Path, delimiter: str = ",", encoding: str = "utf-8", quote: str = "") -> Path:
    path.write_bytes(
        "".join(delimiter.join(quote + cell + quote for cell in row) + "\n" for row in LINES).encode(encoding)
    )
    return path


@pytest.mark.parametrize(
    ("written", "rules"),
    [
        ({"delimiter": ";"}, {"delimiter": ";"}),
        ({"delimiter": "|", "quote": "'"}, {"delimiter": "|", "quote": "'"}),
        ({"quote": '"'}, {}),
        ({"encoding": "utf-8-sig"}, {}),
        ({"encoding": "utf-16"}, {}),
        ({"encoding": "utf-32"}, {}),
        ({"encoding": "utf-16-le"}, {"encoding": "utf-16-le"}),
        ({"encoding": "latin-1"}, {"encoding": "latin-1"}),
        ({"encoding": "cp1252", "delimiter": "\t"}, {"encoding": "cp1252", "delimiter": "\t"}),
    ],
    ids=str,
)
def test_delimiters_quotes_and_encodings(tmp_path: Path, written: Any, rules: Any) -> None:
    assert read_rows(write_lines(tmp_path / "a.csv", **written), **rules) == read_rows(write_lines(tmp_path / "b.csv"))


@pytest.mark.parametrize(
    ("written", "rules", "message"),
    [
        ({"delimiter": ";"}, {}, r"With ';', every row has 4 cells: give delimiter=';'"),
        ({"delimiter": "\t"}, {}, r"With '\\t', every row has 4 cells: give delimiter='\\t'"),
        ({"delimiter": "|"}, {}, r"With '\|', every row has 4 cells"),
        ({"encoding": "utf-16-le"}, {}, r"looks like UTF-16 without a byte-order mark. Give encoding='utf-16-le'"),
        ({"encoding": "latin-1"}, {}, r"line 3 holds bytes that are not UTF-8. Give the encoding"),
        ({}, {"encoding": "klingon"}, r"encoding 'klingon' is unknown to Python"),
        ({}, {"encoding": "rot13"}, r"encoding 'rot13' is unknown to Python"),
        ({}, {"delimiter": "\0"}, r"delimiter must be one ASCII character"),
        ({}, {"delimiter": ";;"}, r"delimiter must be one ASCII character, such as ';' or '\\t'. Got ';;'"),
        ({}, {"quote": "\n"}, r"quote must be one ASCII character"),
        ({}, {"delimiter": "'", "quote": "'"}, r"delimiter and quote must differ. Got \"'\" for both"),
    ],
    ids=str,
)
def test_wrong_guesses_name_what_would_fit(tmp_path: Path, written: Any, rules: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encode_dataset(
            write_lines(tmp_path / "a.csv", **written),
            tmp_path / "out.csv",
            CountEncoder(columns=["city"]),
            **rules,
        )
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_cells_of_two_spellings_are_told_once(tmp_path: Path) -> None:
    source, encoder = write_lines(tmp_path / "a.csv"), CountEncoder(columns=["code", "price"])
    with pytest.warns(UserWarning, match="different spellings") as caught:
        encode_dataset(source, tmp_path / "out.csv", encoder)
    (message,) = [str(one.message) for one in caught]
    assert "'01234' and '1234' in column 'code', '3.1' and '3.10' in column 'price'" in message
    assert "text=['code', 'price'] (--text code,price)" in message
    encode_dataset(source, tmp_path / "text.csv", encoder, text=["code", "price"])


@pytest.mark.parametrize(
    ("target", "options", "told"),
    [
        ("code", {}, ["code"]),
        ("code", {"target_type": "continuous"}, []),
        ("price", {}, []),
        ("price", {"target_type": "multiclass"}, ["price"]),
        ("y", {}, []),
        ("y", {"cv": GroupKFold(2, groups="code")}, ["code"]),
        ("y", {"cv": KFold(2, by=["price", "code"])}, ["code", "price"]),
        ("y", {"cv": "code"}, ["code"]),
        ("y", {"cv": Ordered(time="code")}, []),
        ("y", {"cv": GroupKFold(2), "groups": "code"}, ["code"]),
    ],
    ids=str,
)
def test_classes_and_groups_of_two_spellings_are_told(tmp_path: Path, target: str, options: Any, told: Any) -> None:
    """Quantities and times may be spelled in several ways."""
    source, given = write_lines(tmp_path / "a.csv"), {"cv": 2} | options
    groups = given.pop("groups", None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        encoder = TargetEncoder(columns=["city"], **given)
        encode_dataset(source, tmp_path / "out.csv", encoder, target=target, groups=groups)
    messages = [str(one.message) for one in caught if "different spellings" in str(one.message)]
    assert len(messages) == bool(told)
    assert all(f"text={told}" in message for message in messages)


@pytest.mark.parametrize("block", [16, 1 << 20])
@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (["3", "3.0", "5"], "'3' and '3.0'"),
        (["1", "0", "1.00"], "'1' and '1.00'"),
        (["1", "01", "0"], "'1' and '01'"),
        (["TRUE", "false", "true"], "'TRUE' and 'true'"),
        (["2e1", "20", "7"], "'2e1' and '20'"),
        (["3.0", "5.0", "4.0"], None),
        (["0", "1", "1"], None),
        (["3", "3.0", "5", "7", "7", "7", "7", "7", "4.5"], None),
    ],
    ids=str,
)
def test_classes_that_are_whole_numbers_of_two_spellings(
    tmp_path: Path, cells: list[str], told: str | None, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fractions, in whatever row, make a target a quantity."""
    monkeypatch.setattr(text_files, "FIRST_BLOCK", block)
    rows = zip(["a", "b", "c"] * 9, cells * (27 // len(cells)), strict=True)
    (tmp_path / "in.csv").write_text("city,y\n" + "".join(f"{city},{cell}\n" for city, cell in rows))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        encode_dataset(tmp_path / "in.csv", tmp_path / "out.csv", TargetEncoder(columns=["city"], cv=2), target="y")
    messages = [str(one.message) for one in caught if "different spellings" in str(one.message)]
    assert len(messages) == (told is not None)
    assert all(f"{told} in column 'y'" in message for message in messages)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_name_of_a_text_column_that_is_not_there_is_told(tmp_path: Path, kind: str) -> None:
    source, encoder = tmp_path / f"a.{kind}", CountEncoder(columns=["city"])
    encode(write_lines(tmp_path / "a.csv"), source if kind == "parquet" else tmp_path / "b.csv", encoder, None)
    with pytest.warns(UserWarning, match=r"text \(--text\) names 'cod', which is no column .* Did you mean 'code'\?"):
        encode_dataset(source, tmp_path / "out.csv", encoder, text=["city", "cod"])


BYTES = [b"\xff\xfe", b"ab", None]


@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz"])
@pytest.mark.parametrize(
    "column",
    [
        pa.array(BYTES),
        pa.array(BYTES, pa.binary(2)),
        pa.array(BYTES, pa.large_binary()),
        pa.array(BYTES).dictionary_encode(),
        pa.array([2**62, 0, None], pa.timestamp("s")),
        pa.array([1, 0, None], pa.timestamp("s", "Mars/Olympus")),
    ],
    ids=lambda column: str(column.type),
)
def test_values_that_have_no_text_are_named(tmp_path: Path, suffix: str, column: Any) -> None:
    pyarrow.feather.write_feather(pa.table({"city": ["a", "b", "a"], "photo": column}), tmp_path / "in.feather")
    with pytest.raises(
        ValueError, match=r"column 'photo' holds .*, which CSV cannot: write Parquet or Arrow, or leave"
    ):
        encode_dataset(tmp_path / "in.feather", tmp_path / f"out{suffix}", CountEncoder(columns=["city"]))
    assert [path.name for path in tmp_path.iterdir()] == ["in.feather"]


@pytest.mark.parametrize("block", [8, 1 << 20])
def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(text_files, "FIRST_BLOCK", block)
    (tmp_path / "mark.csv").write_text('k,v\na,"1\n2"\nb,"oops\nc,3\nd,4\n')
    with pytest.raises(ValueError, match=r'the quotation mark " that opens in line 4 is never closed'):
        read_rows(tmp_path / "mark.csv")
    (tmp_path / "inch.csv").write_text('k,v\na,"1\nb,2\n')
    assert read_rows(tmp_path / "inch.csv", quote="").to_pydict() == {"k": ["a", "b"], "v": ['"1', "2"]}
    (tmp_path / "sign.csv").write_bytes("k,v\na,1\n".encode("utf-16") + b"\x41")
    with pytest.raises(ValueError, match="holds bytes that are not UTF-16"):
        read_rows(tmp_path / "sign.csv")


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1" * 38, "1"], pa.decimal128(38)),
        (["9" * 39, "1"], pa.string()),
        (["1" * 40, "1"], pa.string()),
        (["0" * 20 + "1" * 30, "1"], pa.decimal128(38)),
        (["NAN", "1"], pa.string()),
        (["NAN", "1.5"], pa.string()),
        (["tRue", "FALSE"], pa.bool_()),
        (["0x1F", "2"], pa.string()),
    ],
)
def test_kinds_of_cells(tmp_path: Path, cells: list[str], kind: Any) -> None:
    (tmp_path / "cells.csv").write_text("k\n" + "".join(cell + "\n" for cell in cells))
    column = read_rows(tmp_path / "cells.csv")["k"]
    assert column.type == kind
    if kind == pa.string():
        assert column.to_pylist() == cells


@pytest.mark.parametrize(
    "rule", [{"missing_words": ["-"]}, {"text": ["code"]}, {"delimiter": ";"}, {"quote": "'"}, {"encoding": "latin-1"}]
)
def test_a_run_does_not_go_on_with_other_rules(tmp_path: Path, rule: Any) -> None:
    (tmp_path / "a.csv").write_text("city;,code\na;,b\n")
    destination = SimpleNamespace(compression=None, suffix=".csv")
    usual, other = (
        describe_run(open_source(tmp_path / "a.csv", TextRules(**given)), destination, {}) for given in ({}, rule)
    )
    (name,) = rule
    assert usual[f"the parameter {name}"] != other[f"the parameter {name}"]
