"""The operations on a CPU in NumPy: the definition that every other backend must equal bit for bit."""

from cpu_fallback.casting import cast
from cpu_fallback.categories import combine, factorize, lookup
from cpu_fallback.extents import extents
from cpu_fallback.folds import fold_numbers, places_of, rows_at
from cpu_fallback.gather import gather, gather_numbers
from cpu_fallback.leave_one_out import leave_one_out
from cpu_fallback.memory import TILE, empty, to_device, to_host, xp, zeros
from cpu_fallback.moments import moments
from cpu_fallback.ordered import ordered
from cpu_fallback.sums import accumulate, accumulate_numbers
from cpu_fallback.views import totals, visible

__all__ = [
    "TILE",
    "accumulate",
    "accumulate_numbers",
    "cast",
    "combine",
    "empty",
    "extents",
    "factorize",
    "fold_numbers",
    "fused",
    "gather",
    "gather_numbers",
    "leave_one_out",
    "lookup",
    "moments",
    "ordered",
    "places_of",
    "rows_at",
    "to_device",
    "to_host",
    "totals",
    "visible",
    "xp",
    "zeros",
]

# Nothing is fused here: array expressions above the seam do everything between sums and encodings.
fused = None
