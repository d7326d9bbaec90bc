"""cast, compared bit for bit with NumPy's conversion: subnormal numbers, infinities and NaNs with other bits."""

import numpy as np
import pytest

DOUBLES = np.array(
    [0.0, -0.0, 1.0, 0.1, 1e-40, -1e-45, 7e-46, 1.17549435e-38, 3.4028235677973366e38, 1e39, -1e300, 5e-324, np.inf]
)
NOT_NUMBERS = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0xFFFFFFFFFFFFFFFF], np.uint64)
FLOATS = np.array(
    [0, 1, 0x00000123, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F800000, 0x7FC00000, 0x7F800001, 0xFFC12345], np.uint32
)


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
@pytest.mark.parametrize("values", [DOUBLES, NOT_NUMBERS.view(np.float64), FLOATS.view(np.float32), np.zeros(0)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_are_those_of_numpy(ops, values, dtype):
    result = ops.cast(values, dtype)
    assert result.dtype == dtype
    assert result.tobytes() == values.astype(dtype).tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_other_types_and_shapes(ops, dtype):
    whole = np.arange(-6, 6).reshape(3, 4)[::-1]
    assert np.array_equal(ops.cast(whole, dtype), whole.astype(dtype))
    real = np.linspace(-1, 1, 24).reshape(2, 3, 4).transpose(2, 0, 1)
    assert np.array_equal(ops.cast(real, dtype), real.astype(dtype))
