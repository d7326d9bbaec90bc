"""Hook of MkDocs: columns of numbers stand at the right, and long code in a cell may break at its signs.

Tables in the repository need neither: there, a dash row without colons is easier to keep.
"""

import re
from itertools import count

TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
ROW = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)
CELL = re.compile(r"<(t[hd])(?: [^>]*)?>(.*?)</\1>", re.DOTALL)
CODE = re.compile(r"(?<=<code>)[^<]{16,}(?=</code>)")
NUMBER = re.compile(r"[-+±]?\d[\d,.]*(?: ?(?:%|\w{1,4}))?")


def on_page_content(html: str, **_: object) -> str:
    """Fit each table that is written in Markdown."""
    return TABLE.sub(lambda table: fit(table[0]), html)


def fit(table: str) -> str:
    """Let the code of a table break, and put its columns of numbers at the right."""
    rows = [[re.sub("<[^>]*>", "", text).strip() for _, text in CELL.findall(row)] for row in ROW.findall(table)]
    at_right = {number for number, cells in enumerate(zip(*rows, strict=False)) if are_numbers(cells[1:])}

    def align(row: re.Match[str]) -> str:
        numbers = count()
        return CELL.sub(lambda cell: move(cell) if next(numbers) in at_right else cell[0], row[0])

    return CODE.sub(lambda code: re.sub(r"(?<=[_./=(,])(?=\w)", "<wbr>", code[0]), ROW.sub(align, table))


def are_numbers(cells: tuple[str, ...]) -> bool:
    """Whether all cells with something in them are numbers, with a unit or without."""
    told = [cell for cell in cells if cell not in ("", "-")]
    return bool(told) and all(NUMBER.fullmatch(cell) for cell in told)


def move(cell: re.Match[str]) -> str:
    """Write a cell at the right."""
    return f'<{cell[1]} style="text-align: right;">{cell[2]}</{cell[1]}>'
