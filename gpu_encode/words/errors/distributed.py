"""Dask's frames and Delayed objects that do not fit together, or that are no tables."""

from collections.abc import Sequence

from gpu_encode.words.errors.values import RowError

LIKE_X = "a Dask frame, series or array, or a list of Delayed objects, with as many partitions as X"


class RowInPartitionError(RowError):
    """Error about a row that is counted in its partition alone, where nobody knows yet how many rows come before.

    Parameters
    ----------
    before, after : str
        What stands around the number of the row.
    row : int
    partition : int
        Number of the partition.
    """

    def __init__(self, before: str, row: int, after: str, partition: int) -> None:
        super().__init__(before, row, after)
        # What pickle makes it again of.
        self.args = (before, row, after, partition)
        self.partition = partition

    def counted(self, lengths: Sequence[int]) -> RowError:
        """Give the error with its row counted over all rows, by the rows of the partitions before."""
        return RowError(self.before, sum(lengths) + self.row, self.after)


def vector_beside_dask(role: str, type_name: str) -> TypeError:
    """Error for a vector that has no partitions, beside an X that has."""
    return TypeError(
        f"X is in partitions of Dask, and {role} is a {type_name}. Give {role} as {LIKE_X}: a column of the frame that "
        f"X was taken from, or dask.array.from_array({role}, chunks=...) with a chunk for each partition."
    )
