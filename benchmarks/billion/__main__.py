"""Take the steps that are asked for: see `benchmarks.billion`."""

import argparse
import json
import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import benchmarks.billion
from benchmarks.billion import report
from benchmarks.billion.drawn import KEYS, TARGET, Rows
from benchmarks.billion.generation import COMPRESSION, described_files, generate
from benchmarks.billion.process import ProcessFailedError, ask
from benchmarks.billion.verification import verify
from benchmarks.cpu.machine import installed, memory, processor
from benchmarks.gpu.arguments import names_of, whole_number
from benchmarks.gpu.machine import ROOT, commit

STEPS = ("generate", "encode", "verify", "bare", "states", "report")
LIMIT = 2 << 30
# Bytes of a row on disk, codes included, with room to spare.
ROW_ON_DISK = 48
Document = dict[str, Any]


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.billion",
        description=benchmarks.billion.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--rows", type=whole_number, default=1_000_000_000, help="such as 1e8; 1e9 unless given")
    add("--folder", type=Path, default=ROOT / "build/billion", help="where the rows and codes lie meanwhile")
    add("--memory-limit", default="1.5GiB", help="what `encode_dataset` is given")
    add("--threads", type=whole_number, default=2)
    add("--dtype", choices=("float32", "float64"), default="float64", help="of the codes")
    add("--seed", type=int, default=0)
    add("--group-rows", type=whole_number, help="rows of a row group; a million, or fewer of few rows")
    add(
        "--bare-rows", type=whole_number, default=100_000_000, help="rows that pyarrow alone reads and writes, at least"
    )
    add("--only", type=names_of(STEPS, "step", True), default=list(STEPS), help=f"of {','.join(STEPS)}")
    add("--keep", action="store_true", help="leave the rows and codes there; they stay with --only too")
    add("--out", type=Path, help="folder of the results")
    return parser.parse_args(arguments)


def rows_of(options: argparse.Namespace) -> Rows:
    """What is drawn: at least two files, of at most ten row groups."""
    group_rows = options.group_rows or max(1, min(1_000_000, options.rows // 8))
    groups = -(-options.rows // group_rows)
    return Rows(options.rows, group_rows, max(1, min(10, groups // 2)), options.seed)


class Trial:
    """One run, step by step.

    Parameters
    ----------
    options : argparse.Namespace
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.rows = options, rows_of(options)
        self.folder = options.folder.resolve()
        self.source, self.codes = self.folder / "rows", self.folder / "codes"
        self.model = self.folder / "encoder.model"
        out = options.out or ROOT / f"benchmarks/results/billion-{datetime.now(UTC).date()}"
        self.out = Path(out).resolve()
        self.document = self.opened()

    def opened(self) -> Document:
        """Results of earlier steps on the same rows, or none yet."""
        names = ("rows", "seed", "threads", "memory_limit", "dtype")
        head = {"parameters": {name: getattr(self.options, name) for name in names}} | machine()
        path = self.out / "billion.json"
        if path.exists():
            found: Document = json.loads(path.read_text())
            if found["parameters"] == head["parameters"]:
                return found | head
        return head | {"steps": {}}

    def note(self, step: str, found: Document) -> None:
        """Write down what a step found; what was found of other rows or codes before counts no longer."""
        if step == "encode" or found.get("files written"):
            for later in STEPS[STEPS.index(step) :]:
                self.document["steps"].pop(later, None)
        self.document["steps"][step] = found
        self.save()

    def save(self) -> None:
        """Write the results."""
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / "billion.json").write_text(json.dumps(self.document, indent=1) + "\n")
        (self.out / "billion.md").write_text(report.markdown(self.document))

    def generate(self) -> Document:
        """Write the rows."""
        return generate(self.rows, self.source, self.options.threads, told("generate"))

    def encode(self) -> Document:
        """Encode them, watched."""
        shutil.rmtree(self.codes, ignore_errors=True)
        question = {
            "source": str(self.source),
            "destination": f"{self.codes}/",
            "model": str(self.model),
            "columns": list(KEYS),
            "target": TARGET,
            "memory limit": self.options.memory_limit,
            "dtype": self.options.dtype,
        }
        found, memory_seen = ask("benchmarks.billion.encoding", question, self.options.threads)
        peak = memory_seen.peak
        wrong = (
            [] if peak < LIMIT else [f"resident memory of {peak:,} bytes at its peak; less than {LIMIT:,} is wanted"]
        )
        samples = {"samples": memory_seen.samples, "later growth": memory_seen.later_growth()}
        return found | {"codes": described_files(self.codes), "peak": peak, "memory": samples, "wrong": wrong}

    def verify(self) -> Document:
        """Compare the codes with the definition."""
        options = self.options
        return verify(self.rows, self.source, self.codes, self.model, options.dtype, options.threads, told("verify"))

    def bare(self) -> Document:
        """Read and write the first files by pyarrow alone."""
        count = min(self.rows.n_files, -(-self.options.bare_rows // (self.rows.group_rows * self.rows.groups_per_file)))
        question = {
            "source": files_in(self.source)[:count],
            "codes": files_in(self.codes)[:count],
            "scratch": str(self.folder),
            "target": TARGET,
            "compression": COMPRESSION,
        }
        return ask("benchmarks.billion.bare", question, self.options.threads)[0]

    def states(self) -> Document:
        """Measure what travels in a cluster."""
        question = {"source": files_in(self.source)[:2], "dtype": self.options.dtype}
        return ask("benchmarks.billion.states", question, self.options.threads)[0]

    def report(self) -> Document:
        """Nothing further: results are written after every step."""
        return {}


def files_in(folder: Path) -> list[str]:
    """Paths of the files in a folder."""
    return [str(path) for path in sorted(folder.glob("*.parquet"))]


def told(step: str) -> Callable[[str], None]:
    """Give a function that says how far a step is."""
    return lambda text: print(f"{step}: {text}", flush=True)


def machine() -> Document:
    """Say where this runs, and on what."""
    packages = ("gpu-encode", "numpy", "numba", "pyarrow", "scikit-learn")
    versions = {"python": sys.version.split()[0]} | {name: installed(name) for name in packages}
    return {"cpu": processor(), "memory": memory(), "commit": commit(), "versions": versions}


def room(options: argparse.Namespace) -> str | None:
    """What is wrong with the disk."""
    options.folder.mkdir(parents=True, exist_ok=True)
    free, needed = shutil.disk_usage(options.folder).free, options.rows * ROW_ON_DISK
    if "generate" not in options.only or free >= needed:
        return None
    return f"{options.folder} has room for {free / 1e9:.0f} GB; {options.rows:,} rows take up to {needed / 1e9:.0f} GB"


def main(arguments: list[str] | None = None) -> int:
    """Run it; 1 if anything was wrong, 2 if it cannot run here."""
    options = parsed(arguments)
    if options.rows < 2:
        print("--rows has to be 2 at least", file=sys.stderr)
        return 2
    trouble = room(options)
    if trouble:
        print(trouble, file=sys.stderr)
        return 2
    trial = Trial(options)
    wrong: list[str] = []
    for step in STEPS:
        if step in options.only:
            print(step, flush=True)
            try:
                found = getattr(trial, step)()
            except ProcessFailedError as error:
                found = {"wrong": [str(error)]}
            trial.note(step, found)
            wrong += found.get("wrong", [])
            if wrong:
                break
    if not options.keep and tuple(options.only) == STEPS and not wrong:
        shutil.rmtree(trial.folder)
    print(*report.summary(trial.document), sep="\n")
    print(f"{trial.out / 'billion.md'}: " + ("; ".join(wrong) if wrong else "nothing is wrong"))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
