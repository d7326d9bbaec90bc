"""Keys of new rows that are looked up together: bits, warnings and counts equal those of each key alone."""

import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_encode import Holdout, JamesStein, Sigmoid, StatisticEncoder, TargetEncoder, load, transform_dataset
from gpu_encode.fitting import columns, key_lookups, model
from gpu_encode.seam.ops import use_backend
from tests.bits import assert_same_bits
from tests.strategies import examples

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore::UserWarning")]


def make_rows(seed, n_rows, missing=0.1, spread=1):
    """Return columns of numbers, text and categories; with `spread` their values are others than without."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame({f"n{size}": random.integers(0, size * spread, n_rows).astype(float) for size in (2, 7, 300)})
    X["text"] = random.choice(["b", "a", "", "ä", *"xyz"[:spread]], n_rows)
    X["kind"] = pd.Categorical(random.choice(["x", "y"], n_rows), categories=["y", "never", "x"])
    return X.mask(random.random(X.shape) < missing)


NAMES = [*make_rows(0, 1)]
KEYS = [key for size in (2, 3) for key in itertools.combinations(NAMES, size)] + NAMES
TARGETS = {"binary": np.arange(200) % 2, "classes": np.arange(200) % 4, "reals": np.arange(200) / 7}


@pytest.fixture
def sizes(monkeypatch):
    """Return a list that collects how many keys each call looked up together."""
    noted, look_up = [], key_lookups.JointTables.look_up

    def note(*given):
        found = look_up(*given)
        noted.append(len(found))
        return found

    monkeypatch.setattr(key_lookups.JointTables, "look_up", note)
    return noted


def fit(y=TARGETS["binary"], keys=KEYS, **choices):
    with use_backend("compiled"):
        return TargetEncoder(columns=keys, **choices).fit(make_rows(0, len(y)), y)


def transform(encoder, X):
    with use_backend("compiled"), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        return encoder.transform(X), [str(warning.message) for warning in told]


def transform_alone(encoder, X):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(columns.FEWEST_ON, "cpu", 10**9)
        return transform(pickle.loads(pickle.dumps(encoder)), X)


def assert_as_alone(encoder, X):
    (found, told), (expected, told_alone) = transform(encoder, X), transform_alone(encoder, X)
    assert_same_bits(found, expected)
    assert told == told_alone
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(columns.FEWEST_ON, "cpu", 10**9)
        tables = pickle.loads(pickle.dumps(encoder)).encodings_
    for made, alone in zip(pickle.loads(pickle.dumps(encoder)).encodings_, tables, strict=True):
        assert_same_bits(made, alone)


@examples(60)
@given(data=st.data())
def test_keys_together_equal_keys_alone(data):
    draw = data.draw
    y = TARGETS[draw(st.sampled_from([*TARGETS]))]
    encoder = fit(
        y,
        dtype=draw(st.sampled_from(["float32", "float64"])),
        handle_missing=draw(st.sampled_from(["category", "prior", "nan"])),
        handle_unknown=draw(st.sampled_from(["prior", 7.5, "nan"])),
        smooth=draw(st.sampled_from([None, 2.5, "auto", Sigmoid(3.0, 2.0), JamesStein()])),
        min_count=draw(st.sampled_from([0, 3])),
        prior=draw(st.sampled_from(["mean", 0.25])),
    )
    rows = draw(st.integers(1, 2500)), draw(st.sampled_from([0, 0.3])), draw(st.sampled_from([1, 2, 3]))
    assert_as_alone(encoder, make_rows(1, *rows))


@pytest.mark.parametrize("missing", ["category", "prior"])
def test_joint_keys_and_their_columns_are_looked_up_together(sizes, missing):
    encoder = fit(handle_missing=missing)
    assert_as_alone(encoder, make_rows(1, 3000, spread=2))
    assert sizes == [len(KEYS)]


def test_tables_made_together_have_one_rule_and_one_total(monkeypatch):
    made, tables_of_keys = [], model.tables_of_keys

    def note(*given):
        tables = tables_of_keys(*given)
        made.append([table is not None for table in tables])
        return tables

    monkeypatch.setattr(model, "tables_of_keys", note)
    X = make_rows(1, 300, spread=2)
    assert_as_alone(fit(), X)
    assert made.pop(0) == [True] * len(KEYS)
    # New rows see other rows under some keys than under others.
    schemes = {key: Holdout(0.3 + 0.2 * (i % 2)) for i, key in enumerate(KEYS)}
    assert_as_alone(fit(cv=schemes), X)
    assert 0 < sum(made[-1]) < len(KEYS)
    del made[:]
    assert_as_alone(fit(smooth={key: float(i % 3) for i, key in enumerate(KEYS)}), X)
    both = np.column_stack([TARGETS["reals"], TARGETS["binary"]])
    assert_as_alone(fit(both, target_type=["continuous", "binary"]), X)
    monkeypatch.setattr(model, "MOST_SUMS", 100)
    assert_as_alone(fit(TARGETS["classes"]), X)


def test_several_statistics_stand_in_their_columns(sizes):
    X, y = make_rows(0, 200), TARGETS["reals"]
    with use_backend("compiled"):
        encoder = StatisticEncoder(["mean", "std", "max"], columns=KEYS).fit(X, y)
    assert_as_alone(encoder, make_rows(1, 500, spread=2))
    assert sizes == [len(KEYS)]


@pytest.mark.parametrize("choices", [{"handle_missing": "error"}, {"handle_unknown": "error"}, {"indicators": True}])
def test_what_asks_for_codes_is_looked_up_alone(sizes, choices):
    with use_backend("compiled"):
        encoder = TargetEncoder(columns=KEYS, **choices).fit(make_rows(0, 200, 0), TARGETS["binary"])
        encoder.transform(make_rows(0, 200, 0))
    assert sizes == []


def test_a_hierarchy_and_given_categories_stand_beside_others(sizes):
    choices = {"hierarchy": {"text": "kind"}, "categories": [["b", "a"] if key == "text" else "auto" for key in KEYS]}
    for name, value in choices.items():
        assert_as_alone(fit(**{name: value}), make_rows(1, 300, spread=2))
    assert sizes == [len(KEYS) - 1, len(KEYS)]


def test_tables_that_are_too_large_are_left_to_each_key(sizes, monkeypatch):
    encoder, X = fit(), make_rows(1, 300, spread=2)
    monkeypatch.setattr(columns, "NUMBERS_PER_ROW", 0)
    for name, value in {"MOST_NUMBERS": 3000, "FEW_NUMBERS": 1000}.items():
        monkeypatch.setattr(columns, name, value)
        assert_as_alone(pickle.loads(pickle.dumps(encoder)), X)
    assert len(KEYS) > sizes[0] > sizes[1] > 0


def test_keys_that_were_loaded_or_merged_read_each_column_once(tmp_path, monkeypatch):
    one, X = fit(), make_rows(1, 300, spread=2)
    one.save(tmp_path / "one")
    merged = fit().merge(TargetEncoder(columns=KEYS).fit(make_rows(5, 100, spread=3), np.arange(100) % 2))
    read, code_rows = [], key_lookups.JointTables.code_rows

    def note(*given):
        read.append(len(given[-1]))
        return code_rows(*given)

    monkeypatch.setattr(key_lookups.JointTables, "code_rows", note)
    for encoder in (load(tmp_path / "one"), merged):
        assert_as_alone(encoder, X)
    assert read == [len(NAMES)] * 2


def test_what_is_learned_later_is_looked_up():
    encoder = fit()
    assert_as_alone(encoder, make_rows(1, 300))
    encoder.partial_fit(make_rows(7, 100, spread=2), np.arange(100) % 2)
    assert_as_alone(encoder, make_rows(1, 300, spread=2))


@pytest.mark.parametrize("keys", [KEYS, KEYS[:3]], ids=["together", "alone"])
def test_unseen_rows_of_files_are_counted(tmp_path, keys):
    X = make_rows(1, 500, 0, spread=3)
    X.to_parquet(tmp_path / "new.parquet")
    encoder = fit(keys=keys)
    with use_backend("compiled"):
        found = transform_dataset(tmp_path / "new.parquet", tmp_path / "encoded.parquet", encoder).unseen
    known = {tuple(row) for row in make_rows(0, 200)[list(keys[0])].itertuples(index=False)}
    unseen = sum(tuple(row) not in known for row in X[list(keys[0])].itertuples(index=False))
    assert 0 < unseen == found["n2_x_n7"]
