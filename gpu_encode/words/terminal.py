"""Text of strangers where people read it: names and values of tables, models and files cannot steer a terminal."""

import html
import unicodedata


def printable(text: object) -> str:
    r"""Write a text without characters that steer a terminal or turn the order of letters: as escapes, like repr.

    Spaces of every width stay. A line break is an escape, too, so that a name cannot forge a line.

    Examples
    --------
    >>> printable("caf\u00e9 \x1b[2J\n")
    'café \\x1b[2J\\n'
    """
    given = str(text)
    if given.isprintable():
        return given
    return "".join(one if is_visible(one) else one.encode("unicode_escape").decode("ascii") for one in given)


def is_visible(character: str) -> bool:
    """Tell whether a character only leaves a mark or a space."""
    return character.isprintable() or unicodedata.category(character) == "Zs"


def printable_lines(text: str) -> str:
    r"""Write a text of several lines as `printable` does, and keep its line breaks.

    Examples
    --------
    >>> printable_lines("one\ntwo\x07")
    'one\ntwo\\x07'
    """
    return "\n".join(map(printable, text.split("\n")))


def in_html(text: object) -> str:
    r"""Write a text as `printable` does, for a page of HTML.

    Examples
    --------
    >>> in_html("<b>\u202e")
    '&lt;b&gt;\\u202e'
    """
    return html.escape(printable(text))


def one_line(error: object) -> str:
    r"""Write the message of an error on one line.

    Examples
    --------
    >>> one_line(ValueError("first\n  second\x1b[2J"))
    'first second\\x1b[2J'
    """
    # str() of a KeyError quotes its message a second time.
    message = error.args[0] if isinstance(error, KeyError) and error.args else error
    return printable(" ".join(str(message).split())) or type(error).__name__
