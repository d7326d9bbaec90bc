"""Measure what is asked for: see `benchmarks.family`."""

import argparse
import sys
from pathlib import Path
from typing import Any

import benchmarks.family
from benchmarks.cpu import machine
from benchmarks.cpu.arguments import folder_of, parser_of
from benchmarks.cpu.cells import measure
from benchmarks.cpu.contenders import contender
from benchmarks.cpu.grid import Cell
from benchmarks.family import grid, report
from benchmarks.family.registry import CONTENDERS, HOME
from benchmarks.family.results import Results, short
from benchmarks.gpu.tables import table
from benchmarks.rapids.results import RefusedError

QUICK_ROWS, QUICK_CATEGORIES = (3_000,), (40,)
LIBRARIES = ("scipy", "statsmodels")


def head(quick: bool) -> dict[str, Any]:
    """Give what is known before anything is measured."""
    found = machine.head(quick)
    versions = found["versions"] | {name: machine.installed(name) for name in LIBRARIES}
    return found | {"versions": versions}


def cells_of(options: argparse.Namespace) -> list[Cell]:
    """Cells that are asked for."""
    rows = options.rows or (QUICK_ROWS if options.quick else grid.ROWS)
    categories = options.categories or (QUICK_CATEGORIES if options.quick else grid.CATEGORIES)
    return list(grid.cells(rows, categories, options.works or list(grid.WORKS), options.keys or list(grid.KEYS)))


def finished(results: Results, folder: Path) -> int:
    """Print the short table, and say where the rest is."""
    print("", *table([report.line(cell) for cell in report.in_order(results.cells)]), "", sep="\n")
    wrong = results.wrong()
    print(f"{folder / 'family.md'}: " + (f"wrong: {'; '.join(wrong)}" if wrong else "nothing is wrong"))
    return int(bool(wrong))


def main(arguments: list[str] | None = None) -> int:
    """Run it; 1 if anything was wrong, 2 if it cannot run here."""
    parser = parser_of("benchmarks.family", benchmarks.family.__doc__, grid.WORKS, grid.KEYS, CONTENDERS)
    options = parser.parse_args(arguments)
    folder = folder_of(options, "family")
    names = [*(HOME + name for name in options.contenders or CONTENDERS), *options.also]
    missing = {short(name): contender(name).missing for name in names if contender(name).missing}
    try:
        results = Results.open(folder, head(options.quick) | {"left out": missing}, options.resume)
    except RefusedError as error:
        print(error, file=sys.stderr)
        return 2
    for name, needs in missing.items():
        print(f"{name} is left out: {', '.join(needs)} not installed")
    try:
        measure(results, cells_of(options), names, options)
    except KeyboardInterrupt:
        results.end("cut short")
        return 130
    results.end("done")
    return finished(results, folder)


if __name__ == "__main__":
    sys.exit(main())
