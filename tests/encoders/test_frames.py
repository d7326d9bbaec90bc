"""The kind of table changes no bit, and the output has the kind of the input."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gpu_encode import KFold, LeaveOneOut, TargetEncoder
from tests.bits import assert_same_bits
from tests.cases import named

CITIES = ["b", "a", None, "ä", "b", "a", "c", "b", None, "a", "", "b"]
NUMBERS = [3, 1, 2, 3, None, 1, 2, 3, 3, 1, None, 2]
INDEX = pd.Index(range(100, 112), name="row")
OBJECTS = pd.DataFrame({"city": CITIES, "number": NUMBERS}, index=INDEX, dtype=object)


def frame(city, number):
    return pd.DataFrame({"city": city, "number": number}, index=INDEX)


def categories():
    return frame(
        pd.Categorical(CITIES, categories=["unused", "c", "b", "ä", "a", ""], ordered=True),
        pd.Categorical(np.array(NUMBERS, dtype=float), categories=[9.0, 3.0, 2.0, 1.0]),
    )


def table():
    return pa.table({"city": pa.array(CITIES), "number": pa.array(NUMBERS, pa.int16())})


def dictionaries():
    one, two = (pa.array(part).dictionary_encode() for part in (CITIES[:5], CITIES[5:]))
    return pa.table({"city": pa.chunked_array([one, two]), "number": pa.chunked_array([NUMBERS[:5], NUMBERS[5:]])})


def repeated_entries():
    """A dictionary in which values stand twice, null is one of them, and others are of no row."""
    entries = ["b", "a", "never", "ä", "b", None, "c", ""]
    places = {"b": [0, 4], "a": [1], None: [5, None], "ä": [3], "c": [6], "": [7]}
    indices = [places[city][row % len(places[city])] for row, city in enumerate(CITIES)]
    city = pa.DictionaryArray.from_arrays(pa.array(indices), pa.array(entries))
    return pa.table({"city": city, "number": NUMBERS})


def polars(city=pl.String, number=pl.Int64):
    return pl.DataFrame({"city": CITIES, "number": NUMBERS}, schema={"city": city, "number": number})


NAMED = {
    "objects": OBJECTS.copy,
    "nullable": lambda: OBJECTS.astype({"city": "string", "number": "Int32"}),
    "floats": lambda: OBJECTS.astype({"number": float}).infer_objects(),
    "categories": categories,
    "arrow-backed": lambda: OBJECTS.astype({"city": pd.ArrowDtype(pa.large_string()), "number": "int8[pyarrow]"}),
    "table": table,
    "dictionaries": dictionaries,
    "repeated entries": repeated_entries,
    "batch": lambda: table().to_batches()[0],
    "polars": polars,
    "polars categories": lambda: polars(pl.Categorical, pl.Float32),
    "polars enumeration": lambda: polars(pl.Enum(["q", "", "c", "a", "ä", "b"])),
}
UNNAMED = {"array": OBJECTS.to_numpy, "rows": lambda: OBJECTS.to_numpy().tolist()}
PARAMETERS = {
    "default": {},
    "joint": {"columns": [0, (0, 1), 1], "indicators": True, "handle_missing": "prior"},
    "rows": {"cv": LeaveOneOut(), "smooth": 2.5},
    "blow-up": {"cv": KFold(3, blow_up=True)},
}


# A table is read on the host whatever follows: the simulator sees each kind of table once.
@pytest.mark.parametrize("make", named(NAMED | UNNAMED))
@pytest.mark.parametrize("parameters", named(PARAMETERS, ("joint",)))
def test_encodings(make, parameters, y):
    whole, encoder = (TargetEncoder(target_type="continuous", **parameters) for _ in range(2))
    assert_same_bits(encoder.fit_transform(make(), y), whole.fit_transform(OBJECTS, y))
    for mine, theirs in zip(encoder.encodings_, whole.encodings_, strict=True):
        assert_same_bits(mine, theirs)


@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")
@pytest.mark.parametrize("there", ["objects", "categories", "repeated entries", "polars", "array"])
@pytest.mark.parametrize("here", named(NAMED | UNNAMED, ("objects", "table")))
def test_fit_here_transform_there(here, there, y):
    parameters = {"columns": [1, (0, 1), 0]}
    expected = TargetEncoder(**parameters).fit(OBJECTS, y).transform(OBJECTS)
    assert_same_bits(TargetEncoder(**parameters).fit(here(), y).transform((NAMED | UNNAMED)[there]()), expected)


@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")
def test_fitted_on_an_array_all_columns_are_found_by_position(y):
    by_name, by_position = TargetEncoder().fit(polars(), y), TargetEncoder().fit(OBJECTS.to_numpy(), y)
    assert_same_bits(by_position.transform(polars()), by_name.transform(OBJECTS.to_numpy()))


@pytest.mark.host
@pytest.mark.parametrize("wanted", [None, "default", "pandas", "polars"])
@pytest.mark.parametrize("make", named(NAMED | UNNAMED))
def test_kind_of_the_output(make, wanted, y):
    """Unless the encoder is told, it gives the library of X; told "default", an array, as scikit-learn's own do."""
    data = make()
    kinds = {None: np.ndarray if isinstance(data, list) else type(data), "default": np.ndarray, "pandas": pd.DataFrame}
    encoder = TargetEncoder(columns=[0]).set_output(transform=wanted)
    for encodings in (encoder.fit_transform(data, y), encoder.transform(data)):
        assert type(encodings) is kinds.get(wanted, pl.DataFrame)
        if isinstance(encodings, pd.DataFrame) and isinstance(data, pd.DataFrame):
            pd.testing.assert_index_equal(encodings.index, INDEX)
            assert encodings["city"].dtype == np.float64
        elif isinstance(encodings, pl.DataFrame):
            assert encodings.schema.dtypes()[0] == pl.Float64
        elif isinstance(encodings, pa.Table | pa.RecordBatch):
            assert encodings.schema.types[0] == pa.float64()
        if wanted in ("pandas", "polars"):
            assert list(encodings.columns) == list(encoder.get_feature_names_out())
    # What was given is as it was.
    assert data.equals(make()) if hasattr(data, "equals") else np.array_equal(data, make())


@pytest.mark.host
@pytest.mark.parametrize("make", named(NAMED))
def test_no_rows(make, y):
    encoder = TargetEncoder().fit(make(), y)
    nothing = make().slice(0, 0) if hasattr(make(), "slice") else make()[:0]
    encodings = encoder.transform(nothing)
    assert encodings.shape == (0, 2)
    assert type(encodings) is type(nothing)


def test_narwhals_frames_stay_wrapped(y):
    nw = pytest.importorskip("narwhals")
    encoder = TargetEncoder()
    encodings = encoder.fit_transform(nw.from_native(polars()), y)
    assert isinstance(encodings, nw.DataFrame)
    assert_same_bits(encodings.to_native(), TargetEncoder().fit_transform(polars(), y))
    assert isinstance(encoder.transform(nw.from_native(table())).to_native(), pa.Table)
