"""Messages for mistakes of the user."""

import difflib
import sys
from collections.abc import Iterable
from typing import NoReturn

from gpu_encode.words.terminal import printable


class UsageError(Exception):
    """A mistake of the user: it is shown as one line, without a traceback.

    Examples
    --------
    >>> str(UsageError("there is no column 'sity'"))
    "there is no column 'sity'"
    """


def refuse(message: str) -> NoReturn:
    """Raise `UsageError`, and hide the error that led to it."""
    raise UsageError(printable(message)) from None


def close_match(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the known word nearest to `word`; an empty text if none is near.

    Examples
    --------
    >>> close_match("sity", ["city", "zip"])
    "; did you mean 'city'?"
    >>> close_match("sity", ["hour"])
    ''
    """
    by_folded = {name.casefold(): name for name in known}
    nearest = difflib.get_close_matches(word.casefold(), by_folded, n=1)
    return f"; did you mean {by_folded[nearest[0]]!r}?" if nearest else ""


def say(message: str) -> None:
    """Write one line to stderr, after the name of the command."""
    sys.stderr.write(f"gpu-encode: {printable(message)}\n")


def on_terminal() -> bool | None:
    """Say whether stderr is a terminal, where bars can be shown, in the form that `progress` takes."""
    return True if sys.stderr.isatty() else None
