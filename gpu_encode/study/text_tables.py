"""Text tables, in which results are shown."""

from collections.abc import Sequence


def lay_out(rows: Sequence[Sequence[str]]) -> list[str]:
    """Give rows of text as lines with aligned columns.

    Examples
    --------
    >>> lay_out([("key", "score"), ("city", "0.5")])
    ['key   score', 'city  0.5']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
