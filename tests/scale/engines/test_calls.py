"""Encoders on rows of an engine; this engine runs in the process and distributes rows differently in each pass."""

import warnings

import numpy as np
import pyarrow as pa
import pytest

from gpu_encode import (
    Greedy,
    GroupKFold,
    Holdout,
    KFold,
    LeakWarning,
    LeaveOneOut,
    Ordered,
    SpectralEncoder,
    TimeFolds,
    parts,
)
from gpu_encode.scale.engines import DistributedEncoder, calls, orders
from gpu_encode.scale.files.look_up import Joined
from gpu_encode.scale.files.source import with_columns
from tests.scale.engines.dealt import Shuffle, dealt
from tests.scale.engines.rows import ORDERS, SCHEMES, UNORDERED, counter, encoder, in_time, rows, same

pytestmark = pytest.mark.host
BY_ID = KFold(3, by="id")


@pytest.mark.filterwarnings("ignore:.* rows see no rows")
@pytest.mark.parametrize("name", SCHEMES)
def test_schemes_give_the_bits_of_one_table(name):
    alone, there, fitted = (encoder(SCHEMES[name]) for _ in range(3))
    table = rows()
    X = table.drop_columns(["sold", "weight"])
    expected = alone.fit_transform(X, table["sold"], sample_weight=table["weight"])
    found = calls.fit_transform(there, dealt()[0], "sold", "weight", None)
    assert same(found, expected, "sold", "weight")
    assert found.column_names[-2:] == ["weight", "sold"]
    calls.fit(fitted, dealt()[0], "sold", "weight", None)
    for other in (there, fitted):
        assert all(map(np.array_equal, other.encodings_, alone.encodings_))
        assert list(other.feature_names_in_) == list(alone.feature_names_in_)
        assert same(calls.transform(other, dealt()[0]), alone.transform(X), "sold", "weight")


@pytest.mark.parametrize("most", [1, 5, 64])
@pytest.mark.parametrize("name", ORDERS)
def test_orders_in_time_give_the_bits_of_one_table(name, most, monkeypatch):
    monkeypatch.setattr(orders, "MOST_GROUPS", most)
    monkeypatch.setattr(orders, "FEWEST_ROWS", 1)
    alone, there, fitted = (ORDERS[name]() for _ in range(3))
    table = rows()
    expected = alone.fit_transform(table.drop_columns(["sold", "weight"]), table["sold"], sample_weight=table["weight"])
    found = calls.fit_transform(there, dealt()[0], "sold", "weight", None)
    assert same(found, expected, "sold", "weight")
    assert found.column_names[-2:] == ["weight", "sold"]
    calls.fit(fitted, dealt()[0], "sold", "weight", None)
    for other in (there, fitted):
        assert all(map(np.array_equal, other.encodings_, alone.encodings_))


def test_more_groups_for_many_rows_and_fewer_for_large_sums(monkeypatch):
    monkeypatch.setattr(orders, "FEWEST_ROWS", 1)
    X = rows().drop_columns(["sold", "weight"])
    part = parts.Part(X, rows()["sold"])
    encoding_plan = parts.plan(in_time(), parts.profile(in_time(), part))
    tables = parts.fit(in_time(), encoding_plan, parts.measure(encoding_plan, part))
    size = sum(sums.accumulators.nbytes for [sums] in tables.sums)
    assert orders.number_of_groups(tables) == 64
    monkeypatch.setattr(orders, "LARGEST_SUMS", 3 * size)
    assert orders.number_of_groups(tables) == 3
    monkeypatch.setattr(orders, "LARGEST_SUMS", 0)
    assert orders.number_of_groups(tables) == 1
    monkeypatch.setattr(orders, "MOST_ROWS", 20)
    assert orders.number_of_groups(tables) == 11


def test_a_pass_reads_what_it_needs():
    table, passes = dealt()
    calls.fit_transform(encoder(BY_ID), table, "sold", None, None)
    assert passes == [["id", "sold"], ["customer", "color", "id", "sold"], table.schema.names]
    table, passes = dealt()
    calls.fit_transform(in_time(), table, "sold", None, None)
    assert passes == [["day", "sold"], *[["customer", "color", "day", "sold"]] * 2, table.schema.names]
    table, passes = dealt()
    calls.fit(counter(), table, None, None, None)
    assert passes == [["id"], ["color"]]


READING = {**SCHEMES, "in time": Ordered(time="day", burn_in=5), "by age": Ordered(time="day", burn_in=5, half_life=3)}


@pytest.mark.filterwarnings("ignore:.* rows see no rows")
@pytest.mark.parametrize("name", READING)
def test_columns_of_a_scheme_stay_where_all_others_are_encoded(name):
    """Rows have no order, so these columns tell which row of the result is which."""
    alone, there = (encoder(READING[name]).set_params(columns=None) for _ in range(2))
    of_scheme = [column for column in rows().column_names if column in alone._parameters().training_columns]
    # In other schemes the weights identify rows.
    weight = None if "id" in of_scheme else "id"
    aside = ["sold"] if weight is None else ["id", "sold"]
    table = rows().select(["customer", "color", *of_scheme, *aside])
    X, kept = table.drop_columns(aside), table.select([*of_scheme, *aside])
    expected = alone.fit_transform(X, table["sold"], sample_weight=weight and table[weight])
    found = calls.fit_transform(there, dealt(table)[0], "sold", weight, None)
    assert same(found, with_columns(expected, kept))
    encoded = alone.transform(X)
    assert same(calls.transform(there, dealt(table)[0]), with_columns(encoded, kept))
    if weight is not None:
        without = table.drop_columns(of_scheme)
        assert same(calls.transform(there, dealt(without)[0]), with_columns(encoded, table.select(aside)))
    if name in ("by value", "times", "a mask", "fold numbers"):
        there = Shuffle(table, "sold", weight)
        shared, encodings = there.learn(encoder(READING[name]).set_params(columns=None), True)
        joined = Joined.of(shared)
        assert same(there.encode_training(shared, joined, encodings), with_columns(expected, kept))
        assert same(Shuffle(table).encode_new(joined, encodings), with_columns(encoded, kept))


def test_columns_by_position_and_by_type():
    table = rows()
    X = table.drop_columns(["sold"])
    for columns, cv in (("categorical", GroupKFold(3, groups=0)), (["shop", 5], KFold(3, by=0))):
        alone, there = (encoder(cv).set_params(columns=columns) for _ in range(2))
        expected = alone.fit_transform(X, table["sold"])
        assert same(calls.fit_transform(there, dealt()[0], "sold", None, None), expected, "sold")
        assert there.get_params()["columns"] == columns


def test_an_encoder_of_pairs():
    def spectral():
        return SpectralEncoder(columns=["shop", "customer"], n_components=2, random_state=0, device="cpu")

    X = rows().drop_columns(["sold"])
    found = calls.fit_transform(spectral(), dealt()[0], "sold", None, None)
    assert same(found, spectral().fit_transform(X), "sold")


def test_schemes_say_whether_they_number_rows():
    by_number = [KFold(), KFold(stratify=True), Holdout(), Ordered(), Ordered(shuffle=False)]
    by_value = [
        Greedy(),
        LeaveOneOut(),
        BY_ID,
        GroupKFold(),
        GroupKFold(groups="a"),
        TimeFolds(time="a"),
        Ordered(time="a"),
    ]
    assert [scheme.needs_row_numbers for scheme in by_number] == [True] * 5
    assert [scheme.needs_row_numbers for scheme in [*by_value, Holdout(mask="a")]] == [False] * 8
    assert Holdout(mask=[True, False]).needs_row_numbers


@pytest.mark.parametrize("cv", UNORDERED, ids=str)
def test_schemes_that_number_rows_are_refused_before_any_is_read(cv):
    table, passes = dealt()
    with pytest.raises(ValueError, match=r'rows of a test .* cv=KFold\(5, by="order_id"\)'):
        calls.fit_transform(encoder(cv), table, "sold", None, None)
    assert passes == []


def test_a_fit_alone_asks_for_no_folds_and_warns_of_no_leak():
    alone = encoder(KFold(3)).fit(rows().drop_columns(["sold"]), rows()["sold"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = calls.fit(encoder(KFold(3)), dealt()[0], "sold", None, None)
        calls.fit(encoder(Greedy()), dealt()[0], "sold", None, None)
    assert all(map(np.array_equal, found.encodings_, alone.encodings_))
    with pytest.warns(LeakWarning):
        calls.fit_transform(encoder(Greedy()), dealt()[0], "sold", None, None)


def test_what_is_wrong_with_a_call():
    table = dealt()[0]
    with pytest.raises(TypeError, match=r'no order that a list could follow.* y="\.\.\.", or a list of names'):
        calls.fit(encoder(BY_ID), table, [0, 1], None, None)
    with pytest.raises(TypeError, match=r'an? ndarray .* sample_weight="\.\.\."\.$'):
        calls.fit(encoder(BY_ID), table, "sold", np.ones(3), None)
    with pytest.raises(ValueError, match="'soldd'"):
        calls.fit(encoder(BY_ID), table, "soldd", None, None)
    with pytest.raises(ValueError, match="requires y"):
        calls.fit(encoder(BY_ID), table, None, None, None)
    twice = pa.table([[1], [2]], ["sold", "sold"])
    with pytest.raises(ValueError, match="several columns named 'sold'"):
        calls.fit(encoder(BY_ID), dealt(twice)[0], "sold", None, None)
    fitted = calls.fit(encoder(BY_ID), table, "sold", None, None)
    with pytest.raises(ValueError, match="'color'"):
        calls.transform(fitted, dealt(rows().drop_columns(["color"]))[0])


NESTED = {
    "a key": lambda: (encoder(BY_ID).set_params(columns=["nested"]), "sold", None, None),
    "a joint key": lambda: (encoder(BY_ID).set_params(columns=[("color", "nested")]), "sold", None, None),
    "by": lambda: (encoder(KFold(3, by="nested")), "sold", None, None),
    "time": lambda: (encoder(Ordered(time="nested")), "sold", None, None),
    "fold": lambda: (encoder("nested"), "sold", None, None),
    "y": lambda: (encoder(BY_ID), "nested", None, None),
    "weight": lambda: (encoder(BY_ID), "sold", "nested", None),
    "groups": lambda: (encoder(GroupKFold(3)), "sold", None, "nested"),
}


@pytest.mark.parametrize("values", [{"a": 1}, [1]], ids=["struct", "list"])
@pytest.mark.parametrize("role", NESTED)
def test_nested_values_are_refused_before_a_row_is_read(role, values):
    column = pa.array([values] * len(rows()))
    table, passes = dealt(rows().append_column("nested", column))
    asked, *aside = NESTED[role]()
    for call in (calls.fit_transform, calls.fit):
        with pytest.raises(TypeError, match=r"column 'nested' holds (struct<a: int64>|list<item: int64>) values"):
            call(asked, table, *aside)
    assert passes == []
    assert "nested" in calls.fit_transform(encoder(BY_ID), table, "sold", None, None).column_names


def test_a_frame_of_pandas_on_spark_is_told_what_to_be():
    frame = type("DataFrame", (), {"__module__": "pyspark.pandas.frame"})()
    fitted = encoder(BY_ID).fit(rows().drop_columns(["sold"]), rows()["sold"])
    asked = (encoder(BY_ID).fit_transform, encoder(BY_ID).fit, DistributedEncoder(encoder(BY_ID)).fit)
    for call in (*asked, lambda X, _: fitted.transform(X), lambda X, _: DistributedEncoder(fitted).fit_transform(X)):
        with pytest.raises(TypeError, match=r"X\.to_spark\(\).*index_col.*y="):
            call(frame, "sold")


def test_errors_of_rows_leave_the_encoder_as_it_was():
    gap = rows().append_column("gap", pa.array([None, *range(202)], pa.float64()))
    unfitted = encoder(BY_ID)
    with pytest.raises(ValueError, match=r"1 missing value, in row \d+ of a batch of rows\. "):
        calls.fit(unfitted, dealt(gap)[0], "gap", None, None)
    with pytest.raises(ValueError, match="None of the parts has rows"):
        calls.fit(unfitted, dealt(rows().slice(0, 0))[0], "sold", None, None)
    assert not hasattr(unfitted, "encodings_")


def test_drift_counts_rows_wherever_they_lie():
    table, passes = dealt(rows(seed=4))
    fitted = encoder(BY_ID).fit(rows().drop_columns(["sold", "weight"]), rows()["sold"])
    assert calls.drift(fitted, table) == fitted.drift(rows(seed=4).drop_columns(["sold", "weight"]))
    assert len(passes) == 1
