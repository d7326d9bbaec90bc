"""The results as Markdown."""

from typing import Any

from benchmarks.gpu.tables import table

Document = dict[str, Any]
Row = dict[str, Any]
NOTES = """
Chunks are read ahead in one thread and written behind in another, so "reading" and "writing" run beside the stages of
the main thread, which add up to the whole; "waiting" is what that one waited for them. Share of bare is the time that
pyarrow alone takes for the same passes, over the time of the run: reading, once the target and twice all columns; and
that together with writing the codes as they are. Files that were read lately may lie in the system's memory, for both.
Peak memory is VmHWM of the process, read from outside after it was done.
""".strip()
STAGES = ("opening", "surveying", "measuring", "encoding", "waiting")
BESIDE = ("reading", "writing")


def gigabytes(n_bytes: float) -> str:
    """Write bytes as people read them."""
    return f"{n_bytes / 1e9:.2f} GB" if n_bytes >= 1e8 else f"{n_bytes / 1e6:.2f} MB"


def encoded(document: Document) -> Document:
    """What the run says of encoding; nothing if it was not done, or broke."""
    found: Document = document["steps"].get("encode", {})
    return found if "summary" in found else {}


def bare_seconds(document: Document) -> tuple[float, float] | None:
    """Seconds that reading alone takes for all passes of the run, and reading and writing."""
    bare, rows = document["steps"].get("bare", {}), document["parameters"]["rows"]
    if "read all columns" not in bare:
        return None
    each = {name: found["seconds"] / found["rows"] * rows for name, found in bare.items()}
    reading = each["read the target"] + 2 * each["read all columns"]
    codes = bare["read and write the codes"]
    return reading, reading + codes["writing"] / codes["rows"] * rows


def stages(document: Document) -> list[Row]:
    """Seconds of every stage, and nanoseconds a row."""
    run, rows = encoded(document), document["parameters"]["rows"]
    seconds = dict(run["summary"]["seconds"])
    seconds["start, saving the model, the rest"] = run["seconds"] - sum(seconds.get(name, 0.0) for name in STAGES)
    order = [*STAGES, "start, saving the model, the rest", *BESIDE]
    return [
        {
            "stage": name + (" (beside)" if name in BESIDE else ""),
            "seconds": round(seconds[name], 2),
            "ns a row": round(seconds[name] / rows * 1e9, 2),
            "share": f"{100 * seconds[name] / run['seconds']:.1f} %",
        }
        for name in order
        if name in seconds
    ]


def figures(document: Document) -> list[Row]:
    """What is told first."""
    run, rows = encoded(document), document["parameters"]["rows"]
    made, summary = document["steps"].get("generate", {}), run["summary"]
    found: dict[str, Any] = {
        "rows": rows,
        "categories": ", ".join(f"{name} {count:,}" for name, count in run["categories"].items()),
        "seconds": round(run["seconds"], 1),
        "processor seconds": round(run["processor seconds"], 1),
        "rows a second": int(rows / run["seconds"]),
        "most resident memory": f"{run['peak'] / 2**30:.3f} GiB",
        "memory later over earlier": run["memory"]["later growth"],
        "chunks encoded": summary["chunks"],
        "read, in all passes": gigabytes(summary["bytes_read"]),
        "written": gigabytes(summary["bytes_written"]),
        "written over what it takes in memory": round(summary["bytes_written"] / raw_codes(document), 3),
    }
    if made.get("bytes"):
        found["source"] = (
            f"{gigabytes(made['bytes'])} in {made['files']} files, {made['row groups']} row groups; "
            f"{made['bytes'] / rows:.1f} bytes a row, {made['compression']}"
        )
    bare = bare_seconds(document)
    if bare is not None:
        found["share of bare reading"] = f"{100 * bare[0] / run['seconds']:.0f} % ({bare[0]:.1f} s)"
        found["share of bare reading and writing"] = f"{100 * bare[1] / run['seconds']:.0f} % ({bare[1]:.1f} s)"
    return [{"what": name, "": value} for name, value in found.items() if value is not None]


def raw_codes(document: Document) -> int:
    """Bytes of all codes and the target, uncompressed."""
    parameters = document["parameters"]
    return int(parameters["rows"] * (3 * (8 if parameters["dtype"] == "float64" else 4) + 1))


def verified(document: Document) -> list[str]:
    """Lines on what was compared."""
    found = document["steps"].get("verify")
    if not found:
        return []
    lines = [f"- **wrong: {each}**" for each in found["wrong"]]
    if "codes compared" in found and not found["wrong"]:
        lines.append(
            f"{found['codes compared']:,} codes of {found['categories']:,} categories ({found['seen once']:,} seen "
            f"once, one with {found['most rows of one']:,} rows) have the bits of the definition, and their codes of "
            f"new rows too; the target of all {found['rows']:,} rows is where it was. {found['seconds']:.0f} s."
        )
    return ["## Verified", "", *lines, ""]


def bare(document: Document) -> list[str]:
    """Lines on pyarrow alone."""
    found = document["steps"].get("bare", {})
    rows = [
        {
            "pyarrow alone": name,
            **{key: round(value, 3) if isinstance(value, float) else value for key, value in each.items()},
        }
        | {"ns a row": round(each["seconds"] / each["rows"] * 1e9, 2)}
        for name, each in found.items()
        if isinstance(each, dict)
    ]
    return ["## Reading and writing alone", "", *table(rows), ""] if rows else []


def states(document: Document) -> list[str]:
    """Lines on what travels."""
    found = document["steps"].get("states", {})
    if "bytes" not in found:
        return []
    rows = [{"what": name, "bytes": size} for name, size in found["bytes"].items()]
    times = [{"step": name, "seconds": round(value, 4)} for name, value in found["seconds"].items()]
    title = f"## What travels: two parts, {found['rows']:,} rows, {found['categories']:,} categories"
    return [title, "", *table(rows), "", *table(times), ""]


def troubles(document: Document) -> list[str]:
    """Lines on steps that broke."""
    found = [f"**{name}: {each}**" for name, step in document["steps"].items() for each in step.get("wrong", [])]
    return [*found, ""] if found else []


def markdown(document: Document) -> str:
    """Give the whole report."""
    parameters = document["parameters"]
    lines = [f"# {parameters['rows']:,} rows, three keys, five folds: {document['cpu']}", ""]
    lines += [f"- {name.replace('_', ' ')}: {value}" for name, value in parameters.items()]
    lines += [f"- {name}: {document[name]}" for name in ("memory", "commit")]
    lines += ["- versions: " + ", ".join(f"{name} {found}" for name, found in document["versions"].items()), ""]
    lines += troubles(document)
    if encoded(document):
        lines += [*table(figures(document)), "", "## Time by stage", "", *table(stages(document)), "", NOTES, ""]
    lines += [*verified(document), *bare(document), *states(document)]
    return "\n".join(lines).rstrip() + "\n"


def summary(document: Document) -> list[str]:
    """Lines for the screen."""
    if not encoded(document):
        return []
    return [*(f"{row['what']}: {row['']}" for row in figures(document)), *verified(document)[2:-1]]
