"""The command line exports a saved model with the results of the functions in Python."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from pyarrow import feather

import gpu_encode
from gpu_encode.cli import main
from gpu_encode.cli.arguments import DIALECTS, EXPORT
from gpu_encode.cli.export import FORMATS

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")
onnx = pytest.importorskip("onnx")
FIT = "fit-transform orders.parquet codes.parquet --model orders.model --target sold --columns city,device+zip"
THROUGH = ["member", "amount", "day", "shop", "fold", "weight", "kind"]
QUERY = "export orders.model orders.sql --to sql --table"


def test_sql(run: Callable[[str], None]) -> None:
    from gpu_encode.serve.export import to_sql

    run(FIT)
    run(f"{QUERY} sales.orders --dialect bigquery --keep id,page --min-count 3")
    encoder = gpu_encode.load("orders.model")
    assert (
        Path("orders.sql").read_text()
        == to_sql(encoder, "sales.orders", "bigquery", keep=["id", "page"], min_count=3.0) + ";\n"
    )


@pytest.mark.parametrize("tables", ["", "--category-tables models", "--tables parquet", "--tables csv"])
def test_sql_runs(tables: str, run: Callable[[str], None]) -> None:
    run(FIT)
    run(f"{QUERY} orders {tables}")
    script = Path("orders.sql/encode.sql" if "--tables" in tables.split() else "orders.sql").read_text()
    assert script.startswith("-- gpu_encode TargetEncoder(): library ")
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE orders AS SELECT * FROM 'orders.parquet'")
        found = connection.execute(script).df()
    expected = gpu_encode.load("orders.model").transform(pd.read_parquet("orders.parquet"))
    columns = ["day", "price", "city", "device_x_zip"]
    pd.testing.assert_frame_equal(
        found[columns].sort_values(columns, ignore_index=True),
        expected[columns].sort_values(columns, ignore_index=True),
        check_exact=True,
        check_dtype=False,
    )


@pytest.mark.parametrize("drop", ["", "--drop-passed"])
def test_an_id_that_passed_through_at_fit_is_kept(drop: str, run: Callable[[str], None]) -> None:
    rows = pd.read_parquet("orders.parquet").assign(id=range(1, 201))
    rows.to_parquet("orders.parquet")
    run(FIT)
    run(f"{QUERY} orders --keep id,price {drop}")
    encoder = gpu_encode.load("orders.model")
    expected = encoder.transform(rows)[["id", "price", "city", "device_x_zip", *([] if drop else THROUGH)]]
    with duckdb.connect() as connection:
        # Columns that are not asked for need not be there.
        connection.register("orders", rows.drop(columns=THROUGH if drop else []))
        found = connection.execute(Path("orders.sql").read_text()).df().sort_values("id", ignore_index=True)
    pd.testing.assert_frame_equal(found, expected, check_exact=True, check_dtype=False)


def test_files_of_categories(run: Callable[[str], None], refused: Callable[[str], str]) -> None:
    run(FIT)
    export = "export orders.model 2026 --to sql --table orders"
    assert "--tables 'parquet' cannot be loaded into sqlite" in refused(f"{export} --tables parquet --dialect sqlite")
    assert "give --tables parquet or csv as well" in refused(f"{export} --tables-at s3://models")
    run(f"{export} --tables csv --dialect sqlite --tables-at elsewhere")
    assert sorted(file.name for file in Path("2026").iterdir()) == ["_2026_0_0.csv", "_2026_1_0.csv", "encode.sql"]
    lines = Path("2026/encode.sql").read_text().splitlines()
    assert '.import --csv --skip 1 "elsewhere/_2026_0_0.csv" "_2026_0_0_file"' in lines
    run(f"{export} --tables parquet --category-tables models --min-count 1000 --overwrite")
    assert [file.name for file in Path("2026").iterdir()] == ["encode.sql"]


def test_json(run: Callable[[str], None]) -> None:
    from gpu_encode.serve.export import to_json

    run(FIT)
    run("export orders.model orders.json --to json --min-count 3")
    assert Path("orders.json").read_text() == to_json(gpu_encode.load("orders.model"), min_count=3)


def test_arrow_is_a_folder_of_tables(run: Callable[[str], None], refused: Callable[[str], str]) -> None:
    from gpu_encode.serve.export import from_arrow, to_arrow

    run(FIT)
    run("export orders.model tables --to arrow")
    encoder, files = gpu_encode.load("orders.model"), sorted(Path("tables").iterdir())
    assert [file.name for file in files] == ["city.arrow", "device_x_zip.arrow"]
    encode = from_arrow([feather.read_table(file) for file in files])
    rows = pd.read_parquet("orders.parquet")
    pd.testing.assert_frame_equal(encode.transform(rows), encoder.transform(rows), check_exact=True)
    assert "'tables' is there already" in refused("export orders.model tables --to arrow")
    run("export orders.model tables --to arrow --min-count 1000000 --overwrite")
    assert len(feather.read_table(files[0])) < len(to_arrow(encoder)["city"])
    assert [path.name for path in Path().iterdir() if path.name.startswith(".")] == []


def test_onnx(run: Callable[[str], None], refused: Callable[[str], str]) -> None:
    from gpu_encode.serve.export import to_onnx

    run(FIT)
    graph = "export orders.model orders.onnx --to onnx"
    run(f"{graph} --types zip=str --missing-text none --drop-passed --min-count 3")
    found, encoder = onnx.load("orders.onnx"), gpu_encode.load("orders.model")
    given = {"types": {"zip": "str"}, "passed": False, "missing_text": "none", "min_count": 3}
    assert found == to_onnx(encoder, **given)
    assert "--types 'float64' names no column: --types size=float64" in refused(f"{graph} --overwrite --types float64")
    assert "--matrix makes all columns one input" in refused(f"{graph} --overwrite --matrix")


@pytest.mark.parametrize("to", ["arrow", "json", "onnx", "sql --table orders"])
def test_values_are_hashed(to: str, run: Callable[[str], None], refused: Callable[[str], str]) -> None:
    from gpu_encode.serve.export import hash_values

    run(FIT)
    key = b"sixteen bytes and more\n"
    Path("key").write_bytes(key)
    run(f"export orders.model written --hash-key-file key --to {to}")
    found = Path("written")
    content = b"".join(file.read_bytes() for file in found.iterdir()) if found.is_dir() else found.read_bytes()
    cities = pd.read_parquet("orders.parquet")["city"].dropna().unique()
    assert not any(city.encode() in content for city in cities)
    assert all(word.encode() in content for word in hash_values(cities, key))
    Path("key").write_bytes(b"short")
    assert "--hash-key-file has 5 bytes" in refused(f"export orders.model other --hash-key-file key --to {to}")


def test_mistakes(run: Callable[[str], None], refused: Callable[[str], str], capsys: pytest.CaptureFixture) -> None:
    run(FIT)
    assert "there is no model 'other.model'" in refused("export other.model orders.sql --to sql --table orders")
    assert "--to sql needs the table that is encoded" in refused("export orders.model orders.sql --to sql")
    assert "keep names 'city', which is the name of an output" in refused(f"{QUERY} orders --keep city")
    run(f"{QUERY} orders")
    assert "'orders.sql' is there already: give --overwrite" in refused(f"{QUERY} orders")
    run(f"{QUERY} orders --overwrite")
    assert main(f"{QUERY} orders --dialect oracle".split()) == 2
    assert "invalid choice: 'oracle'" in capsys.readouterr().err
    for option in ("--dialect sqlite", "--keep id"):
        reason = f"{option.split()[0]} is for --to sql, not arrow"
        assert reason in refused(f"export orders.model tables --to arrow {option}")
    assert "--matrix is for --to onnx, not sql" in refused(f"{QUERY} orders --overwrite --matrix")
    assert "--drop-passed is for --to onnx or sql, not arrow" in refused(
        "export orders.model tables --to arrow --drop-passed"
    )


def test_formats_and_dialects_are_those_of_the_export() -> None:
    from gpu_encode.serve.export.sql import values

    assert next(words for option, words, *_ in EXPORT[""] if option == "--to") == [*FORMATS]
    assert tuple(DIALECTS) == values.DIALECTS
