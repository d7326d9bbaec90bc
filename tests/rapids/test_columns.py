"""Columns of cuDF get the same codes and vocabulary on the device as columns of Arrow get on the host."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from importlib import import_module

import numpy as np
import pyarrow as pa
import pytest

import cpu_fallback as host
from gpu_encode.seam import devices
from gpu_encode.tables import frames as ours
from gpu_encode.tables.categories.vocabulary import FactorizedColumn
from tests.rapids import frames

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TEXT = ["b", "a", None, "b", "", "ärger", "a", "zz", None, "b"]
COLUMNS = {
    "text": pa.array(TEXT),
    "large text": pa.array(TEXT, pa.large_string()),
    "text without null": pa.array(["x", "y", "x", "x"]),
    "text, all null": pa.array([None, None], pa.string()),
    "int8": pa.array([3, -1, None, 3, 7], pa.int8()),
    "int16": pa.array([3, -1, 3, 7], pa.int16()),
    "int32": pa.array([3, -(1 << 30), None, 3, 7], pa.int32()),
    "int64": pa.array([1 << 60, -1, None, 1 << 60], pa.int64()),
    "uint8": pa.array([255, 0, 255], pa.uint8()),
    "uint16": pa.array([65_535, None, 0], pa.uint16()),
    "uint32": pa.array([(1 << 32) - 1, None, 0], pa.uint32()),
    "uint64": pa.array([(1 << 64) - 1, None, 0], pa.uint64()),
    "float32": pa.array([0.5, None, -0.0, 0.0, 0.5], pa.float32()),
    "float64": pa.array([0.5, None, float("nan"), -0.0, 0.0, 0.5]),
    "float64, null behind NaN": pa.array([float("nan"), 1.0, None]),
    "bool": pa.array([True, False, None, True]),
    "bool, all true": pa.array([True, True]),
    **{
        f"timestamp[{unit}]": pa.array([NOON, None, NOON - timedelta(days=1), NOON]).cast(pa.timestamp(unit))
        for unit in ("s", "ms", "us", "ns")
    },
    "timestamp in Berlin": pa.array([NOON, None, NOON - timedelta(days=1)], pa.timestamp("ms", "Europe/Berlin")),
    "duration[s]": pa.array([5, None, -5, 5], pa.duration("s")),
    "duration[ns]": pa.array([5, None, -5, 5], pa.duration("ns")),
    "decimal32": pa.array([Decimal("1.50"), None, Decimal("-2.25"), Decimal("1.50")], pa.decimal32(5, 2)),
    "decimal64": pa.array([Decimal("1.50"), None, Decimal("-2.25"), Decimal("1.50")], pa.decimal64(12, 2)),
    "decimal128": pa.array([Decimal("1.50"), None, Decimal("-2.25"), Decimal(10**30)], pa.decimal128(38, 2)),
    "decimal of whole numbers": pa.array([Decimal(3), None, Decimal(-3)], pa.decimal64(12, 0)),
    "category": pa.array(["u", "v", None, "u"]).dictionary_encode(),
    "category with unused entries": pa.DictionaryArray.from_arrays(pa.array([3, 1, None, 3]), pa.array(list("dcba"))),
    "category of numbers": pa.DictionaryArray.from_arrays(pa.array([1, 0, 1]), pa.array([2.5, -1.0])),
    "category of moments": pa.array([NOON, None, NOON]).cast(pa.timestamp("us")).dictionary_encode(),
    "category of 300": pa.array([f"c{i * 7 % 300}" for i in range(400)]).dictionary_encode(),
    "no rows": pa.array([], pa.string()),
}
ARRAYS = pytest.mark.parametrize("array", COLUMNS.values(), ids=COLUMNS)


@pytest.fixture(scope="module")
def ops():
    return import_module("gpu_encode.cuda")


def on_host(keys, ops):
    return FactorizedColumn(ops.to_host(keys.codes), keys.vocabulary)


def of_arrow(array):
    return ours.read(pa.table({"k": array}))


def of_cudf(array):
    return ours.read(frames.frame({"k": array}))


def assert_same(result, expected):
    assert result.codes.dtype == np.int32
    assert result.codes.tolist() == expected.codes.tolist()
    assert result.vocabulary.metadata() == expected.vocabulary.metadata()
    assert result.vocabulary.to_arrow().equals(expected.vocabulary.to_arrow())


@ARRAYS
@pytest.mark.parametrize("start", [0, 1, 2])
def test_keys_are_those_of_arrow(array, start, ops):
    part = array[start:]
    assert_same(on_host(of_cudf(part).keys(0, ops), ops), of_arrow(part).keys(0, host))


@ARRAYS
def test_rows_are_looked_up_as_those_of_arrow(array, ops):
    """Codes in the vocabulary of the first half, so that some values are unknown."""
    _, vocabulary, _ = of_arrow(array[: len(array) // 2]).keys(0, host)
    expected = of_arrow(array).lookup(0, vocabulary, host)
    assert ops.to_host(of_cudf(array).lookup(0, vocabulary, ops)).tolist() == expected.tolist()


@ARRAYS
def test_a_device_that_is_not_used_gets_the_values(array):
    """With device="cpu" the column is copied to the host, as an Arrow array."""
    assert_same(of_cudf(array).keys(0, host), of_arrow(array).keys(0, host))
    result, expected = of_cudf(array), of_arrow(array)
    assert repr(result.values(0).tolist()) == repr(expected.values(0).tolist())


@pytest.mark.parametrize("fitted", ["int64", "float64", "text", "category", "timestamp[ns]"])
@pytest.mark.parametrize("given", ["int64", "float32", "text", "category", "timestamp[ms]", "decimal64"])
def test_a_column_of_another_type_is_looked_up_or_refused_as_on_the_host(fitted, given, ops):
    _, vocabulary, _ = of_arrow(COLUMNS[fitted]).keys(0, host)

    def attempt(frame, backend):
        try:
            return ops.to_host(frame.lookup(0, vocabulary, backend)).tolist()
        except ValueError as error:
            return str(error)

    assert attempt(of_cudf(COLUMNS[given]), ops) == attempt(of_arrow(COLUMNS[given]), host)


def test_texts_of_a_vocabulary_go_to_the_device_once(ops, monkeypatch):
    strings = import_module("gpu_encode.cuda.strings")
    frame = of_cudf(COLUMNS["text"])
    _, vocabulary, _ = frame.keys(0, ops)
    sent = []
    move = strings.strings_to_device
    monkeypatch.setattr(strings, "strings_to_device", lambda *given: sent.append(1) or move(*given))
    for _ in range(3):
        frame.lookup(0, vocabulary, ops)
    assert sent == [1]


def test_infinity_is_refused_with_its_row(ops):
    with pytest.raises(ValueError, match=r"(?s)infin.*row 2"):
        of_cudf(pa.array([None, 1.0, float("inf")])).keys(0, ops)


def test_values_that_cannot_be_categories_are_refused(ops):
    with pytest.raises(TypeError, match=r"'k' holds list.* values, which cannot be categories"):
        of_cudf(pa.array([[1], [2, 3]])).keys(0, ops)


@pytest.fixture
def spilling():
    """Let cuDF spill, and return a function that spills a column to the host until its pointer is read."""
    manager = import_module("cudf.core.buffer.spill_manager")
    before = manager.get_global_manager()
    manager.set_global_manager(manager.SpillManager())
    yield spill
    manager.set_global_manager(before)


def spill(series):
    column = series._column.plc_column
    for held in (column, *column.children()):
        for buffer in (held.data(), held.null_mask()):
            if buffer is None:
                continue
            owner = buffer.owner
            if not devices.simulated():
                owner.spill(target="cpu")
                continue
            kept = owner._owner, owner._ptr
            owner._owner, owner._ptr, owner._ptr_desc["type"] = None, 0, "cpu"
            owner.spill = partial(bring_back, owner, *kept)


def bring_back(owner, held, pointer, target="cpu"):
    assert target == "gpu"
    owner._owner, owner._ptr, owner._ptr_desc["type"] = held, pointer, "gpu"


@pytest.mark.parametrize("name", ["text", "int64", "float64", "bool", "decimal128", "category", "timestamp[ns]"])
def test_what_cudf_has_spilled_is_brought_back(name, ops, spilling):
    X = frames.frame({"k": COLUMNS[name]})
    spilling(X["k"])
    assert X["k"]._column.plc_column.data().owner.is_spilled
    assert_same(on_host(ours.read(X).keys(0, ops), ops), of_arrow(COLUMNS[name]).keys(0, host))
    assert not X["k"]._column.plc_column.data().owner.is_spilled


def test_columns_that_share_an_allocation_are_told_apart(ops):
    """A buffer may begin anywhere in the memory of its owner."""
    buffers = import_module("cudf.core.buffer")
    plc = import_module("pylibcudf")
    cudf = import_module("cudf")
    whole = buffers.as_buffer(ops.to_device(np.array([7, 7, 7, 1, 2, 1])).view(np.uint8))
    part = plc.Column(plc.DataType(plc.TypeId.INT64), 3, whole[24:48], None, 0, 0, [])
    X = cudf.DataFrame._from_data({"k": cudf.core.column.ColumnBase.from_pylibcudf(part)})
    codes, vocabulary, _ = ours.read(X).keys(0, ops)
    assert ops.to_host(codes).tolist() == [0, 1, 0]
    assert vocabulary.to_numpy().tolist() == [1, 2]


def test_memory_that_does_not_hold_the_rows_is_refused(ops, monkeypatch):
    reader = import_module("gpu_encode.tables.frames.cudf")
    monkeypatch.setattr(reader, "_bytes", lambda span: ops.xp.zeros(8, np.uint8))
    with pytest.raises(RuntimeError, match=r"A cuDF column of 4 rows shows memory for 1"):
        of_cudf(COLUMNS["int64"]).keys(0, ops)
