"""Compare what is asked for: see `benchmarks.comparison`."""

import argparse
import json
import platform
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import benchmarks.comparison
from benchmarks.comparison import plot
from benchmarks.comparison.contenders import SCHEMES, SMOOTHINGS
from benchmarks.comparison.datasets import READERS, Dataset, described, loaded
from benchmarks.comparison.report import markdown
from benchmarks.comparison.run import gathered, jobs_of, results
from benchmarks.cpu.machine import installed, processor
from benchmarks.gpu.arguments import names_of, whole_number
from benchmarks.gpu.machine import ROOT, commit
from gpu_encode.cli.whole_files import whole_files

PACKAGES = ("gpu-encode", "numpy", "pandas", "scikit-learn", "scipy")
GENERATED = ("generated-binary", "generated-multiclass", "generated-continuous")


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.comparison",
        description=benchmarks.comparison.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    rows = parser.add_mutually_exclusive_group(required=True)
    rows.add_argument("--data", type=Path, help="folder of the data sets")
    rows.add_argument("--generated", action="store_true", help="on rows made here, which measures nothing")
    add("--datasets", type=names_of(READERS, "data set", True), default=list(READERS), help=f"of {','.join(READERS)}")
    add("--schemes", type=names_of(SCHEMES, "scheme", True), default=list(SCHEMES), help=f"of {','.join(SCHEMES)}")
    known = ",".join(SMOOTHINGS)
    add("--smoothings", type=names_of(SMOOTHINGS, "smoothing", True), default=list(SMOOTHINGS), help=f"of {known}")
    add("--rows", type=whole_number, default=12_000, help="at most, of each data set, drawn at random")
    add("--folds", type=whole_number, default=5, help="outer folds")
    add("--jobs", type=whole_number, default=2, help="processes, of one thread each")
    add("--out", type=Path, help="folder of the results")
    options = parser.parse_args(arguments)
    if options.folds < 2:
        parser.error("--folds: at least 2 outer folds, or differences have no noise to be compared with")
    return options


def folder_of(options: argparse.Namespace) -> Path:
    """Where results go."""
    if options.out:
        return Path(options.out).resolve()
    name = (
        "build/comparison-generated"
        if options.generated
        else f"benchmarks/results/comparison-{datetime.now(UTC).date()}"
    )
    return ROOT / name


def names_here(options: argparse.Namespace) -> list[str]:
    """Data sets that are asked for and there."""
    if options.generated:
        return list(GENERATED)
    missing = [name for name in options.datasets if not (options.data / f"{name}.parquet").exists()]
    for name in missing:
        print(f"{name} is left out: no {name}.parquet in {options.data}")
    return [name for name in options.datasets if name not in missing]


def head(options: argparse.Namespace) -> dict[str, Any]:
    """Give what is known before anything is measured."""
    versions = {"python": platform.python_version(), **{name: installed(name) for name in PACKAGES}}
    begun = datetime.now(UTC).isoformat(timespec="seconds")
    found = {
        "cpu": processor(),
        "commit": commit(),
        "versions": versions,
        "begun": begun,
        "generated": options.generated,
    }
    return found | {"folds": options.folds, "most rows": options.rows}


def save(document: dict[str, Any], folder: Path) -> None:
    """Write both files, or neither; a line for each cell."""
    folder.mkdir(parents=True, exist_ok=True)
    cells = ",\n".join("  " + json.dumps(cell) for cell in document["cells"])
    top = json.dumps({key: value for key, value in document.items() if key != "cells"}, indent=1)
    with whole_files(folder / "comparison.json", folder / "comparison.md") as [data, text]:
        data.write_text(f'{top[:-2]},\n "cells": [\n{cells}\n ]\n}}\n')
        text.write_text(markdown(document))


def compared(options: argparse.Namespace, datasets: list[Dataset], folder: Path) -> dict[str, Any]:
    """Compare on all data sets; each is on disk once it is done."""
    document, clock = head(options), time.monotonic()
    asked = (options.schemes, options.smoothings)
    jobs = [job for each in datasets for job in jobs_of(each, options.data, options.rows, options.folds, asked)]
    records: dict[str, list[dict[str, Any]]] = {each.name: [] for each in datasets}
    left = Counter(job.dataset for job in jobs)
    for number, (job, found) in enumerate(results(jobs, options.jobs), 1):
        print(f"{number}/{len(jobs)} {job.dataset}, fold {job.fold}: {job.scheme or 'baselines'}", flush=True)
        records[job.dataset] += found
        left[job.dataset] -= 1
        if not left[job.dataset]:
            done = [each for each in datasets if not left[each.name]]
            document["seconds"] = round(time.monotonic() - clock)
            document["datasets"] = [described(each) for each in done]
            document["cells"] = gathered(record for each in done for record in records[each.name])
            save(document, folder)
    return document


def main(arguments: list[str] | None = None) -> int:
    """Run it; 2 if there are no data."""
    options = parsed(arguments)
    names = names_here(options)
    if not names:
        print("none of the data sets is there", file=sys.stderr)
        return 2
    folder = folder_of(options)
    document = compared(options, [loaded(name, options.data, options.rows) for name in names], folder)
    if plot.can_plot():
        plot.plot(document, folder)
    else:
        print("matplotlib is not installed: no picture; pip install 'gpu-encode[plot]'")
    print(folder / "comparison.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
