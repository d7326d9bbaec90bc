"""Run the requested steps: see `studies.billion`."""

import argparse
import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import studies.billion
from benchmarks.harness import machine
from benchmarks.harness.arguments import names_of, whole_number
from benchmarks.harness.steps import Report, Step
from studies.billion.drawn import COMPRESSION, KEYS, TARGET, Rows, generate
from studies.billion.encoding import Document, ask
from studies.billion.verification import verify

LIMIT = 2 << 30
# Bytes of a row on disk, including its encodings, with some reserve.
ROW_ON_DISK = 48
PARAMETERS = ("rows", "seed", "threads", "memory_limit", "dtype")
PACKAGES = ("gpu-encode", "numpy", "numba", "pyarrow", "scikit-learn")
NOTES = """
Chunks are read ahead in one thread and written behind in another, so "reading" and "writing" run at the same time as
the other stages, which are those of the main thread; "waiting" is the time that the main thread waits for them. The
share of bare reading is the time that pyarrow alone takes for the same passes (once the target and twice all columns),
divided by the time of the run; the second share includes writing the encodings unchanged. In both cases, files that
were read before may be in the system's memory.
""".strip()


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.billion",
        description=studies.billion.__doc__,
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


class Files(NamedTuple):
    """Paths of rows, encodings and model."""

    rows: Path
    encodings: Path
    model: Path


def files_of(options: argparse.Namespace) -> Files:
    """Give the paths in the folder that the user names."""
    folder: Path = options.folder.resolve()
    return Files(folder / "rows", folder / "encodings", folder / "encoder.model")


def rows_of(options: argparse.Namespace) -> Rows:
    """Describe all rows: at least two files, with at most ten row groups each."""
    group_rows = options.group_rows or max(1, min(1_000_000, options.rows // 8))
    groups = -(-options.rows // group_rows)
    return Rows(options.rows, group_rows, max(1, min(10, groups // 2)), options.seed)


def forget_later(step: Step) -> None:
    """Forget the results of steps on other rows or encodings."""
    names = list(STEPS)
    for later in names[names.index(step.name) + 1 :]:
        step.report.steps.pop(later, None)


def write_rows(step: Step) -> None:
    """Write the rows that do not exist yet."""
    begun, folder = time.perf_counter(), files_of(step.options).rows
    written = generate(rows_of(step.options), folder, step.options.threads)
    if written:
        forget_later(step)
    size = sum(path.stat().st_size for path in folder.iterdir())
    step.row("rows", **{"seconds": time.perf_counter() - begun, "files written": written, "bytes": size})


def encode_rows(step: Step) -> None:
    """Encode the rows in a process of its own, whose memory is measured."""
    options, files = step.options, files_of(step.options)
    forget_later(step)
    shutil.rmtree(files.encodings, ignore_errors=True)
    question: Document = {"work": "encode", "target": TARGET, "columns": list(KEYS), "dtype": options.dtype}
    question |= {"source": str(files.rows), "destination": f"{files.encodings}/", "model": str(files.model)}
    answer = ask(question | {"memory limit": options.memory_limit}, options.threads)
    if "wrong" in answer:
        step.fail(answer["wrong"])
        return
    stages = answer.pop("stages")
    step.row("encoding", **answer, **{"rows a second": int(options.rows / answer["seconds"])})
    for name, seconds in stages.items():
        step.row("stages", **{"stage": name, "seconds": seconds, "ns a row": 1e9 * seconds / options.rows})
    step.note(NOTES)
    # Only Linux reports the peak.
    peak = answer["most resident memory, bytes"] or 0
    if peak >= LIMIT:
        step.fail(f"resident memory of {peak:,} bytes at its peak; less than {LIMIT:,} is wanted")


def verify_rows(step: Step) -> None:
    """Compare rows and encodings with the definition."""
    figures = verify(rows_of(step.options), *files_of(step.options), step.options.dtype)
    for text in figures.pop("wrong"):
        step.fail(text)
    step.row("comparison", **figures)


def read_and_write(step: Step) -> None:
    """Let pyarrow alone read the rows, and write their encodings again."""
    options, files, rows = step.options, files_of(step.options), rows_of(step.options)
    count = -(-options.bare_rows // (rows.group_rows * rows.groups_per_file))
    question: Document = {"work": "bare", "target": TARGET, "compression": COMPRESSION}
    for name, folder in (("source", files.rows), ("encodings", files.encodings)):
        question[name] = [str(path) for path in sorted(folder.iterdir())[:count]]
    answer = ask(question | {"scratch": str(files.model.with_name("bare.parquet"))}, options.threads)
    if "wrong" in answer:
        step.fail(answer["wrong"])
        return
    step.row("pyarrow alone, seconds a row", **answer)
    for encoding in step.report.steps.get("encode", {"tables": {}})["tables"].get("encoding", []):
        reading = options.rows * (answer["read the target"] + 2 * answer["read all columns"])
        writing = options.rows * answer["write the encodings"]
        shares = {"bare reading": reading, "bare reading and writing": reading + writing}
        step.row("share of the run", **{name: seconds / encoding["seconds"] for name, seconds in shares.items()})


STEPS = {"generate": write_rows, "encode": encode_rows, "verify": verify_rows, "bare": read_and_write}


def main(arguments: list[str] | None = None) -> int:
    """Run it; return 1 if anything was wrong, 2 if it cannot run here."""
    options = parse(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    free, needed = shutil.disk_usage(options.folder).free, options.rows * ROW_ON_DISK
    if options.rows < 2 or ("generate" in options.only and free < needed):
        print(f"{options.rows:,} rows, of two at least, take {needed:,} bytes; {free:,} are free", file=sys.stderr)
        return 2
    out = options.out or machine.ROOT / f"benchmarks/results/billion-{datetime.now(UTC).date()}"
    parameters = {name: getattr(options, name) for name in PARAMETERS}
    head = machine.describe(PACKAGES, True) | {"quick": False, "parameters": parameters}
    title = f"{options.rows:,} rows, three keys, five folds"
    report = Report.open(out.resolve() / "billion.json", title, head, "parameters")
    for name in [name for name in STEPS if name in options.only]:
        print(name, flush=True)
        report.begin(name)
        Step(name, report, options).run(STEPS[name])
        if report.steps[name]["failures"]:
            break
    status = report.finish()
    if not options.keep and options.only == list(STEPS) and status == 0:
        shutil.rmtree(options.folder)
    return status


if __name__ == "__main__":
    sys.exit(main())
