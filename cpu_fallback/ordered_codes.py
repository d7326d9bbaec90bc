"""Codes of all rows from the rows before them, in one pass over the rows."""

from typing import TYPE_CHECKING

from cpu_fallback.blending import FusedRule, Written

if TYPE_CHECKING:
    from cpu_fallback.row_numbers import Permutation
    from cpu_fallback.types import Array, Layout, Rows


def ordered_codes(
    rows: "Rows",  # noqa: ARG001
    n_categories: int,  # noqa: ARG001
    n_classes: int,  # noqa: ARG001
    layout: "Layout",  # noqa: ARG001
    first_output: int,  # noqa: ARG001
    order: "Permutation | Array | None",  # noqa: ARG001
    ties: "tuple[Array, Array] | None",  # noqa: ARG001
    burn_in: int,  # noqa: ARG001
    rule: FusedRule,  # noqa: ARG001
    out: "Array",  # noqa: ARG001
    unseen: "Array | None",  # noqa: ARG001
    /,
) -> Written | None:
    """Give None: the array expressions of `gpu_encode.training.ordered` are the definition."""
    return None
