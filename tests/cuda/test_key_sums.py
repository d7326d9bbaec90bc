"""Keys that a GPU counts together in `fit`: everything that is learned equals that of each key alone on a CPU."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_encode import TargetEncoder, interactions
from gpu_encode.fitting import columns
from gpu_encode.seam.ops import use_backend
from tests.backends import ON_CUDA, memory
from tests.bits import assert_same_encoder
from tests.laws.test_key_batches import keys_of, make_rows
from tests.strategies import examples

pytestmark = [pytest.mark.cuda, pytest.mark.filterwarnings("ignore::UserWarning")]
SIZES = (3, 40, 7, 300)


@pytest.fixture(scope="module", params=ON_CUDA)
def name(request):
    return request.param


def fit(name, X, y, **choices):
    with use_backend(name):
        return TargetEncoder(**choices).fit(X, y)


def fit_alone(X, y, **choices):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(columns.FEWEST_ON, "cpu", 10**9)
        return fit("compiled", X, y, **choices)


@examples(15)
@given(data=st.data())
def test_keys_together_equal_keys_alone(name, data):
    draw = data.draw
    n_rows, seed = draw(st.sampled_from([1, 20, 64, 150])), draw(st.integers(0, 2**32 - 1))
    X, y = make_rows(seed, n_rows, draw(st.sampled_from([0, 0.2])), 2)
    y = np.arange(n_rows) % 5 if draw(st.booleans()) and n_rows > 5 else np.arange(n_rows) % 2
    choices = {
        "columns": keys_of(X)[: draw(st.sampled_from([2, 3, 7, 99]))],
        "handle_missing": draw(st.sampled_from(["category", "prior", "nan"])),
        "target_type": draw(st.sampled_from(["auto", "continuous"])) if n_rows > 1 else "continuous",
        "min_count": draw(st.sampled_from([0, 3])),
    }
    assert_same_encoder(fit(name, X, y, **choices), fit_alone(X, y, **choices))


def draw_table(n_rows, dtype):
    """Return columns of whole numbers, with gaps and without, and one whose range is long."""
    random = np.random.default_rng(n_rows)
    numbers = [random.integers(0, size, n_rows) * (1 + 2 * (size == 40)) + size for size in SIZES]
    return np.array([*numbers, random.integers(0, 2, n_rows) << 30], dtype).T


# What is counted together on a GPU, and how often rows are counted; the rest goes key by key.
CASES = {"binary": ({}, 1), "classes": ({"target_type": "multiclass"}, 1), "reals": ({"target_type": "continuous"}, 0)}
CASES |= {"weights": ({}, 0), "several": ({"target_type": ["binary", "binary"]}, 2)}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_columns_of_a_device(name, launched, case, dtype):
    X, y, (choices, n_counted) = draw_table(150, dtype), np.arange(150) * 7 % 11 % 2, CASES[case]
    y = np.stack([y, 1 - y], axis=1) if case == "several" else np.arange(150) % 5 if case == "classes" else y
    weight = np.arange(150) % 3 + 1 if case == "weights" else None
    choices = {"columns": interactions(range(len(SIZES) + 1)), **choices}
    with use_backend(name):
        given = None if weight is None else memory.to_device(weight)
        found = TargetEncoder(device="cuda", **choices)
        found.fit(memory.to_device(X), memory.to_device(y), sample_weight=given)
    assert launched.count("count_keys") == n_counted
    with use_backend("compiled"):
        assert_same_encoder(found, TargetEncoder(**choices).fit(X, y, sample_weight=weight))


def test_few_keys_are_summed_alone(name, launched):
    X, y = draw_table(150, np.int32), np.arange(150) % 2
    fit(name, memory.to_device(X), memory.to_device(y), columns=[0, (0, 1)], device="cuda")
    assert "count_keys" not in launched
