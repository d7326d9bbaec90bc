"""Keys that are encoded together: encodings, and everything that is learned, equal those of each key alone."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn.model_selection
from hypothesis import given
from hypothesis import strategies as st

from cpu_fallback.compiled import key_sums
from gpu_encode import (
    EmpiricalBayes,
    Greedy,
    GroupKFold,
    Holdout,
    JamesStein,
    KFold,
    LeaveOneOut,
    Sigmoid,
    TargetEncoder,
    TimeFolds,
    load,
)
from gpu_encode.fitting import columns, key_batches
from gpu_encode.seam.ops import use_backend
from gpu_encode.tables.categories.keys import LaterTuples
from gpu_encode.tables.frames import Frame
from tests.bits import assert_same_bits, assert_same_encoder
from tests.strategies import examples

# Other tests cover classes of few rows, and rows that see no other row.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
# Keys that are encoded together, and others, which the same call must encode one by one.
SMOOTHINGS = [None, 2.5, "auto", Sigmoid(), EmpiricalBayes("between"), JamesStein()]
FOLDS = [None, 3, KFold(4, stratify=True), TimeFolds(3, time="time"), Holdout(0.4, random_state=2)]
SCHEMES = [*FOLDS, KFold(3, blow_up=True), LeaveOneOut()]
# TargetEncoder takes these targets as classes or as reals, by itself or by a parameter.
TARGETS = {
    "binary": lambda random, n: np.arange(n) % 2,
    "multiclass": lambda random, n: np.arange(n) % 4,
    "continuous": lambda random, n: random.normal(size=n),
    "whole numbers": lambda random, n: random.integers(-9, 9, n),
    "large numbers": lambda random, n: random.integers(-(2**62), 2**62, n),
    "any magnitude": lambda random, n: random.normal(size=n) * 10.0 ** random.integers(-20, 20, n),
    "the largest": lambda random, n: random.choice([-1.7e308, 1.7e308, 5e-324, 0.0], n),
    "one value": lambda random, n: np.full(n, 0.1),
}
CLASSES = ["binary", "multiclass"]
# The rows of a category may all weigh nothing.
WEIGHTS = {
    "none": lambda random, n: None,
    "whole": lambda random, n: random.integers(0, 3, n),
    "real": lambda random, n: np.where(random.random(n) < 0.3, 0.0, random.random(n)),
}


def make_target(kind, n_rows, seed=0):
    """Return a target, and the parameters of TargetEncoder for it."""
    told = kind if kind in CLASSES else "continuous"
    return TARGETS[kind](np.random.default_rng(seed), n_rows), {"target_type": told}


def make_rows(seed, n_rows, missing, n_classes):
    """Return columns of numbers, text and categories (one category has no row), and a class of each row."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame({f"n{size}": random.integers(0, size, n_rows).astype(float) for size in (2, 7, 40)})
    X["text"] = random.choice(["b", "a", "", "ä"], n_rows)
    X["kind"] = pd.Categorical(random.choice(["x", "y"], n_rows), categories=["y", "never", "x"])
    X = X.mask(random.random(X.shape) < missing)
    X["time"] = random.integers(0, 9, n_rows)
    return X, np.arange(n_rows) % n_classes


def keys_of(X, order=2):
    names = [name for name in X if name != "time"]
    return [*names, *itertools.chain(*(itertools.combinations(names, size) for size in range(2, order + 1)))]


@pytest.fixture
def sizes(monkeypatch):
    """Return a list that collects the number of keys in each batch; empty if each key was encoded alone."""
    noted, encode_batch = [], key_batches.encode_batch

    def note(*given):
        trained = encode_batch(*given)
        noted.append(len(trained))
        return trained

    monkeypatch.setattr(key_batches, "encode_batch", note)
    return noted


def fit(X, y, groups=None, weight=None, **choices):
    with use_backend("compiled"):
        encoder = TargetEncoder(columns=keys_of(X), **choices)
        return encoder, encoder.fit_transform(X, y, groups=groups, sample_weight=weight)


def fit_alone(X, y, groups=None, weight=None, **choices):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(columns.FEWEST_ON, "cpu", 10**9)
        return fit(X, y, groups, weight, **choices)


def assert_same(found, expected):
    """Demand equal encoders, and equal bits of their encodings."""
    assert_same_bits(found[1].to_numpy(np.float64), expected[1].to_numpy(np.float64))
    assert_same_encoder(found[0], expected[0])
    others, _ = make_rows(1, 50, 0.1, 2)
    both = [encoder.transform(others).to_numpy(np.float64) for encoder in (found[0], expected[0])]
    assert_same_bits(*both)


@examples(120)
@given(data=st.data())
def test_keys_together_equal_keys_alone(data):
    draw, seed = data.draw, data.draw(st.integers(0, 2**32 - 1))
    X, _ = make_rows(seed, draw(st.integers(20, 200)), draw(st.sampled_from([0, 0.2])), 2)
    y, told = make_target(draw(st.sampled_from(sorted(TARGETS))), len(X), seed)
    weight = WEIGHTS[draw(st.sampled_from(sorted(WEIGHTS)))](np.random.default_rng(seed), len(X))
    schemes = SCHEMES if told["target_type"] in CLASSES else [cv for cv in SCHEMES if not getattr(cv, "stratify", 0)]
    smoothing = draw(st.sampled_from(SMOOTHINGS))
    choices = {
        "smooth": smoothing,
        "cv": draw(st.sampled_from(schemes)),
        "dtype": draw(st.sampled_from(["float32", "float64"])),
        "handle_missing": draw(st.sampled_from(["category", "prior", "nan"])),
        "handle_unknown": draw(st.sampled_from(["prior", 7.5])),
        "min_count": draw(st.sampled_from([0, 3])),
        "prior": draw(st.sampled_from(["mean", 0.25])),
        **told,
    }
    assert_same(fit(X, y, None, weight, **choices), fit_alone(X, y, None, weight, **choices))


@pytest.mark.parametrize("cv", FOLDS, ids=str)
@pytest.mark.parametrize("smooth", [None, 2.5, "auto", Sigmoid()], ids=str)
def test_these_keys_are_encoded_together(sizes, cv, smooth):
    X, y = make_rows(0, 300, 0.1, 2)
    fit(X, y, cv=cv, smooth=smooth)
    assert sizes == [len(keys_of(X))]


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("kind", TARGETS)
def test_so_are_those_of_these_targets_and_weights(sizes, kind, weight):
    X, _ = make_rows(0, 300, 0.1, 2)
    y, told = make_target(kind, len(X))
    fit(X, y, None, WEIGHTS[weight](np.random.default_rng(0), len(X)), cv=3, **told)
    # The sums of numbers of any magnitude have hundreds of digits a cell.
    assert sizes == [len(keys_of(X))]


@pytest.mark.parametrize(("kind", "weight"), [("binary", "none"), ("multiclass", "none"), ("binary", "whole")])
def test_rows_that_are_left_out_are_encoded_together_if_they_are_classes_of_weight_one(sizes, kind, weight):
    X, _ = make_rows(0, 300, 0.1, 2)
    y, told = make_target(kind, len(X))
    choices = {"weight": WEIGHTS[weight](np.random.default_rng(0), len(X)), "cv": LeaveOneOut(), **told}
    found = fit(X, y, **choices)
    assert sizes == ([len(keys_of(X))] if weight == "none" else [])
    assert_same(found, fit_alone(X, y, **choices))


def test_rows_of_many_classes_that_are_left_out_are_encoded_alone_if_their_encodings_are_many(sizes, monkeypatch):
    X, y = make_rows(0, 300, 0, 5)
    choices = {"cv": LeaveOneOut(), "target_type": "multiclass"}
    expected = fit(X, y, **choices)[1].to_numpy()
    monkeypatch.setattr(columns, "MOST_NUMBERS", 5 * 5 * 40)
    assert_same_bits(fit(X, y, **choices)[1].to_numpy(), expected)
    # A cell has 5 sums, and 25 encodings.
    n_cells = [np.prod([X[name].nunique() + 1 for name in np.atleast_1d(key)]) for key in keys_of(X)]
    assert sizes == [len(n_cells), sum(n <= 40 for n in n_cells)]


def test_rows_of_real_targets_that_are_left_out_are_encoded_key_by_key(sizes):
    X, _ = make_rows(0, 300, 0.1, 2)
    y, told = make_target("continuous", len(X))
    fit(X, y, cv=LeaveOneOut(), **told)
    assert sizes == []


@pytest.mark.parametrize("handle_unknown", ["prior", np.nan])
def test_keys_whose_rules_are_equal_are_encoded_together(sizes, handle_unknown):
    X, y = make_rows(0, 300, 0.1, 2)
    choices = {"smooth": {key: Sigmoid(3.0) for key in keys_of(X)}, "handle_unknown": handle_unknown}
    found = fit(X, y, **choices)
    assert sizes == [len(keys_of(X))]
    assert_same(found, fit_alone(X, y, **choices))
    del sizes[:]
    choices["smooth"].update({key: number + 1.0 for number, key in enumerate(keys_of(X)[:5])})
    found = fit(X, y, **choices)
    assert sorted(sizes) == [0] * 5 + [len(keys_of(X)) - 5]
    assert_same(found, fit_alone(X, y, **choices))


def test_encodings_beyond_the_type_of_the_output_are_counted(sizes):
    X, _ = make_rows(0, 300, 0, 2)
    y, told = make_target("the largest", len(X))
    with pytest.warns(UserWarning, match="encodings are beyond the range of float32"):
        found = fit(X, y, dtype="float32", cv=3, **told)
    assert sizes == [len(keys_of(X))]
    assert np.isinf(found[1].to_numpy()).any()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_targets_that_are_no_numbers_are_refused(value):
    X, _ = make_rows(0, 300, 0, 2)
    y, told = make_target("continuous", len(X))
    y[7] = value
    messages = []
    for fit_keys in (fit, fit_alone):
        with pytest.raises(ValueError, match="y ") as refused:
            fit_keys(X, y, **told)
        messages.append(str(refused.value))
    assert messages[0] == messages[1]


def test_each_target_is_a_batch_of_all_keys_that_no_dict_names(sizes):
    X, y = make_rows(0, 300, 0.1, 2)
    keys = keys_of(X)
    fit(X, np.column_stack([y, 1 - y, y * 0.5]), target_type=["binary", "binary", "continuous"])
    assert sizes == [len(keys)] * 3


LIMITS = [{"NUMBERS_PER_ROW": 0, "FEW_NUMBERS": 500}, {"NUMBERS_PER_ROW": 2, "FEW_NUMBERS": 0}, {"MOST_NUMBERS": 500}]


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("kind", ["binary", "any magnitude"])
def test_keys_of_too_many_sums_are_encoded_alone(sizes, monkeypatch, kind, limits):
    X, _ = make_rows(0, 300, 0, 2)
    y, told = make_target(kind, len(X))
    expected = fit(X, y, **told)[1].to_numpy()
    for name, value in limits.items():
        monkeypatch.setattr(columns, name, value)
    assert_same_bits(fit(X, y, **told)[1].to_numpy(), expected)
    # A cell of numbers of any magnitude has hundreds of digits.
    assert sizes[0] > sum(sizes[1:]) > 0 if kind == "binary" else sum(sizes[1:]) == 0


GROUPS = np.arange(300) % 11


@pytest.mark.parametrize(
    "choices",
    [
        {"cv": Greedy()},
        {"cv": GroupKFold(4)},
        {"cv": sklearn.model_selection.PredefinedSplit(np.arange(300) % 4)},
        {"drop": "first", "target_type": "multiclass"},
        {"target_type": ["binary", "continuous"], "smooth": 2.0},
    ],
    ids=str,
)
def test_other_schemes_and_targets(sizes, choices):
    X, y = make_rows(5, 300, 0.1, 2)
    X = X.drop(columns="time")
    y = np.column_stack([y, y * 0.5]) if isinstance(choices.get("target_type"), list) else y
    groups = GROUPS if isinstance(choices.get("cv"), GroupKFold) else None
    found = fit(X, y, groups, **choices)
    assert sizes == [len(keys_of(X))] * y.ndim
    expected = fit_alone(X, y, groups, **choices)
    assert_same_bits(found[1].to_numpy(np.float64), expected[1].to_numpy(np.float64))
    assert_same_encoder(found[0], expected[0])


@pytest.mark.parametrize("real", [False, True], ids=["classes", "reals"])
@pytest.mark.parametrize("size", [1, 300, 70_000])
def test_codes_of_any_width(monkeypatch, sizes, size, real):
    monkeypatch.setattr(columns, "NUMBERS_PER_ROW", 100)
    random = np.random.default_rng(0)
    X = pd.DataFrame({f"c{i}": random.integers(0, size if i == 0 else 2, 70_100) for i in range(8)})
    y = random.integers(0, 2, len(X)) * (0.1 if real else 1)
    with use_backend("compiled"):
        found = TargetEncoder().fit_transform(X, y)
    with use_backend("numpy"):
        assert_same_bits(found.to_numpy(), TargetEncoder().fit_transform(X, y).to_numpy())
    assert sizes == [8]


@pytest.mark.parametrize("sizes_of_blocks", [(1, 1), (500, 64), (10**6, 10**6)])
@pytest.mark.parametrize("kind", ["multiclass", "continuous"])
def test_blocks_of_rows_of_categories_and_of_keys_meet(monkeypatch, sizes, kind, sizes_of_blocks):
    X, _ = make_rows(0, 5000, 0.1, 2)
    y, told = make_target(kind, len(X))
    monkeypatch.setattr(key_sums, "GROUP", sizes_of_blocks[0])
    monkeypatch.setattr(key_sums, "PIECE", sizes_of_blocks[1])
    weight = WEIGHTS["real"](np.random.default_rng(0), len(X)) if kind == "continuous" else None
    found = fit(X, y, None, weight, cv=3, **told)
    assert sizes == [len(keys_of(X))]
    assert len(X) > 2 * key_sums.BLOCK
    assert_same(found, fit_alone(X, y, None, weight, cv=3, **told))


def test_keys_share_the_codes_of_their_columns_whatever_the_rows(monkeypatch):
    X, y = make_rows(3, 400, 0.1, 2)
    monkeypatch.setattr(columns, "FEW_ROWS", 1)
    numbered, keys = [], Frame.keys

    def note(frame, position, ops):
        numbered.append(position)
        return keys(frame, position, ops)

    monkeypatch.setattr(Frame, "keys", note)
    fit(X, y)
    assert sorted(numbered) == [position for position, name in enumerate(X) if name != "time"]


def test_what_is_learned_leaves_the_process_as_the_same_bytes(tmp_path):
    X, y = make_rows(3, 400, 0.1, 2)
    together, alone = fit(X, y)[0], fit_alone(X, y)[0]
    assert pickle.dumps(together) == pickle.dumps(alone)
    for name, encoder in {"together": together, "alone": alone}.items():
        encoder.save(tmp_path / name)
    assert (tmp_path / "together").read_bytes() == (tmp_path / "alone").read_bytes()
    assert_same_bits(load(tmp_path / "together").transform(X).to_numpy(), alone.transform(X).to_numpy())


def test_more_rows_are_added_to_what_is_learned():
    X, y = make_rows(3, 400, 0.1, 2)
    more, labels = make_rows(4, 300, 0.1, 2)
    together, alone = fit(X, y)[0], fit_alone(X, y)[0]
    assert_same_encoder(together.partial_fit(more, labels), alone.partial_fit(more, labels))


def test_categories_do_not_keep_the_counts():
    X, y = make_rows(0, 300, 0.1, 2)
    for encoder in (fit(X, y)[0], TargetEncoder(columns=keys_of(X)).fit(X, y)):
        told = [key.tuples for key in encoder._model.keys if isinstance(key.tuples, LaterTuples)]
        kept = [tuples._found for tuples in told if tuples._found is not None]
        # An array that keys have in common holds cells alone, too.
        assert all((cells if cells.base is None else cells.base).dtype == np.uint32 for cells in kept)
