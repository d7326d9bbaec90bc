"""Encodings in the type of the output: every NaN becomes `np.nan`, and all other numbers are as `cast` gives them."""

from importlib import import_module

import numpy as np
import pytest

pytestmark = [pytest.mark.cuda, pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")]


@pytest.fixture
def words():
    """Draw bits of floats; a third have every exponent bit set: NaN of either sign and any payload."""
    random = np.random.default_rng(5)
    words = random.integers(0, 2**64 - 1, 42, np.uint64, endpoint=True)
    words[random.random(42) < 0.3] |= np.uint64(0x7FF0000000000000)
    words[:3] = np.array([np.inf, -0.0, 1e-42]).view(np.uint64)
    return words


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(0,), (29,), (3, 2, 7)])
def test_a_nan_of_any_bits_is_the_one_nan(words, dtype, shape):
    casting, memory = (import_module(f"gpu_encode.cuda.{name}") for name in ("casting", "memory"))
    values = words[: np.prod(shape)].view(np.float64).reshape(shape)
    expected = np.where(np.isnan(values), np.nan, values).astype(dtype)
    given = memory.to_device(values)
    found = casting.cast_encodings(given, dtype)
    assert (found.dtype, found.shape) == (dtype, shape)
    assert memory.to_host(found).tobytes() == expected.tobytes()
    # A table of the same type needs no second table.
    if values.size:
        assert (found.data.ptr == given.data.ptr) == (dtype == "float64")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_does_not_lie_in_one_piece_is_not_written_to(words, dtype):
    casting, memory = (import_module(f"gpu_encode.cuda.{name}") for name in ("casting", "memory"))
    values = words.view(np.float64)
    lines = memory.to_device(np.repeat(values, 2))
    found = memory.to_host(casting.cast_encodings(lines[::2], dtype))
    assert found.tobytes() == np.where(np.isnan(values), np.nan, values).astype(dtype).tobytes()
    assert memory.to_host(lines).tobytes() == np.repeat(values, 2).tobytes()


def test_whole_numbers_are_cast():
    casting, memory = (import_module(f"gpu_encode.cuda.{name}") for name in ("casting", "memory"))
    assert memory.to_host(casting.cast_encodings(memory.to_device(np.array([-2.0, 7.0])), "int32")).tolist() == [-2, 7]
