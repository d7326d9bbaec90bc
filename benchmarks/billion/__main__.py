"""Take the steps that are asked for: see `benchmarks.billion`."""

import argparse
import json
import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import benchmarks.billion
from benchmarks.billion.drawn import COMPRESSION, KEYS, TARGET, Rows, generate
from benchmarks.billion.encoding import Document, ask
from benchmarks.billion.verification import verify
from benchmarks.harness import machine
from benchmarks.harness.arguments import names_of, whole_number
from benchmarks.harness.tables import table

STEPS = ("generate", "encode", "verify", "bare")
LIMIT = 2 << 30
# Bytes of a row on disk, encodings included, with room to spare.
ROW_ON_DISK = 48
NOTES = """
Chunks are read ahead in one thread and written behind in another, so "reading" and "writing" run beside the other
stages, which are those of the main thread; "waiting" is what that one waited for them. The share of bare reading is the
time that pyarrow alone takes for the same passes (once the target and twice all columns) in the time of the run; then
with writing the encodings as they are. Files that were read lately may lie in the system's memory, for both.
""".strip()


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.billion",
        description=benchmarks.billion.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--rows", type=whole_number, default=1_000_000_000, help="such as 1e8; 1e9 unless given")
    add("--folder", type=Path, default=machine.ROOT / "build/billion", help="where rows and encodings lie meanwhile")
    add("--memory-limit", default="1.5GiB", help="what `encode_dataset` is given")
    add("--threads", type=whole_number, default=2)
    add("--dtype", choices=("float32", "float64"), default="float64", help="of the encodings")
    add("--seed", type=int, default=0)
    add("--group-rows", type=whole_number, help="rows of a row group; a million, or fewer of few rows")
    add("--bare-rows", type=whole_number, default=100_000_000, help="rows that pyarrow reads and writes, at least")
    add("--only", type=names_of(STEPS, "step"), default=list(STEPS), help=f"of {','.join(STEPS)}")
    add("--keep", action="store_true", help="leave rows and encodings there; they stay with --only too")
    add("--out", type=Path, help="folder of the results")
    return parser.parse_args(arguments)


def run_step(step: str, options: argparse.Namespace, rows: Rows) -> Document:
    """Take one step, and say what it found."""
    folder: Path = options.folder.resolve()
    source, encodings, model = folder / "rows", folder / "encodings", folder / "encoder.model"
    begun = time.perf_counter()
    if step == "generate":
        written = generate(rows, source, options.threads)
        size = sum(path.stat().st_size for path in source.iterdir())
        return {"seconds": time.perf_counter() - begun, "files written": written, "bytes": size}
    if step == "verify":
        return verify(rows, source, encodings, model, options.dtype)
    question: Document = {"work": step, "target": TARGET}
    if step == "bare":
        count = -(-options.bare_rows // (rows.group_rows * rows.groups_per_file))
        for name, place in (("source", source), ("encodings", encodings)):
            question[name] = [str(path) for path in sorted(place.iterdir())[:count]]
        return ask(question | {"scratch": str(folder / "bare.parquet"), "compression": COMPRESSION}, options.threads)
    shutil.rmtree(encodings, ignore_errors=True)
    question |= {"source": str(source), "destination": f"{encodings}/", "model": str(model), "columns": list(KEYS)}
    found = ask(question | {"memory limit": options.memory_limit, "dtype": options.dtype}, options.threads)
    # Only Linux tells.
    if (found.get("peak") or 0) >= LIMIT:
        found["wrong"] = [f"resident memory of {found['peak']:,} bytes at its peak; less than {LIMIT:,} is wanted"]
    return found


def open_results(path: Path, options: argparse.Namespace) -> Document:
    """Go on with the results of the same rows, if there are any."""
    names = ("rows", "seed", "threads", "memory_limit", "dtype")
    packages = ("gpu-encode", "numpy", "numba", "pyarrow", "scikit-learn")
    head = machine.describe(packages, True) | {"parameters": {name: getattr(options, name) for name in names}}
    found = json.loads(path.read_text()) if path.exists() else {}
    return head | {"steps": found["steps"] if found.get("parameters") == head["parameters"] else {}}


def note(document: Document, step: str, found: Document, path: Path) -> None:
    """Write down what a step found; what was found of other rows or encodings before counts no longer."""
    if step == "encode" or found.get("files written"):
        for later in STEPS[STEPS.index(step) :]:
            document["steps"].pop(later, None)
    document["steps"][step] = found
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")
    path.with_suffix(".md").write_text("\n".join(report(document)) + "\n")


def report(document: Document) -> list[str]:
    """Give the report as Markdown."""
    steps, parameters = document["steps"], document["parameters"]
    rows, run, bare = parameters["rows"], steps.get("encode", {}), steps.get("bare", {})
    lines = [f"# {rows:,} rows, three keys, five folds: {document['device']}", ""]
    head = document | parameters | {"quick": {}}
    lines += [f"- {name}: {value}" for name, value in head.items() if not isinstance(value, dict)]
    lines += ["- versions: " + ", ".join(f"{name} {found}" for name, found in document["versions"].items()), ""]
    lines += [f"**{name}: {each}**\n" for name, step in steps.items() for each in step.get("wrong", [])]
    if "summary" in run:
        seconds, stages = run["seconds"], dict(run["summary"]["seconds"])
        found: Document = {"seconds": seconds, "processor seconds": run["processor seconds"]}
        found |= {"rows a second": int(rows / seconds), "most resident memory, bytes": run["peak"]}
        found |= {f"categories of {name}": count for name, count in run["categories"].items()}
        found |= {name: run["summary"][name] for name in ("chunks", "bytes_read", "bytes_written")}
        if "read all columns" in bare:
            reading = rows * (bare["read the target"] + 2 * bare["read all columns"])
            writing = rows * bare["write the encodings"]
            found |= {"share of bare reading": reading / seconds}
            found |= {"share of bare reading and writing": (reading + writing) / seconds}
        lines += [*table([{"what": name, "": value} for name, value in found.items()]), "", NOTES, ""]
        lines += table(
            [{"stage": name, "seconds": each, "ns a row": 1e9 * each / rows} for name, each in stages.items()]
        )
    for name in ("generate", "verify", "bare"):
        figures = {key: value for key, value in steps.get(name, {}).items() if key != "wrong"}
        lines += ["", f"## {name}", "", *table([figures])] if figures else []
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Run it; 1 if anything was wrong, 2 if it cannot run here."""
    options = parse(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    free, needed = shutil.disk_usage(options.folder).free, options.rows * ROW_ON_DISK
    if options.rows < 2 or ("generate" in options.only and free < needed):
        print(f"{options.rows:,} rows, of two at least, take {needed:,} bytes; {free:,} are free", file=sys.stderr)
        return 2
    # At least two files, of at most ten row groups.
    group_rows = options.group_rows or max(1, min(1_000_000, options.rows // 8))
    groups = -(-options.rows // group_rows)
    rows = Rows(options.rows, group_rows, max(1, min(10, groups // 2)), options.seed)
    out = options.out or machine.ROOT / f"benchmarks/results/billion-{datetime.now(UTC).date()}"
    path = out.resolve() / "billion.json"
    document, wrong = open_results(path, options), []
    for step in [step for step in STEPS if step in options.only]:
        print(step, flush=True)
        found = run_step(step, options, rows)
        note(document, step, found, path)
        wrong = found.get("wrong", [])
        if wrong:
            break
    if not options.keep and tuple(options.only) == STEPS and not wrong:
        shutil.rmtree(options.folder)
    print(*report(document), sep="\n")
    print(f"{path.with_suffix('.md')}: " + ("; ".join(wrong) if wrong else "nothing is wrong"))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
