"""Operations that take one pass over the rows where other backends take several: see `gpu_encode.seam.ops.FusedOps`."""

from gpu_encode.cuda.key_lookups import look_up_keys
from gpu_encode.cuda.key_sums import sum_keys
from gpu_encode.cuda.keys_by_fold import encode_keys_by_fold, narrow_codes
from gpu_encode.cuda.leave_one_out import leave_one_out_encodings
from gpu_encode.cuda.ordered_encodings import most_ordered_rows, ordered_encodings
from gpu_encode.cuda.table_encodings import encode_categories

__all__ = [
    "encode_categories",
    "encode_keys_by_fold",
    "leave_one_out_encodings",
    "look_up_keys",
    "most_ordered_rows",
    "narrow_codes",
    "ordered_encodings",
    "sum_keys",
]
