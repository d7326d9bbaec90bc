"""Categories and sums of a column of whole numbers in one pass, where nobody asks for the category of a row."""

from gpu_encode.categories.keys import CategoryIndex, KeySpec
from gpu_encode.categories.values import Values
from gpu_encode.categories.vocabulary import Vocabulary
from gpu_encode.fitting.columns import ColumnMap
from gpu_encode.fitting.value_columns import SummedColumn
from gpu_encode.ops import Ops, device_of
from gpu_encode.sums import category_sums
from gpu_encode.sums.category_sums import CategorySums, SumSpec
from gpu_encode.sums.terms import backend_for


def sums_by_number(
    entry: KeySpec, place: ColumnMap, ops: Ops, summed: SummedColumn, measured: SumSpec
) -> tuple[CategoryIndex, CategorySums] | None:
    """Give the key of an entry and the sums of its categories; None where it is no column of whole numbers of a host.

    A null would be a category, or an error: columns with any are left to codes.
    """
    if len(entry.columns) > 1 or device_of(ops) != "cpu" or place.n_rows > category_sums.CARRY_AFTER:
        return None
    found = place.whole_numbers(entry.columns[0])
    if found is None:
        return None
    numbers, dtype = found
    rows = summed.rows(numbers)
    accumulators, distinct = backend_for(ops, rows.target).accumulate_numbers(
        rows, summed.target.n_classes, measured.layout
    )
    vocabulary = Vocabulary(Values("number", distinct, dtype))
    return CategoryIndex(entry, [vocabulary]), CategorySums(accumulators, measured, len(numbers))
