"""The results as Markdown: ours beside the best other of each kind, and every contender by itself."""

from typing import Any

from benchmarks.cpu.goals import ratio
from benchmarks.cpu.report import beyond, by_size, milliseconds, preface, troubles, unfinished
from benchmarks.family.contenders.base import MOST_DENSE
from benchmarks.family.grid import KEYS, WORKS
from benchmarks.gpu.tables import table

Document = dict[str, Any]
Record = dict[str, Any]
FAMILIES = {
    "scikit-learn": "x scikit-learn",
    "library": "x best library",
    "engine": "x best engine",
    "hand-written": "x best hand-written",
}
NOTES = f"""
A time is the median of calls taken in turns, after one that was judged, each after another that warms caches up
(above 0.3 s one call is both); of what takes more than ten seconds it is that one call. "ours / other" is our time
over that of the fastest other, so that less than 1 is faster; `x` is how many times faster ours is than the fastest
of a kind. B/row is the peak of resident memory over input and output. Every result is judged by one definition for
all, but for what libraries define otherwise: category_encoders numbers values as they come, gives no evidence of
categories of one row, hashes by MD5, and its mixed model's codes lack the common value. Folds of peers are row number
modulo 5, ours are drawn; all take the mean of the rows that a row may see. One-hot columns and hashed ones are judged
as their library gives them, CSR or dense (polars' in any order, as it defines none); what is dense is not asked for
more than {MOST_DENSE:,} categories. Text is Arrow's for ours and polars, Python objects for the others and for
`ours-objects` (`-str`: pandas' own type). Encoders of peers that read no target number their rows once, by
fit_transform, as ours do, but for counts.
""".strip()


def others(cell: Record) -> list[tuple[float, str]]:
    """Seconds and names of all that are not ours, the fastest first."""
    records = cell["contenders"].items()
    return sorted(
        (record["seconds"], name) for name, record in records if record["family"] != "ours" and "seconds" in record
    )


def line(cell: Record) -> Record:
    """One cell as a line of the table of ratios."""
    ours, peers = cell["contenders"].get("ours", {}), others(cell)
    seconds, name = peers[0] if peers else (None, None)
    both = "seconds" in ours and seconds is not None
    found = {
        "work": cell["work"],
        "keys": cell["keys"],
        "categories": cell["categories"],
        "rows": cell["rows"],
        "ours, ms": milliseconds(cell, "ours"),
        "M rows/s": ours["rows a second"] / 1e6 if "seconds" in ours else None,
        "objects, ms": milliseconds(cell, "ours-objects"),
        "best other": name,
        "its ms": None if seconds is None else seconds * 1e3,
        "ours / other": ours["seconds"] / seconds if both else None,
    }
    found |= {title: times(cell, family) for family, title in FAMILIES.items()}
    return found | {"B/row": beyond(cell), "B/row of the other": None if name is None else beyond_of(cell, name)}


def times(cell: Record, family: str) -> str:
    """How many times faster ours is than the fastest of a kind, and which that is."""
    found = ratio(cell, family)
    if found is not None:
        return f"{found[1]:.3g} {found[0]}"
    # Where ours has no time, its own column says why.
    return unfinished(cell, family) if "seconds" in cell["contenders"].get("ours", {}) else ""


def beyond_of(cell: Record, name: str) -> float | None:
    """Bytes a row of a contender over input and output."""
    return beyond(cell | {"contenders": {"ours": cell["contenders"][name]}})


def in_order(cells: list[Record]) -> list[Record]:
    """Cells by rows, work, keys and categories."""
    works, keys = list(WORKS), list(KEYS)
    return sorted(
        cells,
        key=lambda each: (each["rows"], works.index(each["work"]), keys.index(each["keys"]), each["categories"]),
    )


def whole(cells: list[Record]) -> list[str]:
    """Every contender, a table for each number of rows, kind of work and keys."""
    groups: dict[tuple[int, str, str], list[Record]] = {}
    for cell in in_order(cells):
        groups.setdefault((cell["rows"], cell["work"], cell["keys"]), []).append(cell)
    lines = []
    for (rows, work, keys), group in groups.items():
        names = dict.fromkeys(name for cell in group for name in cell["contenders"])
        lines += [f"### {work}, {keys} keys, {rows:,} rows", "", f"{WORKS[work]}; {KEYS[keys]}".capitalize() + ".", ""]
        lines += [*table([by_size(name, group) for name in names]), ""]
    return lines


def markdown(document: Document) -> str:
    """Give the whole report."""
    cells = document["cells"]
    lines = [*preface(document, "The rest of the family on the CPU"), "", NOTES, "", *troubles(document)]
    lines += ["## Ours beside the best others", "", *table([line(cell) for cell in in_order(cells)]), ""]
    lines += ["## Every contender", "", *whole(cells)]
    return "\n".join(lines).rstrip() + "\n"
