"""The operations on a CPU in NumPy: the definition that every other backend must equal bit for bit."""

from cpu_fallback.agreements import sum_agreements
from cpu_fallback.categories import combine, factorize, gather, gather_numbers, lookup, number_in_order
from cpu_fallback.exact import m_estimates, moments
from cpu_fallback.memory import TILE, cast, empty, to_device, to_host, xp, zeros
from cpu_fallback.ordered import ordered
from cpu_fallback.row_numbers import fold_numbers, ranks_of, rows_at
from cpu_fallback.sums import accumulate, accumulate_numbers, extents, leave_one_out, totals, visible

# NumPy has no fused operations; the library computes encodings from sums by array expressions.
fused = None
