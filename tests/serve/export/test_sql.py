"""SQL of a fitted encoder gives the bits of `transform` in real engines, or the export is refused."""

import datetime
import importlib
import shutil
import struct
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sqlglot

import gpu_encode as ge
from gpu_encode.serve.export import to_sql, to_sql_tables
from gpu_encode.serve.export.sql import files, statements
from gpu_encode.serve.export.sql.levels import LevelRows, with_rows
from gpu_encode.serve.export.sql.values import DIALECTS
from tests.family.members import JOINT, MEMBERS, ROWS, SOLD
from tests.serve.export.engines import DuckDB, Postgres, Spark, SQLite

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore::UserWarning")]
NEW = pd.DataFrame(
    {
        "city": ["never", "a", None, "b", "c", None, "d", "late", "e", "A"],
        "zip": [4, 5, None, 4, 1, 9, 16, 999, 25, 0],
        "price": [0.25, None, np.nan, -0.0, 0.5, 1, 0.5, 2, -1.5, 1e300],
        "rank": [3, 3, None, 3, 0, 2, 2, None, 10, 77],
        "held": [True, True, None, False, False, None, False, True, True, False],
    }
)


def with_id(table):
    return table.append_column("id", pa.array(range(len(table))))


TRAINED = pa.Table.from_pandas(ROWS, preserve_index=False)
SEEN = TRAINED.take([*range(0, len(ROWS), 8)])
UNSEEN = pa.table({name: pa.array(NEW[name], TRAINED.schema.field(name).type, from_pandas=True) for name in NEW})
ASKED = with_id(pa.concat_tables([SEEN, UNSEEN]))


@pytest.fixture(scope="module", params=[DuckDB, SQLite, Postgres, pytest.param(Spark, marks=pytest.mark.slow)])
def engine(request):
    if request.param is Spark:
        pytest.importorskip("pyspark", reason="the extra engines has Spark")
    if request.param is Postgres and Postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql, or set PG_BIN to the folder of initdb")
    running = request.param()
    yield running
    running.stop()


def same(found, expected):
    """Whether a value of an engine equals ours, to the bit; any two NaN count as equal."""
    if isinstance(expected, float) and found is not None:
        both = float(found), expected
        return np.isnan(both).all() or struct.pack("<d", both[0]) == struct.pack("<d", both[1])
    return found == expected or (isinstance(found, str) and found == str(expected))


def ask(encoder, table, engine, format_=None, **options):
    """Give the rows of a table as an engine encodes them, in order; with a format, from files of categories."""
    named = options.get("category_tables")
    with tempfile.TemporaryDirectory() as folder:
        # The server of PostgreSQL is another user.
        Path(folder).chmod(0o755)
        files = {} if format_ is None else {"folder": folder, "format": format_}
        created = [] if named is None else to_sql_tables(encoder, named, engine.dialect, **files)
        return asked(encoder, table, engine, created, **options)


def asked(encoder, table, engine, created, **options):
    """Give the rows of a table, after statements that create tables."""
    rows = engine.ask(table, *created, to_sql(encoder, "rows", engine.dialect, keep=["id"], **options))
    return sorted(rows, key=lambda row: int(row[0]))


def check_files(encoder, table, engine):
    """Compare results by files of each format that the engine reads."""
    for format_ in files.FORMATS[engine.dialect]:
        check(encoder, table, engine, format_=format_, category_tables="models")


def check(encoder, table, engine, **options):
    """Compare an engine's result for a table with the result of `transform`."""
    expected = encoder.transform(table.drop_columns("id"))
    rows = ask(encoder, table, engine, **options)
    assert [int(row[0]) for row in rows] == table["id"].to_pylist()
    n_encoded = expected.num_columns - len(encoder._model.selection.passed)
    for number, name in enumerate(expected.column_names[:n_encoded]):
        column, is_float = expected.column(number).to_pylist(), pa.types.is_floating(expected.column(number).type)
        for row, value in zip(rows, column, strict=True):
            assert same(row[1 + number], float("nan") if value is None and is_float else value), (name, row, value)


NOT_BY_KEY = ("hashing", "spectra")
OF_EVERY_KIND = (
    *("log", "glmm, classes", "class dropped, blow-up", "rare together", "missing, impact", "by column", "ordinal"),
    *("impact, classes, in rows", "evidence, classes", "statistics, columns, time folds", "pairs", "gradients"),
    *("one-hot", "one-hot, few", "one-hot, rare", "one-hot, dropped by column", "one-hot, missing are zeros"),
    *("catboost, leave-one-out", "held out by a mask", "clusters", "neighbours", *NOT_BY_KEY),
)


@pytest.mark.parametrize("name", OF_EVERY_KIND)
def test_every_kind_of_encoder(name):
    make, y = MEMBERS[name]
    encoder = make().fit(TRAINED, y)
    if name in NOT_BY_KEY:
        with pytest.raises(TypeError, match="cannot be exported"):
            to_sql(encoder, "rows")
    elif encoder.get_params().get("handle_unknown") == "error":
        check(encoder, with_id(SEEN), DuckDB())
    else:
        check(encoder, ASKED, DuckDB())


POLICIES = [
    {"columns": ["city", JOINT], "dtype": "float32", "handle_unknown": 0.1},
    {"columns": ["city", JOINT], "handle_missing": "prior", "indicators": ["missing", "unseen"]},
    {"columns": ["zip", ("city", "held")], "hierarchy": {"zip": ["held", "rank"]}, "min_count": 3},
    {"columns": [("zip", "held")], "indicators": ["missing", "unseen"], "handle_unknown": -0.0},
    {"columns": ["city"], "categories": [["b", "a", "late", None]], "indicators": True},
    {"columns": ["city", "price"], "handle_missing": "nan", "handle_unknown": "nan"},
]


@pytest.mark.parametrize("parameters", POLICIES)
def test_policies(parameters, engine):
    encoder = ge.TargetEncoder(**parameters).fit(TRAINED, SOLD)
    if parameters.get("handle_unknown") == "nan" and engine.dialect == "sqlite":
        with pytest.raises(ValueError, match="Some encodings of 'city' are NaN, which SQLite turns into NULL"):
            to_sql(encoder, "rows", "sqlite")
    else:
        check(encoder, ASKED, engine)
        check(encoder, ASKED, engine, category_tables="models")
        check_files(encoder, ASKED, engine)


def test_other_encodings(engine):
    for make, y in (MEMBERS["order statistics, text"], MEMBERS["classes, window"], MEMBERS["class dropped"]):
        encoder = make().fit(TRAINED, y)
        check(encoder, ASKED, engine)
        check_files(encoder, ASKED, engine)
    ones = ge.OneHotEncoder(
        columns=["city", JOINT],
        sparse_output=False,
        handle_unknown="infrequent_if_exist",
        min_frequency=3,
        dtype="int32",
    )
    check(ones.fit(TRAINED), ASKED, engine)
    check(ones.fit(TRAINED), ASKED, engine, category_tables="models")
    policy = {"handle_unknown": "use_encoded_value", "unknown_value": -1, "encoded_missing_value": -2}
    check(ge.OrdinalEncoder(dtype="int64", columns=["zip"], **policy).fit(TRAINED), ASKED, engine)


MOMENTS = [
    datetime.datetime(2024, 3, 31, 2, 30, 0, 1),
    datetime.datetime(2024, 3, 31, 3, 30),
    datetime.datetime(1, 1, 1),
]
UTC = datetime.UTC
KINDS = {
    "text": ["a", "A", "ä", "a\u0308", "a ", "", " ", "1", "1.0", "NULL", "ﬁ", "😀", "ß", "ss"],
    "large": [2**63 - 1, -(2**63), 2**53 + 1, 2**53, 0, -1],
    "floats": [0.1, -0.0, 5e-324, 1e300, 2.0**53, -2.5, 1 / 3, 123456789.123456789],
    "float32": pa.array([0.1, -2.5, 1e-45, 3e38], pa.float32()),
    "truth": [True, False],
    "dates": [datetime.date(2024, 2, 29), datetime.date(1, 1, 1), datetime.date(1969, 12, 31)],
    "moments": pa.array(MOMENTS, pa.timestamp("us")),
    "moments in a zone": pa.array([one.replace(tzinfo=UTC) for one in MOMENTS], pa.timestamp("us", "UTC")),
    "decimals": pa.array([Decimal("0.10"), Decimal("-3.25"), Decimal("12.00")], pa.decimal128(4, 2)),
}
NOT_OF_SQLITE = ("moments", "moments in a zone", "decimals")


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_values(kind, engine):
    values = pa.array(KINDS[kind])
    # The last value is unknown.
    seen, new = values[:-1], pa.concat_arrays([values, pa.nulls(2, values.type), values[:1]])
    key = pa.concat_arrays([seen, seen, pa.nulls(2, values.type)])
    other = pa.array([None if number % 3 == 0 else number % 3 for number in range(len(key))], pa.int64())
    table = pa.table({"key": key, "other": other})
    encoder = ge.TargetEncoder(columns=["key", ("key", "other")], smooth=1.0, indicators=["unseen", "missing"])
    encoder.fit(table, np.arange(len(key)) % 7 / 3)
    if kind in NOT_OF_SQLITE and engine.dialect == "sqlite":
        with pytest.raises(TypeError, match=r"Values of type .* of column 'key' cannot be exported to sqlite"):
            to_sql(encoder, "rows", "sqlite")
        return
    rows = [pa.table({"key": new, "other": pa.array([one] * len(new), pa.int64())}) for one in (None, 0, 1, 2)]
    check(encoder, with_id(pa.concat_tables(rows)), engine)
    check_files(encoder, with_id(pa.concat_tables(rows)), engine)


def test_nan_is_missing(engine):
    encoder = ge.CountEncoder(columns=["x", "n"]).fit(pa.table({"x": [0.5, 0.5, None], "n": [1, 1, None]}))
    table = with_id(pa.table({"x": [float("nan"), None, 0.5], "n": pa.array([float("nan"), 2.0, 1.0])}))
    assert [tuple(map(float, row[1:])) for row in ask(encoder, table, engine)] == [(1, 1), (1, 0), (2, 2)]


def test_columns_without_values(engine):
    table = pa.table({"x": pa.nulls(3, pa.string()), "n": pa.nulls(3), "y": [1, 2, 2]})
    encoder = ge.CountEncoder(columns=["x", ("x", "y"), ("n", "y"), ("x", "n")]).fit(table)
    more = pa.table({"x": ["a", None, "b"], "n": pa.nulls(3, pa.int64()), "y": [1, 3, None]})
    check(encoder, with_id(pa.concat_tables([table.cast(more.schema), more])), engine)


def test_prefixes(engine):
    table = pa.table({"zip": ["10115", "10117", "20095", "2", "ä😀x", "ä😀y", None]})
    encoder = ge.TargetEncoder(hierarchy={"zip": ge.Prefixes(3, 2)}, smooth=1.0).fit(table, np.arange(7) / 3)
    new = [*table["zip"].to_pylist(), "10119", "101", "1", "20xxx", "ä😀", "ä😀z", "äx", "", "never"]
    check(encoder, with_id(pa.table({"zip": new})), engine)


WORDS = [
    "'", "''", '"', "`", "\\", "\\'", "'; DROP TABLE rows; --", "/*", "*/", "-- x", "%s", "?", ":x", "$1", "{{ x }}",
    "${x}", "\n", "\r\n", "\t", "\\n", "x'); SELECT 1; --", "__SQLGLOT__LB__",
    "\u2028", "''''\\''", "$$", "E'\\''", "a" * 300,
]  # fmt: skip
NAMES = [
    "o'clock",
    'a "quoted" name',
    "x; DROP TABLE rows; --",
    "back\\slash",
    "select",
    "ü 😀",
    "/* no */",
    "a`b",
    "%",
]


def test_values_and_names_that_are_sql(engine):
    few = [WORDS[number % 2] for number in range(len(WORDS))]
    columns = {name: few if number else WORDS for number, name in enumerate(NAMES)}
    encoder = ge.CountEncoder(columns=[*NAMES, (NAMES[0], NAMES[1])])
    encoder.fit(pa.table({name: words[:-3] for name, words in columns.items()}))
    table = with_id(pa.table(columns))
    check(encoder, table, engine)
    if engine.dialect != "spark":
        # The files of Spark's tables have their names.
        check(encoder, table, engine, category_tables='"models; DROP TABLE rows"')
    check_files(encoder, table, engine)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_statements_are_read_as_they_were_written(dialect):
    words = {name: WORDS if not number else ["x"] * len(WORDS) for number, name in enumerate(NAMES)}
    encoder = ge.CountEncoder().fit(pa.table(words))
    written = [to_sql(encoder, "rows", dialect), *to_sql_tables(encoder, "models", dialect)]
    spoken = {*WORDS} - {"${x}"} if dialect == "spark" else {*WORDS}
    for statement in written[:2]:
        (tree,) = sqlglot.parse(statement, dialect=dialect)
        assert spoken <= {one.this for one in tree.find_all(sqlglot.exp.Literal) if one.is_string}
        assert not tree.find(sqlglot.exp.Drop)
    tree = sqlglot.parse_one(written[0], dialect=dialect)
    assert [one.alias for one in tree.expressions] == NAMES
    assert dialect != "spark" or not any("${" in statement for statement in written)


def marked(rows, dialect):
    """Give rows as sqlglot writes them, one literal after the other."""
    names = [f"column{number + 1}" for number in range(len(rows.held))]
    alias = sqlglot.exp.TableAlias(this=sqlglot.exp.to_identifier("held", quoted=True))
    if dialect != "sqlite":
        alias.set("columns", [sqlglot.exp.to_identifier(name, quoted=True) for name in names])
    literals = [[one.literal(number) for number in range(len(one.literals))] for one in rows.held.values()]
    tuples = [sqlglot.exp.Tuple(expressions=[*row]) for row in zip(*literals, strict=True)]
    values = sqlglot.exp.Values(expressions=tuples, alias=alias)
    return sqlglot.exp.select("1").from_(values).sql(dialect)


@pytest.mark.parametrize("kind", [*KINDS, "words", "words without a plain one", "long", "nothing", "one row"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_rows_are_written_as_sqlglot_writes_them(kind, dialect):
    if kind in NOT_OF_SQLITE and dialect == "sqlite":
        return
    others = {"words": WORDS, "words without a plain one": ["it's"], "nothing": [None], "one row": ["a"]}
    values = pa.array(KINDS.get(kind) or others.get(kind) or [f"{number}%s" for number in range(3000)])
    if values.type == pa.null():
        values = values.cast(pa.string())
    table = pa.table({"key": values, "other": pa.array([None, *range(1, len(values))], pa.int64())})
    encoder = ge.TargetEncoder(columns=["key", ("key", "other")], smooth=1.0).fit(table, np.arange(len(values)) / 3)
    tables, written = statements.exportable(encoder, dialect, 0.0, None), to_sql_tables(encoder, "models", dialect)
    for index, level in statements.levels_of(tables):
        rows = LevelRows(level, tables.keys[index[0]].columns, dialect, "held")
        whole, found = marked(rows, dialect), with_rows(marks(rows, dialect), [rows.texts()])
        assert found == whole
        # The same rows are in the statements that create and fill the tables, a thousand in each.
        n_statements = -(-len(level.values) // 1_000)
        some = [sqlglot.parse_one(one, dialect=dialect) for one in written[:n_statements]]
        kinds = sqlglot.exp.Struct if dialect == "bigquery" else sqlglot.exp.Tuple
        assert sum(len([*one.find_all(kinds)]) for one in some) == len(level.values)
        written = written[n_statements:]
    assert not written


def marks(rows, dialect):
    """Give two rows of marks on one line."""
    held = LevelRows.select(rows).args["from_"].this
    return sqlglot.exp.select("1").from_(held).sql(dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_statements_have_lines_that_a_person_can_read(dialect):
    table = pa.table({"shop": [f"shop {number}" for number in range(9)], "size": [None, *range(8)]})
    encoder = ge.TargetEncoder(columns=["shop", ("shop", "size")]).fit(table, np.arange(9) / 3)
    for statement in (to_sql(encoder, "orders", dialect, keep="id"), *to_sql_tables(encoder, "models", dialect)):
        lines = statement.splitlines()
        # Each category has a line of its own.
        assert any("'shop 3'" in line for line in lines)
        assert not any("'shop 3'" in line and "'shop 4'" in line for line in lines)
        assert max(len(line) for line in lines if "||" not in line) < 140


def test_what_cannot_be_written():
    encoder = ge.CountEncoder().fit(pa.table({"x": ["a\0b"]}))
    with pytest.raises(ValueError, match=r"Column 'x' holds 'a\\x00b': NUL cannot stand in SQL"):
        to_sql(encoder, "rows")
    encoder = ge.CountEncoder().fit(pa.table({"a\0b": ["x"]}))
    with pytest.raises(ValueError, match="no name of a column in SQL"):
        to_sql(encoder, "rows")
    encoder = ge.CountEncoder().fit(pa.table({"${x}": ["x"]}))
    with pytest.raises(ValueError, match="where Spark puts its settings"):
        to_sql(encoder, "rows", "spark")
    encoder = ge.CountEncoder().fit(pa.table({"x": pa.array([b"x"], pa.binary())}))
    with pytest.raises(TypeError, match=r"Values of type large_binary of column 'x' .* Make them text or numbers"):
        to_sql(encoder, "rows")
    encoder = ge.CountEncoder().fit(pa.table({"x": pa.array([2**64 - 1], pa.uint64())}))
    with pytest.raises(TypeError, match=r"Whole numbers beyond 2\*\*63 - 1 of column 'x'"):
        to_sql(encoder, "rows")
    encoder = ge.CountEncoder().fit(pa.table({"x": pa.array([1], pa.timestamp("ns"))}))
    with pytest.raises(TypeError, match="Moments finer than microseconds of column 'x'"):
        to_sql(encoder, "rows")


@pytest.mark.parametrize("dtype", ["bool", "float32"])
def test_columns_of_zeros_and_ones(dtype, engine):
    rows = pa.table({"x": ["a", "b", None, "b"], "g": ["p", "p", "q", None]})
    encoder = ge.OneHotEncoder(columns=["x", ("x", "g")], sparse_output=False, dtype=dtype).fit(rows)
    # PostgreSQL spells truth values.
    found = [[float({"t": 1, "f": 0}.get(one, one)) for one in row[1:]] for row in ask(encoder, with_id(rows), engine)]
    expected = [column.to_pylist() for column in encoder.transform(rows).columns]
    assert found == [list(row) for row in zip(*expected, strict=True)]
    with pytest.raises(engine.error, match=r"transform refuses this unknown or missing value of '+x'"):
        ask(encoder, with_id(pa.table({"x": ["c"], "g": ["p"]})), engine)


REFUSING = [
    ({"handle_unknown": "error"}, [{"x": "never"}]),
    ({"handle_unknown": "error", "hierarchy": {"x": ["g"]}}, [{"x": "never"}, {"x": "never", "g": "q"}]),
    ({"handle_missing": "error", "indicators": ["missing", "unseen"]}, [{"x": None}]),
    ({"handle_unknown": "error", "columns": [("x", "g")]}, [{"g": "q"}, {"g": None}]),
    ({"handle_unknown": "error", "handle_missing": "error", "columns": [("g", "x")]}, [{"g": "q"}, {"x": None}]),
]


@pytest.mark.parametrize(("parameters", "refused"), REFUSING)
def test_rows_that_policies_refuse(parameters, refused, engine):
    rows = pa.table({"x": ["a", "b", "a"], "g": ["p", "p", "q"]})
    encoder = ge.TargetEncoder(**{"columns": ["x"], "smooth": 1.0} | parameters).fit(rows, [0, 1, 1])
    check(encoder, with_id(rows), engine)
    check(encoder, with_id(rows), engine, category_tables="models")
    for values in refused:
        new = pa.Table.from_pylist([*rows.to_pylist(), {"x": "b", "g": "p"} | values], rows.schema)
        with pytest.raises(ValueError, match=r"unknown|missing"):
            encoder.transform(new)
        with pytest.raises(engine.error, match=r"transform refuses this unknown or missing value of '+"):
            ask(encoder, with_id(new), engine)


def test_rare_categories_are_refused_as_unknown_ones_are(engine):
    rows = pa.table({"x": ["a", "a", "b"]})
    encoder = ge.TargetEncoder(handle_unknown="error", handle_missing="error").fit(rows, [0, 1, 1])
    rows = with_id(rows)
    assert len(ask(encoder, rows.slice(0, 2), engine, min_count=2)) == 2
    with pytest.raises(engine.error, match=r"transform refuses this unknown or missing value of '+"):
        ask(encoder, rows, engine, min_count=2)
    with pytest.raises(ValueError, match=r"No category of 'x' is left, and .* Lower min_count"):
        to_sql(encoder, "rows", min_count=3)


@pytest.mark.parametrize(
    ("parameters", "error", "says"),
    [
        (
            {"hierarchy": {"x": ge.Parts(".")}},
            TypeError,
            "hierarchy of 'x' follows from Parts, which SQL cannot compute",
        ),
    ],
)
def test_refusals(parameters, error, says):
    encoder = ge.TargetEncoder(columns=["x"], **parameters).fit(pa.table({"x": ["a", "b.c"]}), [0, 1])
    with pytest.raises(error, match=says):
        to_sql(encoder, "rows")


OTHER_WORDS = ["rows; DROP TABLE rows", "rows AS r", "(SELECT 1)", "rows -- x", '"rows" AS r', "my rows"]


@pytest.mark.parametrize("table", ["", "a\0b", "read_csv('x')", "rows.x.y.z.w", *OTHER_WORDS])
def test_names_that_are_no_tables(table):
    encoder = ge.CountEncoder().fit(pa.table({"x": ["a"]}))
    for tables in ({"table": table}, {"table": "rows", "category_tables": table}):
        with pytest.raises(ValueError, match=r"is no name of a table of duckdb. Make a view of a query"):
            to_sql(encoder, **tables)


@pytest.mark.parametrize("table", [None, 3, b"rows"])
def test_tables_are_named_by_text(table):
    encoder = ge.CountEncoder().fit(pa.table({"x": ["a"]}))
    with pytest.raises(TypeError, match=r"table is the name of a table, as text. Got"):
        to_sql(encoder, table)
    with pytest.raises(TypeError, match=r"name is the name of a table, as text. Got"):
        to_sql_tables(encoder, table)


def test_a_table_called_as_a_part_of_the_statement(engine):
    encoder = ge.CountEncoder().fit(pa.table({"x": ["a"]}))
    for name in ("gpu_encode", "gpu_encode_0_0", "GPU_ENCODE", "given", "held"):
        query = to_sql(encoder, name, engine.dialect)
        rows = engine.ask(pa.table({"x": ["a", "b"]}), f"CREATE TABLE {name} AS SELECT * FROM rows", query)
        assert sorted(float(one) for (one,) in rows) == [0.0, 1.0]


def test_columns_that_pass_through_are_kept_moved_or_left_out(engine):
    encoder = ge.TargetEncoder(columns=["city", JOINT]).fit(TRAINED, SOLD)
    codes = [name for name in encoder.get_feature_names_out() if name not in ("price", "rank", "held")]
    results = {
        ("price", "rank", "held"): ((), True),
        ("rank", "held"): ("price", True),
        (): (["price", "rank"], False),
    }
    for through, (keep, passed) in results.items():
        query = to_sql(encoder, "rows", engine.dialect, keep=keep, passed=passed)
        names = [one.alias for one in sqlglot.parse_one(query, dialect=engine.dialect).expressions]
        assert names == [*([keep] if isinstance(keep, str) else keep), *codes, *through]
    fewer = ASKED.select(["id", *(name for name in ASKED.column_names if name in ("city", *JOINT))])
    rows = engine.ask(fewer, to_sql(encoder, "rows", engine.dialect, keep="id", passed=False))
    assert sorted(rows, key=lambda row: int(row[0])) == [row[: 1 + len(codes)] for row in ask(encoder, ASKED, engine)]


def test_no_row_is_lost_or_doubled(engine):
    table = pa.table({"x": ["a", "a", None, "b"] * 3, "y": [1, None, None, 2] * 3})
    encoder = ge.CountEncoder(columns=["x", ("x", "y")]).fit(table)
    assert len(ask(encoder, with_id(pa.concat_tables([table] * 3)), engine)) == 36
    assert ask(encoder, with_id(table.slice(0, 0)), engine) == []


# Numbers that differ only without rounding are neighbours: 2**53 and 2**53 + 1, and 2**24 + 1 in float32.
MIXED = {
    "text": ["1", "true", "2024-02-29"],
    "truth": [True, False],
    "small": [1, 0, 2**24],
    "large": [2**53 + 1, 2**53, 2**24 + 1, 2**63 - 1, -(2**63)],
    "floats": [1.0, 0.5, 2.0**24],
    "large floats": [2.0**53, 1.0, 2.0**63],
    "float32": pa.array([2.0**24, 2.0**53, 0.1], pa.float32()),
    "dates": [datetime.date(2024, 2, 29)],
    "moments": pa.array([datetime.datetime(2024, 2, 29)], pa.timestamp("us")),
    "moments in a zone": pa.array([datetime.datetime(2024, 2, 29, tzinfo=UTC)], pa.timestamp("us", "UTC")),
    "decimals": pa.array([Decimal("1.00"), Decimal("0.50")], pa.decimal128(4, 2)),
}
NUMBERS = ("small", "large", "floats", "large floats", "float32")
ALIKE = (NUMBERS, ("dates", "moments", "moments in a zone"), ("text", "truth"), ("decimals", "floats"))
SERVED = [(("small", "floats"), NUMBERS), *(((one,), (one,)) for one in MIXED)]
# SQLite stores these types as other types.
HELD = {"truth": NUMBERS, "dates": ("text",), "text": ("dates",)} | dict.fromkeys(NUMBERS, ("truth",))


@pytest.mark.parametrize("fitted", MIXED)
def test_types_are_mixed_as_transform_does_or_never(fitted, engine):
    is_lite, policy = engine.dialect == "sqlite", {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    if is_lite and fitted in NOT_OF_SQLITE:
        return
    encoder = ge.OrdinalEncoder(**policy).fit(pa.table({"x": MIXED[fitted]}))
    # PostgreSQL and Spark convert no other types implicitly.
    alike = MIXED if engine.dialect in ("duckdb", "sqlite") else next(one for one in ALIKE if fitted in one)
    for given in alike:
        if is_lite and (given in NOT_OF_SQLITE or given in HELD[fitted]):
            continue
        if engine.dialect == "spark" and (fitted, given) == ("moments", "moments in a zone"):
            # The engine's TIMESTAMP is both.
            continue
        rows = with_id(pa.table({"x": MIXED[given]}))
        try:
            encoder.transform(rows.drop_columns("id"))
        except ValueError:
            with pytest.raises(engine.error):
                ask(encoder, rows, engine)
            continue
        try:
            check(encoder, rows, engine)
        except engine.error:
            assert not any(fitted in one and given in other for one, other in SERVED)


@pytest.mark.parametrize("fitted", [[0.5, 1.0], [1, 2]])
def test_infinity_is_refused(fitted, engine):
    encoder = ge.CountEncoder().fit(pa.table({"x": fitted}))
    for number in (float("inf"), -float("inf")):
        with pytest.raises(engine.error, match=r"Column '+x'+ holds an infinite number, which transform refuses"):
            ask(encoder, with_id(pa.table({"x": [0.5, number]})), engine)


WHOLE_OF_DUCKDB = ["TINYINT", "UTINYINT", "UBIGINT", "HUGEINT", "UHUGEINT"]


@pytest.mark.parametrize("largest", [2**53 - 1, 2**62])
def test_types_of_duckdb(largest):
    encoder = ge.CountEncoder().fit(pa.table({"x": [1, 1, 7, largest]}))
    served = WHOLE_OF_DUCKDB if largest > 2**53 else [*WHOLE_OF_DUCKDB, "FLOAT", "DOUBLE"]
    with duckdb.connect() as connection:
        for kind in (*WHOLE_OF_DUCKDB, "FLOAT", "DOUBLE", "DECIMAL(4, 0)", "BOOLEAN", "VARCHAR"):
            connection.execute(f"CREATE OR REPLACE TABLE rows AS SELECT CAST(1 AS {kind}) AS x")
            if kind in served:
                assert connection.execute(to_sql(encoder, "rows")).fetchall() == [(2.0,)]
            else:
                with pytest.raises(
                    duckdb.Error, match=r"Column 'x' has to be of type TINYINT, .*, as at fit. It is of"
                ):
                    connection.execute(to_sql(encoder, "rows")).fetchall()


def test_enumerations_of_duckdb_are_text():
    X = pd.DataFrame({"x": pd.Categorical(["a", "b", None, "ab"])})
    encoder = ge.TargetEncoder(hierarchy={"x": ge.Prefixes(1)}, smooth=1.0).fit(X, [0, 1, 1, 1])
    with duckdb.connect() as connection:
        connection.register("X", X.assign(id=range(4)))
        rows = connection.execute(to_sql(encoder, "X", keep=["id"])).fetchall()
    assert [row[1] for row in sorted(rows)] == encoder.transform(X)["x"].tolist()


def test_rare_categories_leave_as_unknown(engine):
    table = pa.table({"x": ["a", "a", "b", None], "g": ["p", "p", "p", "q"]})
    encoder = ge.TargetEncoder(columns=["x"], hierarchy={"x": ["g"]}, smooth=1.0).fit(table, [0, 1, 1, 1])
    rows = ask(encoder, with_id(table), engine, min_count=2)
    of_level = encoder.transform(pa.table({"x": ["new", "new"], "g": ["p", "never"]}))["x"].to_pylist()
    of_a = encoder.transform(table)["x"][0].as_py()
    for row, value in zip(rows, [of_a, of_a, *of_level], strict=True):
        assert same(row[1], value)
    assert "'b'" not in to_sql(encoder, "rows", min_count=2)
    assert "'q'" not in to_sql(encoder, "rows", min_count=2)


# Encodings that are zero with a sign, infinite, the least and the largest float, and far from a power of two.
FAR = [-0.0, 0.0, 5e-324, 1.7976931348623157e308, -(2.0**70), 1 / 3, -1e-200]


@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_files_hold_every_float(format_, engine):
    if format_ not in files.FORMATS[engine.dialect]:
        with pytest.raises(ValueError, match=rf"cannot be loaded into {engine.dialect} from here. Give format='"):
            to_sql_tables(ge.CountEncoder().fit([["a"]]), "models", engine.dialect, folder="x", format=format_)
        return
    table = pa.table({"x": [f"c{number}" for number in range(len(FAR))]})
    encoder = ge.TargetEncoder(smooth=0.0).fit(table, FAR)
    check(encoder, with_id(table), engine, format_=format_, category_tables="models")
    empty = pa.table(
        {"x": ["", None, "\\N", "a,b", 'say "no"', "two\r\nlines"], "y": ["", "u", None, "\\N", "\\NN", ""]}
    )
    modes = ge.StatisticEncoder(["mode", "count"], columns=["x"], values=["y"]).fit(empty)
    check(modes, with_id(empty), engine, format_=format_, category_tables="models")


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the shell of SQLite is not installed")
def test_the_shell_of_sqlite_loads_files(tmp_path):
    words = [word for word in WORDS if "\r" not in word]
    encoder = ge.CountEncoder().fit(pa.table({"x": [*words, *words[:5]]}))
    created = to_sql_tables(encoder, "models", "sqlite", folder=tmp_path / 'it\'s "here"', format="csv")
    rows = ", ".join(sqlglot.exp.Tuple(expressions=[sqlglot.exp.Literal.string(one)]).sql("sqlite") for one in words)
    told = [f"CREATE TABLE rows AS SELECT column1 AS x FROM (VALUES {rows})", *created]
    query = to_sql(encoder, "rows", "sqlite", category_tables="models")
    script = "".join(f"{one}\n" if one.startswith(".") else f"{one};\n" for one in [*told, query])
    ran = subprocess.run(["sqlite3"], input=script, capture_output=True, encoding="utf8", check=True)
    assert ran.stderr == ""
    assert sorted(map(float, ran.stdout.split())) == sorted([2.0] * 5 + [1.0] * (len(words) - 5))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_files_have_the_names_of_their_tables(dialect, tmp_path):
    encoder = ge.CountEncoder(columns=["x", ("x", "g")]).fit(pa.table({"x": ["a"], "g": [1]}))
    (format_, *_) = files.FORMATS[dialect]
    where = {"folder": tmp_path / "new" / "folder", "format": format_}
    written = to_sql_tables(encoder, "models", dialect, **where)
    assert sorted(file.name for file in where["folder"].iterdir()) == [f"models_{n}_0.{format_}" for n in (0, 1)]
    assert sum(f"{where['folder']}/models_0_0.{format_}" in one for one in written) == 1
    elsewhere = to_sql_tables(encoder, "models", dialect, **where, location="s3://models/it's/")
    quoted = [f"s3://models/it{quote}s/models_0_0.{format_}" for quote in ("'", "''", "\\'")]
    assert sum(any(one in statement for one in quoted) for statement in elsewhere) == 1
    assert all("'a'" not in one for one in written)


def test_files_that_nobody_asked_for():
    encoder = ge.CountEncoder().fit([["a"]])
    with pytest.raises(ValueError, match=r"location='s3://x' says where .* Give folder"):
        to_sql_tables(encoder, "models", location="s3://x")
    with pytest.raises(ValueError, match=r"must be one of 'parquet', 'csv'. .*Did you mean 'parquet'"):
        to_sql_tables(encoder, "models", folder="x", format="parket")


def test_many_categories_are_inserted_in_turns(engine, monkeypatch):
    monkeypatch.setattr(statements, "INSERTED", 10)
    table = pa.table({"x": [f"c{number}" for number in range(21)]})
    encoder = ge.TargetEncoder(smooth=0.0).fit(table, np.arange(21) / 7)
    created = to_sql_tables(encoder, "models", engine.dialect)
    assert [statement.split()[0] for statement in created] == ["CREATE", "INSERT", "INSERT"]
    check(encoder, with_id(table), engine, category_tables="models")


def test_sqlglot_is_asked_for_by_name(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("gpu_encode.serve.export.sql")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(ImportError, match=r"pip install '.\[sql\]'"):
        importlib.import_module("gpu_encode.serve.export.sql")


def test_what_a_call_is_told():
    encoder = ge.CountEncoder(columns=["x"]).fit(pa.table({"x": ["a"], "y": [1]}))
    with pytest.raises(ValueError, match="keep names 'x', which is the name of an output"):
        to_sql(encoder, "rows", keep=["x"])
    with pytest.raises(ValueError, match="keep names 'id', which stands there already"):
        to_sql(encoder, "rows", keep=["id", "id"])
    with pytest.raises(TypeError, match=r"keep takes names of columns, as text. Got 3 among them"):
        to_sql(encoder, "rows", keep=["id", 3])
    assert to_sql(encoder, "rows", keep="id") == to_sql(encoder, "rows", keep=["id"])
    with pytest.raises(ValueError, match="dialect"):
        to_sql(encoder, "rows", "oracle")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("names", "keep"), [("xX", ()), ("x", "X"), ("x", ("id", "ID")), ("ÄaÖä", ())])
def test_names_that_differ_in_capitals_alone(names, keep, dialect):
    # One of them is read.
    encoder = ge.CountEncoder(columns=[names[0]]).fit(pa.table({name: ["a", "b"] for name in names}))
    if dialect in ("postgres", "snowflake"):
        to_sql(encoder, "rows", dialect, keep=keep)
        return
    with pytest.raises(ValueError, match=r"not tell capitals from .* so that '(X|id|ä)' and '(x|ID|Ä)' are one"):
        to_sql(encoder, "rows", dialect, keep=keep)


def test_outputs_that_differ_in_capitals_alone():
    encoder = ge.TargetEncoder().fit(pa.table({"x": ["a", "b", "a"]}), ["p", "P", "q"])
    with pytest.raises(ValueError, match="so that 'x_P' and 'x_p' are one"):
        to_sql(encoder, "rows")
    to_sql(encoder, "rows", "postgres")


def test_names_that_postgres_cuts():
    names = ["ä" * 31 + "ab", "ä" * 31 + "ac"]
    encoder = ge.CountEncoder(columns=names[:1]).fit(pa.table({name: ["a", "b"] for name in names}))
    with pytest.raises(ValueError, match="postgres reads 63 bytes of a name, so that"):
        to_sql(encoder, "rows", "postgres")
    to_sql(encoder, "rows", "snowflake")


def test_as_many_tables_as_sqlite_joins():
    table = pa.table({f"x{number}": ["a", "b"] for number in range(64)})
    check(ge.CountEncoder(columns=table.column_names[:63]).fit(table), with_id(table), SQLite())
    encoder = ge.CountEncoder().fit(table)
    with pytest.raises(ValueError, match="SQLite joins up to 63 tables with that of the rows, and the encoder has 64"):
        to_sql(encoder, "rows", "sqlite")
    check(encoder, with_id(table), DuckDB())


def test_columns_whose_names_are_numbers():
    encoder = ge.CountEncoder().fit(pd.DataFrame({0: ["a", "b"], 1: [1, 1]}))
    check(encoder, with_id(pa.table({"x0": ["b", "c"], "x1": [1, 2]})), DuckDB())
