"""Few rows of text are looked up by Python's hashes: codes and errors are the same as for many rows."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cpu_fallback.types import MISSING, UNKNOWN
from gpu_encode.seam.ops import host
from gpu_encode.tables.categories.vocabulary import Vocabulary
from gpu_encode.tables.frames import read
from gpu_encode.tables.frames.factorizing import FEW_ROWS

pytestmark = pytest.mark.host
WORDS = Vocabulary.from_values(["b", "", "städte", "a"], "word")[0]
ROWS = ["a", None, "städte", "straße", "b", "", "zz"]
CODES = [3, MISSING, 2, UNKNOWN, 0, 1, UNKNOWN]
NO_NULL = [row or "" for row in ROWS]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"word": pd.array(ROWS, dtype="str")}),
        pd.DataFrame({"word": ROWS}, dtype=object),
        pl.DataFrame({"word": ROWS}),
        pa.table({"word": pa.chunked_array([ROWS[:2], [], ROWS[2:]])}),
        pa.table({"word": pa.array(ROWS, pa.string_view())}),
    ],
)
def test_codes_of_few_rows(table):
    codes = read(table).lookup(0, WORDS, host(1))
    assert codes.dtype == np.int32
    assert codes.tolist() == CODES


@pytest.mark.parametrize("times", [1, FEW_ROWS])
def test_text_of_fixed_width(times):
    codes = read(np.array(NO_NULL * times)[:, None]).lookup(0, WORDS, host(1))
    assert codes.tolist() == [1 if code == MISSING else code for code in CODES] * times
    with pytest.raises((ValueError, TypeError), match="text"):
        read(np.array(["a", "\ud800"] * times)[:, None]).lookup(0, WORDS, host(1))


def test_text_that_files_hold():
    broken = pa.array([b"a", b"\xff", None], pa.binary()).cast(pa.binary()).view(pa.string())
    assert read(pa.table({"word": broken})).lookup(0, WORDS, host(1)).tolist() == [3, UNKNOWN, MISSING]


def test_columns_of_pandas_by_name_and_by_position():
    for labels in (["x", "y"], [1, 0], [("x", "a"), ("x", "b")], pd.MultiIndex.from_tuples([("x", "a"), ("x", "b")])):
        frame = pd.DataFrame([["a", "b"]], columns=labels)
        assert [read(frame).lookup(place, WORDS, host(1)).tolist() for place in (0, 1)] == [[3], [0]]
