"""NaN of any bits becomes the one NaN, and nothing else changes."""

from importlib import import_module

import numpy as np
import pytest

pytestmark = pytest.mark.cuda


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(0,), (29,), (3, 1, 7)])
def test_one_nan(dtype, shape):
    casting, memory = (import_module(f"gpu_encode.cuda.{name}") for name in ("casting", "memory"))
    random, word = np.random.default_rng(5), np.dtype(f"u{np.dtype(dtype).itemsize}")
    # A third has every bit of an exponent set: NaN of either sign and any payload, and infinities.
    words = random.integers(0, np.iinfo(word).max, shape, word, endpoint=True)
    words |= np.where(random.random(shape) < 0.3, np.array(np.inf, dtype).view(word), 0).astype(word)
    words.reshape(-1)[:2] = np.array([np.inf, -0.0], dtype).view(word)[: words.size]
    expected = np.where(np.isnan(words.view(dtype)), np.array(np.nan, dtype).view(word), words)
    given = memory.to_device(words.view(dtype))
    found = casting.one_nan(given)
    assert found.data.ptr == given.data.ptr
    assert memory.to_host(found).view(word).tolist() == expected.tolist()
    # What does not lie in one piece is not written to.
    lines = memory.to_device(np.repeat(words.view(dtype).reshape(-1), 2))
    before = memory.to_host(lines).view(word).tolist()
    assert memory.to_host(casting.one_nan(lines[::2])).view(word).tolist() == expected.reshape(-1).tolist()
    assert memory.to_host(lines).view(word).tolist() == before
