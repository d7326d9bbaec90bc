"""Expressions of polars give the bits of `transform`, or the export is refused."""

import datetime

import numpy as np
import polars as pl
import pytest

import gpu_encode as ge
from gpu_encode.serve.export import to_polars
from tests.bits import assert_same_bits
from tests.family.members import MEMBERS, ROWS
from tests.serve.export.test_arrow import NEW, TREES

pytestmark = [
    pytest.mark.host,
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
# Expressions cannot refuse rows, or express encodings that do not follow from single keys.
REFUSED = ("cannot be exported", "cannot refuse rows")


def check(encoder, rows):
    """Demand that expressions give the result of `transform`, for frames and lazy frames."""
    expected = encoder.transform(rows)
    found = rows.lazy().select(to_polars(encoder)).collect()
    assert found.columns == expected.columns
    assert found.schema == expected.schema
    for name in expected.columns:
        if expected[name].dtype.is_numeric():
            assert_same_bits(found[name].to_numpy(), expected[name].to_numpy())
        else:
            assert found[name].to_list() == expected[name].to_list()


@pytest.mark.parametrize("name", MEMBERS)
def test_every_member_of_the_family(name):
    make, y = MEMBERS[name]
    encoder = make().fit(ROWS, y)
    try:
        to_polars(encoder)
    except (TypeError, ValueError) as error:
        refused = str(error)
        assert any(reason in refused for reason in REFUSED)
        by_key = encoder._model.by_key
        assert not by_key or any("error" in str(value) for value in encoder.get_params().values())
        return
    for rows in (ROWS, NEW):
        check(encoder, pl.from_pandas(rows))


@pytest.mark.parametrize("tree", [name for name in TREES if "handle_unknown" not in TREES[name]])
def test_hierarchies(tree):
    encoder = ge.TargetEncoder(smooth=2.0, target_type="continuous", **TREES[tree]).fit(ROWS, ROWS["rank"])
    for rows in (ROWS, NEW):
        check(encoder, pl.from_pandas(rows))


def test_prefixes_and_parts_of_any_text():
    words = ["ab.c", "ab", "ä.ö.ü", "ä.ö", ".", "", "ab.c.d", "abc", None]
    rows, new = pl.DataFrame({"x": words}), pl.DataFrame({"x": [*words, "ab.", "ab.x", "äö", "ä", "..", "abd", "a"]})
    for rule in (ge.Prefixes(3, 2, 1), ge.Parts("."), ge.Parts(".", from_end=True)):
        encoder = ge.TargetEncoder(hierarchy={"x": rule}, smooth=1.0, target_type="continuous")
        check(encoder.fit(rows, np.arange(len(words))), new)


NUMBERS = {
    "int8": pl.Series([1, 2, None, -3], dtype=pl.Int8),
    "int64": pl.Series([1, 2**53, 2**53 + 1, None, -(2**63)]),
    "uint64": pl.Series([2**64 - 1, 2**63, 1, None], dtype=pl.UInt64),
    "float64": pl.Series([1.0, 0.1, float("nan"), None, -0.0, 2.0**53, 2.0**63]),
    "float32": pl.Series([1.0, 0.1, None, 1.5], dtype=pl.Float32),
    "boolean": pl.Series([True, False, None]),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_of_all_types(kind):
    rows = pl.DataFrame({"x": NUMBERS[kind]})
    single = ge.TargetEncoder(smooth=None, target_type="continuous").fit(rows, np.arange(len(rows)))
    joint = ge.CountEncoder(columns=[("x", "z")]).fit(rows.with_columns(z=pl.lit("z")))
    ones = ge.OneHotEncoder(sparse_output=False, handle_unknown="ignore").fit(rows)
    for others in NUMBERS.values():
        new = pl.DataFrame({"x": others})
        check(single, new)
        check(ones, new)
        check(joint, new.with_columns(z=pl.lit("z")))


MOMENTS = [datetime.datetime(2024, 2, 29), datetime.datetime(1969, 12, 31, 23, 59, 59, 999_000), None]


def test_dates_of_all_units():
    kinds = [pl.Series(MOMENTS).cast(pl.Datetime(unit)) for unit in ("ms", "us", "ns")]
    kinds.append(pl.Series(MOMENTS).cast(pl.Date))
    # A moment that no coarser unit can hold.
    kinds.append((pl.Series(MOMENTS).cast(pl.Datetime("ns")).to_physical() + 1).cast(pl.Datetime("ns")))
    for fitted in kinds:
        encoder = ge.CountEncoder().fit(pl.DataFrame({"x": fitted}))
        for others in kinds:
            check(encoder, pl.DataFrame({"x": others}))
    zoned = pl.DataFrame({"x": kinds[1].dt.replace_time_zone("Europe/Berlin")})
    encoder = ge.CountEncoder().fit(zoned)
    check(encoder, zoned)
    check(encoder, zoned.with_columns(pl.col("x").dt.convert_time_zone("Asia/Tokyo")))


def test_text_is_text_in_every_type():
    encoder = ge.CountEncoder().fit(pl.DataFrame({"x": ["true", "1", None, "b"]}))
    for dtype in (pl.String, pl.Categorical, pl.Enum(["b", "c", "true"])):
        check(encoder, pl.DataFrame({"x": pl.Series(["b", "c", None, "true"], dtype=dtype)}))
    encoder = ge.CountEncoder().fit(pl.DataFrame({"x": [b"a", b"\x00\xff", None]}))
    check(encoder, pl.DataFrame({"x": [b"\x00\xff", b"x", None]}))


@pytest.mark.parametrize("fitted", ["text", "numbers", "dates"])
@pytest.mark.parametrize("given", ["text", "numbers", "dates", "booleans"])
def test_columns_of_another_kind_are_an_error(fitted, given):
    kinds = {"text": ["1", "true"], "numbers": [1, 0], "dates": MOMENTS[:2], "booleans": [True, False]}
    if fitted == given or (fitted, given) == ("numbers", "booleans"):
        return
    encoder = ge.CountEncoder().fit(pl.DataFrame({"x": kinds[fitted]}))
    rows = pl.DataFrame({"x": kinds[given]})
    with pytest.raises(ValueError, match="x"):
        encoder.transform(rows)
    with pytest.raises(pl.exceptions.StructFieldNotFoundError, match=r"^(text|number|date) column x\n"):
        rows.lazy().select(to_polars(encoder)).collect()


@pytest.mark.parametrize("name", ["text", "number", "flag", "day", "time", "zone", "bytes"])
@pytest.mark.parametrize("joint", [False, True])
def test_a_column_without_any_value(name, joint):
    day, time = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 7)
    values = {"text": "x", "number": 1.5, "flag": True, "day": day, "time": time, "bytes": b"x"}
    X = pl.DataFrame({column: [value, None, value, None] for column, value in values.items()})
    X = X.with_columns(zone=pl.col("time").dt.replace_time_zone("UTC"), other=pl.Series(["a", "b", "b", "a"]))
    encoder = ge.TargetEncoder(columns=[(name, "other") if joint else name]).fit(X, [0, 1, 1, 0])
    new = X.with_columns(pl.lit(None).alias(name))
    assert new.schema[name] == pl.Null
    column = encoder.get_feature_names_out()[0]
    for rows in (new, new.head(0)):
        ours = encoder.transform(rows)[column].to_list()
        assert rows.select(to_polars(encoder))[column].to_list() == ours
        assert rows.lazy().select(to_polars(encoder)).collect()[column].to_list() == ours


@pytest.mark.parametrize("name", ["*", "^a.*$", "", "^$", "text column x"])
def test_names_are_no_patterns(name):
    rows = pl.DataFrame({name: ["a", "b", "a"], "ab": ["a", "c", None], "a": [1, 2, 3]})
    check(ge.CountEncoder(columns=[name, (name, "ab")], indicators=["missing"]).fit(rows), rows)
    check(ge.CountEncoder(columns=["ab"]).fit(rows), rows)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_columns_of_zeros_and_ones(dtype):
    parameters = {"sparse_output": False, "dtype": dtype, "columns": ["city", "zip", ("city", "held")]}
    for policy in ({"handle_unknown": "ignore", "drop": "first"}, {"handle_unknown": "warn", "min_frequency": 3}):
        encoder = ge.OneHotEncoder(**parameters, **policy).fit(ROWS)
        assert len(to_polars(encoder)) == encoder._columns.n_columns + len(encoder._model.selection.passed)
        check(encoder, pl.from_pandas(NEW))
    with pytest.raises(ValueError, match="polars cannot refuse rows"):
        to_polars(ge.OneHotEncoder(**parameters).fit(ROWS))


def test_what_polars_cannot_do():
    rows = pl.DataFrame({"x": [datetime.timedelta(1), datetime.timedelta(2)], "ip": ["10.1.2.3", "10.1.2.4"]})
    with pytest.raises(TypeError, match=r"Values of type Duration.* of column 'x' cannot be exported to polars"):
        to_polars(ge.CountEncoder(columns=["x"]).fit(rows))
    with pytest.raises(TypeError, match=r"Levels by Bits.* of column 'ip' cannot be exported to polars"):
        to_polars(ge.TargetEncoder(columns=["ip"], hierarchy={"ip": ge.Bits(24)}, smooth=1.0).fit(rows, [0, 1]))
    with pytest.raises(ValueError, match=r"polars cannot refuse rows, .* of 'ip'"):
        to_polars(ge.TargetEncoder(columns=["ip"], handle_unknown="error").fit(rows, [0, 1]))
