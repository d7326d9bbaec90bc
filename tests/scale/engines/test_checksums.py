"""The checksum of a pass: the same for the same rows in any order and division, another one for any other rows."""

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from gpu_encode import KFold, LeaveOneOut, Ordered
from gpu_encode.scale.engines import calls, checksums
from tests.scale.engines.dealt import Dealt, Shuffle
from tests.scale.engines.rows import encoder, rows

pytestmark = pytest.mark.host
VALUES = {
    "int64": pa.array([3, -1, None, 2**53 + 1, 2**53 + 2, 0]),
    "uint64": pa.array([3, 2**64 - 1, None, 2**53 + 1, 2**53 + 2, 0], pa.uint64()),
    "int8": pa.array([3, -1, None, 100, 5, 0], pa.int8()),
    "double": pa.array([0.5, -1.0, None, 1e300, 5e-324, 0.0]),
    "bool": pa.array([True, False, None]),
    "string": pa.array(["", "a", None, "eight888", "eight8889", "x" * 300, "x" * 299 + "y", "ü"]),
    "large binary": pa.array([b"", b"a", None, b"a\0", b"\0a"], pa.large_binary()),
    "string view": pa.array(["", "a", None, "a longer text than fits"], pa.string_view()),
    "dictionary": pa.array(["a", None, "b", "", "c"]).dictionary_encode(),
    "date": pa.array([date(2026, 1, 1), None, date(2026, 1, 2)]),
    "timestamp": pa.array([datetime(2026, 1, 1), None, datetime(2026, 1, 2)]),
    "decimal": pa.array([Decimal("1.25"), None, Decimal("1.50")]),
    "list": pa.array([[1], None, [1, 2], []]),
    "null": pa.nulls(1),
}


def summed(*columns, ordered=False):
    return checksums.checksum([pa.chunked_array([column]) for column in columns], ordered)


@pytest.mark.parametrize("kind", VALUES)
def test_each_value_has_a_word_of_its_own(kind):
    values = VALUES[kind]
    alone = [summed(values.slice(row, 1)) for row in range(len(values))]
    assert len(set(alone)) == len(values)
    assert summed(values) == sum(alone) % 2**64
    assert summed(values.slice(1)) == sum(alone[1:]) % 2**64


def test_zeros_and_missing_values_have_one_form():
    assert summed(pa.array([0.0])) == summed(pa.array([-0.0])) == summed(pa.array([0]))
    assert summed(pa.array([float("nan")])) == summed(pa.array([None], pa.int64())) == summed(pa.nulls(1))
    assert summed(pa.array(["b"]).dictionary_encode()) == summed(pa.array(["b"], pa.large_string()))


def test_order_and_division_do_not_matter(monkeypatch):
    table = rows().select(["id", "shop", "customer", "price", "held"])
    expected = checksums.checksum(table.columns)
    monkeypatch.setattr(checksums, "TILE", 7)
    moved = table.take(np.random.default_rng(0).permutation(len(table)))
    assert checksums.checksum(moved.columns) == expected
    assert (checksums.checksum(moved[:50].columns) + checksums.checksum(moved[50:].columns)) % 2**64 == expected
    assert checksums.checksum(table.columns, ordered=True) != checksums.checksum(moved.columns, ordered=True)


def with_values(table, name, values):
    return table.set_column(table.column_names.index(name), name, pa.array(values, table[name].type))


def changed(name):
    """Give rows in which two rows, which also differ in all else that a first pass reads, swap a value."""
    table = rows()
    read = list(zip(*(table[other].to_pylist() for other in ("id", "sold", "weight", "day")), strict=True))
    other = next(row for row in range(len(table)) if all(map(int.__ne__, read[row], read[0])))
    values = table[name].to_pylist()
    values[0], values[other] = values[other], values[0]
    return with_values(table, name, values)


class Changing(Dealt):
    """Rows of which every pass after the first finds others."""

    later = None

    def pick(self, names):
        picked = Changing(self._table.select(names), self._passes)
        picked.later = self.later.select(names)
        return picked

    def _tables(self):
        if self._passes:
            self._table = self.later
        return super()._tables()


@pytest.mark.parametrize("name", ["sold", "weight", "id"])
@pytest.mark.parametrize("training", [True, False])
def test_a_pass_that_reads_other_rows_is_refused(name, training):
    table = Changing(rows(), [])
    table.later = changed(name)
    call = calls.fit_transform if training else calls.fit
    if name == "id" and not training:
        call(encoder(KFold(3, by="id")), table, "sold", "weight", None)
        return
    with pytest.raises(ValueError, match="not there in the first pass"):
        call(encoder(KFold(3, by="id")), table, "sold", "weight", None)


@pytest.mark.parametrize("cv", [KFold(3, by="id"), LeaveOneOut(), Ordered(time="day")], ids=str)
@pytest.mark.filterwarnings("ignore::gpu_encode.LeakWarning")
def test_schemes_refuse_other_rows(cv):
    table = Changing(rows(), [])
    sold = rows()["sold"].to_pylist()
    table.later = with_values(rows(), "sold", [1 - sold[0], *sold[1:]])
    with pytest.raises(ValueError, match="not there in the first pass"):
        calls.fit_transform(encoder(cv), table, "sold", None, None)


def test_tables_in_buckets_refuse_other_rows():
    for later in (changed("sold"), changed("id"), rows().slice(5)):
        table = Shuffle(rows(), "sold")
        table._rows = Changing(rows(), [])
        table._rows.later = later
        with pytest.raises(ValueError, match=r"not there in the first pass|198 rows were summed, but 203"):
            table.learn(encoder(KFold(3, by="id")), training=True)
