"""Dask's frames and Delayed objects that do not fit together, or that are no tables."""

from collections.abc import Sequence

from gpu_encode.words.errors.values import RowError


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
