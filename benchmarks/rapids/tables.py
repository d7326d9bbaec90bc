"""The results as Markdown."""

from benchmarks.gpu.tables import Document, Row, table
from benchmarks.rapids.grid import OWN_PRIOR

# Contender -> its name in tables.
TITLES = {
    OWN_PRIOR: "ours, own prior",
    "ours": "ours",
    "cudf": "cuDF",
    "cudf-scatter": "cuDF, scatter",
    "cuml": "cuML",
    "cpu": "ours on the CPU",
}
OTHERS = ("cudf", "cudf-scatter", "cuml", "cpu")
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
    tried = [cell for cell in sorted_cells(document) if cell["contenders"]]
    for work in dict.fromkeys(cell["work"] for cell in document["cells"] if cell["contenders"]):
        cells = [cell for cell in tried if cell["work"] == work]
        lines += [
            f"## {document['works'].get(work, work)}",
            "",
            *table([ran(cell) for cell in cells] if document["stand in"] else rows_of(cells)),
            "",
        ]
    return "\n".join([*lines, *what_went_wrong(document), *skipped(document)])


def explanation(document: Document) -> list[str]:
    """Say what the columns are."""
    calls = f"{document['repeats']} calls" if document["repeats"] > 1 else "one call"
    measured = [
        f"Milliseconds are medians of {calls} of each contender, taken in turns, after one whose codes were judged and",
        "one whose memory was watched. The share is that of the bytes that have to move (keys and targets in, codes",
        "out) in the bytes that a copy moves in the same time. B/row is the peak of device memory on top of the frame,",
        "codes included; J the energy of a call, where the driver says it.",
        "",
        "`ours, own prior` is what users run: its prior is the mean of the targets that the row may see. `ours` has",
        "the mean of all targets, as the others have it (10 classes: 0.1 each), and must have their codes; of new rows",
        "the two are one. `x` is how many times faster ours is with its own prior, where it was asked for; G rows/s,",
        "share, B/row and J are of the same call.",
        "",
    ]
    return [
        *([] if document["stand in"] else measured),
        "cuDF's form sorts the merged rows back into their order, as cuML's encoder does; `cuDF, scatter` writes each",
        "code to its row instead. cuML's encoder also sorts the categories of each column and copies them to the host.",
        "Folds are row number modulo 5. cuDF's ordered form is given its rows in our order: that is not measured.",
    ]


def headline(records: dict[str, Row]) -> Row:
    """Ours as users run it: with its own prior, where it is asked for and another one than the given."""
    own: Row = records.get(OWN_PRIOR, {})
    return records.get("ours", {}) if own.get("status", "not offered") == "not offered" else own


def sorted_cells(document: Document) -> list[Row]:
    """Cells by size."""
    return sorted(
        document["cells"], key=lambda cell: (cell["rows"], cell["categories"], cell["keys"], cell["distribution"])
    )


def rows_of(cells: list[Row]) -> list[Row]:
    """Rows of a table of cells, all with the same columns."""
    shown = [name for name in TITLES if any(name in cell["contenders"] for cell in cells)]
    weighed = any(record.get("joules") is not None for cell in cells for record in cell["contenders"].values())
    return [line(cell, shown, weighed) for cell in cells]


def line(cell: Row, shown: list[str], weighed: bool) -> Row:
    """One cell as a row of its table."""
    records = cell["contenders"]
    ours, others = headline(records), [name for name in shown if name in OTHERS]
    found: Row = {key: cell[key] for key in ("rows", "categories", "keys", "distribution")}
    found |= {f"{TITLES[name]}, ms": milliseconds(records.get(name, {})) for name in shown if name not in OTHERS}
    found |= {"G rows/s": scaled(ours, "rows a second", 1e-9), "share of copy": ours.get("share of copy")}
    found |= beside(ours, "", weighed)
    for name in others:
        title, record = TITLES[name], records.get(name, {})
        found |= {f"{title}, ms": milliseconds(record), f"x {title}": ours.get("times faster than", {}).get(name)}
        found |= {} if name == "cpu" else beside(record, f"{title}, ", weighed)
    fewer = [f"{TITLES[name]}: {record['fewer']}" for name, record in records.items() if "fewer" in record]
    return found | {"remarks": "; ".join(fewer)}


def ran(cell: Row) -> Row:
    """One cell of a trial, which measures nothing."""
    found: Row = {key: cell[key] for key in ("rows", "categories", "keys", "distribution")}
    return found | {TITLES[name]: record["status"] for name, record in cell["contenders"].items()}


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
