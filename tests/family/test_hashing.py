"""Hashed values, compared with MurmurHash3 in plain Python and with scikit-learn's FeatureHasher."""

import datetime as dt
import pickle
import struct
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.feature_extraction import FeatureHasher

from gpu_encode import HashingEncoder, load
from gpu_encode.tables.categories.canonical_bytes import decimal, spell
from gpu_encode.tables.categories.vocabulary import Vocabulary

MASK = 0xFFFFFFFF
WORDS = ["", "a", "ab", "abc", "abcd", "oak", "Straße", "日本語", "elm tree", "x" * 100]
FRAME = pd.DataFrame(
    {"tree": ["oak", "elm", None, "oak", "yew", ""] * 5, "number": [1, 2, 3, 4, 5, 1000] * 5, "kept": range(30)}
)
BOTH = ["tree", ("number", "tree")]


def rotate(value, by):
    return (value << by | value >> (32 - by)) & MASK


def scramble(block):
    return rotate(block * 0xCC9E2D51 & MASK, 15) * 0x1B873593 & MASK


def murmur(data, seed):
    """MurmurHash3 for x86, 32 bits, signed, as Austin Appleby published it."""
    h, whole = seed, len(data) // 4 * 4
    for block in struct.unpack(f"<{whole // 4}I", data[:whole]):
        h = (rotate(h ^ scramble(block), 13) * 5 + 0xE6546B64) & MASK
    h ^= scramble(int.from_bytes(data[whole:], "little")) ^ len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ h >> shift) * factor & MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def expected(rows, n, alternate=False, seed=0):
    """Count words in components, in plain loops."""
    table = []
    for row in rows:
        line = [0.0] * n
        for word in row:
            h = murmur(word, seed)
            line[abs(h) % n] += -1.0 if alternate and h < 0 else 1.0
        table.append(line)
    return table


def components(values, **choices):
    return HashingEncoder(1 << 10, **choices).fit_transform(pd.DataFrame({"x": pd.Series(values, dtype=object)}))


@pytest.mark.parametrize("seed", [0, 7, MASK])
@pytest.mark.parametrize("alternate", [False, True])
@pytest.mark.parametrize("n", [1, 2, 7, 64])
def test_definition(n, alternate, seed):
    rows = [[one, other] for one, other in zip(WORDS, reversed(WORDS), strict=True)]
    encoder = HashingEncoder(n, alternate_sign=alternate, seed=seed)
    table = encoder.fit_transform(np.array(rows, dtype=object))
    assert encoder.get_feature_names_out().tolist() == [f"hash_{i}" for i in range(n)]
    assert table.tolist() == expected([[word.encode() for word in row] for row in rows], n, alternate, seed)


@pytest.mark.parametrize("alternate", [False, True])
def test_text_is_hashed_as_by_feature_hasher(alternate):
    rows = np.array([[f"word {i * j}" for j in range(3)] for i in range(200)], dtype=object)
    theirs = FeatureHasher(16, input_type="string", alternate_sign=alternate).transform(rows.tolist())
    table = HashingEncoder(16, alternate_sign=alternate).fit_transform(rows)
    np.testing.assert_array_equal(table, theirs.toarray())


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([True, False], ["n1e0", "n0e0"]),
        ([1, 0, -120, 2**63 - 1], ["n1e0", "n0e0", "n-12e1", "n9223372036854775807e0"]),
        ([1.0, -0.0, 0.5, -2.5], ["n1e0", "n0e0", "n5e-1", "n-25e-1"]),
        ([0.1], ["n1000000000000000055511151231257827021181583404541015625e-55"]),
        ([Decimal("0.10"), Decimal("1E+3"), 10**30], ["n1e-1", "n1e3", "n1e30"]),
        ([b"\x00", b""], ["b\x00", "b"]),
        ([dt.date(1970, 1, 2), dt.date(1969, 12, 31)], ["d864e2", "d-864e2"]),
        ([dt.datetime(1970, 1, 1, 0, 0, 1, 500000)], ["d15e-1"]),
        ([dt.datetime(1970, 1, 1, 1, tzinfo=dt.UTC)], ["z36e2"]),
        ([dt.timedelta(minutes=1)], ["u6e1"]),
        ([dt.time(0, 0, 1)], ["t1e0"]),
        ([], []),
    ],
)
def test_bytes_that_are_hashed(values, words):
    table = spell(Vocabulary.from_values(values, "x")[0].values)
    assert table == [b"\xff" + word.encode("latin-1") for word in words]


def test_bytes_stand_for_one_number_each():
    """Equal numbers have equal bytes, and others do not."""
    numbers = [0, 1, -1, 10, 100, 0.1, 0.25, 1e300, 5e-324, 2**53 + 2, Decimal("0.1"), 10**300, 1e22, 10**22]
    for one in numbers:
        for other in numbers:
            assert (decimal(one) == decimal(other)) == (one == other)


def test_equal_values_of_other_types_are_one_value():
    ones = [
        *([value] for value in (True, 1, 1.0, Decimal(1), np.int8(1), np.float32(1), np.uint64(1))),
        *(np.array([1], dtype) for dtype in ("bool", "int8", "uint64", "float32", "float64")),
    ]
    tables = [components(values).to_numpy() for values in ones]
    for table in tables[1:]:
        np.testing.assert_array_equal(table, tables[0])
    assert not np.array_equal(components(["1"]), tables[0])
    assert not np.array_equal(components([b"1"]), components(["1"]))
    for moment in (dt.datetime(2024, 1, 1), np.datetime64("2024-01-01", "ns"), pd.Timestamp(2024, 1, 1)):
        np.testing.assert_array_equal(components([moment]), components([dt.date(2024, 1, 1)]))


def test_categoricals_are_hashed_as_their_values():
    found, expected_encodings = (
        HashingEncoder(5, columns=BOTH).fit_transform(table) for table in (FRAME.astype({"tree": "category"}), FRAME)
    )
    pd.testing.assert_frame_equal(found, expected_encodings)


def test_missing_values():
    values = np.array([["a"], [None], [np.nan]], dtype=object)
    words = [[b"a"], [b"\xff"], [b"\xff"]]
    assert HashingEncoder(4).fit_transform(values).tolist() == expected(words, 4)
    zero = HashingEncoder(4, handle_missing="zero").fit(values)
    assert zero.transform(values).tolist() == expected([[b"a"], [], []], 4)
    with pytest.raises(ValueError, match="Column 'x0' holds 2 missing values"):
        HashingEncoder(4, handle_missing="error").fit(values)
    with pytest.raises(ValueError, match="Column 'x0' holds 2 missing values"):
        HashingEncoder(4, handle_missing="error").fit([["a"]]).transform(values)


def test_joint_keys_are_values_side_by_side():
    rows = pd.DataFrame({"one": ["a", "ab", None], "other": ["bc", "c", "c"]})
    table = HashingEncoder(1 << 10, columns=[("one", "other")]).fit_transform(rows).to_numpy()

    def side_by_side(*words):
        return b"\xffj" + b"".join(struct.pack("<q", len(word)) + word for word in words)

    words = [[side_by_side(b"a", b"bc")], [side_by_side(b"ab", b"c")], [side_by_side(b"\xff", b"c")]]
    assert table.tolist() == expected(words, 1 << 10)
    zero = HashingEncoder(4, columns=[("one", "other")], handle_missing="zero").fit_transform(rows).to_numpy()
    assert zero.tolist() == expected([*words[:2], []], 4)


def test_columns_of_their_own():
    encoder = HashingEncoder(3, columns=BOTH, per_column=True, dtype="float32")
    table = encoder.fit_transform(FRAME)
    names = [f"{name}_{i}" for name in ("tree", "number_x_tree") for i in range(3)]
    assert table.columns.tolist() == encoder.get_feature_names_out().tolist() == [*names, "kept"]
    assert table.dtypes.tolist()[:6] == [np.dtype("float32")] * 6
    alone = [HashingEncoder(3, columns=[key]).fit_transform(FRAME).to_numpy()[:, :3] for key in BOTH]
    np.testing.assert_array_equal(table.to_numpy()[:, :6], np.hstack(alone))
    together = HashingEncoder(3, columns=BOTH).fit_transform(FRAME).to_numpy()[:, :3]
    np.testing.assert_array_equal(sum(alone), together)


def test_nothing_of_any_row_is_kept(tmp_path):
    one, other = (HashingEncoder(5, columns=BOTH) for _ in range(2))
    one.fit(FRAME, sample_weight=np.arange(30) / 7)
    other.fit(FRAME[:2].assign(tree=["another", "text"]))
    assert pickle.dumps(one) == pickle.dumps(other)
    for encoder in (one, other):
        encoder.save(tmp_path / "model")
        bits = (tmp_path / "model").read_bytes()
        assert b"oak" not in bits
        assert bits == (one.save(tmp_path / "one"), (tmp_path / "one").read_bytes())[1]
    pd.testing.assert_frame_equal(load(tmp_path / "model").transform(FRAME), one.transform(FRAME))
    pd.testing.assert_frame_equal(other.transform(FRAME), one.fit_transform(FRAME))
    for name in ("categories_", "encodings_"):
        assert not hasattr(one, name)


@pytest.mark.parametrize(
    "column",
    [
        np.array([3, 1, 3], np.int32),
        np.array([3, 1, 3], np.uint64),
        pa.array(["elm", None, "oak"]),
        pa.array(["elm", None, "oak"], pa.large_string()),
        pa.array([b"elm", None, b"oak"]),
        pa.array([7, None, 7], pa.int16()),
        pa.array([True, None, False]),
        pa.array(["elm", None, "oak"]).dictionary_encode(),
        pd.array(["elm", None, "oak"], "string"),
    ],
    ids=lambda column: str(getattr(column, "dtype", None) or column.type),
)
def test_kinds_of_values_are_those_of_the_rows(column, tmp_path):
    """`fit` takes them from the types of columns if it can, `partial_fit` from the rows."""
    make = pa.table if isinstance(column, pa.Array) else pd.DataFrame
    table = make({"x": column, "y": column})
    HashingEncoder(3, columns=["x", ("x", "y")]).fit(table).save(tmp_path / "by type")
    HashingEncoder(3, columns=["x", ("x", "y")]).partial_fit(table).save(tmp_path / "by rows")
    assert (tmp_path / "by type").read_bytes() == (tmp_path / "by rows").read_bytes()


@pytest.mark.long
def test_more_rows_than_a_tile():
    rows = np.arange(100_001).reshape(-1, 1) % 1000
    encoder = HashingEncoder(4).fit(rows[:1])
    np.testing.assert_array_equal(encoder.transform(rows)[-1001:], encoder.transform(rows[-1001:]))
