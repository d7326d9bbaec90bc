"""Tables in Markdown, which are printed or written into a page."""

import argparse
from pathlib import Path
from typing import Any

from sklearn.metrics import roc_auc_score


def table(rows: list[dict[str, str]]) -> str:
    """Make a table of rows, which all have the same keys."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def marks(name: str) -> tuple[str, str]:
    """Give the lines that mark the beginning and the end of a named table in a page."""
    return f"<!-- {name}: begin -->\n", f"\n<!-- {name}: end -->"


def kept(page: Path, name: str) -> str:
    """Read the table of that name from a page."""
    begin, end = marks(name)
    return page.read_text().split(begin)[1].split(end)[0]


def shown(text: str, name: str, page: Path | None) -> None:
    """Print a table, or replace the table of that name in a page."""
    if page is None:
        print(text, end="\n\n")
        return
    begin, end = marks(name)
    before, rest = page.read_text().split(begin)
    page.write_text(before + begin + text + end + rest.split(end, 1)[1])


def arguments(text: str) -> argparse.ArgumentParser:
    """Give a parser with the options of both scripts."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--rows", type=int, default=4000, help="rows to train on; at most as many to score on")
    parser.add_argument("--write", type=Path, help="page whose tables are replaced")
    return parser


def score_both(model: Any, rows: tuple[Any, Any], new_rows: tuple[Any, Any]) -> tuple[float, float]:
    """Train a model; give its score on training rows and on new rows."""
    model.fit(*rows)
    train, test = (roc_auc_score(y, model.predict_proba(X)[:, 1]) for X, y in (rows, new_rows))
    return train, test
