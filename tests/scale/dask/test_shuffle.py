"""Tables of categories that stay on the workers: the bits of one table for all partitions."""

from fractions import Fraction

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from dask import delayed
from pyarrow import parquet

from gpu_encode import (
    Holdout,
    JamesStein,
    KFold,
    LeaveOneOut,
    MEstimate,
    Ordered,
    Sigmoid,
    TargetEncoder,
    TimeFolds,
)
from gpu_encode.scale.dask import exchange, shuffle
from gpu_encode.scale.engines import DistributedEncoder, buckets
from gpu_encode.scale.files import shuffle as sums
from tests.cases import some_of
from tests.scale.dask.cases import KEYS, assert_same, partitioned, pieces, rows

pytestmark = [
    pytest.mark.host,
    pytest.mark.usefixtures("synchronous"),
    pytest.mark.filterwarnings("ignore:.*see no", "ignore::gpu_encode.LeakWarning"),
]
WHOLE = rows()
COLUMNS = ["shop", "city", ("share", "size")]
READ = [*KEYS, "buyer", "fold", "when", "price"]
SCHEMES = {
    "folds": 5,
    "contiguous": KFold(3, order="contiguous"),
    "interleaved": KFold(4, order="interleaved"),
    "stratified": KFold(3, stratify=True),
    "blow-up": KFold(3, blow_up=True),
    "by value": KFold(4, by=["buyer", "when"]),
    "a column": "fold",
    "an array": np.arange(len(WHOLE)) % 3,
    "time": TimeFolds(4, time="when"),
    "holdout": Holdout(0.4),
    "all others": LeaveOneOut(),
}


@pytest.fixture(autouse=True)
def _many_buckets(monkeypatch):
    """Put a few rows into many buckets, and sum a few of them at a time."""
    monkeypatch.setattr(shuffle, "buckets_for", lambda *_: 2)
    monkeypatch.setattr(buckets, "ROWS_AT_ONCE", 50)


def check(number, cv=5, y="sold", weight=None, frame=WHOLE, columns=COLUMNS, **parameters):
    """Compare encodings of training rows and new rows with those of one table; give the encoder."""
    new = rows(97, seed=5)[READ] if frame is WHOLE else frame[READ]
    cut, whole = partitioned(frame, number), TargetEncoder(columns=columns, cv=cv, **parameters)
    vectors = {} if weight is None else {"sample_weight": frame[weight]}
    wanted = whole.fit_transform(frame[READ], frame[y], **vectors)
    vectors = {} if weight is None else {"sample_weight": cut[weight]}
    there = DistributedEncoder(TargetEncoder(columns=columns, cv=cv, **parameters), tables="shuffle")
    training = there.fit_transform(cut[READ], cut[y], **vectors)
    assert training.npartitions == number
    assert training.divisions == cut.divisions
    assert_same(training.compute(), wanted)
    expected = whole.transform(new)
    assert_same(there.transform(partitioned(new, 2)).compute(), expected)
    if number == 3:
        there.fit(cut[READ], cut[y], **vectors)
        assert_same(there.transform(partitioned(new, 1)).compute(), expected)
    return there


@pytest.mark.parametrize(("name", "number"), some_of(SCHEMES, [1, 3, 8], 3))
def test_schemes(name, number):
    assert check(number, SCHEMES[name]).encodings_.buckets.numbers == [2, 2, 2]


@pytest.mark.parametrize(("y", "weight"), some_of(["grade", "amount", ["amount", "price"]], [None, "weight"]), ids=str)
def test_targets_and_weights(y, weight):
    check(3, y=y, weight=weight, target_type="auto" if isinstance(y, str) else "continuous")


RULES = {
    "smoothing": {"smooth": Sigmoid(5.0, 2.0), "min_count": 3, "scale": "logit"},
    "by key": {"smooth": {"city": MEstimate(9.0)}, "prior": 0.25, "dtype": "float32"},
    "missing as prior": {"handle_missing": "prior", "handle_unknown": "nan"},
    "missing as NaN": {"handle_missing": "nan", "handle_unknown": -1.0},
}


@pytest.mark.parametrize(("name", "cv"), some_of(RULES, [3, LeaveOneOut()]), ids=str)
def test_rules(name, cv):
    check(3, cv, **RULES[name])


def test_many_rows_find_folds_by_their_number():
    """For more rows than a small block, fold numbers are computed when they are needed."""
    frame = pd.DataFrame({"city": np.arange(70_000) % 501, "sold": np.arange(70_000) % 7 % 2})
    cut = dd.from_pandas(frame, npartitions=2)
    encoder = DistributedEncoder(TargetEncoder(columns=["city"]), tables="shuffle")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "ROWS_AT_ONCE", 20_000)
        training = encoder.fit_transform(cut[["city"]], cut["sold"])
    assert_same(training.compute(), TargetEncoder(columns=["city"]).fit_transform(frame[["city"]], frame["sold"]))


def test_means_of_others_in_plain_fractions():
    frame = pd.DataFrame({"city": list("aaabbbab"), "sold": [0, 1, 1, 1, 0, 1, 0, 1], "fold": [0, 1, 2] * 2 + [0, 1]})
    cut = dd.from_pandas(frame, npartitions=3)
    encoder = TargetEncoder(columns=["city"], cv="fold", smooth=0.0)
    found = DistributedEncoder(encoder, tables="shuffle").fit_transform(cut[["city", "fold"]], cut["sold"]).compute()
    for row in frame.itertuples():
        others = frame[(frame["fold"] != row.fold) & (frame["city"] == row.city)]
        assert found["city"][row.Index] == float(Fraction(int(others["sold"].sum()), len(others)))


def test_partitions_without_rows_or_values():
    frame = rows(30)
    frame["shop"] = frame["shop"].where(np.arange(30) < 12)
    check(24, frame=frame)


@pytest.mark.parametrize("policy", ["prior", "nan"])
def test_a_partition_whose_values_are_all_missing(policy):
    frame = WHOLE.assign(shop=WHOLE["shop"].mask(WHOLE["city"] < 4)).sort_values("city", kind="stable")
    missing = int(frame["shop"].isna().to_numpy().argmin())
    assert missing > 1
    cut = dd.from_delayed([delayed(frame[:missing]), delayed(frame[missing:])], meta=frame[:0], verify_meta=False)
    there = DistributedEncoder(TargetEncoder(columns=["shop"], handle_missing=policy), tables="shuffle")
    found = there.fit_transform(cut[["shop"]], cut["sold"]).compute()
    whole = TargetEncoder(columns=["shop"], handle_missing=policy)
    assert_same(found, whole.fit_transform(frame[["shop"]], frame["sold"]))


def test_encodings_that_a_shuffle_has_lost_are_no_encodings(monkeypatch):
    there = DistributedEncoder(TargetEncoder(columns=["shop"]), tables="shuffle")
    cut = partitioned(WHOLE, 3)
    training = there.fit_transform(cut[["shop"]], cut["sold"])
    whole = exchange.unpack
    monkeypatch.setattr(exchange, "unpack", lambda packed: whole(packed)[:-1])
    with pytest.raises(RuntimeError, match="shuffle has lost"):
        training.compute()


@pytest.mark.parametrize("method", ["disk", "p2p", "tasks", None])
def test_pieces_never_go_through_files_of_one_machine(method):
    with dask.config.set({"dataframe.shuffle.method": method}):
        assert exchange.choose_shuffle() == "tasks"


def test_a_row_never_sees_its_own_target():
    def encode(y, cv):
        cut = partitioned(WHOLE.assign(sold=y), 3)
        encoder = DistributedEncoder(TargetEncoder(columns=COLUMNS, cv=cv), tables="shuffle")
        return encoder.fit_transform(cut[READ], cut["sold"]).compute()[["shop", "city", "share_x_size"]]

    for cv in (KFold(4), LeaveOneOut()):
        before = encode(WHOLE["sold"], cv)
        for row in (5, 130):
            after = encode(WHOLE["sold"].where(np.arange(len(WHOLE)) != row, 1 - WHOLE["sold"]), cv)
            assert after.iloc[row].equals(before.iloc[row])
            assert not after.equals(before)


@pytest.mark.parametrize("kind", ["polars", "pyarrow", "numpy"])
def test_lists_of_tables(kind):
    convert = {
        "polars": pl.from_pandas,
        "pyarrow": lambda part: pa.Table.from_pandas(part, preserve_index=False),
        "numpy": lambda part: part.to_numpy(),
    }[kind]
    frame = WHOLE[["city", "buyer", "when"]]
    columns = ["city"] if kind != "numpy" else [0]
    whole = TargetEncoder(columns=columns).fit_transform(convert(frame), WHOLE["sold"])
    parts = pieces(WHOLE, 4)
    X = [delayed(convert)(part[["city", "buyer", "when"]]) for part in parts]
    there = DistributedEncoder(TargetEncoder(columns=columns), tables="shuffle")
    found = dask.compute(*there.fit_transform(X, [delayed(part["sold"]) for part in parts]))
    joined = {"polars": pl.concat, "pyarrow": pa.concat_tables, "numpy": np.concatenate}[kind](found)
    assert joined.equals(whole) if kind != "numpy" else joined.tobytes() == whole.tobytes()


def test_arrays_of_dask_beside_a_frame():
    cut = dd.from_pandas(WHOLE, npartitions=3)
    y = da.from_array(WHOLE["amount"].to_numpy(), chunks=(tuple(cut.map_partitions(len).compute()),))
    training = DistributedEncoder(TargetEncoder(columns=["shop"]), tables="shuffle").fit_transform(cut[["shop"]], y)
    assert_same(training.compute(), TargetEncoder(columns=["shop"]).fit_transform(WHOLE[["shop"]], WHOLE["amount"]))


@pytest.mark.parametrize("policies", [{"handle_unknown": "error"}, {"handle_missing": "error"}], ids=str)
def test_values_that_are_refused(policies):
    known = rows()[["city", "shop"]].dropna()
    cut = dd.from_pandas(known.assign(sold=1 * (known["city"] > 4)), npartitions=3)
    encoder = DistributedEncoder(TargetEncoder(**policies), tables="shuffle").fit(cut[["city", "shop"]], cut["sold"])
    new = known.iloc[:9].reset_index(drop=True)
    new.loc[7, "shop"] = "nowhere" if "handle_unknown" in policies else None
    with pytest.raises(ValueError, match=r"'shop'.* the first in row 2 of partition 1"):
        encoder.transform(dd.from_delayed([delayed(new[:5]), delayed(new[5:])], meta=new[:0])).compute()


REFUSED = {
    "Ordered": {"cv": Ordered()},
    "JamesStein": {"smooth": JamesStein()},
    "indicators": {"indicators": True},
    "LeaveOneOut": {"cv": LeaveOneOut(), "target_type": "continuous"},
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_takes_more_than_sums_of_single_categories(words):
    cut = partitioned(WHOLE, 2)
    with pytest.raises(ValueError, match=rf'tables="shuffle": .*{words}.* Or pass tables="broadcast"\.'):
        DistributedEncoder(TargetEncoder(**REFUSED[words]), tables="shuffle").fit_transform(cut[KEYS], cut["sold"])


def test_saved_and_loaded(tmp_path):
    cut, path = partitioned(WHOLE, 3), tmp_path / "shops"
    encoder = DistributedEncoder(TargetEncoder(columns=COLUMNS), tables="shuffle")
    encoder.fit_transform(cut[READ], cut["sold"])
    encoder.save(str(path))
    new = rows(97, seed=5)[READ]
    expected = encoder.transform(partitioned(new, 2)).compute()
    assert_same(DistributedEncoder.load(path).transform(partitioned(new, 4)).compute(), expected)
    lines = parquet.read_table(path / "encodings")
    assert lines.column_names == ["entry", "key0", "key1", "key3", "key4", "encodings"]
    assert set(pc.list_value_length(lines["encodings"]).to_pylist()) == {1}
    found = {(line["entry"], line["key0"]): line["encodings"] for line in lines.to_pylist()}
    known = new["shop"].map(lambda shop: found[0, shop if isinstance(shop, str) else None][0])
    assert known.tolist() == expected["shop"].tolist()
    # Other engines write additional files, and a marker of success.
    for file in (path / "encodings").iterdir():
        file.unlink()
    parquet.write_table(lines, path / "encodings" / "one.snappy.parquet", row_group_size=7)
    (path / "encodings" / "_SUCCESS").touch()
    assert_same(DistributedEncoder.load(path).transform(partitioned(new, 2)).compute(), expected)


def test_so_many_sums_and_columns_without_text_as_names(monkeypatch):
    monkeypatch.setattr(sums, "MOST_SUMS", 5)
    cut = partitioned(WHOLE, 2)
    with pytest.raises(ValueError, match="10 sums here, by fold and class, 5 at most"):
        DistributedEncoder(TargetEncoder(), tables="shuffle").fit_transform(cut[KEYS], cut["sold"])
    numbered = dd.from_pandas(pd.DataFrame({0: ["a", "b"], 1: [0, 1]}), npartitions=1)
    with pytest.raises(TypeError, match=r"Got a column named 0 .*astype\(str\)"):
        DistributedEncoder(TargetEncoder(), tables="shuffle").fit(numbered[[0]], numbered[1])


def test_rows_that_change_between_passes():
    passes = iter(range(100))

    def part(_):
        return WHOLE.iloc[: 50 + next(passes)]

    cut = dd.from_map(part, [0], meta=WHOLE.iloc[:0])
    with pytest.raises(ValueError, match="partition 0 has rows, or values of rows, that were not there"):
        DistributedEncoder(TargetEncoder(), tables="shuffle").fit(cut[KEYS], cut["sold"])


def test_where_tables_lie_by_the_number_of_categories(monkeypatch):
    cut = partitioned(WHOLE, 3)
    few = DistributedEncoder(TargetEncoder()).fit(cut[KEYS], cut["sold"])
    assert few.tables_ == "broadcast"
    assert few.encoder_.transform(WHOLE[KEYS]).shape == (len(WHOLE), len(KEYS))
    monkeypatch.setattr("gpu_encode.scale.engines.distributed_encoder.MANY_CATEGORIES", 30)
    assert DistributedEncoder(TargetEncoder()).fit(cut[KEYS], cut["sold"]).tables_ == "shuffle"


def test_buckets_by_categories_and_rows(monkeypatch):
    """A bucket adds up 64 MiB: with few categories a line per piece of rows, with many categories a line per row."""
    monkeypatch.undo()
    lengths = [1 << 20] * 60
    assert [shuffle.number_of_buckets(n_categories, lengths, 10) for n_categories in (1000, 20_000_000)] == [1, 120]
