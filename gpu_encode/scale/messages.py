"""Messages that several modules share, of files, partitions and engines."""

import difflib
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from gpu_encode.words.errors.values import RowError

LEAVE_OUT = (
    '. Leave such rows out by drop_missing_target=True (--drop-missing-target), or pass missing_target="keep" '
    "(--missing-target keep): most encoders then encode them, and learn nothing of them but their categories."
)


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """Say which known words one that is not known may stand for."""
    near = difflib.get_close_matches(word, known)
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


def no_such_source(path: str) -> FileNotFoundError:
    """Error for a path or glob that finds nothing."""
    return FileNotFoundError(f"source: there is no file or folder {path!r}, and as a glob it matches nothing.")


def delta_table(text: str) -> ImportError:
    """Error for a table of Delta Lake, of which files are not all that there is to know."""
    return ImportError(
        f"source {text!r} is a Delta table: its log says which of its files count. Give deltalake.DeltaTable({text!r}) "
        "(pip install deltalake), or a list of the files that its file_uris() names."
    )


def unknown_format(path: str, suffixes: Sequence[str]) -> ValueError:
    """Error for a file whose suffix says nothing."""
    hint = did_you_mean(PurePath(path).suffix, suffixes)
    return ValueError(f"{path!r}: no known format has this suffix.{hint} Choose from {', '.join(suffixes)}.")


class SourceChangedError(ValueError):
    """Error for a file that is not what it was when work began, so that nothing finished fits it."""


def source_changed(path: str) -> SourceChangedError:
    """Error for a file that is not what it was when work began."""
    return SourceChangedError(
        f"the source file {path!r} changed while it was read. Run again when nobody writes to it: from the start, "
        "since nothing that was finished fits it."
    )


def type_unknown_to(column: object, kind: object, format_name: str, advice: str) -> ValueError:
    """Error for a column that a format, or Arrow itself, cannot hold."""
    return ValueError(f"column {column!r} holds {kind!s}, which {format_name} cannot: {advice}")


def check_outputs(names: Sequence[str]) -> None:
    """Raise ValueError for an output with two columns of one name."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the output would have two columns named {name!r}: rename it in the input")


def no_such_column(role: str, column: object, names: Sequence[str]) -> ValueError:
    """Error for a name that no file has."""
    hint = did_you_mean(str(column), names)
    shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
    return ValueError(f"{role}: the source has no column {column!r}.{hint} It has: {shown}.")


class Need(NamedTuple):
    """A limit, the least that is enough, the key that takes most, its categories, and whether they were all counted."""

    limit: int
    enough: int
    key: str
    n_categories: int
    counted: bool


class CategoriesError(ValueError):
    """Error for categories that are more than the limit has room for.

    Parameters
    ----------
    need : Need
    n_categories : list of int
        Of each key.
    """

    def __init__(self, need: Need, n_categories: list[int]) -> None:
        about = "about " if need.counted else "perhaps "
        super().__init__(
            f"memory_limit is {need.limit / 2**20:,.0f} MiB, and what is learned of the categories does not fit: "
            f"{need.key!r} has {about}{need.n_categories:,} of them. Give at least {-(-need.enough // 2**20):,} MiB, "
            "or encode fewer columns at a time."
        )
        self.n_categories = n_categories


class NotShuffledError(ValueError):
    """Error for encodings that follow from more than the sums of single categories.

    Parameters
    ----------
    reason : str
        Why; the message says it as engines do.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f'tables="shuffle": {reason}. Or pass tables="broadcast".')
        self.reason = reason


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
