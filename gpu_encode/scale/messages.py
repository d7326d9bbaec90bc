"""Messages about files, partitions and engines that several modules share."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from gpu_encode.words.errors.tables import did_you_mean
from gpu_encode.words.errors.values import RowError

LEAVE_OUT = (
    '. Leave such rows out by drop_missing_target=True (--drop-missing-target), or pass missing_target="keep" '
    "(--missing-target keep): most encoders then encode these rows, and learn only their categories."
)


def no_such_source(path: str) -> FileNotFoundError:
    """Error for a path or glob that finds nothing."""
    return FileNotFoundError(f"source: there is no file or folder {path!r}, and as a glob it matches nothing.")


def delta_table(text: str) -> ImportError:
    """Error for a folder of Delta Lake: only its log says which of its files belong to the table."""
    return ImportError(
        f"source {text!r} is a Delta table: its log says which files still belong to it. Give "
        f"deltalake.DeltaTable({text!r}) (pip install deltalake), or a list of the files that its file_uris() names."
    )


def unknown_format(path: str, suffixes: Sequence[str]) -> ValueError:
    """Error for a file whose suffix names no known format."""
    hint = did_you_mean(PurePath(path).suffix, suffixes)
    return ValueError(f"{path!r}: no known format has this suffix.{hint} Choose from {', '.join(suffixes)}.")


class SourceChangedError(ValueError):
    """Error for a file that has changed since work began, so that results of the earlier passes do not match it."""


def source_changed(path: str) -> SourceChangedError:
    """Error for a file that has changed since work began."""
    return SourceChangedError(
        f"the source file {path!r} changed while it was read. Run again from the "
        "start when nobody writes to it: the finished work no longer fits it."
    )


def type_unknown_to(column: object, kind: object, format_name: str, advice: str) -> ValueError:
    """Error for a column that a format, or Arrow itself, cannot hold."""
    return ValueError(f"column {column!r} holds {kind!s}, which {format_name} cannot: {advice}")


def check_outputs(names: Sequence[str]) -> None:
    """Raise ValueError if an output would have two columns of the same name."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the output would have two columns named {name!r}: rename it in the input")


def no_such_column(role: str, column: object, names: Sequence[str]) -> ValueError:
    """Error for a name that no file has."""
    hint = did_you_mean(str(column), names)
    shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
    return ValueError(f"{role}: the source has no column {column!r}.{hint} It has: {shown}.")


class Need(NamedTuple):
    """A limit, the least one that is enough, the largest key, its number of categories, and whether that is exact."""

    limit: int
    enough: int
    key: str
    n_categories: int
    counted: bool


class CategoriesError(ValueError):
    """Error for categories that do not fit into the memory limit.

    Parameters
    ----------
    need : Need
    n_categories : list of int
        The number of each key.
    """

    def __init__(self, need: Need, n_categories: list[int]) -> None:
        about = "about " if need.counted else "perhaps "
        super().__init__(
            f"memory_limit is {need.limit / 2**20:,.0f} MiB, and the sums and encodings of the categories do not fit: "
            f"{need.key!r} has {about}{need.n_categories:,} of them. Give at least {-(-need.enough // 2**20):,} MiB, "
            "or encode fewer columns at a time."
        )
        self.n_categories, self.enough = n_categories, need.enough


class NotShuffledError(ValueError):
    """Error for encodings that depend on more than the sums of single categories.

    Parameters
    ----------
    reason : str
        The reason, in the words of the message.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f'tables="shuffle": {reason}. Or pass tables="broadcast".')
        self.reason = reason


class RowInPartitionError(RowError):
    """Error about a row whose number is only known within its partition, since earlier partitions are not counted yet.

    Parameters
    ----------
    before, after : str
        The text before and after the number of the row.
    row : int
    partition : int
        Number of the partition.
    """

    def __init__(self, before: str, row: int, after: str, partition: int) -> None:
        super().__init__(before, row, after)
        # The arguments from which pickle makes the error again.
        self.args = (before, row, after, partition)
        self.partition = partition

    def counted(self, lengths: Sequence[int]) -> RowError:
        """Give the error with the number of the row among all rows, from the lengths of the partitions before."""
        return RowError(self.before, sum(lengths) + self.row, self.after)
