"""Dask's frames and Delayed objects that do not fit together, or that are no tables."""

from collections.abc import Sequence

from gpu_encode.errors.rows import RowError

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


def one_promise(type_name: str) -> TypeError:
    """Error for a single Delayed object as X."""
    return TypeError(
        f"X is one {type_name} of Dask. Give a list of them, one for each partition: [X] for a single one."
    )


def not_a_promise(role: str, number: int, type_name: str) -> TypeError:
    """Error for something else among Delayed objects."""
    return TypeError(
        f"{role}[{number}] is a {type_name}, among Delayed objects of Dask. "
        f"Each partition must be one: dask.delayed({role}[{number}])."
    )


def series_as_table(type_name: str) -> ValueError:
    """Error for a Dask series as X."""
    return ValueError(f"X is a {type_name} of Dask, which is no table. Make one of it: X.to_frame().")


def vector_beside_dask(role: str, type_name: str) -> TypeError:
    """Error for a vector that has no partitions, beside an X that has."""
    return TypeError(
        f"X is in partitions of Dask, and {role} is a {type_name}. Give {role} as {LIKE_X}: a column of the frame that "
        f"X was taken from, or dask.array.from_array({role}, chunks=...) with a chunk for each partition."
    )


def uneven_partitions(role: str, found: int, wanted: int) -> ValueError:
    """Error for a vector that is cut into more or fewer partitions than X."""
    return ValueError(
        f"X has {wanted} partitions, and {role} has {found}. Rows match by position, partition by partition: take X "
        f"and {role} from one frame, or repartition both alike."
    )


def columns_in_chunks(role: str, n_chunks: int) -> ValueError:
    """Error for a Dask array that is cut between columns."""
    return ValueError(
        f"{role} is a Dask array with {n_chunks} chunks of columns. "
        f"Put its columns together: {role}.rechunk({{1: -1}})."
    )


def kind_in_dask(kind: str) -> ValueError:
    """Error for a container asked for by `set_output` that no Dask frame has."""
    return ValueError(
        f"set_output(transform={kind!r}) cannot be had in a Dask frame. Give X as X.to_delayed(), a list of Delayed "
        "objects, which gives such a list; or set_output(transform='default')."
    )


def partial_fit_of_dask() -> TypeError:
    """Error for Dask data added to what an encoder knows."""
    return TypeError(
        "partial_fit does not take data of Dask. Fit another encoder of the same parameters to it and merge: "
        "encoder.merge(clone(encoder).fit(X, y))."
    )
