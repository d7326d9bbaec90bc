"""One row at a time: the values of `transform`, bit by bit, for every encoder, policy and kind of value."""

import datetime
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

import gpu_encode as ge
from tests.family.members import JOINT, MEMBERS, ROWS, SOLD, N

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.host]
LABELS = list(ROWS.columns)
# Rows of fit, and new ones: unknown, missing, and equal numbers of other types.
RECORDS = [
    *ROWS.astype(object).to_dict("records")[:: N // 12],
    *(
        dict(zip(LABELS, row, strict=True))
        for row in [
            ("never", 4, 0.25, 3, True),
            ("a", 5, None, 3, True),
            (None, None, np.nan, None, None),
            ("b", 4.0, -0.0, 3.0, 1),
            ("c", True, 0.5, False, 0),
            (np.nan, 9.5, 1, 2.5, None),
            (np.str_("d"), np.int64(16), np.float32(0.5), np.int8(2), np.bool_(False)),
            ("städte", Decimal(9), Decimal("0.5"), Decimal(3), 0.0),
            (pd.NA, pd.NA, pd.NaT, np.float32("nan"), None),
        ]
    ),
]


def as_frame(records, columns=LABELS):
    """Give rows as a frame that holds their objects."""
    frame = pd.DataFrame(index=range(len(records)), columns=columns, dtype=object)
    for column in columns:
        frame[column] = pd.Series([record[column] for record in records], dtype=object)
    return frame


def refusal(encoder, frame):
    """Give the message of `transform` for a frame that it refuses."""
    try:
        encoder.transform(frame)
    except ValueError as error:
        return str(error)
    return None


def check(encoder, records):
    """Compare rows, one by one, with the columns of a table."""
    encode, labels = encoder.row_encoder(), list(records[0])
    passed = [labels[position] for position in encoder._model.selection.passed]
    if refusal(encoder, as_frame(records, labels)) is not None:
        messages = [refusal(encoder, as_frame([record], labels)) for record in records]
        for record, message in zip(records, messages, strict=True):
            if message is not None:
                with pytest.raises(ValueError, match=re.escape(message)):
                    encode(record)
        records = [record for record, message in zip(records, messages, strict=True) if message is None]
    expected = encoder.transform(as_frame(records, labels))
    if hasattr(expected, "toarray"):
        expected = pd.DataFrame(expected.toarray())
    found = encode(records)
    assert found == [encode(record) for record in records] or expected.isna().to_numpy().any()
    assert encode.names == list(encoder.get_feature_names_out())
    assert len(encode.names) == expected.shape[1]
    for place, name in enumerate(encode.names):
        values = [row[place] for row in found]
        if name in passed:
            assert [repr(value) for value in values] == [repr(record[name]) for record in records]
        else:
            column = expected.iloc[:, place]
            if column.dtype.kind == "O" or not isinstance(column.dtype, np.dtype):
                assert values == column.astype(object).where(column.notna(), None).tolist(), name
            else:
                assert np.array(values, column.dtype).tobytes() == column.to_numpy().tobytes(), name


@pytest.mark.parametrize(("make", "y"), [pytest.param(*entry, id=name) for name, entry in MEMBERS.items()])
def test_every_encoder(make, y):
    encoder = make().fit(ROWS, y)
    check(encoder, RECORDS)


UNKNOWN_POLICIES = ("prior", "nan", "error", 0.5)
MISSING_POLICIES = ("category", "prior", "nan", "error")
TREE = {"zip": ["held", "rank"]}


@pytest.mark.parametrize("handle_missing", MISSING_POLICIES)
@pytest.mark.parametrize("handle_unknown", UNKNOWN_POLICIES)
def test_policies(handle_unknown, handle_missing):
    policies = {"handle_unknown": handle_unknown, "handle_missing": handle_missing, "indicators": ["missing", "unseen"]}
    rows = (
        ROWS.assign(city=ROWS["city"].fillna("a"), held=ROWS["held"].astype(object))
        if "error" in policies.values()
        else ROWS
    )
    for parameters in (
        {"columns": ["city", JOINT], "dtype": "float32"},
        {"columns": ["zip", ("city", "held")], "hierarchy": TREE, "min_count": 3},
        {"columns": ["city"], "categories": [["b", "a", "c", "d", "e", "late"]], "min_frequency": 3},
        {"columns": ["city"], "categories": [["b", "a", "c", "d", "e", "late", "f", None]], "indicators": True},
    ):
        given = policies | parameters
        if "categories" in given and handle_unknown == "error":
            given["handle_unknown"] = "nan"
        encoder = ge.TargetEncoder(cv=2, **given).fit(rows, SOLD)
        check(encoder, RECORDS)


def test_rules_and_several_targets():
    rows = ROWS.assign(zip=ROWS["zip"].astype(str))
    records = [
        record | {"zip": str(value)}
        for record, value in zip(RECORDS, [*"0123", "999", "64x", *map(str, range(20))], strict=False)
    ]
    encoder = ge.TargetEncoder(
        columns=["zip"], hierarchy={"zip": ge.Prefixes(2, 1)}, indicators=True, target_type="continuous"
    )
    check(encoder.fit(rows, np.column_stack([SOLD, 1 - SOLD])), records)


IN_TOKYO = datetime.datetime(2024, 1, 1, 9, tzinfo=ZoneInfo("Asia/Tokyo"))
MOMENTS = [datetime.datetime(2024, 1, day, hour) for day in (1, 2, 3) for hour in (0, 6)]
KINDS = {
    "bytes": [b"a", b"b", b"\xff"],
    "dates": [moment.date() for moment in MOMENTS],
    "moments": [*MOMENTS, pd.Timestamp("2024-01-01 00:00:00.000000001"), np.datetime64("2024-01-02", "D")],
    "moments in zones": [moment.replace(tzinfo=datetime.UTC) for moment in MOMENTS],
    "long ago": np.array(["0001-01-01", "20000-01-01", "2024-01-01"], "M8[s]"),
    "spans": [datetime.timedelta(hours=hour) for hour in range(4)],
    "times": [datetime.time(hour) for hour in range(4)],
    "intervals": list(pd.interval_range(0, 4)),
    "periods": list(pd.period_range("2024-01", periods=3, freq="M")),
    "decimals": [Decimal("0.1"), Decimal("0.5"), 2**70, -1, 3.25],
    "large": [2**64 - 1, 2**63, 5],
    "numbers": [0.0, 1.0, 2.5, 2.0**53],
    "truth": [True, False],
    "text": ["a", "", "Å", "1", "a\0"],
}
OTHERS = [
    *("a", "zz", b"a", b"zz", 1, True, 0, -0.0, 2**53 + 1, 2**70, 0.1, Decimal("0.1"), Decimal(5), np.uint64(5), None),
    *(np.float32(0.1), np.float16(2.5), np.longdouble(1), np.str_("a"), np.bytes_(b"a"), np.bool_(True), 1 + 0j),
    *(Fraction(1), float("inf"), Decimal("inf"), np.float64("-inf"), np.nan, pd.NA, pd.NaT, np.datetime64("NaT", "ns")),
    *(
        np.timedelta64(1, "h"),
        np.timedelta64(1, "s"),
        datetime.timedelta(hours=1),
        datetime.time(1),
        pd.Timedelta("2h"),
    ),
    *(
        datetime.date(2024, 1, 1),
        datetime.datetime(2024, 1, 1),
        datetime.datetime(2024, 1, 1, tzinfo=ZoneInfo("Asia/Tokyo")),
    ),
    *(np.datetime64("2024-01-01"), np.datetime64("2024-01-01", "ns"), pd.Timestamp("2024-01-01", tz="UTC")),
    *(pd.Timestamp("2024-01-01 00:00:00.000000001"), pd.Interval(0, 1), pd.Period("2024-01", "M"), [1], "\ud800"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_values(kind):
    column = np.array([*KINDS[kind], None, None][:-1] * 2, object)
    y = np.arange(len(column)) % 3 / 2
    encoder = ge.TargetEncoder(smooth=1.0).fit(column[:, None], y)
    encode = encoder.row_encoder()
    for value in [*KINDS[kind], *OTHERS]:
        table = np.empty((1, 1), object)
        table[0, 0] = value
        try:
            expected = encoder.transform(table)[0].tolist()
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error), match=re.escape(str(error))):
                encode((value,))
        else:
            assert encode((value,)) == encode({"x0": value}) == expected, repr(value)


def plain_encoders():
    """Give encoders of single keys, and the modules that their encoding of plain rows must not load."""
    yield ge.TargetEncoder(columns=["city", JOINT], indicators=True).fit(ROWS, SOLD)
    yield ge.TargetEncoder(columns=["rank", ("price", "held")], hierarchy={"rank": ["zip"]}).fit(ROWS, SOLD)
    yield ge.OneHotEncoder(columns=["city", JOINT], handle_unknown="ignore", sparse_output=False).fit(ROWS)


def test_plain_rows_need_no_frame(monkeypatch):
    for encoder in plain_encoders():
        encode = encoder.row_encoder()
        monkeypatch.setattr(encode, "_transform", None)
        encode(RECORDS[:-2])


@pytest.mark.parametrize(("make", "y"), [pytest.param(*entry, id=name) for name, entry in MEMBERS.items()])
def test_rows_need_only_the_columns_that_are_encoded(make, y):
    encoder = make().fit(ROWS, y)
    selection = encoder._model.selection
    whole, encode = encoder.row_encoder(), encoder.row_encoder(passed=False)
    read = [LABELS[one] for one in sorted({*selection.needed, *selection.dates} - {*selection.optional})]
    width = len(whole.names) - len(selection.passed)
    assert encode.names == whole.names[:width]
    for record in RECORDS[:: len(RECORDS) // 5][:4]:
        expected = repr(whole(record)[:width])
        fewer = {name: record[name] for name in read}
        assert repr(encode(fewer)) == repr(encode(tuple(fewer.values()))) == expected
        assert repr(encode(record)) == repr(encode(tuple(record.values()))) == expected
    for name in read:
        with pytest.raises(ValueError, match=f"The fitted column '{name}' is not a column of the row"):
            encode({other: value for other, value in fewer.items() if other != name})


@pytest.mark.parametrize(("make", "y"), [pytest.param(*entry, id=name) for name, entry in MEMBERS.items()])
def test_counts_are_those_of_drift(make, y):
    encoder = make().fit(ROWS, y)
    try:
        encoder.drift(ROWS)
    except TypeError:
        with pytest.raises(TypeError, match=r"those that training rows lack, and .* keeps no counts"):
            encoder.row_encoder(counts=True)
        return
    check_counts(encoder, RECORDS)


def check_counts(encoder, records):
    """Count rows one by one, and compare with the shares that drift gives for those that are not refused."""
    encode, silent, answered = encoder.row_encoder(counts=True), encoder.row_encoder(), []
    for record in records:
        try:
            values = encode(record)
        except ValueError:
            continue
        assert repr(values) == repr(silent(record))
        answered.append(record)
    shares = encoder.drift(as_frame(answered))
    assert encode.counts == [
        {"key": row["key"], "rows": len(answered)}
        | {name: round(row[name] * len(answered)) for name in ("unknown", "missing")}
        for row in shares
    ]


@pytest.mark.parametrize("handle_missing", MISSING_POLICIES)
@pytest.mark.parametrize("handle_unknown", UNKNOWN_POLICIES)
def test_counts_of_every_policy(handle_unknown, handle_missing):
    policies = {"handle_unknown": handle_unknown, "handle_missing": handle_missing}
    rows = ROWS.assign(city=ROWS["city"].fillna("a")) if handle_missing == "error" else ROWS
    cases = [
        {"columns": ["city", JOINT], "indicators": ["missing", "unseen"]},
        {"columns": ["zip"], "hierarchy": {"zip": ["rank"]}, "min_count": 3},
    ]
    if handle_unknown != "error":
        cases += [{"columns": ["city"], "categories": [["b", "a", "c"]]}]
    if handle_missing != "error":
        cases += [{"columns": ["zip", ("city", "held")], "hierarchy": TREE}]
    for parameters in cases:
        check_counts(ge.TargetEncoder(cv=2, **policies, **parameters).fit(rows, SOLD), RECORDS)


def test_levels_by_a_rule_are_counted_as_unknown():
    rows = ROWS.assign(zip=ROWS["zip"].astype(str))
    encoder = ge.TargetEncoder(columns=["zip"], hierarchy={"zip": ge.Prefixes(2, 1)}).fit(rows, SOLD)
    words = ["1", "64x", None, "99", ""]
    check_counts(encoder, [RECORDS[0] | {"zip": word} for word in words])


def test_counts_of_threads_and_copies():
    encode = ge.TargetEncoder(columns=["city"]).fit(ROWS, SOLD).row_encoder(passed=False, counts=True)
    rows = [{"city": city} for city in ("a", "never", None, "never", "b")] * 200
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(encode, [rows] * 8))
    assert encode.counts == [{"key": "city", "rows": 8_000, "unknown": 3_200, "missing": 1_600}]
    copied = pickle.loads(pickle.dumps(encode))
    assert copied.counts == [{"key": "city", "rows": 0, "unknown": 0, "missing": 0}]
    copied(rows[1])
    assert (copied.counts[0]["unknown"], encode.counts[0]["unknown"]) == (1, 3_200)
    with pytest.raises(AttributeError, match=r"make the row encoder by row_encoder\(counts=True\)"):
        _ = ge.CountEncoder().fit([["a"]]).row_encoder().counts


def test_threads_pickles_and_later_rows():
    for encoder in plain_encoders():
        encode = encoder.row_encoder()
        rows = RECORDS * 5
        expected = repr(encode(rows))
        with ThreadPoolExecutor(8) as pool:
            assert repr(list(pool.map(encode, rows))) == expected
        assert repr(pickle.loads(pickle.dumps(encode))(rows)) == expected
        encoder.partial_fit(ROWS.assign(city="new", zip=999), SOLD)
        assert repr(encode(rows)) == expected


def test_forms_of_rows():
    encoder = ge.StatisticEncoder(["max"], values=["price"], columns=["city"]).fit(ROWS)
    encode = encoder.row_encoder()
    record = RECORDS[0]
    row = tuple(record.values())
    expected = encode(record)
    assert encode(row) == encode(MappingProxyType(record)) == expected
    assert encode([row, record]) == [expected, expected]
    assert encode([]) == []
    assert encode(record | {"another": 3}) == expected
    of_all = ge.TargetEncoder(cv=ge.TimeFolds(2, time="rank")).fit(ROWS, SOLD).row_encoder()
    assert of_all(row) == of_all((*row[:3], row[4])) == of_all(record)
    with pytest.raises(ValueError, match="X has 2 features, but StatisticEncoder is expecting 5 features"):
        encode(row[:2])
    with pytest.raises(ValueError, match=r"The fitted column 'city' is not a column of the row. Did you mean 'City'"):
        encode({"City": "a"})
    with pytest.raises(ValueError, match="The passed-through column 'zip' is not a column of the row"):
        encode({"city": "a"})
    with pytest.raises(TypeError, match=r"A row is a dict of values by the names .* Got str instead"):
        encode("a")
    with pytest.raises(TypeError, match=r"pass a list of these. Got int instead"):
        encode([3])


def test_seconds_since_a_date_follow_from_the_row():
    rows = ROWS.assign(day=pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(N), "D"))
    encoder = ge.StatisticEncoder(
        ["count", "seconds_since_last"], values=["day"], columns=["city"], cv=ge.Ordered(time="day")
    ).fit(rows)
    check(encoder, [record | {"day": pd.Timestamp("2024-05-01")} for record in RECORDS])
