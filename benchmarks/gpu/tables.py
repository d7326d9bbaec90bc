"""A report as Markdown: what each step found, in tables."""

from typing import Any

Row = dict[str, Any]
Document = dict[str, Any]


def cell(value: Any) -> str:
    """Text of one value: few digits, none of nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "**NO**"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value).replace("|", "\\|").replace("\n", "<br>")


def table(rows: list[Row]) -> list[str]:
    """Lines of a table with a column for every key that occurs, in the order in which they do."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    numeric = [all(isinstance(row.get(key), int | float | None) for row in rows) for key in columns]
    lines = [columns, ["---:" if right else "---" for right in numeric]]
    lines += [[cell(row.get(key)) for key in columns] for row in rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def section(name: str, step: Document) -> list[str]:
    """Lines of one step."""
    state = step["status"] + (f" after {step['seconds']:.0f} s" if step.get("seconds") is not None else "")
    lines = [f"## {name}: {state}", ""]
    lines += [line for failure in step["failures"] for line in ("**failed:**", "```", *failure.splitlines(), "```", "")]
    for note in step["notes"]:
        lines += ["```", *note.splitlines(), "```", ""] if "\n" in note else [note, ""]
    for title, rows in step["tables"].items():
        lines += [f"### {title}", "", *table(rows), ""]
    return lines


def markdown(document: Document) -> str:
    """Give the whole report."""
    lines = [f"# {document['device']}", ""]
    if document["simulated"]:
        lines += ["No GPU: numba's simulator ran every line once, on a few rows. Nothing here is a measurement.", ""]
    for name, step in document["steps"].items():
        lines += section(name, step)
    return "\n".join(lines)


def figures(seconds: float, items: int, moved: int, copy_rate: float | None) -> Row:
    """Columns of one measurement: rows and bytes a second, and the share of what a copy moves.

    Parameters
    ----------
    seconds : float
    items : int
        Rows.
    moved : int
        Bytes that each row must move, each input read and each output written once.
    copy_rate : float or None
        Bytes that a copy reads and writes a second.
    """
    rate = items / seconds
    found: Row = {"rows": items, "ms": seconds * 1e3, "G rows/s": rate / 1e9, "bytes a row": moved}
    found["GB/s"] = rate * moved / 1e9
    found["share of copy"] = None if copy_rate is None else round(rate * moved / copy_rate, 3)
    return found


def against_uniform(rows: list[Row], kind: str) -> list[Row]:
    """Rate under Zipf 1.5 beside the uniform one, for every kind of work and number of categories that has both."""
    rates = {(row[kind], row["categories"], row["drawn"]): row["G rows/s"] for row in rows if "G rows/s" in row}
    return [
        {kind: work, "categories": n, "uniform": rate, "Zipf 1.5": rates[work, n, "Zipf 1.5"]}
        | {"times slower": round(rate / rates[work, n, "Zipf 1.5"], 2), "at most": 2}
        for (work, n, drawn), rate in rates.items()
        if drawn == "uniform" and (work, n, "Zipf 1.5") in rates
    ]
