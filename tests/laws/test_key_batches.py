"""Keys that are encoded together: the bits are those of each key alone, and so is all that is learned."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn.model_selection
from hypothesis import given
from hypothesis import strategies as st

from cpu_fallback.compiled import keys_by_fold
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
from gpu_encode.fitting import columns, inputs, key_batches
from gpu_encode.fitting import fit as fitting
from gpu_encode.seam.ops import use_backend
from gpu_encode.tables.frames import Frame
from tests.bits import assert_same_bits, assert_same_encoder
from tests.strategies import examples

# Few rows of a class, and rows that see none, are other tests' matter.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
# Those that are encoded together, and others, which the same call has to leave to each key.
SMOOTHINGS = [None, 2.5, "auto", Sigmoid(), EmpiricalBayes("between"), JamesStein()]
FOLDS = [None, 3, KFold(4, stratify=True), TimeFolds(3, time="time"), Holdout(0.4, random_state=2)]
SCHEMES = [*FOLDS, KFold(3, blow_up=True), LeaveOneOut()]


def make_rows(seed, n_rows, missing, n_classes):
    """Columns of numbers, text and categories, one of which no row has, and a class of each row."""
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
    """How many keys each batch had: none where each was encoded alone."""
    noted, encode_batch = [], key_batches.encode_batch

    def note(*given):
        trained = encode_batch(*given)
        noted.append(len(trained))
        return trained

    monkeypatch.setattr(key_batches, "encode_batch", note)
    return noted


def fit(X, y, groups=None, **choices):
    with use_backend("compiled"):
        encoder = TargetEncoder(columns=keys_of(X), **choices)
        return encoder, encoder.fit_transform(X, y, groups=groups)


def fit_alone(X, y, groups=None, **choices):
    with pytest.MonkeyPatch.context() as patch:
        for module in (inputs, key_batches, fitting):
            patch.setattr(module, "FEWEST_TOGETHER", 10**9)
        return fit(X, y, groups, **choices)


@examples(60)
@given(data=st.data())
def test_keys_together_equal_keys_alone(data):
    draw = data.draw
    X, y = make_rows(draw(st.integers(0, 2**32 - 1)), draw(st.integers(20, 200)), draw(st.sampled_from([0, 0.2])), 2)
    y = y if draw(st.booleans()) else np.arange(len(y)) % 4
    choices = {
        "smooth": draw(st.sampled_from(SMOOTHINGS)),
        "cv": draw(st.sampled_from(SCHEMES)),
        "dtype": draw(st.sampled_from(["float32", "float64"])),
        "handle_missing": draw(st.sampled_from(["category", "prior", "nan"])),
        "handle_unknown": draw(st.sampled_from(["prior", 7.5])),
        "min_count": draw(st.sampled_from([0, 3])),
        "prior": draw(st.sampled_from(["mean", 0.25])),
    }
    together, encodings = fit(X, y, **choices)
    alone, expected = fit_alone(X, y, **choices)
    assert_same_bits(encodings.to_numpy(np.float64), expected.to_numpy(np.float64))
    assert_same_encoder(together, alone)
    others, _ = make_rows(1, 50, 0.1, 2)
    assert_same_bits(together.transform(others).to_numpy(np.float64), alone.transform(others).to_numpy(np.float64))


@pytest.mark.parametrize("cv", FOLDS, ids=str)
@pytest.mark.parametrize("smooth", [None, 2.5, "auto", Sigmoid()], ids=str)
def test_these_keys_are_encoded_together(sizes, cv, smooth):
    X, y = make_rows(0, 300, 0.1, 2)
    fit(X, y, cv=cv, smooth=smooth)
    assert sizes == [len(keys_of(X))]


def test_each_target_is_a_batch_of_all_keys_that_no_dict_names(sizes):
    X, y = make_rows(0, 300, 0.1, 2)
    keys = keys_of(X)
    fit(X, np.column_stack([y, 1 - y]), target_type=["binary", "binary"])
    assert sizes == [len(keys), len(keys)]


LIMITS = [{"COUNTS_PER_ROW": 0, "FEW_COUNTS": 500}, {"COUNTS_PER_ROW": 2, "FEW_COUNTS": 0}, {"MOST_COUNTS": 500}]


@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_keys_of_too_many_cells_are_encoded_alone(sizes, monkeypatch, limits):
    X, y = make_rows(0, 300, 0, 2)
    expected = fit(X, y)[1].to_numpy()
    for name, value in limits.items():
        monkeypatch.setattr(key_batches, name, value)
    assert_same_bits(fit(X, y)[1].to_numpy(), expected)
    assert sizes[0] > sizes[1] > 0


GROUPS = np.arange(300) % 11


@pytest.mark.parametrize(
    "choices",
    [
        {"cv": Greedy()},
        {"cv": GroupKFold(4)},
        {"cv": sklearn.model_selection.PredefinedSplit(np.arange(300) % 4)},
        {"drop": "first", "target_type": "multiclass"},
        {"target_type": ["binary", "continuous"]},
    ],
    ids=str,
)
def test_other_schemes_and_targets(sizes, choices):
    X, y = make_rows(5, 300, 0.1, 2)
    X = X.drop(columns="time")
    y = np.column_stack([y, y * 0.5]) if isinstance(choices.get("target_type"), list) else y
    groups = GROUPS if isinstance(choices.get("cv"), GroupKFold) else None
    found = fit(X, y, groups, **choices)
    assert sizes == [len(keys_of(X))]
    expected = fit_alone(X, y, groups, **choices)
    assert_same_bits(found[1].to_numpy(np.float64), expected[1].to_numpy(np.float64))
    assert_same_encoder(found[0], expected[0])


@pytest.mark.parametrize("size", [1, 300, 70_000])
def test_codes_of_any_width(sizes, size):
    random = np.random.default_rng(0)
    X = pd.DataFrame({f"c{i}": random.integers(0, size if i == 0 else 2, 70_100) for i in range(8)})
    y = random.integers(0, 2, len(X))
    with use_backend("compiled"):
        found = TargetEncoder().fit_transform(X, y)
    with use_backend("numpy"):
        assert_same_bits(found.to_numpy(), TargetEncoder().fit_transform(X, y).to_numpy())
    assert sizes[0] == 8


@pytest.mark.parametrize("most_lines", [1, 500, 10**9])
def test_blocks_of_rows_of_categories_and_of_keys_meet(monkeypatch, sizes, most_lines):
    X, y = make_rows(0, 5000, 0.1, 3)
    monkeypatch.setattr(keys_by_fold, "MOST_LINES", most_lines)
    found = fit(X, y, cv=3)[1]
    assert sizes == [len(keys_of(X))]
    assert len(X) > 2 * keys_by_fold.ROWS
    expected = fit_alone(X, y, cv=3)[1]
    assert_same_bits(found.to_numpy(), expected.to_numpy())


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
