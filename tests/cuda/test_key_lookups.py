"""Keys of new rows that a GPU looks up together: bits and warnings equal those of each key alone on a CPU."""

import pickle
import warnings
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_fallback.row_numbers import FoldPattern
from cpu_fallback.types import KeyColumns, KeyEncodings, KeyTables
from gpu_encode import StatisticEncoder, TargetEncoder, interactions, load
from gpu_encode.fitting import columns
from gpu_encode.fitting.model import unseen_counted
from gpu_encode.seam.ops import use_backend
from tests.backends import ON_CUDA, memory
from tests.bits import assert_same_bits
from tests.laws.test_key_lookups import KEYS, TARGETS, fit, make_rows
from tests.strategies import examples

pytestmark = [pytest.mark.cuda, pytest.mark.filterwarnings("ignore::UserWarning")]
LOOK_UP = ["narrow_columns", "spread_keys", "gather_keys", "count_unknown"]


@pytest.fixture(scope="module", params=ON_CUDA)
def name(request):
    return request.param


def transform(name, encoder, X):
    """Return encodings, warnings, and the numbers of unseen rows by key."""
    with use_backend(name), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = encoder.transform(X)
        found = found.select_dtypes("number") if hasattr(found, "columns") else found
        with unseen_counted() as counts:
            encoder.transform(X)
    return found, [str(warning.message) for warning in told], dict(counts)


def assert_as_alone(name, encoder, X):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(columns.FEWEST_ON, "cpu", 10**9)
        expected, *others = transform("compiled", pickle.loads(pickle.dumps(encoder)), X)
    found, *same = transform(name, encoder, X)
    assert_same_bits(found, expected)
    assert same == others


@examples(20)
@given(data=st.data())
def test_keys_together_equal_keys_alone(name, data):
    draw = data.draw
    y = TARGETS[draw(st.sampled_from([*TARGETS]))]
    encoder = fit(
        y,
        KEYS[: draw(st.sampled_from([2, 3, 12, 99]))],
        dtype=draw(st.sampled_from(["float32", "float64"])),
        handle_missing=draw(st.sampled_from(["category", "prior", "nan"])),
        handle_unknown=draw(st.sampled_from(["prior", 7.5, "nan"])),
    )
    rows = draw(st.sampled_from([1, 16, 63, 300])), draw(st.sampled_from([0, 0.3])), draw(st.sampled_from([1, 2, 3]))
    assert_as_alone(name, encoder, make_rows(1, *rows))


@pytest.mark.parametrize("choices", [{"handle_missing": "error"}, {"handle_unknown": "error"}, {"indicators": True}])
def test_what_asks_for_codes_is_looked_up_alone(name, launched, choices):
    X = make_rows(0, 200, 0)
    with use_backend("compiled"):
        encoder = TargetEncoder(columns=KEYS, **choices).fit(X, TARGETS["binary"])
    assert_as_alone(name, encoder, X)
    assert "spread_keys" not in launched


def test_a_hierarchy_and_given_categories_stand_beside_others(name, launched):
    choices = {"hierarchy": {"text": "kind"}, "categories": [["b", "a"] if key == "text" else "auto" for key in KEYS]}
    for parameter, value in choices.items():
        assert_as_alone(name, fit(**{parameter: value}), make_rows(1, 300, spread=2))
        assert "spread_keys" in launched
        launched.clear()


def test_several_outputs_stand_in_their_columns(name):
    with use_backend("compiled"):
        encoder = StatisticEncoder(["mean", "std", "max"], columns=KEYS).fit(make_rows(0, 200), TARGETS["reals"])
    assert_as_alone(name, encoder, make_rows(1, 100, spread=2))


def test_models_that_were_loaded_or_merged(name, tmp_path):
    one, X = fit(), make_rows(1, 100, spread=2)
    one.save(tmp_path / "one")
    with use_backend("compiled"):
        other = TargetEncoder(columns=KEYS).fit(make_rows(5, 100, spread=3), np.arange(100) % 2)
        merged = fit().merge(other)
    for encoder in (load(tmp_path / "one"), merged):
        assert_as_alone(name, encoder, X)


def test_tables_are_made_in_batches(name, monkeypatch, launched):
    sizes = import_module("gpu_encode.cuda.key_sums")
    monkeypatch.setattr(sizes, "TABLE_BYTES", 3000)
    assert_as_alone(name, fit(), make_rows(1, 100, spread=2))
    assert launched.count("spread_keys") > 2


def draw_columns(random, n_rows, dtype):
    """Return columns of whole numbers of a type: neighbours, with gaps, below zero, and of a long range."""
    low = -40 if np.dtype(dtype).kind == "i" else 0
    numbers = [random.integers(0, 5, n_rows), random.integers(0, 50, n_rows) * 2, random.integers(low, 80, n_rows)]
    return np.array([*numbers, random.integers(0, 3, n_rows) * (np.iinfo(dtype).max // 3)], dtype).T


@pytest.mark.parametrize("fitted", [np.int64, np.int8, np.uint64])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8, np.uint8, np.uint64])
def test_columns_of_a_device(name, launched, fitted, dtype):
    random, y = np.random.default_rng(7), np.arange(150) % 2
    X, new = draw_columns(random, 150, fitted), draw_columns(random, 90, dtype)
    with use_backend("compiled"):
        encoder = TargetEncoder(columns=interactions(range(4)), dtype="float32").fit(X, y)
        expected = pickle.loads(pickle.dumps(encoder)).transform(new)
    with use_backend(name):
        encoder.device = "cuda"
        found = encoder.transform(memory.to_device(new))
    assert_same_bits(memory.to_host(found), expected)
    assert [each for each in launched if each in LOOK_UP] == LOOK_UP


def test_launches_do_not_depend_on_the_number_of_keys(name, launched):
    random = np.random.default_rng(7)
    for width in (3, 9):
        X = memory.to_device(random.integers(0, 4, (100, width)).astype(np.int32))
        with use_backend(name):
            encoder = TargetEncoder(columns=interactions(range(width)), device="cuda")
            encoder.fit(X, memory.to_device(np.arange(100) % 2))
            launched.clear()
            encoder.transform(X)
        assert launched == LOOK_UP


# Columns of codes, the last two of which are missing and unknown values, and the keys that are made of them.
SIZES, MEMBERS = [3, 9, 302], [(0,), (2,), (0, 1), (2, 1, 0), (1, 1)]


def draw_tables(random, n_views, n_outputs):
    """Return tables of keys: some cells are categories."""
    sizes = [int(np.prod([SIZES[column] for column in members])) for members in MEMBERS]
    cells = [np.sort(random.permutation(size)[: size // 2]).astype(np.uint32) for size in sizes]
    n = np.array([*map(len, cells)])
    lengths = (n + 2) * n_views * n_outputs
    missing = np.where(random.random(len(n)) < 0.5, -1, n + random.integers(0, 2, len(n)))
    values = random.standard_normal(lengths.sum()).astype(np.float32)
    begins = [np.append(0, np.cumsum(each)[:-1]) for each in (n, lengths)]
    return KeyTables(np.concatenate(cells), values, *begins, n, n_outputs, missing, n_views)


@pytest.mark.parametrize("n_rows", [1, 17, 130])
@pytest.mark.parametrize("n_views", [1, 3])
@pytest.mark.parametrize("step", [1, 7])
def test_views_and_counts_of_the_operation(device, n_rows, n_views, step):
    random = np.random.default_rng(n_rows + step)
    n_outputs = np.array([1, 2, 1, 2, 3])
    tables = draw_tables(random, n_views, n_outputs)
    codes = [random.integers(0, size, n_rows).astype(np.int32) for size in SIZES]
    folds = FoldPattern("random", n_views, 5, n_rows=n_rows, first_row=0) if n_views > 1 else None
    first = np.append(0, np.cumsum(n_outputs)[:-1]).tolist()
    found = []
    for backend, to in ((device, memory.to_device), (import_module("cpu_fallback.compiled"), np.asarray)):
        values = backend.zeros((n_outputs.sum(), n_rows), np.float32)
        keys = KeyColumns(backend.fused.narrow_codes([*map(to, codes)], SIZES), SIZES, MEMBERS)
        unknown = backend.fused.look_up_keys(keys, tables, folds, step, KeyEncodings(values, first))
        found.append((memory.to_host(values), unknown.tolist()))
    assert_same_bits(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]
