"""Rows of many kinds, tables and vectors cut into pieces, and a comparison of two encoders of the same rows."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from gpu_encode import TargetEncoder
from tests.bits import assert_same_bits, assert_same_encoder

N = 84
ROWS = np.arange(N)
CITIES = np.array(["b", "a", "ä", "", "zz", "c"], object)[ROWS * 7 % 11 % 6]
CITIES[ROWS * 5 % 13 == 1] = None
# One of seven pieces is all null, and one value first appears in the last piece.
CITIES[20:30] = None
CITIES[-1] = "first here"
WHOLE = pd.DataFrame(
    {
        "city": CITIES,
        "zip": ROWS * 11 % 17 - 4,
        "size": np.where(ROWS % 9 == 4, np.nan, ROWS * 3 % 7 / 4),
        "day": ROWS * 29 % 31,
        "shop": np.array(list("pqrstuv"), object)[ROWS * 3 % 10 % 7],
        "fold": ROWS * 5 % 3,
        "note": ROWS / 7,
    },
    index=pd.Index(ROWS * 2 + 100, name="row"),
)
CUTS = {1: [], 2: [50], 7: [1, 20, 30, 30, 47, 83]}
TARGETS = {
    "quantity": np.sin(ROWS) * 10.0 ** (ROWS % 5),
    "binary": (ROWS * 5 % 7 < 3).astype(int),
    "classes": np.array(["lo", "mid", "high"], object)[ROWS * ROWS % 7 % 3],
}
WEIGHTS = {"unweighted": None, "weighted": (ROWS % 4 + 1) / 2}
ENCODED = {"columns": ["city", "zip", ("city", "zip"), "size"], "indicators": True}


def cut(rows, cuts):
    edges = [0, *cuts, len(rows)]
    take = rows.iloc if isinstance(rows, pd.DataFrame) else rows
    return [take[start:stop] for start, stop in itertools.pairwise(edges)]


def batch(frame):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], schema=table.schema)


def objects(frame):
    return frame.astype(object).to_numpy()


LIBRARIES = {
    "pandas": [lambda frame: frame],
    "polars": [pl.from_pandas],
    "arrow": [lambda frame: pa.Table.from_pandas(frame, preserve_index=False)],
    "batches": [batch],
    "numpy": [objects],
    "categories": [lambda frame: frame.astype({"city": "category", "shop": "category"}), pl.from_pandas],
    "mixed": [pl.from_pandas, lambda frame: frame, batch],
}


def in_libraries(frames, makers):
    return [make(frame) for make, frame in zip(itertools.cycle(makers), frames)]


def encoder(**parameters):
    return TargetEncoder(**({"smooth": 1.5} | ENCODED | parameters))


def matrix(tables):
    """Return the encoded columns of tables as one float64 array."""
    tables = tables if isinstance(tables, list) else [tables]
    arrow = (pa.Table, pa.RecordBatch)
    return np.concatenate(
        [np.asarray(table.to_pandas() if isinstance(table, arrow) else table, dtype=object) for table in tables]
    )


def assert_same_rows(tables, whole):
    """Demand equal bits of the encoded columns, and equal values of the columns that pass through."""
    encoded, expected = matrix(tables), matrix(whole)
    # Four encodings and four indicators, then the columns that pass through.
    assert_same_bits(encoded[:, :8], expected[:, :8])
    assert encoded[:, 8:].tolist() == expected[:, 8:].tolist()


def saved(fitted, folder):
    fitted.save(folder / "model")
    return (folder / "model").read_bytes()


def assert_same_model(fitted, whole, folder):
    assert saved(fitted, folder) == saved(whole, folder)
    assert_same_encoder(fitted, whole)
