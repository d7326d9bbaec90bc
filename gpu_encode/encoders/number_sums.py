"""Categories and sums of a column of whole numbers in one pass, where nobody asks for the category of a row."""

from gpu_encode import statistics
from gpu_encode.encoders.value_columns import Summed
from gpu_encode.keys import Entry, Key
from gpu_encode.ops import Ops, device_of
from gpu_encode.selection import Located
from gpu_encode.statistics import Measured, Statistics
from gpu_encode.terms import backend_for
from gpu_encode.values import Values
from gpu_encode.vocabulary import Vocabulary


def sums_by_number(
    entry: Entry, place: Located, ops: Ops, summed: Summed, measured: Measured
) -> tuple[Key, Statistics] | None:
    """Give the key of an entry and the sums of its categories; None where it is no column of whole numbers of a host.

    A null would be a category, or an error: columns with any are left to codes.
    """
    if len(entry.columns) > 1 or device_of(ops) != "cpu" or place.n_rows > statistics.CARRY_AFTER:
        return None
    found = place.whole_numbers(entry.columns[0])
    if found is None:
        return None
    numbers, dtype = found
    rows = summed.rows(numbers)
    cells, distinct = backend_for(ops, rows.target).accumulate_numbers(rows, summed.target.n_classes, measured.layout)
    vocabulary = Vocabulary(Values("number", distinct, dtype))
    return Key(entry, [vocabulary]), Statistics(cells, measured, len(numbers))
