"""The operations on a CPU, compiled by numba and run on threads, for many rows: the same bits as `cpu_fallback`."""

from cpu_fallback.compiled import fused
from cpu_fallback.compiled.agreements import sum_agreements
from cpu_fallback.compiled.categories import combine, factorize, lookup, number_in_order
from cpu_fallback.compiled.estimates import m_estimates
from cpu_fallback.compiled.extents import extents
from cpu_fallback.compiled.folds import fold_numbers, ranks_of, rows_at
from cpu_fallback.compiled.gather import gather, gather_numbers
from cpu_fallback.compiled.leave_one_out import leave_one_out
from cpu_fallback.compiled.moments import moments
from cpu_fallback.compiled.ordered import ordered
from cpu_fallback.compiled.sums import accumulate, accumulate_numbers
from cpu_fallback.compiled.views import totals, visible
from cpu_fallback.memory import TILE, cast, empty, to_device, to_host, xp, zeros
