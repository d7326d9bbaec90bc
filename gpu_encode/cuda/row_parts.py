"""The rows of a call as kernels take them, and what one row adds, written in steps."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpu_encode.cuda.digits import number_words, term
from gpu_encode.cuda.memory import empty, to_device
from gpu_encode.cuda.runtime import device_function

if TYPE_CHECKING:
    from collections.abc import Callable

    from cpu_fallback.types import Array, Rows


class RowParts(NamedTuple):
    """Launch arguments: category, class where rows are `labelled`, target and weight with their kinds, measures."""

    codes: Any
    classes: "Array"
    labelled: bool
    target: "Array"
    target_kind: int
    weight: "Array"
    weight_kind: int
    measures: "Array"


def parts_of(rows: "Rows", measures: "Array", read_codes: "Callable[[Array], Any]" = to_device) -> RowParts:
    """Bring rows to the device; `measures` is what `measures_of` a layout gives."""
    classes = empty(1, np.int32) if rows.classes is None else to_device(rows.classes)
    numbers = *number_words(rows.target), *number_words(rows.weight)
    return RowParts(read_codes(rows.codes), classes, rows.classes is not None, *numbers, measures)


@device_function
def line_of(code: int, n_lines: int) -> np.int64:
    """Line of a category; a negative code counts from the end."""
    line = np.int64(code)
    return line + n_lines if line < 0 else line


@device_function
def spread_row(
    row: int,
    first_power: int,
    target: "Array",
    target_kind: int,
    weight: "Array",
    weight_kind: int,
    measures: "Array",
    digits: "Array",
    out: "Array",
    at: int,
    step: int,
) -> None:
    """Write what a row adds, from a power of the target on, to every step-th place; zeros are not written."""
    for power in range(first_power, 3):
        if measures[4 * power]:
            whole, low, width = measures[4 * power + 1], measures[4 * power + 2], measures[4 * power + 3]
            place, n_digits = term(row, power, target, target_kind, weight, weight_kind, whole, low, width, digits)
            for k in range(n_digits):
                out[at + (place + k) * step] = digits[k]
            at += width * step
