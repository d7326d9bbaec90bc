"""The results as Markdown: ours beside the best of every family, and every contender by itself."""

from itertools import groupby
from typing import Any

from benchmarks.cpu.goals import LIMITS, MISSED, TIMES, best, mark, ratio
from benchmarks.cpu.grid import KEYS, WORKS
from benchmarks.gpu.tables import table

Document = dict[str, Any]
Record = dict[str, Any]

# Ours that looks at the values once, and who else does.
ONE_CALL, LOOK_ONCE = "ours-one-call", ("engine", "hand-written", "limit")
# Milliseconds.
LONGEST_IMPORT = 500.0
HEAD = ("cpu", "cores", "memory", "commit", "begun", "status")
NOTES = """
A time is the median of calls taken in turns, after one that was judged; in every turn a contender is called twice,
and the second call counts: the first one, on the caches that others left, is "cold" (above 0.3 s one call is both).
`x` is how many times faster ours (float64) is. The limit is bare loops (`benchmarks/cpu/contenders/limit.py`); the
share is its time over ours. B/row is the peak of resident memory over input and output, with the tables of categories
in it; what earlier calls left in heaps is given back before it counts, and a peak below the output is not measurable.
`(!)` marks a goal that is missed: 15 times scikit-learn, 2 times the best library and the best engine, 1.3 times the
best hand-written form, 0.7 of the limit (0.5 for real targets), on small data no slower than scikit-learn, and half a
second for `import gpu_encode`. `(limit)` marks a goal that is missed and out of reach: against these others it asks for
more than that share of the limit.

Folds of peers and of the limit are row number modulo 5; scikit-learn and ours make their own. The prior of peers and
of the limit is the mean of all targets; that of ours, scikit-learn and category_encoders' folds, and of the limit's
order, the mean of the rows that a row may see. An order is that of the rows; `ours-shuffled` takes a random one. Fit
and transform look at the values twice, hand-written forms and the limit once, as `ours-one-call` (`cv=Greedy()`,
`fit_transform`) does: the lines "one call" are its; "values twice" is the share of loops that look hashed integers and
text up twice, too.
category_encoders.TargetEncoder has a logistic weight of its own, and LeaveOneOutEncoder no prior: each is judged by
its own formula. Its PolynomialWrapper leaves out one class of ten. Text is Arrow's for ours, engines and the limit,
Python objects for the others (`-str`: pandas' own type); `x scikit-learn, objects` is `ours-objects`, which reads the
same objects as scikit-learn and libraries, beside these. In the summary text of ours is Arrow's. category_encoders is
not asked for `sparse` keys: it gives wrong codes of integers above 2^53. Counts of ours are those of CountEncoder,
codes the category numbers that all encoders of ours make of what they read; OrdinalEncoder, which gives them out, is
timed by `benchmarks.family`.
""".strip()


def of_objects(cell: Record) -> str | None:
    """How many times faster ours is than peers whose text lies in the same Python objects."""
    ours = cell["contenders"].get("ours-objects", {}).get("seconds")
    if ours is None:
        return None
    peers = [best(cell, family) for family in ("scikit-learn", "library")]
    return "; ".join(f"{peer[1] / ours:.3g} {peer[0]}" for peer in peers if peer is not None)


def shown_ratio(cell: Record, family: str, named: bool = True) -> str:
    """A ratio as text, with a mark where the goal is missed."""
    found = ratio(cell, family)
    if found is None:
        return unfinished(cell, family)
    digits = f"{found[1]:.2f}" if family in LIMITS else f"{found[1]:.3g}"
    return digits + mark(cell, family) + (f" {found[0]}" if named and family != "scikit-learn" else "")


def unfinished(cell: Record, family: str) -> str:
    """Why there is no ratio."""
    found = [record for record in cell["contenders"].values() if record["family"] == family]
    said = [f"{record['status']}, {record['said']}" for record in found if record["status"] == "not run"]
    return said[0] if said else ("" if not found else found[0]["status"])


def milliseconds(cell: Record, name: str, which: str = "seconds") -> Any:
    """Time of a contender, or why there is none."""
    record = cell["contenders"].get(name, {})
    if "seconds" in record:
        return record[which] * 1e3 if which in record else None
    said = f", {record['said']}" if record.get("status") == "not run" else ""
    return None if not record else record["status"] + said


def beyond(cell: Record) -> float | None:
    """Bytes a row of ours over input and output."""
    record = cell["contenders"].get("ours", {})
    if record.get("peak bytes") is None:
        return None
    return round((record["peak bytes"] - record["bytes out"]) / cell["rows"], 1)


def line(cell: Record) -> Record:
    """One cell as a line of the table of ratios."""
    ours = cell["contenders"].get("ours", {})
    rate = ours["rows a second"] / 1e6 if "seconds" in ours else None
    return {
        "work": cell["work"],
        "keys": cell["keys"],
        "categories": cell["categories"],
        "ours, ms": milliseconds(cell, "ours"),
        "M rows/s": rate,
        "cold, ms": milliseconds(cell, "ours", "cold"),
        "float32, ms": milliseconds(cell, "ours-float32"),
        "one call, ms": milliseconds(cell, "ours-one-call"),
        "x scikit-learn": shown_ratio(cell, "scikit-learn"),
        "x scikit-learn, objects": of_objects(cell),
        "x best library": shown_ratio(cell, "library"),
        "x best engine": shown_ratio(cell, "engine"),
        "x best hand-written": shown_ratio(cell, "hand-written"),
        **{title: shown_ratio(cell, family) for family, title in LIMITS.items()},
        "B/row": beyond(cell),
    }


def in_one_call(cell: Record) -> Record:
    """Ours that looks at the values once beside others that do."""
    once = {name: each for name, each in cell["contenders"].items() if each["family"] in LOOK_ONCE}
    return cell | {"contenders": once | {"ours": cell["contenders"][ONE_CALL]}}


def in_order(cells: list[Record]) -> list[Record]:
    """Cells by work, keys and categories."""
    works, keys = list(WORKS), list(KEYS)
    return sorted(cells, key=lambda each: (works.index(each["work"]), keys.index(each["keys"]), each["categories"]))


def by_keys(cells: list[Record], work: str) -> dict[str, list[Record]]:
    """Cells of one kind of work, by categories, for each kind of keys."""
    found = in_order([cell for cell in cells if cell["work"] == work])
    return {keys: list(group) for keys, group in groupby(found, lambda cell: str(cell["keys"]))}


def summary(cells: list[Record]) -> list[Record]:
    """One line for each kind of work and keys, with a figure for each number of categories; then those of one call."""
    found = []
    for work in WORKS:
        groups = by_keys(cells, work)
        found += [figures(work, keys, group) for keys, group in groups.items()]
        for keys, group in groups.items():
            if all(ONE_CALL in cell["contenders"] for cell in group):
                found.append(figures(f"{work}, one call", keys, [in_one_call(cell) for cell in group]))
    return found


def figures(work: str, keys: str, group: list[Record]) -> Record:
    """One line of the summary."""
    row: Record = {"work": work, "keys": keys, "categories": joined(f"{cell['categories']:.3g}" for cell in group)}
    rates = [cell["contenders"].get("ours", {}).get("rows a second") for cell in group]
    row["ours, M rows/s"] = joined("-" if rate is None else f"{rate / 1e6:.3g}" for rate in rates)
    for family, title in ({name: f"x {name}" for name in TIMES} | LIMITS).items():
        ratios = [shown_ratio(cell, family, named=False) for cell in group]
        row[title] = joined(ratio or "-" for ratio in ratios) if any(ratios) else None
    return row


def joined(texts: Any) -> str:
    """Figures beside each other."""
    return " / ".join(texts)


def whole(cells: list[Record]) -> list[str]:
    """Every contender, a table for each kind of work and keys."""
    lines = []
    for work in WORKS:
        for keys, group in by_keys(cells, work).items():
            names = dict.fromkeys(name for cell in group for name in cell["contenders"])
            lines += [f"### {work}, {keys} keys", "", *table([by_size(name, group) for name in names]), ""]
    return lines


def by_size(name: str, group: list[Record]) -> Record:
    """Times and memory of one contender, for each number of categories."""
    row: Record = {"contender": name}
    for cell in group:
        record = cell["contenders"].get(name, {})
        size = f"{cell['categories']:,}"
        row[f"{size}: ms"] = milliseconds(cell, name)
        row[f"{size}: cold, ms"] = milliseconds(cell, name, "cold") if "seconds" in record else None
        row[f"{size}: spread"] = f"{100 * record['spread']:.0f} %" if "spread" in record else None
        row[f"{size}: peak, B/row"] = None if record.get("peak bytes") is None else record["peak bytes"] / cell["rows"]
    return row


def troubles(document: Document) -> list[str]:
    """Lines on contenders that were wrong or broke."""
    lines = []
    for cell in document["cells"]:
        for name, record in cell["contenders"].items():
            if record["status"] not in ("timed", "not run"):
                sizes = f"{cell['categories']:,} categories, {cell['rows']:,} rows"
                lines.append(f"**{name}: {record['status']}** ({cell['work']}, {cell['keys']}, {sizes})")
                lines += ["", "```", *str(record.get("said", "")).splitlines(), "```", ""]
    return ["## What went wrong", "", *lines] if lines else []


def of_table(document: Document) -> list[str]:
    """Lines on the table of contenders."""
    lines: list[str] = []
    for rows in sorted({cell["rows"] for cell in document["cells"]}):
        cells = in_order([cell for cell in document["cells"] if cell["rows"] == rows])
        lines += [f"## {rows:,} rows", "", "### Summary", "", *table(summary(cells)), ""]
        lines += ["### Ours beside the best of every family", "", *table([line(cell) for cell in cells]), ""]
    for rows in sorted({cell["rows"] for cell in document["cells"]}):
        cells = [cell for cell in document["cells"] if cell["rows"] == rows]
        lines += [f"## Every contender, {rows:,} rows", "", *whole(cells)]
    return lines


def judged(row: Record) -> Record:
    """A line on small data, with a mark where a goal is missed: no slower than scikit-learn, a quick import."""
    shown, times = dict(row), row.get("x scikit-learn")
    if times is not None and times < 1:
        shown["x scikit-learn"] = f"{times:.3g}{MISSED}"
    if row.get("what") == "import gpu_encode" and row["ms"] > LONGEST_IMPORT:
        shown["ms"] = f"{row['ms']:.3g}{MISSED}"
    return shown


def of_small(document: Document) -> list[str]:
    """Lines on small data, imports and first calls."""
    lines = []
    for title, rows in document["small"].items():
        lines += [f"## {title}", "", *table([judged(row) for row in rows]), ""] if rows else []
    return lines


def of_scaling(document: Document) -> list[str]:
    """Lines on how time grows, an axis a table."""
    lines: list[str] = []
    for axis in dict.fromkeys(row["axis"] for row in document["scaling"]):
        found = [row for row in document["scaling"] if row["axis"] == axis]
        shown = [{key: value for key, value in row.items() if key not in ("axis", "times")} for row in found]
        lines += [f"## Time by {axis}", "", *table(shown), ""]
        lines += [
            f"{work}: time grows with the power {power:.2f} of {axis}." for work, power in exponents(found).items()
        ]
        lines.append("")
    return lines


def exponents(rows: list[Record]) -> dict[str, float]:
    """Power with which the time of each kind of work grows along an axis; rows in pieces are another thing."""
    from benchmarks.cpu.scaling import slope

    found = {}
    for work in dict.fromkeys(row["work"] for row in rows):
        points = [
            (row["value"], row["ms"]) for row in rows if row["work"] == work and row.get("ms") and "how" not in row
        ]
        if len(points) > 1:
            found[work] = slope(points)
    return found


def preface(document: Document, title: str) -> list[str]:
    """Give what was measured where, and with what."""
    lines = [f"# {title}: {document['cpu']}", ""]
    if document["quick"]:
        lines += ["**A trial on a few rows: nothing here is a measurement.**", ""]
    lines += [f"- {name}: {document[name]}" for name in HEAD if document.get(name) is not None]
    rates = document.get("copy", {})
    lines += [f"- copy in memory, {name}: {rate / 1e9:.1f} GB/s read and written" for name, rate in rates.items()]
    lines += ["- versions: " + ", ".join(f"{name} {found}" for name, found in document["versions"].items())]
    missing = document.get("left out", {})
    lines += [f"- left out: {name} ({', '.join(needs)} not installed)" for name, needs in missing.items()]
    return lines


def markdown(document: Document) -> str:
    """Give the whole report."""
    lines = [*preface(document, "Target encoding on the CPU"), "", NOTES, "", *troubles(document)]
    lines += [*of_table(document), *of_small(document), *of_scaling(document)]
    return "\n".join(lines).rstrip() + "\n"
