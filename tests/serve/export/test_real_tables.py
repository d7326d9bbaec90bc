"""Exports and imports on real tables: every encoder, policy and kind of key, in every format, with the same bits.

``REAL_TABLES`` names a folder with the Parquet files that `tests/laws/real_tables.toml` describes.  ``REAL_ROWS`` is
the number of training rows from each file (400), or "all".
"""

import os
import sqlite3
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import gpu_encode as ge
from gpu_encode.serve.export import from_arrow, to_arrow, to_onnx, to_polars
from tests.bits import assert_same_bits
from tests.laws.real_tables import SOURCES, read_rows
from tests.serve.export import graphs, test_sql
from tests.serve.export.engines import DuckDB, SQLite

FOLDER = Path(os.environ.get("REAL_TABLES", "no folder"))
N_ROWS = os.environ.get("REAL_ROWS", "400")
pytestmark = [
    pytest.mark.host,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="REAL_TABLES names no folder of real tables"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
NO_TEXT = "~ missing ~"
FLAGS = ["missing", "unseen"]
POLICIES = {
    "category": {},
    "prior": {"handle_missing": "prior", "handle_unknown": -1.5},
    "indicators": {"indicators": FLAGS, "dtype": "float32"},
    "nan": {"handle_missing": "nan", "handle_unknown": "nan"},
    "rare": {"min_count": 3, "handle_missing": "prior", "indicators": FLAGS},
    "rare together": {"min_count": 3, "handle_infrequent": "category"},
    "refused": {"handle_unknown": "error"},
    "zero": {"handle_missing": "zero", "handle_unknown": "zero"},
}
OF_TARGETS = [policy for policy in POLICIES if policy != "zero"]
# Kinds of keys that an export does not support.
LACKS = {"onnx": ("dates", "Prefixes", "Parts"), "sqlite": ("dates", "Parts"), "duckdb": ("Parts",)}
QUANTITY = {"target_type": "continuous"}
UNKNOWN_NUMBER = {"handle_unknown": "use_encoded_value", "unknown_value": -1, "encoded_missing_value": -2}
# An encoder, its target, its parameters, and its policies.
ENCODERS = {
    "target, binary": (ge.TargetEncoder, "binary", {}, OF_TARGETS),
    "target, continuous": (ge.TargetEncoder, "continuous", {"smooth": "auto", **QUANTITY}, OF_TARGETS),
    "target, classes": (ge.TargetEncoder, "multiclass", {"target_type": "multiclass"}, OF_TARGETS),
    "catboost": (ge.CatBoostEncoder, "binary", {}, ["category", "prior", "nan"]),
    "impact": (ge.ImpactEncoder, "continuous", QUANTITY, ["category", "indicators", "nan"]),
    "evidence": (ge.WeightOfEvidenceEncoder, "binary", {}, ["category", "zero", "indicators"]),
    "statistics": (
        ge.StatisticEncoder, "continuous", {"statistics": ["mean", "max", ("quantile", 0.9), "nunique"]},
        ["category", "prior", "indicators", "nan"],
    ),
    "gradients": (ge.GradientEncoder, "gradients", {}, ["category", "prior"]),
    "counts": (ge.CountEncoder, None, {}, ["category", "indicators", "rare together"]),
    "frequencies": (ge.CountEncoder, None, {"kind": "frequency"}, ["category", "indicators"]),
    "ordinal": (ge.OrdinalEncoder, None, UNKNOWN_NUMBER, ["category"]),
}  # fmt: skip


def kinds_of_keys(rows, of_levels):
    """Give the columns and hierarchies of each kind of key that a file has."""
    types = {name: rows.table.schema.field(name).type for name in rows.source.keys}
    dates = [name for name in types if pa.types.is_temporal(types[name])]
    found = {
        "columns": ([name for name in types if name not in dates], None),
        "joint": (rows.source.joint, None),
        "dates": (dates, None),
    }
    for name, levels in rows.source.hierarchy.items() if of_levels else ():
        kind = "columns above" if isinstance(levels, list) else type(levels).__name__
        found[kind] = ([name], {name: levels})
    return {kind: keys for kind, keys in found.items() if keys[0]}


def refuses(way, kind, policy):
    """Whether an export must refuse a kind of key, or NaN."""
    return kind in LACKS.get(way, ()) or (way == "sqlite" and policy == "nan")


def by_rows(encoder, asked):
    """Encode rows one by one."""
    encode = encoder.row_encoder()
    columns = zip(*encode(asked.to_pylist()), strict=True)
    return dict(zip(encode.names, columns, strict=True))


def by_arrow(encoder, asked):
    """Encode by tables."""
    return from_arrow(to_arrow(encoder)).transform(asked)


def by_polars(encoder, asked):
    """Encode by expressions."""
    return pl.from_arrow(asked).lazy().select(to_polars(encoder)).collect()


def by_onnx(encoder, asked):
    """Encode by a graph, in which numbers that may be missing are floats."""
    frame = asked.to_pandas()
    numbers = [field.name for field in asked.schema if not pa.types.is_large_string(field.type)]
    model = to_onnx(encoder, missing_text=NO_TEXT, types=dict.fromkeys(numbers, "float64"))
    return graphs.encodings(model, frame, NO_TEXT)


def by_duckdb(encoder, asked):
    """Encode by DuckDB."""
    return by_sql(encoder, asked, DuckDB())


def by_sqlite(encoder, asked):
    """Encode by SQLite."""
    return by_sql(encoder, asked, SQLite())


def by_sql(encoder, asked, engine):
    """Encode by an engine of SQL; NULL is no encoding."""
    _, *columns = zip(*test_sql.ask(encoder, test_sql.with_id(asked), engine), strict=True)
    assert not any(None in column for column in columns)
    return dict(zip(encoder.get_feature_names_out(), columns, strict=True))


WAYS = {
    "rows": by_rows,
    "arrow": by_arrow,
    "polars": by_polars,
    "onnx": by_onnx,
    "duckdb": by_duckdb,
    "sqlite": by_sqlite,
}
ERRORS = (TypeError, ValueError, duckdb.Error, sqlite3.Error)


def check(way, encoder, asked):
    """Demand the result of `transform`, to the bit."""
    expected, found = encoder.transform(asked), WAYS[way](encoder, asked)
    for name in expected.column_names:
        assert_same_bits(np.asarray(found[name], float), expected[name].to_numpy())


def is_refused(encoder, asked):
    """Whether `transform` refuses rows."""
    try:
        encoder.transform(asked)
    except ValueError:
        return True
    return False


def tables(rows, columns, hierarchy):
    """Give the columns that keys read: of rows to learn from, and of those to encode, the last without any value."""
    above = [name for levels in (hierarchy or {}).values() if isinstance(levels, list) for name in levels]
    read = [name for key in columns for name in ([key] if isinstance(key, str) else key)]
    learned, new = (table.select([*dict.fromkeys([*read, *above])]) for table in (rows.table, rows.new))
    empty = pa.table([pa.nulls(1, field.type) for field in learned.schema], learned.schema)
    return learned, pa.concat_tables([learned[:300], new, empty])


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("of", ENCODERS)
def test_real_tables(name, of):
    if not (FOLDER / f"{name}.parquet").exists():
        pytest.skip(f"REAL_TABLES has no {name}.parquet")
    rows = read_rows(FOLDER, name, None if N_ROWS == "all" else int(N_ROWS))
    make, target, parameters, policies = ENCODERS[of]
    y = rows.targets | {"gradients": np.column_stack([rows.targets["continuous"], rows.weights])}
    for kind, (columns, hierarchy) in kinds_of_keys(rows, make is ge.TargetEncoder).items():
        learned, asked = tables(rows, columns, hierarchy)
        given = parameters if hierarchy is None else parameters | {"hierarchy": hierarchy}
        for policy in policies:
            if policy == "rare together" and hierarchy is not None:
                # Rare categories have levels there.
                continue
            encoder = make(columns=columns, **given, **POLICIES[policy]).fit(learned, y.get(target))
            refused = policy == "refused" and is_refused(encoder, asked)
            for way, encode in WAYS.items():
                if refused or refuses(way, kind, policy):
                    with pytest.raises(ERRORS):
                        encode(encoder, asked)
                elif policy != "refused":
                    check(way, encoder, asked)
                if policy == "refused" and way not in ("polars", "onnx") and not refuses(way, kind, policy):
                    check(way, encoder, learned[:300])
