"""exp and log are within one unit in the last place of 50 correct digits, and their bits never change."""

from decimal import Decimal, localcontext
from math import inf, nan

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cpu_fallback.elementary import exp, log
from tests.strategies import examples

law = examples(400)


def units(result, expected):
    """Return the distance in units of the last place."""
    return abs(Decimal(float(result)) - expected) / Decimal(float(np.spacing(abs(float(result)))))


@law
@given(st.floats(-744, 709) | st.floats(-1, 1) | st.floats(-1e-5, 1e-5) | st.floats(-745, -700))
@example(0.34657359027997264)
@example(-0.3465735902799727)
@example(709.782712893384)
def test_exp_is_within_a_unit(value):
    with localcontext(prec=50):
        assert units(exp(np.array([value]))[0], Decimal(value).exp()) < 1


@law
@given(st.floats(5e-324, 1.7e308) | st.floats(0.5, 2) | st.floats(1 - 1e-9, 1 + 1e-9))
@example(0.7071067811865475)
@example(0.7071067811865476)
def test_log_is_within_a_unit(value):
    with localcontext(prec=50):
        result, expected = log(np.array([value]))[0], Decimal(value).ln()
        assert result == 0 if value == 1 else units(result, expected) < 1


EXP_ENDS = [(0.0, 1.0), (-0.0, 1.0), (-inf, 0.0), (-746.0, 0.0), (710.0, inf), (inf, inf), (nan, nan)]
LOG_ENDS = [(0.0, -inf), (-0.0, -inf), (1.0, 0.0), (-1.0, nan), (inf, inf), (nan, nan), (-inf, nan)]


@pytest.mark.parametrize(("function", "ends"), [(exp, EXP_ENDS), (log, LOG_ENDS)], ids=["exp", "log"])
def test_ends(function, ends):
    values, expected = zip(*ends, strict=True)
    assert np.array_equal(function(np.array(values)), expected, equal_nan=True)


def test_any_shape_and_inputs_left_alone():
    values = np.arange(1.0, 7).reshape(2, 3)
    values.flags.writeable = False
    assert exp(values).tolist() == [[exp(value).item() for value in row] for row in values]
    assert log(values).shape == (2, 3)


EXP_BITS = {
    1.0: "0x1.5bf0a8b14576ap+1",
    -1.0: "0x1.78b56362cef38p-2",
    0.1: "0x1.1aec7b35a00d4p+0",
    -0.30000000000000004: "0x1.7b4c869c37c04p-1",
    3.141592653589793: "0x1.724046eb09339p+4",
    -20.0: "0x1.1b48655f37267p-29",
    700.0: "0x1.d945df4f8ec8ep+1009",
    -740.5: "0x0.0000000000033p-1022",
}
LOG_BITS = {
    2.0: "0x1.62e42fefa39efp-1",
    10.0: "0x1.26bb1bbb55516p+1",
    0.1: "-0x1.26bb1bbb55515p+1",
    3.141592653589793: "0x1.250d048e7a1bdp+0",
    1.0000001: "0x1.ad7f2847b6492p-24",
    1e-310: "-0x1.64e69394d9508p+9",
    1e300: "0x1.5963447f87fb5p+9",
}


@pytest.mark.parametrize(
    ("function", "value", "bits"),
    [*((exp, *pair) for pair in EXP_BITS.items()), *((log, *pair) for pair in LOG_BITS.items())],
)
def test_bits_never_change(function, value, bits):
    assert function(np.array([value]))[0].hex() == bits
