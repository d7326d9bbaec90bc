"""Run a topic: cell after cell, each on disk as soon as it is measured."""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.harness import machine
from benchmarks.harness.arguments import chosen_axes, folder_of, parser_of
from benchmarks.harness.grid import Cell, Grid, Topic, name_of
from benchmarks.harness.results import RefusedError, Results
from benchmarks.harness.tables import compare as compare_cell
from benchmarks.harness.tables import report, table
from benchmarks.harness.turns import TIME_WAS_UP, Turns


def cells_of(topic: Topic, options: argparse.Namespace) -> Iterator[tuple[Grid, Cell, list[str]]]:
    """Yield the requested cells, each with its contenders."""
    for grid in topic.grids:
        if grid.name in options.only:
            for cell in grid.cells(chosen_axes(options), options.quick):
                names = grid.names_for(cell, options.contenders)
                if names and not (options.most_rows and cell.get("rows", 0) > options.most_rows):
                    yield grid, {"grid": grid.name, **cell}, names


def measure(topic: Topic, results: Results, options: argparse.Namespace) -> str:
    """Measure all cells that are not finished, and say how the run ended."""
    deadline = time.monotonic() + options.time_limit
    turns = Turns(topic, options.contender_limit, 1 if options.quick else options.repeats, options.quick, deadline)
    with tempfile.TemporaryDirectory(prefix="gpu-encode-benchmark-") as root:
        try:
            for grid, cell, names in cells_of(topic, options):
                if results.has(cell, names):
                    continue
                if turns.late:
                    return f"cut short: {TIME_WAS_UP}"
                print(name_of(cell), flush=True)
                folder = grid.draw(Path(root), cell)
                records = turns.measure(grid, cell, folder, names, partial(results.guess, cell))
                for name, record in records.items():
                    said = f"{record['seconds'] * 1e3:10.2f} ms" if "seconds" in record else record["status"]
                    print(f"  {name:18} {said} {record.get('said', '')}".rstrip(), flush=True)
                results.add(cell, records)
        except KeyboardInterrupt:
            return "cut short"
        finally:
            turns.end()
    return "done"


def finish(topic: Topic, results: Results) -> int:
    """Print the short tables, and the path of all results."""
    for grid in topic.grids:
        lines = [line for cell in results.cells if cell["grid"] == grid.name for line in compare_cell(grid, cell)]
        if lines:
            print(f"\n{grid.name}", *table(lines), sep="\n")
    wrong = results.wrong()
    print(f"\n{results.path.with_suffix('.md')}: " + (f"wrong: {'; '.join(wrong)}" if wrong else "nothing is wrong"))
    return int(bool(wrong))


def main(topic: Topic, description: str | None = None, arguments: list[str] | None = None) -> int:
    """Run a topic; return 1 if anything was wrong, 2 if the topic cannot run here."""
    options = parser_of(topic, description or topic.title).parse_args(arguments)
    path = folder_of(options, topic.name) / f"{topic.name}.json"
    asked = [contender for grid in topic.grids for contender in grid.contenders if contender.name in options.contenders]
    missing = {contender.name: contender.missing for contender in asked if contender.missing}
    head = machine.describe(topic.packages, options.quick) | {"left out": missing} | topic.machine()
    try:
        results = Results.open(path, head, partial(report, topic), options.resume)
    except RefusedError as error:
        print(error, file=sys.stderr)
        return 2
    for name, needs in missing.items():
        print(f"{name} is left out: {', '.join(needs)} not installed")
    status = measure(topic, results, options)
    results.end(status)
    if status == "cut short":
        return 130
    return finish(topic, results)
