"""Protocols that an engine must implement: its rows, and a way to keep tables of categories in the engine."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

from gpu_encode.scale.files.look_up import Joined
from gpu_encode.scale.files.shuffle import ShuffledSums


class Rows(Protocol):
    """A table of an engine: each pass reads its rows again as Arrow tables, divided anyhow and in any order."""

    engine: str

    @property
    def schema(self) -> Any:
        """Names and types of the columns, as an Arrow schema."""

    def check_repeatable(self) -> None:
        """Raise ValueError if a later pass would see other rows, or other values."""

    def pick(self, names: Sequence[str]) -> Self:
        """Give the same rows with some of the columns, so that the engine reads no others."""

    def add_up(self, function: Callable[[Any, Any], Any], shared: Any, nothing: Any) -> Any:
        """Add up ``function(shared, table)`` over all rows, now, in a tree; give `nothing` if there are no rows."""

    def map(self, function: Callable[[Any, Any], Any], shared: Any) -> Any:
        """Give the tables ``function(shared, table)`` of all rows, lazily, as a table of the engine."""

    def deal(self, function: Callable[[Any, Any], dict[int, Any]], shared: Any, number: int) -> Any:
        """Bring together the results of ``function(shared, table)`` of all rows, bucket by bucket.

        There are at most `number` buckets.  The result has `map` and, except in Dask, `add_up`.  Instead of a table,
        their functions get a bucket, and a list of all results for this bucket, in any order.
        """


class Shuffle(Protocol):
    """The arguments of a call to an engine that can keep tables of categories.

    Encodings are a table of the engine's own kind, with the lines of `shuffle.encode_lines`.

    Parameters
    ----------
    X : table of the engine
    y, sample_weight, groups : optional
        Targets, weights and groups of training rows, as the engine takes them.
    """

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> None: ...

    def count_categories(self, encoder: Any) -> int:
        """Estimate the number of categories of all keys of an unfitted encoder, now."""

    def learn(self, encoder: Any, training: bool) -> tuple[ShuffledSums, Any]:
        """Learn from all rows now; give what was learned and the encodings, also those of training rows if wanted."""

    def encode_training(self, shared: ShuffledSums, joined: Joined, encodings: Any) -> Any:
        """Give the encodings of training rows, lazily."""

    def encode_new(self, joined: Joined, encodings: Any) -> Any:
        """Give the encodings of new rows, lazily."""

    @staticmethod
    def save(joined: Joined, encodings: Any, path: str, overwrite: bool) -> None:
        """Write everything that new rows need to a folder; refuse one that holds an encoder, unless it is overwritten.

        ``path/encodings`` has Parquet files of `look_up.of_new_rows`; ``path/joined`` is what `Joined.write` writes.
        It comes last, since it makes the folder valid: it has the number and the checksum of all lines.
        """

    def read(self, path: str) -> tuple[Joined, Any]:
        """Read a folder that any engine has saved, after a check of its record and lines."""

    @staticmethod
    def release(encodings: Any) -> None:
        """Let the engine drop encodings that it keeps."""
