"""Keys that a GPU encodes together: bits, and everything that is learned, equal those of each key alone on a CPU."""

import pickle
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cpu_fallback
from cpu_fallback.exact import Limbs, Ratio
from cpu_fallback.fused_rules import (
    AS_CATEGORY,
    AS_NAN,
    AS_PRIOR,
    EMPIRICAL_BAYES,
    M_ESTIMATE,
    PLAIN,
    SIGMOID,
    Blend,
    FoldedRows,
    FusedRule,
    PopulationMoments,
    Shrinkage,
)
from cpu_fallback.row_numbers import FoldPattern
from cpu_fallback.types import KeyColumns, KeyEncodings, Layout, Rows
from gpu_encode import (
    GroupKFold,
    Holdout,
    KFold,
    LeaveOneOut,
    Ordered,
    Sigmoid,
    TargetEncoder,
    TimeFolds,
    interactions,
    load,
)
from gpu_encode.fitting import columns
from gpu_encode.seam.ops import use_backend
from tests.backends import ON_CUDA, memory
from tests.bits import assert_same_bits, assert_same_encoder
from tests.laws.test_key_batches import keys_of, make_rows
from tests.strategies import examples

# Other tests cover classes of few rows, and rows that see no other row.
pytestmark = [pytest.mark.cuda, pytest.mark.filterwarnings("ignore::UserWarning")]

SCHEMES = [None, KFold(4, stratify=True), KFold(3, order="contiguous"), TimeFolds(3, time="time"), Holdout(0.4)]


@pytest.fixture(scope="module", params=ON_CUDA)
def name(request):
    return request.param


@pytest.fixture
def module():
    return import_module("gpu_encode.cuda.key_sums")


def fit(name, X, y, groups=None, **choices):
    with use_backend(name):
        encoder = TargetEncoder(columns=keys_of(X), **choices)
        return encoder, encoder.fit_transform(X, y, groups=groups).to_numpy()


def fit_alone(X, y, groups=None, **choices):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(columns.FEWEST_ON, "cpu", 10**9)
        return fit("compiled", X, y, groups, **choices)


@examples(25)
@given(data=st.data())
def test_keys_together_equal_keys_alone(name, data):
    draw = data.draw
    n_rows, seed = draw(st.sampled_from([20, 21, 63, 64, 65, 150])), draw(st.integers(0, 2**32 - 1))
    X, y = make_rows(seed, n_rows, draw(st.sampled_from([0, 0.2])), 2)
    y = y if draw(st.booleans()) else np.arange(len(y)) % 5
    choices = {
        "smooth": draw(st.sampled_from([None, 2.5, 1 / 3, "auto", Sigmoid()])),
        "cv": draw(st.sampled_from(SCHEMES)),
        "dtype": draw(st.sampled_from(["float32", "float64"])),
        "handle_missing": draw(st.sampled_from(["category", "prior", "nan"])),
        "handle_unknown": draw(st.sampled_from(["prior", 7.5])),
        "min_count": draw(st.sampled_from([0, 3])),
        "prior": draw(st.sampled_from(["mean", 0.25, 0.29998251])),
    }
    together, encodings = fit(name, X, y, **choices)
    alone, expected = fit_alone(X, y, **choices)
    assert_same_bits(encodings, expected)
    assert_same_encoder(together, alone)


@pytest.mark.parametrize("cv", SCHEMES, ids=str)
@pytest.mark.parametrize("smooth", [2.5, "auto"])
def test_launches_do_not_depend_on_the_number_of_keys(name, launched, cv, smooth):
    X, y = make_rows(0, 100, 0.1, 2)
    fit(name, X, y, cv=cv, smooth=smooth)
    of_keys = [each for each in launched if each.endswith("_keys")]
    assert of_keys == ["count_keys", "encode_keys", "gather_keys"]
    assert "gather_rows" not in launched


def draw_table(n_rows, order, dtype):
    """Columns of whole numbers, with gaps and without, and one whose range is long."""
    random = np.random.default_rng(n_rows)
    sizes = [3, 40, 7, 300]
    columns = [random.integers(0, size, n_rows) * (1 + 2 * (size == 40)) + size for size in sizes]
    columns.append(random.integers(0, 2, n_rows) << (20 if dtype == np.int32 else 40))
    return np.array(columns, dtype, order="C" if order == "F" else "F").T


# What is encoded together on a GPU, and what is not.
ON_DEVICE = {"folds": {}, "several targets": {}, "out": {"cv": LeaveOneOut()}, "ordered": {"cv": Ordered()}}
ON_DEVICE |= {"weights": {}, "reals": {"target_type": "continuous"}, "few": {"columns": [0, 1, (0, 1)]}}


@pytest.mark.parametrize("case", ON_DEVICE)
@pytest.mark.parametrize(("order", "dtype"), [("C", np.int32), ("F", np.int32), ("C", np.int64), ("F", np.int16)])
def test_columns_of_a_device(ops, launched, case, order, dtype):
    X = draw_table(150, order, np.int32 if dtype == np.int16 else dtype)
    X = X[:, :4].astype(dtype) if dtype == np.int16 else X
    y, weight = np.arange(150) * 7 % 11 % 2, np.arange(150) % 3 + 1.0 if case == "weights" else None
    choices = {"columns": interactions(range(X.shape[1])), "smooth": 2.5, "dtype": "float32"} | ON_DEVICE[case]
    if case == "several targets":
        y, choices["target_type"] = np.stack([y, 1 - y], axis=1), ["binary", "binary"]
    encoder, other = TargetEncoder(device="cuda", **choices), TargetEncoder(device="cpu", **choices)
    given = None if weight is None else memory.to_device(weight)
    found = encoder.fit_transform(memory.to_device(X), memory.to_device(y), sample_weight=given)
    with use_backend("compiled"):
        expected = other.fit_transform(X, y, sample_weight=weight)
    assert_same_bits(memory.to_host(found), expected)
    assert_same_encoder(encoder, other)
    assert launched.count("count_keys") == {"folds": 1, "few": 1, "several targets": 2}.get(case, 0)


def test_combinations_stay_on_the_device(ops):
    # So many that they are hashed, and of a target whose keys are encoded alone.
    numbers = np.arange(300)
    X, y = memory.to_device(np.stack([numbers, numbers * 7 % 300], axis=1)), memory.to_device(numbers / 8)
    encoder = TargetEncoder(device="cuda", columns=[0, 1, (0, 1)])
    encoder.fit_transform(X, y)
    tuples = encoder._model.keys[2].tuples
    assert len(tuples) == 300
    assert not isinstance(tuples._prefixes[-1], np.ndarray)
    assert tuples.members.tolist() == [[number, number * 7 % 300] for number in range(300)]


def test_groups_are_folds(name):
    X, y = make_rows(5, 90, 0.1, 2)
    X, groups = X.drop(columns="time"), np.arange(90) % 11
    assert_same_bits(fit(name, X, y, groups, cv=GroupKFold(4))[1], fit_alone(X, y, groups, cv=GroupKFold(4))[1])


def test_what_is_learned_leaves_the_process(name, tmp_path):
    X, y = make_rows(3, 120, 0.1, 2)
    together, alone = fit(name, X, y)[0], fit_alone(X, y)[0]
    assert_same_encoder(pickle.loads(pickle.dumps(together)), alone)
    for called, encoder in {"together": together, "alone": alone}.items():
        encoder.save(tmp_path / called)
    assert_same_encoder(load(tmp_path / "together"), load(tmp_path / "alone"))
    with use_backend(name):
        assert_same_bits(together.transform(X).to_numpy(), alone.transform(X).to_numpy())
        assert_same_bits(load(tmp_path / "together").transform(X).to_numpy(), alone.transform(X).to_numpy())


def test_more_rows_are_added_to_what_is_learned(name):
    (X, y), (more, labels) = make_rows(3, 120, 0.1, 2), make_rows(4, 90, 0.1, 2)
    together, alone = fit(name, X, y)[0], fit_alone(X, y)[0]
    with use_backend(name):
        together.partial_fit(more, labels)
    with use_backend("compiled"):
        assert_same_encoder(together, alone.partial_fit(more, labels))


@pytest.mark.parametrize("table_bytes", [1, 3000, 10**9])
def test_tables_are_made_in_batches(name, launched, monkeypatch, table_bytes):
    X, y = make_rows(0, 100, 0.1, 3)
    monkeypatch.setattr(import_module("gpu_encode.cuda.key_sums"), "TABLE_BYTES", table_bytes)
    found = fit(name, X, y, cv=3)
    expected, n_batches = fit_alone(X, y, cv=3), launched.count("count_keys")
    assert_same_bits(found[1], expected[1])
    assert_same_encoder(found[0], expected[0])
    keys = len(keys_of(X))
    assert n_batches in {1: [keys], 3000: range(2, keys), 10**9: [1]}[table_bytes]


# Columns of `SIZES` codes, in one, two and four bytes; what their keys are.
SIZES = [1, 2, 7, 300, 70_000]
KEYS = [(0,), (1,), (3,), (4,), (1, 2), (3, 2), (2, 3, 1), (0, 0, 1, 1, 2, 2, 0, 0), (1, 4)]
RULES = {"plain": (PLAIN, 0.0), "m": (M_ESTIMATE, 2.5), "third": (M_ESTIMATE, 1 / 3)}
RULES |= {"sigmoid": (SIGMOID, 3.0), "bayes": (EMPIRICAL_BAYES, 0.0)}


def draw(n_rows, n_folds, n_classes, kind="given"):
    """Return codes (-1: missing), classes and folds; one fold is empty if there are several."""
    random = np.random.default_rng(n_rows)
    columns = [
        np.where(random.random(n_rows) < 0.1, -1, random.integers(0, max(size - 1, 1), n_rows)) for size in SIZES
    ]
    columns = [
        column.astype(np.int32) if size > 1 else np.full(n_rows, -1, np.int32)
        for column, size in zip(columns, SIZES, strict=True)
    ]
    classes = random.integers(0, n_classes, n_rows).astype(np.int32)
    folds = random.integers(0, max(n_folds - 1, 1), n_rows).astype(np.int32)
    if kind != "given":
        folds = FoldPattern(kind, n_folds, 5, n_rows=n_rows, first_row=0)
    return columns, FoldedRows(
        Rows(classes, classes),
        n_classes,
        Layout(),
        folds,
        1 - np.eye(n_folds, dtype=np.int64),
        np.ones(n_folds, np.int64),
    )


def population_of(rows, shrinkage):
    """Return the sums of all rows that views see."""
    folds = (
        rows.folds
        if isinstance(rows.folds, np.ndarray)
        else cpu_fallback.fold_numbers(rows.folds, 0, len(rows.rows.classes))
    )
    n_folds, first = len(rows.new_rows), 1 if rows.n_classes == 2 else 0
    counts = np.zeros((n_folds, rows.n_classes), np.int64)
    np.add.at(counts, (folds, rows.rows.classes), 1)
    seen = rows.visibility @ counts
    number, total = seen.sum(axis=1, keepdims=True), seen[:, first:]
    with np.errstate(invalid="ignore"):
        prior, variance = total / number, total * (number - total) / number / number
    exact = Ratio(Limbs(total[..., None], 0), Limbs(number[..., None], 0)) if shrinkage.kind == M_ESTIMATE else None
    return PopulationMoments(prior, variance, np.zeros_like(total), exact)


def run(ops, columns, rows, rule, dtype, to):
    """Encode all keys; return the encodings, and the cells and counts of each key."""
    n_outputs = rows.n_classes - (1 if rows.n_classes == 2 else 0)
    values = ops.zeros((n_outputs * len(KEYS), len(rows.rows.classes)), dtype)
    folds = to(rows.folds) if isinstance(rows.folds, np.ndarray) else rows.folds
    given = KeyColumns(ops.fused.narrow_codes([*map(to, columns)], SIZES), SIZES, KEYS)
    out, classes = KeyEncodings(values, [n_outputs * number for number in range(len(KEYS))]), to(rows.rows.classes)
    population = population_of(rows, rule.blend.shrinkage)
    done = ops.fused.encode_keys_by_fold(
        given, rows._replace(rows=Rows(classes, classes), folds=folds), rule, population, out
    )
    counted, lost = done
    return ops.to_host(values), [(each.cells, each.counts) for each in counted], lost


def check(columns, rows, rule, dtype):
    device, compiled = import_module("gpu_encode.cuda"), import_module("cpu_fallback.compiled")
    found = run(device, columns, rows, rule, dtype, memory.to_device)
    expected = run(compiled, columns, rows, rule, dtype, lambda array: array)
    assert_same_bits(found[0], expected[0])
    assert found[2] == expected[2]
    for mine, theirs in zip(found[1], expected[1], strict=True):
        assert all(
            one.dtype == other.dtype and np.array_equal(one, other) for one, other in zip(mine, theirs, strict=True)
        )


def rule_of(named, least=0.0, missing=AS_CATEGORY, unseen=None):
    return FusedRule(Blend(Shrinkage(*RULES[named]), least, unseen is not None, unseen or 0.0), True, 0.0, missing)


@pytest.mark.parametrize("n_rows", [1, 7, 16, 63, 64, 65, 257])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_numbers_of_rows(ops, n_rows, n_classes):
    columns, rows = draw(n_rows, 3, n_classes)
    check(columns, rows, rule_of("m"), np.float32)
    check(columns, rows, rule_of("m"), np.float64)


@pytest.mark.parametrize("named", RULES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("missing", [AS_CATEGORY, AS_PRIOR, AS_NAN])
def test_formulas_and_missing_values(ops, named, dtype, missing):
    columns, rows = draw(150, 3, 2)
    check(columns, rows, rule_of(named, 2.0, missing, 7.5), dtype)


@pytest.mark.parametrize("kind", ["random", "interleaved", "contiguous"])
@pytest.mark.parametrize("n_folds", [1, 2, 150, 300])
def test_folds(ops, kind, n_folds):
    columns, rows = draw(130, n_folds, 2, kind)
    check(columns, rows, rule_of("m"), np.float32)


@pytest.mark.parametrize("visibility", [np.eye(3), np.tri(3, k=-1), np.zeros((3, 3)), np.ones((3, 3))], ids=str)
@pytest.mark.parametrize("named", ["third", "bayes"])
def test_what_views_see(ops, visibility, named):
    columns, rows = draw(100, 3, 5)
    rows = rows._replace(visibility=visibility.astype(np.int64), new_rows=np.array([1, 0, 1]))
    check(columns, rows, rule_of(named), np.float32)


def test_copies_of_small_tables_and_tables_in_memory(module):
    sizes = [1, 2, 60, 64, 128, 300, 10**6]
    copies = [module.copies_of(size, 640) for size in sizes]
    assert copies[0] > 1
    assert copies[-1] == 0
    assert sorted(copies, reverse=True) == copies
