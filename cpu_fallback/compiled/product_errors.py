"""The rounding error of a product: by a fused multiply-add if the processor has one, else by halves of the factors."""

import platform
from typing import Any

from llvmlite.binding import get_host_cpu_features
from numba import config
from numba.core.types import float64
from numba.extending import intrinsic

from cpu_fallback.compiled.border import inlined, stage

SPLITTER = 134217729.0


def fuses() -> bool:
    """Tell whether the processor that kernels are compiled for can multiply and add with one rounding."""
    if config.DISABLE_JIT or config.CPU_NAME or config.CPU_FEATURES:
        return False
    return platform.machine() in ("aarch64", "arm64") or bool(get_host_cpu_features().get("fma"))


FUSES = fuses()


@intrinsic
def multiply_add(_typing: Any, _left: Any, _right: Any, _added: Any) -> Any:
    """Give left * right + added, rounded once."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        return builder.fma(*given)

    return float64(float64, float64, float64), generate


@stage
def halve(value: float) -> float:
    """Give the upper 26 bits of a number (Veltkamp)."""
    wide = value * SPLITTER
    return wide - (wide - value)


@inlined
def product_error(product: float, left: float, right: float) -> float:
    """Give left * right - product, exactly (Dekker 1971)."""
    if FUSES:
        return multiply_add(left, right, -product)
    a, b = halve(left), halve(right)
    c, d = left - a, right - b
    return c * d - (((product - a * b) - c * b) - a * d)
