"""Tables in Markdown, printed or put in the place that a page keeps for them."""

from pathlib import Path


def table(rows: list[dict[str, str]]) -> str:
    """Give the table of rows with the same keys."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def place(name: str) -> tuple[str, str]:
    """Give the lines around a table of that name in a page."""
    return f"<!-- {name}: begin -->\n", f"\n<!-- {name}: end -->"


def kept(page: Path, name: str) -> str:
    """Give the table of that name in a page."""
    begin, end = place(name)
    return page.read_text().split(begin)[1].split(end)[0]


def shown(text: str, name: str, page: Path | None) -> None:
    """Print a table, or put it where the page has one of that name."""
    if page is None:
        print(text, end="\n\n")
        return
    begin, end = place(name)
    before, rest = page.read_text().split(begin)
    page.write_text(before + begin + text + end + rest.split(end, 1)[1])
