"""Text tables, in which results are shown."""

from collections.abc import Sequence

from gpu_encode.words.terminal import printable


def lay_out(rows: Sequence[Sequence[str]]) -> list[str]:
    """Give rows of text as lines with aligned columns.

    Examples
    --------
    >>> lay_out([("key", "score"), ("city", "0.5")])
    ['key   score', 'city  0.5']
    """
    told = [[printable(text) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*told, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in told]
