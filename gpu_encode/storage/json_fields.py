"""Fields of a JSON document that cannot be trusted."""

from collections.abc import Sequence
from typing import Any


def read_field(document: Any, name: str, *types: Any) -> Any:
    """Give a field of a JSON object whose value has one of the types; a bool does not count as an int here.

    Raises
    ------
    ValueError
        If there is no such field, or it is of another type.

    Examples
    --------
    >>> from gpu_encode.storage.json_fields import read_field
    >>> read_field({"rows": 3}, "rows", int, None)
    3
    """
    if not isinstance(document, dict) or name not in document:
        raise ValueError(f"the field {name!r} is missing")
    value = document[name]
    check_type(value, name, types)
    return value


def check_type(value: Any, name: str, types: tuple[Any, ...]) -> None:
    """Raise ValueError if the value of a field has none of the types; None among these stands for null."""
    if (None if value is None else type(value)) not in types:
        raise ValueError(f"the field {name!r} holds {str(value)[:40]!r}")


def read_list(document: Any, name: str, *types: Any) -> list[Any]:
    """Give a field that is a list whose values are of one of the types."""
    values: list[Any] = read_field(document, name, list)
    for value in values:
        check_type(value, name, types)
    return values


def read_count(document: Any, name: str, low: int, high: int) -> int:
    """Give a field that is an integer in [low, high]."""
    return check_range(read_field(document, name, int), name, low, high)


def read_counts(document: Any, name: str, low: int, high: int) -> list[int]:
    """Give a field that is a list of integers in [low, high]."""
    return [check_range(value, name, low, high) for value in read_list(document, name, int)]


def check_range(value: int, name: str, low: int, high: int) -> int:
    """Give an integer of at least `low` and at most `high`."""
    if not low <= value <= high:
        raise ValueError(f"the field {name!r} holds {value}, which is not in [{low}, {high}]")
    return value


def read_option(document: Any, name: str, allowed: tuple[Any, ...]) -> Any:
    """Give a field that is one of the allowed texts, or null if null is allowed."""
    value = read_field(document, name, str, None)
    if value not in allowed:
        raise ValueError(f"the field {name!r} holds {value!r}")
    return value


def pair(known: Sequence[Any], described: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Pair known items with their descriptions in a document; raise ValueError if the numbers differ."""
    if len(known) != len(described):
        raise ValueError(f"it describes {len(described)} of {len(known)} parts")
    return list(zip(known, described, strict=True))
