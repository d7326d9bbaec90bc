"""The results as Markdown."""

from benchmarks.gpu.tables import Document, Row, table

# Contender -> its name in tables.
TITLES = {"ours": "ours", "cudf": "cuDF", "cuml": "cuML", "cpu": "ours on the CPU"}
OTHERS = ("cudf", "cuml", "cpu")
HEAD = ("device", "driver", "memory", "memory resource", "frames", "dtype", "commit", "begun", "status")


def markdown(document: Document) -> str:
    """Give the whole report."""
    lines = [f"# Target encoding of {document['frames']} frames: {document['device']}", ""]
    if document["stand in"]:
        lines += [f"**{document['stand in']}.**", ""]
    lines += [f"- {name}: {document[name]}" for name in HEAD if document.get(name) is not None]
    if document.get("copy bytes a second"):
        lines.append(f"- copy on the device: {document['copy bytes a second'] / 1e9:,.0f} GB/s read and written")
    lines += ["- versions: " + ", ".join(f"{name} {found}" for name, found in document["versions"].items())]
    lines += ["", *explanation(document), ""]
    for work in dict.fromkeys(cell["work"] for cell in document["cells"] if "skipped" not in cell):
        cells = [cell for cell in sorted_cells(document) if cell["work"] == work and "skipped" not in cell]
        lines += [f"## {document['works'].get(work, work)}", "", *table(rows_of(cells)), ""]
    return "\n".join([*lines, *what_went_wrong(document), *skipped(document)])


def explanation(document: Document) -> list[str]:
    """Say what the columns are."""
    calls = f"{document['repeats']} calls" if document["repeats"] > 1 else "one call"
    return [
        f"Milliseconds are medians of {calls} of each contender, taken in turns, after one whose codes were judged and",
        "one whose memory was watched. `x` is how many times faster ours is. The share is that of the bytes that have",
        "to move (keys and targets in, codes out) in the bytes that a copy moves in the same time. B/row is the",
        "peak of device memory on top of the frame, codes included; J the energy of a call, where the driver says it.",
        "",
        "The prior is the mean of all targets, as cuML has it, so that all answer one question (10 classes: 0.1 each);",
        "folds are row number modulo 5. cuDF's ordered form is given its rows in our order: that is not measured.",
    ]


def sorted_cells(document: Document) -> list[Row]:
    """Cells by size."""
    return sorted(
        document["cells"], key=lambda cell: (cell["rows"], cell["categories"], cell["keys"], cell["distribution"])
    )


def rows_of(cells: list[Row]) -> list[Row]:
    """Rows of a table of cells, all with the same columns."""
    others = [name for name in OTHERS if any(name in cell["contenders"] for cell in cells)]
    weighed = any(record.get("joules") is not None for cell in cells for record in cell["contenders"].values())
    return [line(cell, others, weighed) for cell in cells]


def line(cell: Row, others: list[str], weighed: bool) -> Row:
    """One cell as a row of its table."""
    records = cell["contenders"]
    ours = records.get("ours", {})
    found: Row = {key: cell[key] for key in ("rows", "categories", "keys", "distribution")}
    found |= {"ours, ms": milliseconds(ours), "G rows/s": scaled(ours, "rows a second", 1e-9)}
    found |= {"share of copy": ours.get("share of copy")} | beside(ours, "", weighed)
    for name in others:
        title, record = TITLES[name], records.get(name, {})
        found |= {f"{title}, ms": milliseconds(record), f"x {title}": ours.get("times faster than", {}).get(name)}
        found |= {} if name == "cpu" else beside(record, f"{title}, ", weighed)
    fewer = [f"{TITLES[name]}: {record['fewer']}" for name, record in records.items() if "fewer" in record]
    return found | {"remarks": "; ".join(fewer)}


def beside(record: Row, title: str, weighed: bool) -> Row:
    """Memory and energy of a contender on the device."""
    found: Row = {f"{title}B/row": record.get("peak bytes a row")}
    return found | ({f"{title}J": record.get("joules")} if weighed else {})


def milliseconds(record: Row) -> float | str | None:
    """Time of a contender, or why there is none."""
    return record["seconds"] * 1e3 if "seconds" in record else record.get("status")


def scaled(record: Row, key: str, factor: float) -> float | None:
    """Figure in another unit, where it is known."""
    return record[key] * factor if key in record else None


def named(cell: Row) -> str:
    """Give a cell in words."""
    sizes = f"{cell['rows']:,} rows, {cell['categories']:,} categories"
    return f"{cell['work']}, {sizes}, {cell['keys']}, {cell['distribution']}"


def what_went_wrong(document: Document) -> list[str]:
    """Lines on contenders that were wrong, broke, or ran out of memory."""
    lines = []
    for cell in sorted_cells(document):
        for name, record in cell["contenders"].items():
            if record["status"] in ("wrong", "failed", "out of memory"):
                lines += [f"**{TITLES[name]}: {record['status']}** ({named(cell)})", ""]
                lines += ["```", *record["said"].splitlines(), "```", ""]
    return ["## What went wrong", "", *lines] if lines else []


def skipped(document: Document) -> list[str]:
    """Lines on cells that were not tried."""
    lines = [f"- {named(cell)}: {cell['skipped']}" for cell in sorted_cells(document) if "skipped" in cell]
    return ["## Skipped", "", *lines, ""] if lines else []
