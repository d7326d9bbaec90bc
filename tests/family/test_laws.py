"""What every encoder of the family keeps to: one answer in pieces, parts, files, clusters, libraries and backends."""

import pickle
import sys
import warnings
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_encode as ge
from gpu_encode.ops import use_backend
from tests import strategies
from tests.backends import ON_CUDA
from tests.encoders.pieces import saved
from tests.family.drawn import ORDERS, STATISTICS, training_encodings
from tests.family.members import MEMBERS, MERGEABLE, RNG, ROWS, WEIGHTS, N, same
from tests.laws import encoding
from tests.parts.in_parts import encoded_in_parts, parts_of

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
EDGES = [(0, 30), (30, 31), (31, 80), (80, N)]
# Of these laws a GPU's simulator sees a few members; of all members the codes, in `test_backends`.
FEW = ("frequency", "glmm, classes", "statistics", "order statistics, columns", "catboost, leave-one-out")


def members(given):
    return [pytest.param(*each, id=name, marks=() if name in FEW else pytest.mark.host) for name, each in given.items()]


def fitted_attributes(encoder):
    """Every fitted attribute, to the bit."""
    names = [name for name in dir(encoder) if name.endswith("_") and not name.startswith("_")]
    with np.printoptions(floatmode="unique", threshold=sys.maxsize):
        return {name: repr(getattr(encoder, name)) for name in names if hasattr(encoder, name)}


def trained(make, y, X=ROWS, **given):
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
    one, expected = trained(make, y)
    other, found = trained(make, cut(y), [ROWS[start:stop] for start, stop in EDGES])
    same(pd.concat(found), expected)
    same(pd.concat(other.transform([ROWS[:50], ROWS[50:]])), one.transform(ROWS))


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(("make", "y"), members(MEMBERS))
def test_parts(make, y, weights, tmp_path):
    one, expected = trained(make, y, sample_weight=weights)
    other = make()
    found = encoded_in_parts(other, parts_of(ROWS, y, weights, None, [1, 30, 30, 47, 83]))
    same(pd.concat(found), expected)
    assert saved(one, tmp_path) == saved(other, tmp_path)


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
        assert repr(other) == repr(encoder)
        assert fitted_attributes(other) == fitted_attributes(encoder)
        assert other.get_feature_names_out().tolist() == list(expected.columns)


@pytest.mark.host
@pytest.mark.parametrize(("make", "y"), MEMBERS.values(), ids=MEMBERS)
def test_libraries(make, y):
    one, expected = trained(make, y)
    for table in (pl.from_pandas(ROWS), pa.Table.from_pandas(ROWS)):
        encoder, found = trained(make, y, table)
        assert type(found) is type(table)
        same(found.to_pandas(), expected)
        same(encoder.transform(ROWS), one.transform(ROWS))


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(("make", "y"), MEMBERS.values(), ids=MEMBERS)
def test_backends(make, y, weights):
    found = []
    for name in ("numpy", *(ON_CUDA or ["compiled"])):
        with use_backend(name):
            encoder, codes = trained(make, y, sample_weight=weights)
            found.append((codes, encoder.transform(ROWS)))
    for one, other in zip(*found, strict=True):
        same(one, other)


@pytest.mark.parametrize(("make", "y"), members(MERGEABLE))
def test_whole_weights_repeat_rows(make, y):
    times = np.repeat(np.arange(N), WEIGHTS)
    weighted = make().fit(ROWS, y, sample_weight=WEIGHTS)
    repeated = make().fit(ROWS.iloc[times].reset_index(drop=True), None if y is None else y[times])
    seen = ROWS[WEIGHTS > 0]
    same(weighted.transform(seen), repeated.transform(seen))


@pytest.mark.skipif(bool(ON_CUDA), reason="files know nothing of the backend")
@pytest.mark.parametrize(("make", "y"), MEMBERS.values(), ids=MEMBERS)
def test_files(make, y, tmp_path):
    one, expected = trained(make, y)
    targets = columns_of(y)
    table = pa.Table.from_pandas(ROWS.assign(**targets))
    pa.parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=17)
    other = make()
    target = list(targets) if len(targets) > 1 else next(iter(targets), None)
    ge.encode_dataset(tmp_path / "rows.parquet", tmp_path / "codes.parquet", other, target=target, keep_target=False)
    same(pa.parquet.read_table(tmp_path / "codes.parquet").to_pandas(), expected)
    same(other.transform(ROWS), one.transform(ROWS))


@pytest.mark.skipif(bool(ON_CUDA), reason="tasks know nothing of the backend")
@pytest.mark.parametrize(("make", "y"), MEMBERS.values(), ids=MEMBERS)
def test_dask(make, y):
    dd = pytest.importorskip("dask.dataframe")
    one, expected = trained(make, y)
    X = dd.from_pandas(ROWS, npartitions=4)
    target = None if y is None else dd.from_pandas(as_table(y), npartitions=4)
    encoder = make()
    codes = encoder.fit_transform(X, target).compute(scheduler="synchronous")
    again = make().fit(X, target).transform(X).compute(scheduler="synchronous")
    for found, wanted in ((codes, expected), (again, one.transform(ROWS))):
        # Dask makes strings of its own of columns that pass through.
        same(found.drop(columns="city", errors="ignore"), wanted.drop(columns="city", errors="ignore"))


# Where columns are blown up, a row has codes of encoders that have seen it.
@pytest.mark.parametrize(
    ("make", "y"), members({name: each for name, each in MERGEABLE.items() if each[1] is not None})
)
def test_no_leak(make, y):
    _, before = trained(make, y)
    for row in (0, 41, 85):
        changed, others = y.copy(), np.flatnonzero((y != y[row]).reshape(N, -1).any(axis=1))
        changed[row] = y[others[row % len(others)]]
        _, after = trained(make, changed)
        same(after.iloc[[row]], before.iloc[[row]])
        assert not after.equals(before)


# An encoder, the kind of its target, and what its parameters are drawn from.
DRAWN = {
    "statistics": (
        ge.StatisticEncoder,
        "continuous",
        {"statistics": [STATISTICS], "ddof": [0, 1], "min_count": [0, 2], "handle_missing": ["category", "prior"]},
    ),
    "order statistics": (ge.StatisticEncoder, "continuous", {"statistics": [ORDERS]}),
    "evidence": (
        ge.WeightOfEvidenceEncoder,
        "binary",
        {"regularization": [0.0, 1.0], "min_count": [0, 2], "handle_missing": ["category", "zero"]},
    ),
}
WITHOUT_LEAK = sorted(set(encoding.SCHEMES) - {"greedy"})


@pytest.mark.host
@pytest.mark.parametrize(
    ("name", "scheme"),
    [each for each in product(DRAWN, WITHOUT_LEAK) if each[0] != "order statistics" or "ordered" not in each[1]],
)
@strategies.examples(4)
@given(data=st.data())
def test_a_flipped_target_leaves_the_own_code_alone(name, scheme, data):
    make, kind, parameters = DRAWN[name]
    weighted = name != "order statistics"
    drawn = data.draw(strategies.drawn_rows(kind, smallest=6, largest_size=14, nulls=True, weighted=weighted, each=2))
    row, target = data.draw(st.integers(0, drawn.size - 1)), drawn.target.copy()
    choices = {each: data.draw(st.sampled_from(values)) for each, values in parameters.items()}
    choices["indicators"] = data.draw(st.booleans())
    target[row] = 1 - target[row] if kind == "binary" else data.draw(strategies.finite_numbers())
    other = strategies.Drawn(drawn.keys, target, drawn.weight, drawn.kind)
    before, after = (training_encodings(make, rows, scheme, **choices)[row] for rows in (drawn, other))
    assert before.tobytes() == after.tobytes()


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
        each
        for each in product(LARGER, [5, ge.LeaveOneOut(), ge.Ordered(2), ge.KFold(3, blow_up=True)])
        if each[0] != "order statistics" or not isinstance(each[1], ge.Ordered)
    ],
    ids=str,
)
def test_every_backend_gives_the_same_bits_of_more_rows(name, cv, weighted):
    (make, y), found = LARGER[name], []
    weights = np.arange(700) % 4 / (1 if name == "order statistics" else 3) if weighted else None
    for backend in ("numpy", "compiled"):
        with use_backend(backend):
            encoder = make(cv=cv)
            found.append(encoder.fit_transform(LARGE, y, sample_weight=weights).tobytes())
            found.append(encoder.transform(LARGE).tobytes())
    assert found[:2] == found[2:]


@pytest.mark.parametrize(("make", "y"), members({name: each for name, each in MEMBERS.items() if each[1] is None}))
def test_without_a_target_training_codes_are_those_of_new_rows(make, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder, codes = trained(make, y)
    same(codes, encoder.transform(ROWS))
    same(make().fit_transform(ROWS, ["a target that", *"is ignored"] * (N // 11) + [None] * (N % 11)), codes)
