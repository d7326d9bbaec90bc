"""Folds follow from a published hash of a row's values, and not from the row's position."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.base import clone

import gpu_encode as ge
from gpu_encode.fitting.columns import column_keys
from gpu_encode.schemes.plans import ValueFolds
from gpu_encode.seam import ops
from gpu_encode.tables import frames
from gpu_encode.tables.categories.hashes import hash_bytes
from tests.bits import assert_same_bits, assert_same_encoder
from tests.encoders.hash_definition import fold_of, xxh64
from tests.encoders.pieces import LIBRARIES, cut, in_libraries, matrix
from tests.scale.parts.in_parts import encoded_in_parts, parts_of

pytestmark = pytest.mark.host
N = 150
NUMBERS = np.arange(N) * 37 % 61 - 20
NAMES = np.array(["", "a", "ä", "abcdefgh", "a name of more than thirty-two bytes", None], object)
ROWS = pd.DataFrame(
    {
        "city": np.array(list("pqrs"), object)[np.arange(N) * 7 % 11 % 4],
        "order": NUMBERS,
        "name": NAMES[np.arange(N) * 5 % 17 % 6],
    }
)
Y = np.sin(np.arange(N)) * 10.0 ** (np.arange(N) % 5)
BYS = {"order": "order", "name": ["name"], "both": ["name", "order"], "positions": (2, 1)}
SPLITS = {"order": 4, "name": 2, "both": 5, "positions": 3}


def folds_of(table, by=0, n_splits=1009, seed=0):
    """Give the fold of each row of a table."""
    columns = tuple(by) if isinstance(by, (list, tuple)) else (by,)
    frame = frames.read(table)
    return column_keys(frame, ValueFolds(columns, n_splits, seed), "by", ops.host(frame.n_rows)).codes.tolist()


def in_bytes(value):
    return None if pd.isna(value) else value.encode() if isinstance(value, str) else int(value)


def defined(by, n_splits, seed):
    """Give the fold of each row by the definition."""
    columns = [ROWS.columns[one] if isinstance(one, int) else one for one in ([by] if isinstance(by, str) else by)]
    rows = ROWS[columns].astype(object).to_numpy().tolist()
    return [fold_of([in_bytes(value) for value in row], n_splits, seed) for row in rows]


def encoder(**parameters):
    return ge.TargetEncoder(**({"columns": ["city"], "smooth": 1.5, "target_type": "continuous"} | parameters))


@pytest.mark.parametrize(
    ("text", "seed", "expected"),
    [
        (b"", 0, 0xEF46DB3751D8E999),
        (b"a", 0, 0xD24EC4F1A98C6E5B),
        (b"abc", 0, 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0, 0xFBCEA83C8A378BF1),
        # As the documentation of Spark has them: xxhash64('ABC'), and xxhash64('ABC', 'DEF').
        (b"ABC", 42, 4105715581806190027),
        (b"DEF", 4105715581806190027, 3233247871021311208),
        # As Spark 4.3 gives it of the bigint 71.
        ((71).to_bytes(8, "little"), 42, 3537490936296159476),
    ],
)
def test_published_hashes(text, seed, expected):
    assert xxh64(text, seed) == expected % 2**64
    assert hash_bytes([text], np.array([seed], np.uint64)).tolist() == [expected % 2**64]


def test_hashes_of_all_lengths():
    rng = np.random.default_rng(3)
    texts = [rng.bytes(length) for length in [*range(101), 999]]
    seeds = rng.integers(0, 2**64, len(texts), dtype=np.uint64)
    assert hash_bytes(texts, seeds).tolist() == [
        xxh64(text, int(seed)) for text, seed in zip(texts, seeds, strict=True)
    ]


# They are part of what users build upon: no release may change one.
PINNED = {
    "order": [3, 0, 2, 3, 3, 1, 3, 3, 3, 2, 1, 2],
    "name": [1, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0],
    "both": [1, 1, 4, 0, 2, 0, 0, 3, 3, 1, 4, 2],
    "positions": [2, 1, 1, 2, 2, 0, 2, 1, 1, 0, 1, 0],
}


@pytest.mark.parametrize("name", BYS)
def test_folds_are_those_of_the_definition(name):
    by, splits = BYS[name], SPLITS[name]
    assert folds_of(ROWS, by, splits, 7) == defined(by, splits, 7)
    assert folds_of(ROWS, by, splits)[:12] == PINNED[name]
    for seed in (-1, 2**64 + 7):
        assert folds_of(ROWS, by, splits, seed) == defined(by, splits, seed)


WHOLE = {
    "python": lambda numbers: np.array([int(number) for number in numbers], object),
    "int8": lambda numbers: numbers.astype(np.int8),
    "float32": lambda numbers: numbers.astype(np.float32),
    "float64": lambda numbers: numbers.astype(np.float64),
    "decimals": lambda numbers: np.array([Decimal(int(number)) for number in numbers], object),
    "decimal128": lambda numbers: pa.array([Decimal(f"{number}.00") for number in numbers]),
    "nullable": lambda numbers: pd.array(numbers, "Int16"),
    "categories": pd.Categorical,
    "polars": lambda numbers: pl.Series(numbers, dtype=pl.Int32),
    "dictionary": lambda numbers: pa.array(numbers).dictionary_encode(),
}


def table_of(column):
    """Put a column into a table of the library that it is of."""
    if isinstance(column, pl.Series):
        return pl.DataFrame({"x": column})
    return pa.table({"x": column}) if isinstance(column, pa.Array) else pd.DataFrame({"x": column})


@pytest.mark.parametrize("name", WHOLE)
def test_a_number_is_one_value_in_every_type(name):
    numbers = np.arange(-50, 51)
    expected = [fold_of([int(number)], 1009, 0) for number in numbers]
    assert folds_of(table_of(WHOLE[name](numbers))) == expected
    assert folds_of(table_of(numbers.astype(str).astype(object))) != expected


def test_booleans_zeros_and_numbers_of_no_integer_type():
    assert folds_of(pd.DataFrame({"x": [False, True]})) == folds_of(pd.DataFrame({"x": [0, 1]}))
    assert folds_of(pd.DataFrame({"x": [-0.0, 0.5]})) == folds_of(pd.DataFrame({"x": [0.0, 0.5]}))
    bits = [int.from_bytes(np.array([value]).tobytes(), "little", signed=True) for value in (0.5, -2.25, 2.0**70)]
    expected = [fold_of([one], 1009, 0) for one in bits]
    halves = [Decimal("0.5"), Decimal("-2.25"), Decimal(2**70)]
    assert folds_of(pd.DataFrame({"x": [0.5, -2.25, 2.0**70]})) == expected
    assert folds_of(pd.DataFrame({"x": np.array(halves, object)})) == expected
    # What no float holds is spelled in decimal digits.
    spelled = [fold_of([b"\xffn1e-1"], 1009, 0), fold_of([f"\xffn{2**64 - 1}e0".encode("latin1")], 1009, 0)]
    assert folds_of(pd.DataFrame({"x": np.array([Decimal("0.1"), Decimal(2**64 - 1)], object)})) == spelled
    assert folds_of(pd.DataFrame({"x": np.array([2**64 - 1], np.uint64)})) == spelled[1:]


def test_moments_are_their_instants_in_every_unit():
    seconds = np.arange(-40, 40) * 86_400 * 300
    expected = [fold_of([int(second) * 10**6], 1009, 0) for second in seconds]
    for unit in ("s", "ms", "us", "ns"):
        moments = seconds.astype("datetime64[s]").astype(f"datetime64[{unit}]")
        assert folds_of(pd.DataFrame({"x": moments})) == expected
        assert folds_of(pa.table({"x": pa.array(moments)})) == expected
        assert (
            folds_of(pd.DataFrame({"x": seconds.astype("timedelta64[s]").astype(f"timedelta64[{unit}]")})) == expected
        )
    zoned = pd.DataFrame({"x": pd.to_datetime(seconds, unit="s", utc=True)})
    assert folds_of(zoned) == expected
    assert folds_of(zoned.assign(x=zoned["x"].dt.tz_convert("Asia/Tokyo"))) == expected
    days = [datetime.date(1970, 1, 1) + datetime.timedelta(seconds=int(second)) for second in seconds]
    assert folds_of(pa.table({"x": pa.array(days, pa.date32())})) == expected
    fine = pd.DataFrame({"x": np.array([1_500], "datetime64[ns]")})
    assert folds_of(fine) == [fold_of([b"\xffd15e-7"], 1009, 0)]


@pytest.mark.parametrize("seed", [0, 5])
def test_missing_values_of_all_kinds_are_one(seed):
    columns = [
        pd.Series(["a", None], dtype=object),
        pd.Series([1.0, np.nan]),
        pd.Series([1, pd.NA], dtype="Int64"),
        pd.Series([pd.Timestamp(1), pd.NaT]),
        pd.Series([None, None], dtype=object),
    ]
    assert [folds_of(pd.DataFrame({"x": column}), seed=seed)[1] for column in columns] == [seed] * 5


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", ["order", "both"])
def test_encodings_are_those_of_the_fold_numbers(name, library):
    by, splits = BYS[name], SPLITS[name]
    expected = encoder(cv=defined(by, splits, 3)).fit_transform(ROWS, Y)["city"].to_numpy()
    # A table of categories wants a column "shop".
    rows = ROWS.assign(shop=ROWS["name"])
    positions = [rows.columns.get_loc(column) for column in np.atleast_1d(by)]
    given = encoder(columns=[0], cv=ge.KFold(splits, by=positions, random_state=3))
    tables = in_libraries(cut(rows, [9, 80]), LIBRARIES[library])
    assert_same_bits(matrix(given.fit_transform(tables, cut(Y, [9, 80])))[:, 0], expected)


def test_parts_files_dask_and_blow_up(tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    cv = ge.KFold(5, by=["name", "order"], random_state=2)
    one = encoder(cv=cv)
    expected = one.fit_transform(ROWS, Y)
    for cuts in ([], [50], [1, 20, 30, 30, 149]):
        other = encoder(cv=cv)
        found = pd.concat(encoded_in_parts(other, parts_of(ROWS, Y, cuts=cuts)))
        pd.testing.assert_frame_equal(found, expected, check_exact=True)
        assert_same_encoder(other, one)
    many = encoder(cv=cv)
    found = many.fit_transform(dd.from_pandas(ROWS, npartitions=3), dd.from_pandas(pd.Series(Y), npartitions=3))
    assert_same_bits(found["city"].compute(scheduler="synchronous"), expected["city"])
    pa.parquet.write_table(pa.Table.from_pandas(ROWS.assign(y=Y)), tmp_path / "rows.parquet", row_group_size=31)
    ge.encode_dataset(tmp_path / "rows.parquet", tmp_path / "codes.parquet", encoder(cv=cv), target="y")
    assert_same_bits(pa.parquet.read_table(tmp_path / "codes.parquet")["city"].to_numpy(), expected["city"])
    blown = encoder(cv=ge.KFold(5, by=cv.by, random_state=2, blow_up=True)).fit_transform(ROWS, Y)
    folds = defined(cv.by, 5, 2)
    assert_same_bits([row[fold] for row, fold in zip(blown.to_numpy()[:, :5], folds, strict=True)], expected["city"])


def test_a_row_keeps_its_fold_wherever_it_lies():
    """Shuffled, cut anywhere, and under a table that grows: parts whose places among all rows are not known."""
    cv = ge.KFold(4, by="order")
    expected = encoder(cv=cv).fit_transform(ROWS, Y)["city"]
    order = np.random.default_rng(1).permutation(N)
    assert_same_bits(encoder(cv=cv).fit_transform(ROWS.iloc[order], Y[order])["city"], expected.iloc[order])
    parts = parts_of(ROWS.iloc[order], Y[order], cuts=[40, 41, 90])
    found = encoded_in_parts(encoder(cv=cv), [ge.parts.Part(part.X, part.y) for part in parts])
    assert_same_bits(pd.concat(found)["city"], expected.iloc[order])
    assert folds_of(ROWS.iloc[:60], "order") == folds_of(ROWS, "order")[:60]


def test_a_target_never_changes_the_encodings_of_its_fold():
    cv, folds = ge.KFold(4, by="order"), np.array(defined("order", 4, 0))
    before = encoder(cv=cv).fit_transform(ROWS, Y)["city"].to_numpy()
    for row in range(0, N, 13):
        changed = Y.copy()
        changed[row] += 1e6
        after = encoder(cv=cv).fit_transform(ROWS, changed)["city"].to_numpy()
        assert ((after == before) == (folds == folds[row])).all()


@pytest.mark.parametrize("n_splits", [2, 5, 10])
def test_folds_are_as_even_as_the_binomial_law_has_them(n_splits):
    values, seeds = 2000, 250
    table = pd.DataFrame({"x": np.arange(values)})
    counts = [np.bincount(folds_of(table, "x", n_splits, seed), minlength=n_splits) for seed in range(seeds)]
    expected = values / n_splits
    square = ((np.array(counts) - expected) ** 2 / expected).sum(axis=1)
    # Chi-square of n_splits - 1 degrees of freedom, which has this mean and twice the variance.
    degrees = n_splits - 1
    assert abs(square.mean() - degrees) < 4 * np.sqrt(2 * degrees / seeds)
    assert 0.5 < square.var() / (2 * degrees) < 2


def test_the_share_of_a_fold_varies_as_the_docstring_says():
    """Values with unequal numbers of rows: the variance is sum(p ** 2) (k - 1) / k ** 2."""
    rows_of, seeds, k = 1 + np.arange(300) % 7**2, 400, 5
    p = rows_of / rows_of.sum()
    table = pd.DataFrame({"x": [f"customer {number}" for number in range(300)]})
    shares = [p[np.array(folds_of(table, "x", k, seed)) == 2].sum() for seed in range(seeds)]
    expected = (p**2).sum() * (k - 1) / k**2
    assert abs(np.mean(shares) - 1 / k) < 4 * np.sqrt(expected / seeds)
    assert 0.75 < np.var(shares) / expected < 1.33


def test_by_column_tuning_copies_and_files(tmp_path):
    cv = ge.KFold(4, by=["order"])
    assert clone(cv).by == ["order"]
    assert clone(ge.KFold(by=("a", 0))).get_params()["by"] == ("a", 0)
    keyed = encoder(columns=["city", "name"], cv={"city": cv, "name": 3}).fit_transform(ROWS, Y)
    assert_same_bits(keyed["city"], encoder(cv=cv).fit_transform(ROWS, Y)["city"])
    given, by_hand = (ge.tune(encoder(cv=one), ROWS, Y, smoothings=[1.0]) for one in (cv, defined("order", 4, 0)))
    assert given.best.log_likelihood == by_hand.best.log_likelihood
    for given in (cv, ge.KFold(4, by=("order",)), ge.KFold(4, by="order")):
        fitted = encoder(cv=given).fit(ROWS, Y)
        fitted.save(tmp_path / "model")
        assert repr(ge.load(tmp_path / "model").cv) == repr(given)


REFUSED = {
    "order": (
        {"by": "order", "order": "contiguous"},
        r"by='order'\) finds folds by values alone, .* order='contiguous'",
    ),
    "stratify": ({"by": "order", "stratify": True}, "takes no stratify=True: leave one of them out"),
    "state": ({"by": "order", "random_state": None}, "takes no random_state=None: take an integer instead"),
    "twice": ({"by": ["order", "order"]}, "'by' parameter of KFold must be a column of X or a list of several, each"),
    "none": ({"by": []}, "must be a column of X or a list of several"),
    "true": ({"by": True}, "must be a column of X or a list of several"),
    "array": ({"by": np.arange(N)}, "must be a column of X or a list of several"),
    "unknown": ({"by": "ordr"}, "'ordr' is not a column of X. Did you mean 'order'"),
    "few": ({"n_splits": 5, "by": "city"}, r"No row falls into fold \d of KFold\(5, by='city'\).* With 70 distinct"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    parameters, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        encoder(columns=["name"], cv=ge.KFold(**parameters)).fit_transform(ROWS, Y)


def test_an_empty_fold_is_refused_in_parts_and_as_unlikely_as_it_says():
    with pytest.raises(ValueError, match="No row falls into fold"):
        encoded_in_parts(encoder(columns=["name"], cv=ge.KFold(5, by="city")), parts_of(ROWS, Y, cuts=[70]))
    for n_splits, enough in ((2, 21), (5, 70), (20, 328)):
        some_fold_is_empty = lambda values: n_splits * (1 - 1 / n_splits) ** values  # noqa: B023, E731
        assert some_fold_is_empty(enough) <= 1e-6 < some_fold_is_empty(enough - 1)
