"""Passes that do everything between sums and encodings at once: see `gpu_encode.ops.FusedOps`."""

from cpu_fallback.compiled.blending import encode_categories
from cpu_fallback.compiled.leave_one_out_encodings import leave_one_out_encodings
from cpu_fallback.compiled.ordered_encodings import ordered_encodings

__all__ = ["encode_categories", "leave_one_out_encodings", "ordered_encodings"]
