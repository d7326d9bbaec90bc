"""Laws of every encoder of the family: the same bits in pieces, parts, files, clusters, libraries and backends."""

import pickle
import sys
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import gpu_encode as ge
from gpu_encode.seam.ops import use_backend
from tests.backends import ON_CUDA
from tests.cases import some_of
from tests.encoders.pieces import saved
from tests.family.drawn import ORDERS, ROW_BY_ROW, SEEN, STATISTICS, check_rows_in_sight
from tests.family.members import MEMBERS, MERGEABLE, OF_EACH_KIND, RNG, ROWS, WEIGHTS, N, same
from tests.scale.parts.in_parts import encoded_in_parts, parts_of
from tests.scale.parts.test_orders import encoded

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
EDGES = [(0, 30), (30, 31), (31, 80), (80, N)]
# The GPU simulator runs these laws for a few members; `test_backends` tests the codes of all members.
FEW = ("frequency", "glmm, classes", "statistics", "order statistics, columns", "catboost, leave-one-out")


def members(given):
    return [
        pytest.param(*entry, id=name, marks=() if name in FEW else pytest.mark.host) for name, entry in given.items()
    ]


def scheme_of(make):
    return getattr(make(), "cv", None)


def fitted_attributes(encoder):
    """Every fitted attribute, to the bit."""
    names = [name for name in dir(encoder) if name.endswith("_") and not name.startswith("_")]
    with np.printoptions(floatmode="unique", threshold=sys.maxsize):
        return {name: repr(getattr(encoder, name)) for name in names if hasattr(encoder, name)}


def train(make, y, X=ROWS, **given):
    encoder = make()
    return encoder, encoder.fit_transform(X, y, **given)


def columns_of(y):
    """Name the columns of a target."""
    if y is None:
        return {}
    return {"y": y} if y.ndim == 1 else {f"y{place}": column for place, column in enumerate(y.T)}


def as_table(y):
    return pd.Series(y, name="y") if y.ndim == 1 else pd.DataFrame(columns_of(y))


def cut(y):
    return None if y is None else [y[start:stop] for start, stop in EDGES]


@pytest.mark.parametrize(("make", "y"), members(MEMBERS))
def test_pieces(make, y):
    one, expected = train(make, y)
    other, pieces = train(make, cut(y), [ROWS[start:stop] for start, stop in EDGES])
    same(pd.concat(pieces), expected)
    same(pd.concat(other.transform([ROWS[:50], ROWS[50:]])), one.transform(ROWS))
    same(pd.concat([one.transform(ROWS[row : row + 1]) for row in range(0, N, 9)]), one.transform(ROWS)[::9])


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(("make", "y"), members(MEMBERS))
def test_parts(make, y, weights, tmp_path):
    one, expected = train(make, y, sample_weight=weights)
    other, parts = make(), parts_of(ROWS, y, weights, None, [1, 30, 30, 47, 83])
    ordered = isinstance(scheme_of(make), ge.Ordered)
    tables = encoded(other, parts, 3, "side by side") if ordered else encoded_in_parts(other, parts)
    same(pd.concat(tables), expected)
    assert ordered or saved(one, tmp_path) == saved(other, tmp_path)


@pytest.mark.parametrize(("make", "y"), members(MERGEABLE))
def test_partial_fit_and_merge(make, y, tmp_path):
    whole = make().fit(ROWS, y)
    bit_by_bit, merged = make(), None
    for start, stop in EDGES:
        own = None if y is None else y[start:stop]
        bit_by_bit.partial_fit(ROWS[start:stop], own)
        part = make().partial_fit(ROWS[start:stop], own)
        merged = part if merged is None else part.merge(merged)
    for other in (bit_by_bit, merged):
        same(other.transform(ROWS), whole.transform(ROWS))
        assert saved(other, tmp_path) == saved(whole, tmp_path)
        assert fitted_attributes(other) == fitted_attributes(whole)
        more = ge.load(tmp_path / "model").partial_fit(ROWS[:30], None if y is None else y[:30])
        assert saved(more, tmp_path) == saved(other.partial_fit(ROWS[:30], None if y is None else y[:30]), tmp_path)


@pytest.mark.parametrize(("make", "y"), members(MEMBERS))
def test_saved_and_pickled(make, y, tmp_path):
    encoder = make().fit(ROWS, y)
    expected = encoder.transform(ROWS)
    encoder.save(tmp_path / "model")
    for other in (ge.load(tmp_path / "model"), pickle.loads(pickle.dumps(encoder))):
        same(other.transform(ROWS), expected)
        assert repr(other.get_params()) == repr(encoder.get_params())
        assert fitted_attributes(other) == fitted_attributes(encoder)
        assert other.get_feature_names_out().tolist() == list(expected.columns)


@pytest.mark.host
@pytest.mark.parametrize(("make", "y"), OF_EACH_KIND)
def test_libraries(make, y):
    one, expected = train(make, y)
    for table in (pl.from_pandas(ROWS), pa.Table.from_pandas(ROWS)):
        encoder, training = train(make, y, table)
        assert type(training) is type(table)
        same(training.to_pandas(), expected)
        same(encoder.transform(ROWS), one.transform(ROWS))


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(("make", "y"), MEMBERS.values(), ids=MEMBERS)
def test_backends(make, y, weights):
    tables = []
    for name in ("numpy", *(ON_CUDA or ["compiled"])):
        with use_backend(name):
            encoder, training = train(make, y, sample_weight=weights)
            tables.append((training, encoder.transform(ROWS)))
    for one, other in zip(*tables, strict=True):
        same(one, other)


# Singular vectors of a matrix with and without lines of zeros (categories without weight) differ in their last bits.
BY_WEIGHT = {name: entry for name, entry in MERGEABLE.items() if not name.startswith(("spectra", "neighbours"))}


@pytest.mark.parametrize(("make", "y"), members(BY_WEIGHT))
def test_whole_weights_repeat_rows(make, y):
    times = np.repeat(np.arange(N), WEIGHTS)
    weighted = make().fit(ROWS, y, sample_weight=WEIGHTS)
    repeated = make().fit(ROWS.iloc[times].reset_index(drop=True), None if y is None else y[times])
    seen = ROWS[WEIGHTS > 0]
    same(weighted.transform(seen), repeated.transform(seen))


@pytest.mark.skipif(bool(ON_CUDA), reason="files know nothing of the backend")
@pytest.mark.parametrize(("make", "y"), OF_EACH_KIND)
def test_files(make, y, tmp_path):
    one, expected = train(make, y)
    targets = columns_of(y)
    table = pa.Table.from_pandas(ROWS.assign(**targets))
    pa.parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=17)
    other = make()
    target = list(targets) if len(targets) > 1 else next(iter(targets), None)
    ge.encode_dataset(tmp_path / "rows.parquet", tmp_path / "codes.parquet", other, target=target, keep_target=False)
    same(pa.parquet.read_table(tmp_path / "codes.parquet").to_pandas(), expected)
    same(other.transform(ROWS), one.transform(ROWS))


@pytest.mark.skipif(bool(ON_CUDA), reason="tasks know nothing of the backend")
@pytest.mark.parametrize(("make", "y"), OF_EACH_KIND)
def test_dask(make, y):
    dd = pytest.importorskip("dask.dataframe")
    one, expected = train(make, y)
    X = dd.from_pandas(ROWS, npartitions=4)
    target = None if y is None else dd.from_pandas(as_table(y), npartitions=4)
    encoder = make()
    training = encoder.fit_transform(X, target).compute(scheduler="synchronous")
    again = make().fit(X, target).transform(X).compute(scheduler="synchronous")
    for table, wanted in ((training, expected), (again, one.transform(ROWS))):
        # Dask turns columns that pass through into its own strings.
        same(table.drop(columns="city", errors="ignore"), wanted.drop(columns="city", errors="ignore"))


# Where columns are blown up, a row has encodings of folds that have seen it; stratified folds read the target.
LEAK_FREE = {name: entry for name, entry in MERGEABLE.items() if entry[1] is not None and "stratified" not in name}


@pytest.mark.parametrize(("make", "y"), members(LEAK_FREE))
def test_no_leak(make, y):
    _, before = train(make, y)
    for row in (0, 41, 85):
        changed, others = y.copy(), np.flatnonzero(((y != y[row]) & ~pd.isna(y)).reshape(N, -1).any(axis=1))
        changed[row] = y[others[row % len(others)]]
        _, after = train(make, changed)
        same(after.iloc[[row]], before.iloc[[row]])
        # In an order no row may come after the row; clusters may stay as they are.
        may_stay = isinstance(scheme_of(make), ge.Ordered) or isinstance(make(), ge.ClusterEncoder)
        assert may_stay or not after.equals(before)


# Encoders that take any scheme, except schemes in which rows have their own sums or come in an order.
OWN_SCHEMES = ("ordinal", "clusters, profiles", "clusters, values")
CROSS_FITTED = {
    name: entry for name, entry in MERGEABLE.items() if scheme_of(entry[0]) and not name.startswith(OWN_SCHEMES)
}
READ_TABLES = ("glmm", "rare", "counter", "places", "clusters")
READ_DISTRIBUTIONS = ("order statistics", "pairs", "time folds")


def is_refused(name, scheme):
    words = READ_TABLES if scheme in ROW_BY_ROW else ()
    return any(word in name for word in words + READ_DISTRIBUTIONS * (scheme == "ordered"))


@pytest.mark.parametrize(
    ("name", "scheme"), [names for names in some_of(CROSS_FITTED, SEEN, 3) if not is_refused(*names)]
)
@pytest.mark.host
def test_training_encodings_are_those_of_a_fit_on_the_rows_in_sight(name, scheme):
    check_rows_in_sight(*CROSS_FITTED[name], ROWS, scheme, WEIGHTS)


LARGE = RNG.integers(0, 40, (700, 2))
LARGER = {
    "statistics": (partial(ge.StatisticEncoder, STATISTICS), RNG.normal(size=700)),
    "evidence": (ge.WeightOfEvidenceEncoder, RNG.integers(0, 2, 700)),
    "columns": (partial(ge.StatisticEncoder, STATISTICS, values=[1], columns=[0]), None),
    "order statistics": (partial(ge.StatisticEncoder, ORDERS), RNG.integers(-9, 9, 700) / 2.0),
    "borders": (partial(ge.CatBoostEncoder, "borders", borders=[-1.5, 0.25, 1.0]), RNG.normal(size=700)),
    "buckets": (partial(ge.CatBoostEncoder, "buckets", target_type="multiclass"), RNG.integers(0, 3, 700)),
}


@pytest.mark.long
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("name", "cv"),
    [
        (name, cv)
        for name, cv in product(LARGER, [5, ge.LeaveOneOut(), ge.Ordered(2), ge.KFold(3, blow_up=True)])
        if name != "order statistics" or not isinstance(cv, ge.Ordered)
    ],
    ids=str,
)
def test_every_backend_gives_the_same_bits_of_more_rows(name, cv, weighted):
    (make, y), bits = LARGER[name], []
    weights = np.arange(700) % 4 / (1 if name == "order statistics" else 3) if weighted else None
    for backend in ("numpy", "compiled"):
        with use_backend(backend):
            encoder = make(cv=cv)
            bits.append(encoder.fit_transform(LARGE, y, sample_weight=weights).tobytes())
            bits.append(encoder.transform(LARGE).tobytes())
    assert bits[:2] == bits[2:]


ALL_IN_SIGHT = {
    name: entry for name, entry in MEMBERS.items() if entry[1] is None and scheme_of(entry[0]) in (None, "auto")
}


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize(("make", "y"), members(ALL_IN_SIGHT))
def test_without_a_target_training_encodings_are_those_of_new_rows(make, y):
    encoder, training = train(make, y)
    same(training, encoder.transform(ROWS))
    same(make().fit_transform(ROWS, ["a target that", *"is ignored"] * (N // 11) + [None] * (N % 11)), training)
