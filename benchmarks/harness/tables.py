"""Tables in Markdown, of any rows and of measured cells."""

from collections.abc import Collection, Iterable
from typing import Any

from benchmarks.harness.grid import Grid, Topic, name_of
from benchmarks.harness.results import Document, axes_of
from benchmarks.harness.worker import Record

HEAD = ("device", "cores", "memory", "parameters", "commit", "begun", "status")
NOTES = """
A time is the median of calls in turns, after one call whose answer was judged. In every turn a contender is called
twice, and the second call counts; the first call, with the caches that other contenders left, is "cold" (above 0.3 s
there is only one call, for both; in a grid of first calls each call is the first of a new process). `x` is how many
times faster ours is than the fastest of a family. Spread is (slowest - fastest) / median. B/row is the peak of resident
memory minus input and output; memory that earlier calls left in heaps is returned to the system before.
""".strip()


def cell_text(value: Any) -> str:
    """Give the text of one value, with few digits; the text of None is empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "**NO**"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value).replace("|", "\\|").replace("\n", "<br>")


def counts_text(counts: dict[str, int]) -> str:
    """Give the text of named counts, such as the numbers of distinct values of columns."""
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def table(rows: list[Record]) -> list[str]:
    """Give the lines of a table with a column for every key that has a value, in the order in which keys occur."""
    known = dict.fromkeys(key for row in rows for key in row)
    columns = [key for key in known if any(row.get(key) is not None for row in rows)]
    numeric = [all(isinstance(row.get(key), int | float | None) for row in rows) for key in columns]
    lines = [columns, ["---:" if right else "---" for right in numeric]]
    lines += [[cell_text(row.get(key)) for key in columns] for row in rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def fastest(cell: Record, family: str) -> tuple[str, float] | None:
    """Give the name and the seconds of the fastest contender of a family, if one was timed."""
    records = cell["contenders"].items()
    times = [
        (record["seconds"], name) for name, record in records if record["family"] == family and "seconds" in record
    ]
    return None if not times else min(times)[::-1]


def bytes_a_row(cell: Record, name: str) -> float | None:
    """Give the bytes a row that a contender takes in addition to input and output."""
    record = cell["contenders"].get(name, {})
    if record.get("peak bytes") is None or "rows" not in cell:
        return None
    return round((record["peak bytes"] - record["bytes out"]) / cell["rows"], 1)


def ratio_text(grid: Grid, cell: Record, seconds: float, family: str) -> str | None:
    """Give how many times faster ours is than the fastest of a family; or why this is not known."""
    peer = fastest(cell, family)
    if peer is not None:
        ratio = peer[1] / seconds
        return f"{ratio:.3g}{grid.mark(cell, family, ratio)} {peer[0]}"
    records = [record for record in cell["contenders"].values() if record["family"] == family]
    said = [f"{record['status']}, {record['said']}" for record in records if record["status"] == "not run"]
    return said[0] if said else (records[0]["status"] if records else None)


def begin_line(cell: Record, column: str, name: str) -> Record:
    """Give the axes of a cell, and the time of a contender, or why it has none."""
    record = cell["contenders"][name]
    line = {axis: value for axis, value in axes_of(cell).items() if axis != "grid"} | {column: name}
    if "seconds" not in record:
        return line | {"ms": f"{record['status']} {record.get('said', '')[:40]}".strip()}
    return line | {"ms": record["seconds"] * 1e3, "cold, ms": record["cold"] * 1e3}


def compare(grid: Grid, cell: Record) -> Iterable[Record]:
    """Give the lines of one cell: each of our contenders beside the fastest of every family."""
    families = [each.family for each in grid.contenders] + [each["family"] for each in cell["contenders"].values()]
    families = [family for family in dict.fromkeys(families) if family != grid.contenders[0].family]
    views: dict[str, Collection[str] | None] = dict(grid.views or {grid.contenders[0].name: None})
    for name, allowed in views.items():
        record = cell["contenders"].get(name)
        if record is None:
            continue
        line = begin_line(cell, "ours", name)
        if "seconds" in record:
            line["M rows/s"] = record["rows a second"] / 1e6 if "rows a second" in record else None
            for family in families:
                known = allowed is None or family in allowed
                line[f"x {family}"] = ratio_text(grid, cell, record["seconds"], family) if known else None
            line["B/row"] = bytes_a_row(cell, name)
        yield line


def list_contenders(cells: list[Record]) -> list[Record]:
    """Give one line for each contender of each cell; ratios compare with the first contender."""
    lines = []
    for cell in cells:
        first = next(iter(cell["contenders"].values()), {}).get("seconds")
        for name, record in cell["contenders"].items():
            line = begin_line(cell, "contender", name)
            if "seconds" in record:
                line |= {"over the first": record["seconds"] / first if first else None, "turns": record["turns"]}
                line |= {"spread": f"{100 * record['spread']:.0f} %", "B/row": bytes_a_row(cell, name)}
            lines.append(line)
    return lines


def preface(document: Document, title: str) -> list[str]:
    """Give the lines about the measurement: what was measured, where, and with which versions."""
    lines = [f"# {title}: {document['device']}", ""]
    if document.get("quick"):
        lines += ["**A trial on a few rows: nothing here is a measurement.**", ""]
    lines += [f"- {name}: {document[name]}" for name in HEAD if document.get(name) is not None]
    rates = document.get("copy", {})
    lines += [f"- copy in memory, {name}: {rate / 1e9:.1f} GB/s read and written" for name, rate in rates.items()]
    if "versions" in document:
        lines += ["- versions: " + ", ".join(f"{name} {release}" for name, release in document["versions"].items())]
    missing = document.get("left out", {})
    lines += [f"- left out: {name} ({', '.join(needs)} not installed)" for name, needs in missing.items()]
    return lines


def troubles(document: Document) -> list[str]:
    """Give the lines about contenders that were wrong or broke."""
    lines = []
    for cell in document["cells"]:
        for name, record in cell["contenders"].items():
            if record["status"] not in ("timed", "not run"):
                lines.append(f"**{name}: {record['status']}** ({name_of(axes_of(cell))})")
                lines += ["", "```", *str(record.get("said", "")).splitlines(), "```", ""]
    return ["## What went wrong", "", *lines] if lines else []


def report(topic: Topic, document: Document) -> str:
    """Write the whole report of a topic."""
    lines = [*preface(document, topic.title), "", NOTES, "", *([topic.notes, ""] if topic.notes else [])]
    lines += troubles(document)
    for grid in topic.grids:
        cells = [cell for cell in document["cells"] if cell["grid"] == grid.name]
        if cells:
            beside = [line for cell in cells for line in compare(grid, cell)]
            lines += [f"## {grid.name}", "", *(table(beside) if beside else []), "", *grid.remark(cells), ""]
            lines += [f"## {grid.name}: every contender", "", *table(list_contenders(cells)), ""]
    return "\n".join(lines).rstrip() + "\n"
