"""Measure what is asked for: see `benchmarks.cpu`."""

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import benchmarks.cpu
from benchmarks.cpu import grid, machine, plot, report, scaling
from benchmarks.cpu.contenders import CONTENDERS, contender, contenders_for
from benchmarks.cpu.results import RefusedError, Results
from benchmarks.cpu.rows import draw
from benchmarks.cpu.turns import Turns
from benchmarks.gpu.arguments import names_of, whole_number, whole_numbers
from benchmarks.gpu.machine import ROOT
from benchmarks.gpu.tables import table

QUESTIONS = ("table", "small", "scaling")
QUICK_ROWS, QUICK_CATEGORIES = (3_000,), (40,)


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cpu",
        description=benchmarks.cpu.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--only", type=names_of(QUESTIONS, "question", True), default=list(QUESTIONS), help="of table,small,scaling")
    add("--rows", type=whole_numbers, help="such as 1e6,1e7")
    add("--categories", type=whole_numbers, help="such as 100,1e5,1e6")
    for name, known in (("works", grid.WORKS), ("keys", grid.KEYS), ("contenders", CONTENDERS)):
        add(f"--{name}", type=names_of(known, name.rstrip("s"), True), help=f"of {','.join(known)}")
    add("--also", action="append", default=[], metavar="MODULE:NAME", help="a further contender")
    add("--repeats", type=whole_number, help="timed calls of each contender; by its speed unless given")
    add("--contender-limit", type=float, default=60.0, help="seconds; slower contenders are not run")
    add("--most-rows", type=whole_number, default=100_000_000, help="of --only scaling")
    add("--out", type=Path, help="folder of the results")
    add("--resume", action="store_true", help="keep the cells that an earlier run left in that folder")
    add("--quick", action="store_true", help="every line once on a few rows, which measures nothing")
    return parser.parse_args(arguments)


def folder_of(options: argparse.Namespace) -> Path:
    """Where results go."""
    if options.out:
        return Path(options.out).resolve()
    return ROOT / ("build/cpu-quick" if options.quick else f"benchmarks/results/cpu-{datetime.now(UTC).date()}")


def names_in(options: argparse.Namespace) -> list[str]:
    """Contenders that are asked for."""
    return [*(options.contenders or CONTENDERS), *options.also]


def measure_table(results: Results, options: argparse.Namespace) -> None:
    """Measure cell after cell."""
    turns = Turns(options.contender_limit, 1 if options.quick else options.repeats, together=options.quick)
    rows = options.rows or (QUICK_ROWS if options.quick else grid.ROWS)
    categories = options.categories or (QUICK_CATEGORIES if options.quick else grid.CATEGORIES)
    keys = options.keys or list(grid.KEYS)
    names = names_in(options)
    with tempfile.TemporaryDirectory(prefix="gpu-encode-benchmark-") as root:
        try:
            for cell in grid.cells(rows, categories, options.works or list(grid.WORKS), keys, bool(options.keys)):
                asked = contenders_for(cell, names)
                if asked and not results.has(cell, asked):
                    print(cell.name, flush=True)
                    folder = draw(Path(root), cell.rows, cell.categories, cell.keys == "text")
                    records = turns.measure(cell, folder, asked, lambda name, cell=cell: results.guess(cell, name))
                    results.add(cell, records)
                    tell(records)
        finally:
            turns.end()


def tell(records: dict[str, dict[str, Any]]) -> None:
    """Say what was found, in a line for each contender."""
    for name, record in records.items():
        time = f"{record['seconds'] * 1e3:10.2f} ms" if "seconds" in record else record["status"]
        print(f"  {name:18} {time} {record.get('said', '')}".rstrip(), flush=True)


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
        cells = [cell for cell in results.cells if cell["rows"] == rows]
        print(f"\n{rows:,} rows", *table(report.summary(cells)), "", sep="\n")


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
    folder = folder_of(options)
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
