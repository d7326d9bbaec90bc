"""Measure the grid, or draw what was measured: see `benchmarks.rapids`."""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Collection
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import benchmarks.rapids
from benchmarks.gpu.arguments import names_of, whole_number, whole_numbers
from benchmarks.gpu.machine import ROOT, versions
from benchmarks.gpu.report import folder_for
from benchmarks.gpu.tables import Row
from benchmarks.rapids import grid, plot
from benchmarks.rapids.contenders import CONTENDERS
from benchmarks.rapids.energy import meter_of
from benchmarks.rapids.job import Job
from benchmarks.rapids.library import RESOURCES, Cudf, FrameLibrary, Pandas
from benchmarks.rapids.measurement import CELL_LIMIT, REPEATS, Settings, attempt, measure
from benchmarks.rapids.results import STAND_IN, RefusedError, Results
from gpu_encode import devices

FOREVER = float("inf")
# Cells of which no rows could be made, one after the other: the device is lost.
MOST_UNMADE = 3
TINY_ROWS, TINY_CATEGORIES = (40,), (5,)
# Options that choose by name: what one of them is, and all there are.
NAMED: dict[str, tuple[str, Collection[str]]] = {
    "keys": ("kind of keys", grid.KEYS),
    "distributions": ("distribution", grid.DISTRIBUTIONS),
    "work": ("kind of work", grid.WORKS),
    "contenders": ("contender", CONTENDERS),
}


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rapids",
        description=benchmarks.rapids.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--rows", type=whole_numbers, help="such as 1e8,1e7")
    add("--categories", type=whole_numbers, help="such as 100,1e5")
    for name, (kind, known) in NAMED.items():
        add(f"--{name}", type=names_of(known, kind, True), default=list(known), help=f"of {','.join(known)}")
    add("--dtype", choices=("float64", "float32"), default="float64", help="type of the codes")
    add("--repeats", type=int, default=REPEATS, help="timed calls of each contender in a cell")
    add("--cpu-rows", type=whole_number, default=10_000_000, help="most rows of which our CPU path is asked")
    add("--no-energy", action="store_true", help="ask no energy of the driver, which takes more calls")
    add("--memory-resource", choices=RESOURCES, default="pool", help="RMM's, for all contenders")
    add("--frames", choices=("cudf", "pandas"), default="cudf", help="pandas: in cuDF's place, to try the program")
    add("--tiny", action="store_true", help="a few rows, to try the program")
    add("--cell-limit", type=float, default=CELL_LIMIT, help="seconds; calls that would end later are left out")
    add("--time-limit", type=float, default=FOREVER, help="seconds; what is found by then is kept")
    add("--out", type=Path, help="folder of the results")
    add("--resume", action="store_true", help="keep the cells that an earlier run left in that folder")
    add("--plot-only", type=Path, metavar="FILE", help="draw the results in a rapids.json, beside it or into --out")
    return parser.parse_args(arguments)


def head_of(library: FrameLibrary, options: argparse.Namespace) -> dict[str, Any]:
    """Give what is known before anything is measured."""
    found = {**versions(), **library.versions()}
    return {
        **library.machine(),
        "frames": library.name,
        "stand in": STAND_IN if library.stand_in else "",
        "tiny": options.tiny,
        "commit": found.pop("commit"),
        "versions": found,
        "dtype": options.dtype,
        "repeats": options.repeats,
        "works": {name: work.title for name, work in grid.WORKS.items()},
    }


def run(library: FrameLibrary, options: argparse.Namespace, results: Results, settings: Settings) -> None:
    """Measure cell after cell."""
    rows = options.rows or (TINY_ROWS if options.tiny else grid.ROWS)
    categories = options.categories or (TINY_CATEGORIES if options.tiny else grid.CATEGORIES)
    distributions = [grid.DISTRIBUTIONS[name] for name in options.distributions]
    unmade = 0
    for cell in grid.cells(rows, categories, options.keys, distributions, options.work):
        if results.has(cell, settings.contenders):
            continue
        if settings.late():
            return results.end("cut short: time was up")
        print(cell.name, flush=True)
        said = grid.unfit(cell, 4 if options.dtype == "float32" else 8, library.free())
        records: dict[str, Row] = {}
        if not said:
            results.begin(cell)
            here = settings.for_cell(results.also(cell))
            job = Job(library, cell, options.dtype)
            # Made here, where it is not measured.
            said = attempt(job.made).get("said", "")
            unmade = unmade + 1 if said else 0
            records = {} if said else measure(job, here)
            del job
        results.add(cell, records, said)
        tell(records, said)
        if unmade == MOST_UNMADE:
            return results.end(f"broken: no rows could be made {MOST_UNMADE} times")
    return results.end("done")


def tell(records: dict[str, Row], said: str) -> None:
    """Say what was found, in a line for each contender."""
    if said:
        print(f"  skipped: {said}")
    for name, record in records.items():
        print(f"  {name}: " + (f"{record['seconds'] * 1e3:.3f} ms" if "seconds" in record else record["status"]))


def plot_only(options: argparse.Namespace) -> int:
    """Draw what an earlier run found."""
    if not plot.can_plot():
        print("matplotlib is not installed: pip install 'gpu-encode[plot]'", file=sys.stderr)
        return 2
    folder = options.out or options.plot_only.parent
    folder.mkdir(parents=True, exist_ok=True)
    for path in plot.plot(json.loads(options.plot_only.read_text()), folder):
        print(path)
    return 0


def library_of(options: argparse.Namespace) -> FrameLibrary | None:
    """Give the library of frames; none where cuDF cannot work."""
    if options.frames == "pandas":
        return Pandas()
    if devices.simulated() or find_spec("cudf") is None or not devices.has_gpu():
        return None
    return Cudf(options.memory_resource)


def main(arguments: list[str] | None = None) -> int:
    """Run it; 1 if codes were wrong or ours broke, 2 if it cannot run here."""
    begun, options = time.monotonic(), parsed(arguments)
    if options.plot_only:
        return plot_only(options)
    library = library_of(options)
    if library is None:
        print("No NVIDIA GPU with cuDF found; --tiny --frames pandas runs this without.", file=sys.stderr)
        return 2
    head = head_of(library, options)
    folder = (options.out or folder_of(head)).resolve()
    limits = {"deadline": begun + options.time_limit, "cell_limit": options.cell_limit}
    meter = None if options.no_energy else meter_of(head.get("bus"))
    rate = head["copy bytes a second"]
    settings = Settings(
        tuple(options.contenders), options.repeats, options.cpu_rows, copy_rate=rate, meter=meter, **limits
    )
    try:
        results = Results.open(folder, head, options.resume)
    except RefusedError as error:
        print(error, file=sys.stderr)
        return 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(library, options, results, settings)
    return finished(results, folder)


def folder_of(head: dict[str, Any]) -> Path:
    """Where results go unless the user says so: those of trials are none."""
    if head["stand in"] or head["tiny"]:
        return ROOT / ("build/rapids-stand-in" if head["stand in"] else "build/rapids-tiny")
    return folder_for(ROOT, head["device"], f"{datetime.now(UTC).date().isoformat()}-rapids")


def finished(results: Results, folder: Path) -> int:
    """Draw the results, where that is possible, and say where they are."""
    if results.document["stand in"]:
        print(results.document["stand in"])
    if plot.can_plot():
        try:
            plot.plot(results.document, folder)
        except ValueError as error:
            print(error)
    else:
        print("matplotlib is not installed: --plot-only makes the picture elsewhere, from rapids.json")
    wrong = results.wrong()
    print(f"{folder / 'rapids.md'}: " + (f"wrong: {'; '.join(wrong)}" if wrong else "nothing is wrong"))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
