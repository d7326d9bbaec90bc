"""The operations on an NVIDIA GPU: kernels by numba.cuda; memory, sorting and scans by CuPy; the bits of a CPU."""

from cpu_fallback.categories import number_in_order
from cpu_fallback.exact import m_estimates
from cpu_fallback.sums import visible
from gpu_encode.cuda import fused, strings
from gpu_encode.cuda.agreements import sum_agreements
from gpu_encode.cuda.casting import cast, cast_encodings
from gpu_encode.cuda.categories import combine, factorize, index_numbers, lookup
from gpu_encode.cuda.columns import index_columns, read_vocabularies
from gpu_encode.cuda.deferred import defer_copy
from gpu_encode.cuda.eigenvectors import leading_eigenvectors
from gpu_encode.cuda.extents import extents
from gpu_encode.cuda.folds import fold_numbers, ranks_of, rows_at
from gpu_encode.cuda.gather import gather, gather_numbers
from gpu_encode.cuda.leave_one_out import leave_one_out
from gpu_encode.cuda.memory import (
    TILE,
    adopt,
    default_stream_waits,
    empty,
    free_bytes,
    to_device,
    to_host,
    wait_for_default_stream,
    xp,
    zeros,
)
from gpu_encode.cuda.moments import moments
from gpu_encode.cuda.ordered import ordered
from gpu_encode.cuda.runtime import available, current_device
from gpu_encode.cuda.sums import accumulate, accumulate_numbers
from gpu_encode.cuda.views import totals
