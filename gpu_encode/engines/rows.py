"""What an engine has to offer of its rows."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self


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

    def deal(self, function: Callable[[Any, Any], dict[int, Any]], shared: Any, number: int) -> "Rows":
        """Bring together what ``function(shared, table)`` of all rows gives for each place.

        There are so many places at most.  A function of what comes back gets a place and the list of what it was given,
        in any order, instead of a table.
        """
