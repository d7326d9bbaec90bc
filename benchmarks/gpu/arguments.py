"""Readers of command lines."""

import argparse
from collections.abc import Callable, Collection


def names_of(known: Collection[str], kind: str, needed: bool = False) -> Callable[[str], list[str]]:
    """Give a reader of names, separated by commas.

    Parameters
    ----------
    known : collection of str
    kind : str
        What one of them is called.
    needed : bool
        Whether there must be one.
    """

    def listed(text: str) -> list[str]:
        names = [name for name in text.split(",") if name]
        unknown = [name for name in names if name not in known]
        if unknown:
            message = f"no {kind} {', '.join(unknown)}; there are {', '.join(known)}"
            raise argparse.ArgumentTypeError(message)
        if needed and not names:
            message = f"name a {kind}: {', '.join(known)}"
            raise argparse.ArgumentTypeError(message)
        return names

    return listed


def whole_number(text: str) -> int:
    """Read a number such as 1e6."""
    found = float(text)
    if not 1 <= found < 1e12 or found != int(found):
        message = f"{text} is no positive whole number"
        raise argparse.ArgumentTypeError(message)
    return int(found)


def whole_numbers(text: str) -> list[int]:
    """Read numbers separated by commas."""
    return [whole_number(each) for each in text.split(",")]
