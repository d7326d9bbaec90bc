"""StatisticEncoder of columns of text and dates: every statistic by its definition, for every kind of table."""

import datetime
from fractions import Fraction
from itertools import pairwise

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from sklearn.model_selection import KFold

import gpu_encode as ge
from gpu_encode.fitting import model
from tests.encoders import visibility
from tests.family.members import same
from tests.scale.files.encoded import assert_same_table, encode, in_memory
from tests.scale.parts.in_parts import encoded_in_parts, parts_of

# Text and dates are numbered and looked up on the host, whatever the backend; test_date_backends.py asks the backends.
pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore::UserWarning")]

N = 48
RNG = np.random.default_rng(11)
WORDS = np.array(["ä", "b", "B", "", "bb", None], object)
DAY = np.datetime64("2020-03-28", "us") + (RNG.integers(0, 30, N) * 4000 + RNG.integers(0, 2, N)).astype("m8[s]")
X = pd.DataFrame(
    {
        "shop": RNG.choice(np.array(["x", "y", "z", None], object), N, p=[0.5, 0.3, 0.1, 0.1]),
        "word": pd.array(WORDS[RNG.integers(0, 6, N)], dtype=object),
        "when": pd.Series(DAY).dt.tz_localize("UTC").dt.tz_convert("Europe/Paris"),
        "fold": np.arange(N) * 11 % 4,
        "time": np.arange(N) * 7 % 10,
    }
)
X.loc[::9, "when"] = None
X.loc[5, "shop"] = "once"
OF_TEXT, OF_DATES = ["count", "nunique", "mode"], ["count", "nunique", "mode", "first", "last", "min", "max"]
ASKED = {"shop": {"word": OF_TEXT, "when": [*OF_DATES, "seconds_since_last"]}}
SCHEMES = {
    "all rows": ge.Greedy(),
    "folds": "fold",
    "leave-one-out": ge.LeaveOneOut(),
    "time folds": ge.TimeFolds(3, time="time"),
    "window": ge.TimeFolds(3, time="time", window=6),
}


def encoder(cv, asked=ASKED, **parameters):
    return ge.StatisticEncoder(asked, cv=cv, **parameters)


def seen_by(scheme):
    """Give the rows that each row sees."""
    if scheme == "all rows":
        return np.ones((N, N), bool)
    if scheme == "leave-one-out":
        return ~np.eye(N, dtype=bool)
    return visibility.visible(SCHEMES[scheme], X.assign(one="x", group=0)[["one", "group", "time", "fold"]])


def define(statistic, values, others):
    """Give a statistic of the visible values of a row's category, or of all visible values if there are none."""
    if statistic in ("count", "nunique"):
        return float(len(values) if statistic == "count" else len({*values}))
    values = values or others
    if not values:
        return None
    if statistic == "mode":
        return min(sorted({*values}), key=lambda value: -values.count(value))
    return min(values) if statistic in ("first", "min") else max(values)


def seconds_since(own, values):
    """Give the seconds from the latest of some moments before a row's own moment to the row's own moment."""
    earlier = [value for value in values if own is not None and value < own]
    if not earlier:
        return None
    return float(Fraction((own - max(earlier)) // pd.Timedelta(1, "us"), 10**6))


def in_python(column):
    """Give a column as a list, with None for missing values."""
    return [None if pd.isna(value) else value for value in column]


def oracle(sees, rows=X):
    """Give each column of encodings by its definition, in loops."""
    shops, columns = in_python(X["shop"]), {name: in_python(X[name]) for name in ("word", "when")}
    found = {}
    for name, statistics in ASKED["shop"].items():
        for statistic in statistics:
            encoded = []
            for row, (shop, own) in enumerate(zip(in_python(rows["shop"]), in_python(rows[name]), strict=True)):
                seen = [other for other in range(N) if sees[row][other] and columns[name][other] is not None]
                values = [columns[name][other] for other in seen if shops[other] == shop]
                if statistic == "seconds_since_last":
                    encoded.append(seconds_since(own, values))
                else:
                    encoded.append(define(statistic, values, [columns[name][other] for other in seen]))
            found[f"shop_{name}_{statistic}"] = encoded
    return found


def assert_defined(table, expected):
    assert list(table.columns)[: len(expected)] == list(expected)
    for name, values in expected.items():
        assert in_python(table[name]) == values, name


@pytest.mark.parametrize("scheme", SCHEMES)
def test_definition(scheme):
    made = encoder(SCHEMES[scheme])
    assert_defined(made.fit_transform(X), oracle(seen_by(scheme)))
    new = X.sample(frac=1.0, random_state=1).assign(when=lambda rows: rows["when"] + pd.Timedelta(1, "s"))
    everything = np.ones((N, N), bool)
    expected = oracle(everything, new.reset_index(drop=True))
    if scheme != "window":
        assert_defined(made.transform(new), expected)


def test_the_time_of_an_order_is_the_column_of_dates():
    """In order of its date a row sees the earlier rows; rows of one moment see neither each other nor that moment."""
    asked = {"shop": {"when": ["seconds_since_last", "count"]}}
    rows = X.dropna().reset_index(drop=True)
    training = encoder(ge.Ordered(time="when"), asked).fit_transform(rows)
    for row, (shop, own) in enumerate(zip(rows["shop"], rows["when"], strict=True)):
        seen = rows["when"][(rows["shop"] == shop) & (rows["when"] < own)]
        assert training["shop_when_count"][row] == len(seen)
        assert in_python([training["shop_when_seconds_since_last"][row]]) == [seconds_since(own, list(seen))]


@pytest.mark.parametrize("scheme", ["folds", "leave-one-out", "time folds"])
def test_no_leak(scheme):
    """Another word or date in a row changes nothing in its own encodings but the seconds to its own date."""
    made = encoder(SCHEMES[scheme])
    before = made.fit_transform(X)
    for row in (0, 1, 5, 17):
        other = X.copy()
        other.loc[row, "word"] = "another"
        other.loc[row, "when"] = X["when"].max() + pd.Timedelta(3, "D")
        after = encoder(SCHEMES[scheme]).fit_transform(other)
        kept = [name for name in before if name.startswith("shop_") and not name.endswith("seconds_since_last")]
        same(after.loc[[row], kept], before.loc[[row], kept])


TABLES = {
    "polars": pl.from_pandas(X),
    "arrow": pa.Table.from_pandas(X, preserve_index=False),
    "batch": pa.RecordBatch.from_pandas(X, preserve_index=False),
    "categories": X.astype({"word": "category"}),
    "strings": X.astype({"word": "str"}),
    "pieces": [X[:11], X[11:11], pa.Table.from_pandas(X[11:], preserve_index=False)],
}


@pytest.mark.parametrize("scheme", ["all rows", "folds", "leave-one-out"])
@pytest.mark.parametrize("kind", TABLES)
def test_tables(kind, scheme):
    """Each kind of table holds the same text, and dates of the same unit and zone, in its own types."""
    made, plain, table = encoder(SCHEMES[scheme]), encoder(SCHEMES[scheme]), TABLES[kind]
    for output, expected in (
        (made.fit_transform(table), plain.fit_transform(X)),
        (made.transform(table), plain.transform(X)),
    ):
        assert type(output) is type(table)
        if kind in ("polars", "arrow", "batch"):
            arrow = output.to_arrow() if kind == "polars" else output
            assert arrow.schema.field("shop_when_last").type == pa.timestamp("us", "Europe/Paris")
        parts = output if isinstance(output, list) else [output]
        frames = [part if isinstance(part, pd.DataFrame) else part.to_pandas() for part in parts]
        names = [name for name in expected if name.startswith("shop_")]
        whole = pd.concat([part[names] for part in frames], ignore_index=True)
        same(whole.astype(expected.dtypes[names]), expected[names])
        assert whole["shop_when_last"].dtype == X["when"].dtype


UNITS = {"seconds": "s", "milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("zone", [None, "Asia/Tokyo", "+05:30"])
def test_units_and_zones(unit, zone):
    held = pd.Series(pd.DatetimeIndex(X["when"].dt.tz_localize(None)).as_unit(unit))
    rows = pd.DataFrame({"shop": X["shop"], "when": held if zone is None else held.dt.tz_localize(zone)})
    asked = {"shop": {"when": ["last", "seconds_since_last"]}}
    table = encoder("auto", asked).fit_transform(rows)
    assert table["shop_when_last"].dtype == rows["when"].dtype
    ticks = held.astype(f"datetime64[{unit}]")
    for shop, own, seconds in zip(in_python(X["shop"]), in_python(ticks), table.iloc[:, 1], strict=True):
        values = [moment for moment, other in zip(in_python(ticks), in_python(X["shop"]), strict=True) if other == shop]
        assert in_python([seconds]) == [seconds_since(own, [value for value in values if value is not None])]


def test_dates_without_a_time():
    days = [datetime.date(2020, 1, 1), None, datetime.date(2020, 1, 4), datetime.date(1920, 5, 6)]
    table = pa.table({"k": ["a"] * 4, "day": days})
    output = encoder("auto", {"k": {"day": ["mode", "last", "seconds_since_last"]}}).fit_transform(table)
    assert output.schema.field("k_day_last").type == pa.date32()
    assert output["k_day_last"].to_pylist() == [days[2]] * 4
    assert output["k_day_mode"].to_pylist() == [days[3]] * 4
    apart = [(days[0] - days[3]).days * 86400.0, None, 3 * 86400.0, None]
    assert in_python(output["k_day_seconds_since_last"].to_pylist()) == apart


def test_arrays_hold_objects():
    array = X[["shop", "word", "when"]].astype(object).to_numpy()
    asked = {0: {1: ["mode", "nunique"], 2: ["last", "seconds_since_last"]}}
    output = encoder("auto", asked).fit_transform(array)
    named = encoder("auto", {"shop": {"word": ["mode", "nunique"], "when": ["last", "seconds_since_last"]}})
    expected = named.fit_transform(X)
    assert output.dtype == object
    assert output[:, 0].tolist() == expected["shop_word_mode"].tolist()
    assert (output[:, 2] == expected["shop_when_last"].dt.tz_convert(None).to_numpy()).all()
    np.testing.assert_array_equal(output[:, 3].astype(float), expected["shop_when_seconds_since_last"])


def parts_and_states(made):
    """Give encoders that have learned the same rows in other ways."""
    cuts = list(pairwise([0, 7, 8, 30, N]))
    added = made()
    for start, stop in cuts:
        added.partial_fit(X[start:stop])
    merged = made().fit(X[30:])
    merged.merge(made().fit(X[:9]), made().fit(X[9:30]))
    longer = X.assign(word="gone", when=X["when"] + pd.Timedelta(7, "us"), shop="gone")
    return [added, merged, made().fit(pd.concat([X, longer])).forget(longer)]


def test_parts_and_states(tmp_path):
    def made():
        return encoder("auto")

    whole = made().fit(X)
    expected = whole.transform(X)
    whole.save(tmp_path / "whole")
    for number, other in enumerate(parts_and_states(made)):
        same(other.transform(X), expected)
        other.save(tmp_path / str(number))
        if number < 2:
            assert (tmp_path / str(number)).read_bytes() == (tmp_path / "whole").read_bytes()
        same(ge.load(tmp_path / str(number)).transform(X), expected)
    with pytest.raises(ValueError, match="forget was given the label 'never'"):
        made().fit(X).forget(X[:2].assign(word="never"))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_parts(scheme):
    expected = encoder(SCHEMES[scheme]).fit_transform(X)
    parts = encoded_in_parts(encoder(SCHEMES[scheme]), parts_of(X, None, cuts=(5, 6, 29)))
    same(pd.concat(parts), expected)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_files(scheme, ending, tmp_path):
    """Chunks of files give what one table gives, and the model that was saved gives new files the same."""
    rows = TABLES["arrow"].drop_columns(["time"]) if scheme == "folds" else TABLES["arrow"]
    if ending == "csv":
        # Such files have no time zones, and empty text is missing in them.
        local = pa.array(X["when"].dt.tz_localize(None).astype("datetime64[s]"))
        rows = rows.set_column(2, "when", local).set_column(1, "word", pa.array(X["word"].replace("", "b")))
        pacsv.write_csv(rows, tmp_path / "rows.csv")
        rows = pacsv.read_csv(tmp_path / "rows.csv", convert_options=pacsv.ConvertOptions(strings_can_be_null=True))
    else:
        pq.write_table(rows, tmp_path / "rows.parquet")
    fitted, expected = in_memory(encoder(SCHEMES[scheme]), rows, [])
    made, source = encoder(SCHEMES[scheme]), tmp_path / f"rows.{ending}"
    # Parquet has no whole seconds, which Arrow's files have.
    encode(source, tmp_path / "encoded.arrow", made, None, chunk_rows=7)
    assert_same_table(feather.read_table(tmp_path / "encoded.arrow"), expected)
    ge.transform_dataset(source, tmp_path / "new.arrow", made)
    assert_same_table(feather.read_table(tmp_path / "new.arrow"), fitted.transform(rows))


@pytest.mark.parametrize("scheme", ["all rows", "folds", "leave-one-out"])
def test_partitions(scheme):
    partitions, made = dd.from_pandas(X, npartitions=3), encoder(SCHEMES[scheme])
    names = [f"shop_{value}_{name}" for value, listed in ASKED["shop"].items() for name in listed]
    plain = encoder(SCHEMES[scheme])
    expected = plain.fit_transform(X)[names]
    training = made.fit_transform(partitions)
    assert training.dtypes[names].tolist() == expected.dtypes.tolist()
    same(training.compute()[names], expected)
    same(made.transform(partitions).compute()[names], plain.transform(X)[names])


def test_small_floats(monkeypatch):
    """Text and dates do not depend on the type of the numbers beside them."""
    asked, names = {"shop": {"when": ["last", "count"]}}, ["shop_when_last", "shop_when_count"]
    small = encoder("fold", asked, dtype="float32").fit_transform(X)[names]
    same(small.astype({"shop_when_count": float}), encoder("fold", asked).fit_transform(X)[names])
    monkeypatch.setattr(model, "MOST_INDICES", 3)
    with pytest.raises(ValueError, match=r"'when' of values has .* but dtype='float32' can tell only 3 apart"):
        encoder("fold", asked, dtype="float32").fit(X)


def test_weights_repeat_rows():
    times = np.arange(N) % 3
    repeated = encoder("auto").fit(X.loc[np.repeat(np.arange(N), times)])
    weighted = encoder("auto").fit(X, sample_weight=times)
    seen = X[times > 0]
    same(weighted.transform(seen), repeated.transform(seen))
    with pytest.raises(ValueError, match="distinct values and dates need whole weights"):
        encoder("auto").fit(X, sample_weight=times / 2)


def test_policies():
    asked = {"shop": {"word": ["mode"], "when": ["seconds_since_last"]}}
    new = pd.DataFrame({"shop": ["never", None, "x"], "word": [None] * 3, "when": [X["when"].max()] * 3})
    new = new.assign(fold=0, time=0)
    plain = encoder("auto", asked).fit(X).transform(new)
    words = in_python(X["word"])
    assert plain["shop_word_mode"][0] == min(sorted({*words} - {None}), key=lambda word: -words.count(word))
    assert in_python(plain["shop_when_seconds_since_last"])[0] is None
    missing = encoder("auto", asked, handle_unknown="nan", handle_missing="nan").fit(X).transform(new)
    assert in_python(missing["shop_word_mode"])[:2] == [None, None]
    assert in_python(missing["shop_when_seconds_since_last"])[:2] == [None, None]
    assert missing.iloc[2].equals(plain.iloc[2])
    rare = encoder("auto", asked, min_count=10**6).fit(X).transform(new)
    assert in_python(rare["shop_when_seconds_since_last"]) == [None] * 3
    number = encoder("auto", {"shop": {"when": ["seconds_since_last"]}}, handle_unknown=-1.0)
    assert number.fit(X).transform(new)["shop_when_seconds_since_last"][0] == -1.0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_too_few_rows_are_no_category(scheme):
    asked = {"shop": {"when": ["count", "seconds_since_last"]}}
    whole = encoder(SCHEMES[scheme], asked).fit_transform(X)
    few = whole["shop_when_count"] < 9
    table = encoder(SCHEMES[scheme], asked, min_count=9, handle_unknown=-5.0).fit_transform(X)
    assert few.any()
    assert (table["shop_when_seconds_since_last"][few] == -5.0).all()
    same(table[~few], whole[~few])
    made = encoder(SCHEMES[scheme], asked, min_count=9, handle_unknown=-5.0)
    same(pd.concat(encoded_in_parts(made, parts_of(X, None, cuts=(20,)))), table)


def test_splits_of_scikit_learn():
    """Some rows are in no training set, so that the splits do not know all text and dates."""
    splits = [(training[::2], test) for training, test in KFold(3).split(X)]
    sees = np.zeros((N, N), bool)
    for training, test in splits:
        sees[np.ix_(test, training)] = True
    assert_defined(encoder(splits).fit_transform(X), oracle(sees))


def test_given_categories():
    """Rows of values that are not listed are one unknown, which sees nothing."""
    asked = {"shop": {"when": ["seconds_since_last"], "word": ["mode"]}}
    table = encoder("auto", asked, categories=[["x"]], handle_unknown="nan").fit_transform(X)
    listed = X["shop"] == "x"
    same(table[listed], encoder("auto", asked).fit_transform(X)[listed])
    assert table[~listed].iloc[:, :2].isna().all(axis=None)


def test_new_rows_need_their_dates_alone():
    made = encoder("auto").fit(X)
    with pytest.raises(ValueError, match="The fitted column 'when' is not a column of X"):
        made.transform(X.drop(columns="when"))
    expected, names = made.transform(X), [name for name in made.get_feature_names_out() if name.startswith("shop_")]
    same(made.transform(X.drop(columns="word"))[names], expected[names])
    last = encoder("auto", {"shop": {"when": ["last"]}}).fit(X)
    same(last.transform(X.drop(columns="when"))[["shop_when_last"]], expected[["shop_when_last"]])
    everything = ge.StatisticEncoder(["seconds_since_last"], values=["when"]).fit(X[["shop", "when"]])
    assert everything.transform(X[["shop", "when"]]).shape == (N, 1)
    with pytest.raises(ValueError, match="now missing:\n- when"):
        everything.transform(X[["shop"]])
    array = ge.StatisticEncoder({0: {1: ["seconds_since_last"]}}).fit(X[["shop", "when"]].astype(object).to_numpy())
    with pytest.raises(ValueError, match="X has 1 features"):
        array.transform(X[["shop"]].to_numpy())


REFUSED = {
    "first of numbers": ({"statistics": ["first"], "values": ["time"]}, "'first' .* is for columns of dates.* 'min'"),
    "seconds of a target": ({"statistics": ["seconds_since_last"], "columns": ["shop"]}, "is for columns of dates"),
    "mean of text": ({"statistics": {"shop": {"word": ["mean"]}}}, "'word' holds text, for which .* 'mean' is for num"),
    "first of text": ({"statistics": {"shop": {"word": ["first"]}}}, "'word' holds text"),
    "median of dates": ({"statistics": {"shop": {"when": ["median"]}}}, "'when' holds dates"),
    "scale": ({"statistics": {"shop": {"word": ["nunique"]}}, "scale": "log1p"}, "scale='log1p' .* are text"),
    "a number": (
        {"statistics": {"shop": {"when": ["last"]}}, "handle_unknown": 0.0},
        "handle_unknown=0.0 .* are dates",
    ),
    "another order": (
        {"statistics": {"shop": {"when": ["seconds_since_last"]}}, "cv": ge.Ordered(time="time")},
        r"takes rows in the order of its own column.*\['when'\]",
    ),
    "an order": (
        {"statistics": {"shop": {"when": ["last"]}}, "cv": ge.Ordered()},
        "needs the sorted values of a category",
    ),
    "blow-up": (
        {"statistics": {"shop": {"when": ["seconds_since_last"]}}, "cv": ge.KFold(3, blow_up=True)},
        "has one column, but blow_up",
    ),
    "half-life": (
        {"statistics": {"shop": {"when": ["seconds_since_last"]}}, "cv": ge.TimeFolds(3, time="time", half_life=2)},
        "needs whole rows",
    ),
}


@pytest.mark.parametrize(("parameters", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals(parameters, message):
    y = None if "values" in parameters or isinstance(parameters["statistics"], dict) else np.arange(N)
    with pytest.raises((ValueError, TypeError), match=message):
        ge.StatisticEncoder(**parameters).fit(X, y)


def test_one_kind_in_all_parts():
    made = encoder("auto", {"shop": {"word": ["mode"]}}).partial_fit(X)
    with pytest.raises(ValueError, match="'word' of values holds text in some rows and numbers, or nothing,"):
        made.partial_fit(X.assign(word=1))
    dates = encoder("auto", {"shop": {"when": ["seconds_since_last"]}}).fit(X)
    with pytest.raises(ValueError, match="'when' was fitted on datetime with time zone values and now holds datetime"):
        dates.transform(X.assign(when=X["when"].dt.tz_localize(None)))
    with pytest.raises(TypeError, match="'word' holds dates, times or spans"):
        made.fit(X.assign(word=X["when"] - X["when"]))


def test_calibration_rows_see_nothing():
    cv = ge.Holdout(0.5, new_rows="all", calibration_rows="nan", random_state=2)
    table = encoder(cv, {"shop": {"when": ["last", "seconds_since_last"]}}).fit_transform(X)
    blind = table["shop_when_last"].isna()
    assert 0 < blind.sum() < N
    assert table["shop_when_seconds_since_last"][blind].isna().all()
    assert table["shop_when_seconds_since_last"][~blind].notna().any()
