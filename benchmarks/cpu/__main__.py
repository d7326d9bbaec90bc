"""Measure what is asked for: see `benchmarks.cpu`."""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import benchmarks.cpu
from benchmarks.cpu import cells, grid, machine, plot, report, scaling
from benchmarks.cpu.arguments import folder_of, parser_of
from benchmarks.cpu.contenders import CONTENDERS, contender
from benchmarks.cpu.results import RefusedError, Results
from benchmarks.gpu.arguments import names_of, whole_number
from benchmarks.gpu.machine import ROOT
from benchmarks.gpu.tables import table

QUESTIONS = ("table", "small", "scaling")
QUICK_ROWS, QUICK_CATEGORIES = (3_000,), (40,)


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = parser_of("benchmarks.cpu", benchmarks.cpu.__doc__, grid.WORKS, grid.KEYS, CONTENDERS)
    add = parser.add_argument
    add("--only", type=names_of(QUESTIONS, "question", True), default=list(QUESTIONS), help="of table,small,scaling")
    add("--most-rows", type=whole_number, default=100_000_000, help="of --only scaling")
    return parser.parse_args(arguments)


def names_in(options: argparse.Namespace) -> list[str]:
    """Contenders that are asked for."""
    return [*(options.contenders or CONTENDERS), *options.also]


def measure_table(results: Results, options: argparse.Namespace) -> None:
    """Measure cell after cell."""
    rows = options.rows or (QUICK_ROWS if options.quick else grid.ROWS)
    categories = options.categories or (QUICK_CATEGORIES if options.quick else grid.CATEGORIES)
    keys = options.keys or list(grid.KEYS)
    found = grid.cells(rows, categories, options.works or list(grid.WORKS), keys, bool(options.keys))
    cells.measure(results, found, names_in(options), options)


def measure_small(results: Results, options: argparse.Namespace) -> None:
    """Measure small data, in a process that has done nothing else."""
    if results.document["small"] and "wrong" not in results.document["small"]:
        return
    print("small data, imports, first calls", flush=True)
    command = [sys.executable, "-m", "benchmarks.cpu.small", *(["--quick"] if options.quick else [])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        found: Any = {"wrong": [{"wrong": f"small data: {done.stderr.strip().splitlines()[-1]}"}]}
    else:
        found = json.loads(done.stdout)
    results.document["small"] = found
    results.save()


def summaries(results: Results) -> None:
    """Print the short table."""
    for rows in sorted({cell["rows"] for cell in results.cells}):
        found = [cell for cell in results.cells if cell["rows"] == rows]
        print(f"\n{rows:,} rows", *table(report.summary(found)), "", sep="\n")


def finished(results: Results, folder: Path) -> int:
    """Draw the results, where that is possible, and say where they are."""
    if plot.can_plot():
        plot.plot(results.document, folder)
    else:
        print("matplotlib is not installed: no pictures; pip install 'gpu-encode[plot]'")
    wrong = results.wrong()
    print(f"{folder / 'cpu.md'}: " + (f"wrong: {'; '.join(wrong)}" if wrong else "nothing is wrong"))
    return int(bool(wrong))


def main(arguments: list[str] | None = None) -> int:
    """Run it; 1 if anything was wrong, 2 if it cannot run here."""
    options = parsed(arguments)
    folder = folder_of(options, "cpu")
    missing = {each.name: each.missing for each in map(contender, names_in(options)) if each.missing}
    try:
        results = Results.open(folder, machine.head(options.quick) | {"left out": missing}, options.resume)
    except RefusedError as error:
        print(error, file=sys.stderr)
        return 2
    for name, needs in missing.items():
        print(f"{name} is left out: {', '.join(needs)} not installed")
    try:
        if "table" in options.only:
            measure_table(results, options)
        if "small" in options.only:
            measure_small(results, options)
        if "scaling" in options.only:
            scaling.run(results, options.quick, options.most_rows)
    except KeyboardInterrupt:
        results.end("cut short")
        return 130
    results.end("done")
    summaries(results)
    return finished(results, folder)


if __name__ == "__main__":
    sys.exit(main())
