"""What an engine has to offer of its rows, and to leave tables of categories in it."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

from gpu_encode.scale.files.look_up import Joined
from gpu_encode.scale.files.shuffle import ShuffledSums


class Rows(Protocol):
    """A table of an engine: its rows come as Arrow tables, in any cut and any order, in each pass anew."""

    engine: str

    @property
    def schema(self) -> Any:
        """Names and types of the columns, as Arrow has them."""

    def check_repeatable(self) -> None:
        """Raise ValueError if each pass would see other rows, or other values in them."""

    def pick(self, names: Sequence[str]) -> Self:
        """Give the same rows with some of the columns, so that no others are read."""

    def add_up(self, function: Callable[[Any, Any], Any], shared: Any, nothing: Any) -> Any:
        """Add up ``function(shared, table)`` over all rows, now, in a tree; `nothing` where there are none."""

    def map(self, function: Callable[[Any, Any], Any], shared: Any) -> Any:
        """Give the tables ``function(shared, table)`` of all rows, lazily, as the engine has tables."""

    def deal(self, function: Callable[[Any, Any], dict[int, Any]], shared: Any, number: int) -> Any:
        """Bring together what ``function(shared, table)`` of all rows gives for each bucket.

        There are so many buckets at most.  What comes back has `map` and, but in Dask, `add_up`: their functions get a
        bucket, and the list of what it was given in any order, instead of a table.
        """


class Shuffle(Protocol):
    """What a call is given of an engine whose tables of categories may stay in it.

    Encodings are a table of the engine's own kind, with the lines of `shuffle.encode_lines`.

    Parameters
    ----------
    X : table of the engine
    y, sample_weight, groups : optional
        Of training rows, as the engine takes them.
    """

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> None: ...

    def count_categories(self, encoder: Any) -> int:
        """Estimate how many categories all keys of an unfitted encoder have, now."""

    def learn(self, encoder: Any, training: bool) -> tuple[ShuffledSums, Any]:
        """Give what is known of all rows, and encodings, now; those of training rows, too, if these are asked for."""

    def encode_training(self, shared: ShuffledSums, joined: Joined, encodings: Any) -> Any:
        """Give the encodings of training rows, lazily."""

    def encode_new(self, joined: Joined, encodings: Any) -> Any:
        """Give the encodings of new rows, lazily."""

    @staticmethod
    def save(joined: Joined, encodings: Any, path: str) -> None:
        """Write what new rows need to a new folder.

        ``path/encodings`` has Parquet files of `look_up.of_new_rows`; ``path/joined`` is what `Joined.write` writes.
        """

    def read(self, path: str) -> tuple[Joined, Any]:
        """Read what any engine has saved."""

    @staticmethod
    def release(encodings: Any) -> None:
        """Let the engine forget encodings that it keeps."""
