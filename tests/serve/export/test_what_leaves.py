"""Exports without rare categories, and with hashed values; the remaining content still encodes rows."""

import datetime
import hmac
import json
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gpu_encode as ge
from gpu_encode.serve.export import (
    from_arrow,
    hash_values,
    to_arrow,
    to_json,
    to_onnx,
    to_polars,
    to_sql,
    to_sql_tables,
)
from gpu_encode.serve.export.tables import tables_of, without_rare
from tests.family.members import ROWS
from tests.serve.export.test_arrow import NEW, TREES, encoded
from tests.serve.export.test_tables import follow

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore::UserWarning")]
KEY = b"a key of more than 16 bytes"
ENCODERS = {
    "columns": {"columns": ["city", "zip", ("zip", "city")], "indicators": ["unseen", "missing"]},
    "no category of missing values": {"columns": ["city", ("zip", "city")], "handle_missing": "nan"},
} | {name: TREES[name] for name in TREES if "handle_unknown" not in TREES[name]}


def fitted(name):
    """Give an encoder by its name."""
    return ge.TargetEncoder(smooth=2.0, target_type="continuous", **ENCODERS[name]).fit(ROWS, ROWS["rank"])


@pytest.mark.parametrize("name", [name for name in ENCODERS if name not in ("bits", "parts")])
def test_rare_categories_leave_as_unknown(name):
    encoder, least = fitted(name), 4
    again = from_arrow(to_arrow(encoder, min_count=least))
    tables = without_rare(tables_of(encoder), least)
    rows = NEW.astype(object).where(NEW.notna(), None)
    expected = pd.DataFrame([follow(tables, row) for row in rows.to_dict("records")], columns=tables.names)
    found, by_polars = again.transform(NEW), pl.from_pandas(NEW).select(to_polars(encoder, min_count=least))
    differ = 0
    for output in tables.names[: len(tables.order)]:
        np.testing.assert_array_equal(found[output], expected[output].astype(float))
        np.testing.assert_array_equal(by_polars[output].to_numpy(), expected[output].astype(float))
        differ += (found[output] != encoder.transform(NEW)[output]).sum()
    assert differ


def test_rare_labels_of_a_rule():
    rows = pd.DataFrame({"zip": ["101", "102", "103", "201", "201", "3"]})
    encoder = ge.TargetEncoder(hierarchy={"zip": ge.Prefixes(2, 1)}, smooth=1.0, target_type="continuous")
    encoder.fit(rows, [1.0, 2.0, 3.0, 4.0, 6.0, 8.0])
    tables = to_arrow(encoder, min_count=2)
    assert [table["zip"].to_pylist() for table in tables.values()] == [["201"], ["10", "20"], ["1", "2"]]
    # No category has the prefix any more, but the level still has its encoding.
    new = pd.DataFrame({"zip": ["101", "109", "19", "201", "3", "4"]})
    never = encoder.transform(pd.DataFrame({"zip": ["109", "109", "19", "201", "never", "4"]}))
    for found in (from_arrow(tables).transform(new), pl.from_pandas(new).select(to_polars(encoder, min_count=2))):
        assert found["zip"].to_numpy().tolist() == never["zip"].tolist()


def test_levels_whose_rows_below_all_left():
    X = pd.DataFrame({"a": ["v", "w", "x"], "b": [1, None, 2], "c": [None] * 3})
    encoder = ge.TargetEncoder(columns=["a"], hierarchy={"a": ["b", "c"]}, smooth=2.0, target_type="continuous")
    encoder.fit(X, [0.0, 1.0, 2.0])
    # For three rows only the top level has an encoding, for four rows no level has one.
    for least in (2, 4):
        assert from_arrow(to_arrow(encoder, min_count=least)).transform(X)["a"].tolist() == [1.0, 1.0, 1.0]


def drawn_column(draw, n_rows):
    """Give a column of few values, some or all of them missing."""
    n_values, share = draw.integers(1, 4), draw.random()
    codes = np.where(draw.random(n_rows) < share, 3, draw.integers(0, n_values, n_rows))
    return pd.Series(np.array(["u", "v", "w", None], object)[codes], dtype=object)


@pytest.mark.parametrize("seed", range(24))
def test_small_trees_that_lose_rows(seed):
    draw = np.random.default_rng(seed)
    names, n_rows = [*"abcd"][: 3 + seed % 2], 1 + seed % 8
    rows, new = (pd.DataFrame({name: drawn_column(draw, size) for name in names}) for size in (n_rows, 9))
    key, levels = [("a", names[1:]), (("a", "b"), names[2:])][seed // 2 % 2]
    policies = {"handle_missing": ["category", "prior", "nan"][seed % 3], "indicators": bool(seed % 2)}
    encoder = ge.TargetEncoder(
        columns=[key], hierarchy={key: levels}, smooth=2.0, target_type="continuous", handle_unknown=-3.0, **policies
    )
    encoder.fit(rows, draw.integers(0, 5, n_rows).astype(float))
    asked = pd.concat([rows, new], ignore_index=True)
    for least in range(5):
        tables = without_rare(tables_of(encoder), least)
        expected = np.array([follow(tables, row) for row in asked.to_dict("records")], object)[:, : len(tables.order)]
        found = from_arrow(to_arrow(encoder, min_count=least)).transform(asked)[tables.names[: len(tables.order)]]
        np.testing.assert_array_equal(found.to_numpy(float), expected.astype(float))


def test_a_rare_missing_value():
    X = pd.DataFrame({"x": ["a", "a", None]})
    encoder = ge.TargetEncoder(smooth=0.0).fit(X, [0, 0, 1])
    assert encoder.transform(X)["x"].tolist() == [0.0, 0.0, 1.0]
    tables = to_arrow(encoder, min_count=2)
    assert from_arrow(tables).transform(X)["x"].tolist() == [0.0, 0.0, 1 / 3]


VALUES = [
    pa.array(["a", "b", None, "a"]),
    pa.array([1, 2, None, 2**60]),
    pa.array([0.1, float("nan"), None, 3.0]),
    pa.array([b"a", b"\xff", None]),
    pa.array([True, None, False]),
    pa.array([datetime.date(2024, 2, 29), None]),
    pa.array([datetime.datetime(2024, 2, 29, 1, tzinfo=datetime.UTC), None], pa.timestamp("ms", "Europe/Berlin")),
    pa.array([datetime.timedelta(days=1), None]),
]


@pytest.mark.parametrize("values", VALUES, ids=lambda values: str(values.type))
def test_hashed_values_are_looked_up_by_their_hashes(values):
    rows = pa.table({"x": values, "z": ["z"] * len(values)})
    encoder = ge.CountEncoder(columns=["x", ("x", "z")]).fit(rows)
    tables = to_arrow(encoder, hash_key=KEY)
    for table in tables.values():
        hashes = table["x"].to_pylist()
        assert all(text is None or len(text) == 64 for text in hashes)
        assert hashes == sorted(hashes, key=lambda text: (text is None, text or ""))
    hidden = {name: hash_values(rows[name], KEY) for name in ("x", "z")}
    expected = encoder.transform(rows).to_pandas()
    for kind in (pa.table, pd.DataFrame, pl.DataFrame):
        assert encoded(from_arrow(tables), kind(hidden)) == encoded(encoder, rows)
    assert expected["x"].sum() > 0


def by_polars(encoder, asked):
    """Encode by expressions of polars."""
    return pl.from_arrow(asked).select(to_polars(encoder, hash_key=KEY)).to_pandas()


def by_onnx(encoder, asked):
    """Encode by a graph of ONNX; numbers that pass through are floats."""
    pytest.importorskip("onnx", reason="the extra onnx has it")
    from tests.serve.export import graphs

    return graphs.encodings(to_onnx(encoder, hash_key=KEY, missing_text=""), asked.to_pandas())


def by_sql(encoder, asked):
    """Encode by DuckDB."""
    pytest.importorskip("sqlglot", reason="the extra sql has it")
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("asked", asked)
        created = to_sql_tables(encoder, "held", hash_key=KEY)
        query = to_sql(encoder, "asked", hash_key=KEY, category_tables="held", keep=["id"])
        for statement in [*created, query]:
            assert "late" not in statement
            connection.execute(statement)
        by_tables = connection.df().sort_values("id", ignore_index=True)
        once = connection.execute(to_sql(encoder, "asked", hash_key=KEY, keep=["id"])).df()
    pd.testing.assert_frame_equal(once.sort_values("id", ignore_index=True), by_tables)
    return by_tables


@pytest.mark.parametrize("way", [by_polars, by_onnx, by_sql])
def test_hashed_values_by_every_export(way):
    options = {"hierarchy": {"zip": ["held"]}, "smooth": 2.0, "indicators": ["unseen", "missing"]}
    encoder = ge.TargetEncoder(columns=["city", "zip", ("rank", "city")], target_type="continuous", **options)
    encoder.fit(ROWS, ROWS["price"].fillna(0.0))
    hidden = {name: hash_values(NEW[name], KEY) for name in ("city", "zip", "rank", "held")}
    asked = pa.table({"price": pa.array(NEW["price"], from_pandas=True)} | hidden | {"id": np.arange(len(NEW))})
    expected, found = encoder.transform(NEW), way(encoder, asked)
    for name in encoder.get_feature_names_out():
        np.testing.assert_array_equal(found[name].to_numpy(float), expected[name].to_numpy(float))


def test_hashes_are_those_of_any_library():
    for values in (["oak", None], np.array(["oak"]), pd.Series(["oak"]), pl.Series(["oak"]).cast(pl.Categorical)):
        assert hash_values(values, KEY)[0] == hmac.new(KEY, b"oak", "sha256").hexdigest()
    assert hash_values(["oak", None], KEY)[1] is None
    assert len({*hash_values([1, 1.0, True], KEY)}) == 1
    assert hash_values(["oak"], KEY + b"x")[0] != hash_values(["oak"], KEY)[0]


def test_keys_that_hide_nothing():
    encoder = fitted("columns")
    with pytest.raises(TypeError, match=r"hash_key must be bytes.* Got str"):
        to_arrow(encoder, hash_key="0123456789abcdef")
    with pytest.raises(ValueError, match="hash_key has 5 bytes"):
        hash_values(["oak"], b"short")
    with pytest.raises(ValueError, match=r"hides the values of 'zip', from which Bits"):
        to_arrow(fitted("bits"), hash_key=KEY)
    with pytest.raises(ValueError, match="columns are named after them here"):
        to_polars(ge.OneHotEncoder(columns=["city"]).fit(ROWS), hash_key=KEY)


def test_no_value_is_left_in_a_file():
    X = pd.DataFrame({"name": ["customer 4711", "customer 12", "customer 12", None]})
    encoder = ge.TargetEncoder(smooth=0.0).fit(X, [0, 1, 1, 0])
    assert "customer 4711" in to_json(encoder)
    assert "customer 4711" not in to_json(encoder, min_count=2)
    assert "customer 12" in to_json(encoder, min_count=2)
    assert "customer" not in to_json(encoder, hash_key=KEY)
    sink = pa.BufferOutputStream()
    (table,) = to_arrow(encoder, hash_key=KEY, min_count=2).values()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    assert b"customer" not in sink.getvalue().to_pybytes()


def test_json_says_what_the_tables_say():
    encoder = fitted("columns")
    tables, document = to_arrow(encoder), json.loads(to_json(encoder))
    for described, table in zip(document["tables"], tables.values(), strict=True):
        rules = json.loads(table.schema.metadata[b"gpu_encode"])
        assert (described["key"], described["level"]) == (rules["key"], rules["level"])
        assert {name: rules[name] for name in document if name != "tables"} == {
            name: document[name] for name in document if name != "tables"
        }
        assert list(described["columns"]) == table.column_names
        for name, values in described["columns"].items():
            expected = table[name].to_pylist()
            assert values == [
                str(value) if isinstance(value, float) and math.isnan(value) else value for value in expected
            ]


def test_json_of_values_that_it_has_not():
    X = pa.table({"day": [datetime.date(2024, 2, 29)], "raw": [b"\xff"], "price": [Decimal("1.50")]})
    columns = [table["columns"] for table in json.loads(to_json(ge.CountEncoder().fit(X)))["tables"]]
    assert [columns[0]["day"], columns[1]["raw"], columns[2]["price"]] == [["2024-02-29"], ["ff"], ["1.50"]]
