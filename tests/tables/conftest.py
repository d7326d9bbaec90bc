"""The containers of every library, and the operations that frames call."""

from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cpu_fallback
import gpu_encode.seam.ops
from gpu_encode.seam.ops import use_backend
from gpu_encode.tables.categories import values, vocabulary


@pytest.fixture(params=["numpy", "compiled"])
def ops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "numpy":
        yield cpu_fallback
        return
    # Number rows as if there were many, however few there are.
    monkeypatch.setattr(gpu_encode.seam.ops, "LOADED_ROWS", 0)
    monkeypatch.setitem(gpu_encode.seam.ops.LOADING_ROWS, gpu_encode.seam.ops.STRINGS, 0)
    monkeypatch.setattr(values, "FEW", 0)
    monkeypatch.setattr(vocabulary, "_FEW", 0)
    with use_backend("compiled"):
        yield import_module("cpu_fallback.compiled")


def arrow(values: list[Any]) -> pa.Array:
    large = any(isinstance(value, int) and value >= 2**63 for value in values)
    return pa.array(values, pa.uint64() if large else None)


def pandas_object(values: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({"c": pd.Series(values, dtype=object)})


def numpy_object(values: list[Any]) -> np.ndarray:
    array = np.empty((len(values), 1), object)
    array[:, 0] = values
    return array


def chunked(values: list[Any]) -> pa.Table:
    array = arrow(values)
    return pa.table({"c": pa.chunked_array([array[:2], array[2:], array[:0]])})


# Each function builds a frame of one column "c" from a list in which None is null.
KINDS = {
    "numpy": numpy_object,
    "pandas": lambda values: pd.DataFrame({"c": values}),
    "pandas-object": pandas_object,
    "pandas-category": lambda values: pandas_object(values).astype("category"),
    "pandas-arrow": lambda values: pd.DataFrame({"c": pd.arrays.ArrowExtensionArray(arrow(values))}),
    "polars": lambda values: pl.DataFrame({"c": pl.Series(values, strict=False)}),
    "pyarrow": lambda values: pa.table({"c": arrow(values)}),
    "pyarrow-chunked": chunked,
    "pyarrow-dictionary": lambda values: pa.table({"c": arrow(values).dictionary_encode()}),
    "pyarrow-batch": lambda values: pa.record_batch({"c": arrow(values)}),
    "list": lambda values: [[value] for value in values],
}


@pytest.fixture(params=KINDS)
def build(request: pytest.FixtureRequest) -> Any:
    return KINDS[request.param]
