"""Operations that take one pass over the rows where other backends take several: see `gpu_encode.seam.ops.FusedOps`."""

from cpu_fallback.compiled.blending import encode_categories
from cpu_fallback.compiled.conjunction_scores import score_conjunctions
from cpu_fallback.compiled.conjunctions import conjunction_gains, conjunction_sums
from cpu_fallback.compiled.decay import seen_from
from cpu_fallback.compiled.encodings_by_age import encodings_by_age
from cpu_fallback.compiled.factors import descend_rows
from cpu_fallback.compiled.key_lookups import look_up_keys
from cpu_fallback.compiled.key_sums import sum_keys
from cpu_fallback.compiled.keys_by_fold import encode_keys_by_fold, narrow_codes
from cpu_fallback.compiled.leave_one_out_encodings import leave_one_out_encodings
from cpu_fallback.compiled.log_odds import log_odds_moments
from cpu_fallback.compiled.merging import merge_pairs
from cpu_fallback.compiled.ordered_encodings import most_ordered_rows, ordered_encodings
from cpu_fallback.compiled.pattern_folds import fold_sums
from cpu_fallback.compiled.sorting import sort_codes

__all__ = [
    "conjunction_gains",
    "conjunction_sums",
    "descend_rows",
    "encode_categories",
    "encode_keys_by_fold",
    "encodings_by_age",
    "fold_sums",
    "leave_one_out_encodings",
    "log_odds_moments",
    "look_up_keys",
    "merge_pairs",
    "most_ordered_rows",
    "narrow_codes",
    "ordered_encodings",
    "score_conjunctions",
    "seen_from",
    "sort_codes",
    "sum_keys",
]
