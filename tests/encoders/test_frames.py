"""The kind of table makes no difference to a single bit, and comes out as it went in."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gpu_encode import KFold, LeaveOneOut, TargetEncoder
from tests.bits import assert_same_bits

CITIES = ["b", "a", None, "ä", "b", "a", "c", "b", None, "a", "", "b"]
NUMBERS = [3, 1, 2, 3, None, 1, 2, 3, 3, 1, None, 2]
INDEX = pd.Index(range(100, 112), name="row")


def frame(city, number):
    return pd.DataFrame({"city": city, "number": number}, index=INDEX)


def objects():
    return frame(pd.array(CITIES, dtype=object), pd.array(NUMBERS, dtype=object)).astype(object)


def nullable():
    return frame(pd.array(CITIES, dtype="string"), pd.array(NUMBERS, dtype="Int32"))


def floats():
    return frame(pd.array(CITIES, dtype="str"), np.array(NUMBERS, dtype=float))


def categories():
    return frame(
        pd.Categorical(CITIES, categories=["unused", "c", "b", "ä", "a", ""], ordered=True),
        pd.Categorical(np.array(NUMBERS, dtype=float), categories=[9.0, 3.0, 2.0, 1.0]),
    )


def arrow_backed():
    return frame(pd.array(CITIES, dtype=pd.ArrowDtype(pa.large_string())), pd.array(NUMBERS, dtype="int8[pyarrow]"))


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


def batch():
    return table().to_batches()[0]


def polars():
    return pl.DataFrame({"city": CITIES, "number": NUMBERS})


def polars_categories():
    return polars().with_columns(pl.col("city").cast(pl.Categorical), pl.col("number").cast(pl.Float32))


def polars_enumeration():
    return polars().with_columns(pl.col("city").cast(pl.Enum(["q", "", "c", "a", "ä", "b"])))


def array():
    return objects().to_numpy()


def rows():
    return [list(row) for row in zip(CITIES, NUMBERS, strict=True)]


NAMED = [objects, nullable, floats, categories, arrow_backed, table, dictionaries, repeated_entries, batch]
NAMED += [polars, polars_categories, polars_enumeration]
MAKERS = [*NAMED, array, rows]


PARAMETERS = {
    "default": {},
    "joint": {"columns": [0, (0, 1), 1], "indicators": True, "handle_missing": "prior"},
    "rows": {"cv": LeaveOneOut(), "smooth": 2.5},
    "blow-up": {"cv": KFold(3, blow_up=True)},
}
# A table is read on the host whatever follows: the simulator sees each kind of table once.
ONCE = [
    pytest.param(each, id=name, marks=() if name == "joint" else pytest.mark.host) for name, each in PARAMETERS.items()
]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("parameters", ONCE)
def test_training_codes(make, parameters, y):
    def encoder():
        return TargetEncoder(target_type="continuous", **parameters)

    found, expected = encoder(), encoder()
    assert_same_bits(found.fit_transform(make(), y), expected.fit_transform(objects(), y))
    for mine, theirs in zip(found.encodings_, expected.encodings_, strict=True):
        assert_same_bits(mine, theirs)


@pytest.mark.host
@pytest.mark.parametrize(("here", "there"), list(itertools.product(NAMED, NAMED)), ids=lambda make: make.__name__)
def test_fit_here_transform_there(here, there, y):
    parameters = {"columns": ["number", ("city", "number"), "city"]}
    expected = TargetEncoder(**parameters).fit(objects(), y).transform(objects())
    assert_same_bits(TargetEncoder(**parameters).fit(here(), y).transform(there()), expected)


@pytest.mark.parametrize("make", NAMED, ids=lambda make: make.__name__)
def test_frames_and_arrays(make, y):
    encoder = TargetEncoder(columns=["city", "number"]).fit(make(), y)
    expected = encoder.transform(make())
    assert_same_bits(encoder.transform(array()), expected)
    assert_same_bits(TargetEncoder(columns=[0, 1]).fit(array(), y).transform(make()), expected)


@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")
def test_fitted_on_an_array_all_columns_are_found_by_position(y):
    assert_same_bits(
        TargetEncoder().fit(array(), y).transform(polars()), TargetEncoder().fit(polars(), y).transform(array())
    )


@pytest.mark.host
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_same_kind_out(make, y):
    kind = np.ndarray if make is rows else type(make())
    encoder = TargetEncoder()
    for codes in (encoder.fit_transform(make(), y), encoder.transform(make())):
        assert type(codes) is kind
        if kind is pd.DataFrame:
            pd.testing.assert_index_equal(codes.index, INDEX)
            assert (codes.dtypes == np.float64).all()
        elif kind is pl.DataFrame:
            assert codes.schema.dtypes() == [pl.Float64, pl.Float64]
        elif kind is not np.ndarray:
            assert codes.schema.types == [pa.float64(), pa.float64()]


@pytest.mark.host
@pytest.mark.parametrize("wanted", ["pandas", "polars"])
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_wanted_kind_out(make, wanted, y):
    encoder = TargetEncoder(columns=[0]).set_output(transform=wanted)
    codes = encoder.fit_transform(make(), y)
    assert type(codes) is {"pandas": pd.DataFrame, "polars": pl.DataFrame}[wanted]
    assert list(codes.columns) == list(encoder.get_feature_names_out())
    encoded = codes[:, :1] if wanted == "polars" else codes.iloc[:, :1]
    assert_same_bits(encoded, np.array(TargetEncoder().fit_transform(make(), y))[:, :1])
    if isinstance(make(), pd.DataFrame) and wanted == "pandas":
        pd.testing.assert_index_equal(codes.index, INDEX)


@pytest.mark.host
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_no_rows_give_no_rows(make, y):
    encoder = TargetEncoder().fit(make(), y)
    if make is rows:
        nothing = np.empty((0, 2), dtype=object)
    else:
        nothing = make().slice(0, 0) if isinstance(make(), (pa.Table, pa.RecordBatch)) else make()[:0]
    codes = encoder.transform(nothing)
    assert codes.shape == (0, 2)
    assert type(codes) is type(nothing)


TARGETS = {
    "list": list,
    "Series": lambda y: pd.Series(y, index=range(50, 62)),
    "Arrow-backed": lambda y: pd.Series(y, dtype="double[pyarrow]"),
    "nullable": lambda y: pd.Series(y, dtype="Float64"),
    "polars": pl.Series,
    "arrow": pa.array,
    "chunked": lambda y: pa.chunked_array([y[:5], y[5:]]),
    "frame": lambda y: pd.DataFrame({"amount": y}),
    "table": lambda y: pa.table({"amount": y}),
    "column": lambda y: y.reshape(-1, 1),
}


@pytest.mark.parametrize("make", TARGETS.values(), ids=TARGETS.keys())
def test_kinds_of_target_weight_and_groups(make, y):
    weight = np.arange(12.0)
    expected = TargetEncoder().fit_transform(objects(), y, sample_weight=weight)
    # Values match by position: the index of a Series plays no part.
    assert_same_bits(TargetEncoder().fit_transform(objects(), make(y), sample_weight=make(weight)), expected)


def test_narwhals_frames_stay_wrapped(y):
    nw = pytest.importorskip("narwhals")
    encoder = TargetEncoder()
    codes = encoder.fit_transform(nw.from_native(polars()), y)
    assert isinstance(codes, nw.DataFrame)
    assert_same_bits(codes.to_native(), TargetEncoder().fit_transform(polars(), y))
    assert isinstance(encoder.transform(nw.from_native(table())).to_native(), pa.Table)


def test_frames_are_not_written_to(y):
    for make in NAMED:
        frame = make()
        TargetEncoder(columns=["city"]).fit_transform(frame, y)
        assert frame.equals(make())
