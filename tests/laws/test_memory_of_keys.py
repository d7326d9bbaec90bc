"""Memory of a call with many keys: encodings, the codes of the columns, and little more."""

import gc
import itertools
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cpu_fallback import memory
from cpu_fallback.compiled.threads import set_threads
from gpu_encode import TargetEncoder
from gpu_encode.seam.ops import use_backend

FEW, MANY = 20_000, 60_000
# Bytes per row and column: int32 codes, and the bytes that all keys share.
CODES = 4 + 1
# Bytes per row beside output and codes: target, class and fold.
MOST_BESIDE = 16
COLUMNS = {12: 12, 300: 24}
TABLES = {
    "numpy": lambda matrix: matrix,
    "pandas": lambda matrix: pd.DataFrame(matrix, columns=names_of(matrix), copy=False),
    "polars": lambda matrix: pl.DataFrame(dict(zip(names_of(matrix), matrix.T, strict=True))),
    "pyarrow": lambda matrix: pa.table(list(matrix.T), names=names_of(matrix)),
    "batch": lambda matrix: pa.RecordBatch.from_arrays([*map(pa.array, matrix.T)], names=names_of(matrix)),
}


def names_of(matrix):
    return [f"c{number}" for number in range(matrix.shape[1])]


def peak_of_call(kind, n_keys, dtype, n_rows):
    """Return the peak bytes of a call beside its input."""
    random = np.random.default_rng(0)
    matrix = np.asfortranarray(random.integers(0, 4, (n_rows, COLUMNS[n_keys])))
    names = [*range(matrix.shape[1])]
    keys = [*names, *itertools.combinations(names, 2)][:n_keys]
    table, y = TABLES[kind](matrix), random.integers(0, 2, n_rows)
    encoder = TargetEncoder(columns=keys, dtype=dtype)
    encoder.fit_transform(table[:100], y[:100])
    gc.collect()
    tracemalloc.start()
    encoded = encoder.fit_transform(table, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert encoded.shape == (n_rows, n_keys)
    return peak


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_keys", COLUMNS)
def test_a_row_takes_its_encodings_its_codes_and_little_else(monkeypatch, kind, dtype, n_keys):
    # Blocks of the pool are larger than the requested size.
    monkeypatch.setattr(memory, "take_from_pool", lambda *given: None)
    # Whether two threads hold their own memory at the same moment is chance, and would be counted as rows.
    set_threads(1)
    try:
        with use_backend("compiled"):
            few, many = (peak_of_call(kind, n_keys, dtype, n_rows) for n_rows in (FEW, MANY))
    finally:
        set_threads(None)
    beside = (many - few) / (MANY - FEW) - n_keys * np.dtype(dtype).itemsize - CODES * COLUMNS[n_keys]
    assert beside <= MOST_BESIDE
