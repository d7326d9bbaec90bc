"""Cell after cell: rows are drawn, contenders take turns, and what they gave is kept at once."""

import argparse
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.cpu.contenders import contenders_for
from benchmarks.cpu.grid import Cell
from benchmarks.cpu.results import Results
from benchmarks.cpu.rows import draw
from benchmarks.cpu.turns import Turns


def measure(results: Results, cells: Iterable[Cell], names: list[str], options: argparse.Namespace) -> None:
    """Measure all cells that need it.

    Parameters
    ----------
    results : Results
    cells : iterable of Cell
    names : list of str
        Contenders that are asked for.
    options : Namespace
        The command line.
    """
    turns = Turns(options.contender_limit, 1 if options.quick else options.repeats, together=options.quick)
    with tempfile.TemporaryDirectory(prefix="gpu-encode-benchmark-") as root:
        try:
            for cell in cells:
                asked = contenders_for(cell, names)
                if asked and not results.has(cell, asked):
                    print(cell.name, flush=True)
                    folder = draw(Path(root), cell.rows, cell.categories, cell.keys == "text")
                    records = turns.measure(cell, folder, asked, lambda name, cell=cell: results.guess(cell, name))
                    tell(results.add(cell, records))
        finally:
            turns.end()


def tell(records: dict[str, dict[str, Any]]) -> None:
    """Say what was found, in a line for each contender."""
    for name, record in records.items():
        time = f"{record['seconds'] * 1e3:10.2f} ms" if "seconds" in record else record["status"]
        print(f"  {name:18} {time} {record.get('said', '')}".rstrip(), flush=True)
