"""Counts the instructions for a row without a GPU: ``python -m tests.cuda.instructions folds-int [--categories 4096]``.

``--bounds`` writes the lines of `BOUNDS` in test_instructions.py with today's counts.

The cases are those of `benchmarks.gpu.encoders`.  Each case runs in a process that acts as a GPU of one multiprocessor
(`instructions_machine`): the library's own calls launch the PTX that a GPU would get, on this CPU, and the resulting
encodings are compared with the CPU's.  The count of a kernel is the number of instructions that its warps issue, 32
lanes in lockstep; lanes that took different branches join again at the first point that all branches reach.  An
instruction of PTX counts as the machine instructions that it becomes (`instructions_costs`).  A case runs on two
numbers of rows, and the count for rows is the difference, so all costs that do not grow with the rows drop out.
Instructions "a row" are those of a warp for 32 rows.
"""

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.cuda import instructions_machine as machine

# Number of tiles of a run, and rows of a tile; a second run has tiles of twice as many rows.
TILES, TWICE = 5, 2
TILE = 1 << 16
# Rows of a tile of orders, and the factor for the second run: both sizes fill the domain of their permutation, a
# power of four, as 1e8 rows do, and consist of whole blocks.
TILE_OF_ORDERS, FOUR_TIMES = 76 << 8, 4
# Above MANY categories a share of them is counted, so that each has several rows; costs per category are multiplied.
MANY, SHARE = 1 << 16, 16
# Host calls are counted with few categories.  Each has thousands of rows, as with 1e8 rows, so that ties are settled.
FEW, FEW_ROWS = 8, 1 << 12
# Thresholds for many rows, lowered so that these few rows exceed them, as 1e8 rows do.
SETTINGS = {
    "partition.FEWEST_ROWS": 0,
    "sums.SAMPLED_ROWS": 0,
    "categories.GUESSED_FROM": 1 << 10,
    "categories.ROWS_A_MARK": 0,
    "memory.STAGE": 1 << 60,
}
# These tables have room for a share of the categories, but not for all: they are turned off.
OF_A_SHARE = {"windows.MOST_GROUPS": 0}
# Largest tables, in bytes, for a multiprocessor's own memory, and for the cache that all multiprocessors share.
NEAR, CACHED = 128 << 10, 48 << 20
SECTOR = 32
# Fewer instructions per row than this are no work on rows: the rest of a launch differs a little between two runs.
LEAST = 1
# Fewer bytes per row to the host than this come from tables that do not have all their lines yet.
LEAST_TO_HOST = 6.0
GPU_TILE, GPU_ROWS = 1 << 23, 10**8
OF_THE_SIMULATOR = ("NUMBA_ENABLE_CUDASIM", "GPU_ENCODE_SIMULATED_ARRAYS", "OPS_BACKENDS")


@dataclass
class Cost:
    """Cost of the launches of one kernel: instructions of warps, atomics, bytes and 32-byte sectors.

    The costs `row` are per row (instructions: per warp of 32 rows), the costs `call` are for all rows of a call.

    Parameters
    ----------
    instructions, shared_atomics, global_atomics : float
    moved : float
        Bytes that lanes read and write in arrays that grow with the rows.
    cached, far, scattered : float
        Sectors touched in addition to the minimum of contiguous accesses: in tables that fit the shared cache, in
        larger tables, and in arrays that grow with the rows.
    """

    instructions: float = 0.0
    shared_atomics: float = 0.0
    global_atomics: float = 0.0
    moved: float = 0.0
    cached: float = 0.0
    far: float = 0.0
    scattered: float = 0.0


@dataclass
class Kernel:
    """A kernel of a case: the number of its launches, and its costs."""

    launches: int
    row: Cost
    call: Cost


@dataclass
class Counts:
    """Costs of a case on a GPU with 1e8 rows; each number of calls is a pair (outside of tiles, per tile).

    Parameters
    ----------
    kernels : dict
    launches, library, waits : tuple of (float, float)
        Launches of kernels; functions of the array library and copies from the host; waits of the host.
    library_bytes : float
        Bytes per row that functions of the array library move.
    to_host : tuple of (float, float)
        Bytes that go to the host: for any number of rows, and per row.
    """

    kernels: dict[str, Kernel] = field(default_factory=dict)
    launches: tuple[float, float] = (0.0, 0.0)
    library: tuple[float, float] = (0.0, 0.0)
    waits: tuple[float, float] = (0.0, 0.0)
    library_bytes: float = 0.0
    to_host: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def of(cls, document: dict[str, Any]) -> "Counts":
        """Read a document that `asdict` made."""
        kernels = {
            name: Kernel(each["launches"], Cost(**each["row"]), Cost(**each["call"]))
            for name, each in document["kernels"].items()
        }
        pairs = {name: tuple(document[name]) for name in ("launches", "library", "waits", "to_host")}
        return cls(**document | pairs | {"kernels": kernels})


@dataclass
class Run:
    """A run on `rows` rows: launches, other calls on the device, encodings."""

    rows: int
    launches: list[machine.Launch]
    events: list[Any]


class Case:
    """A case of `benchmarks.gpu.encoders`, or a case with several keys, with `n_categories` categories."""

    def __init__(self, name: str, n_categories: int) -> None:
        self.share = SHARE if n_categories > MANY else 1
        n_categories //= self.share
        self.drawn = import_module("benchmarks.gpu.drawn")
        encoders = import_module("benchmarks.gpu.encoders")
        self.name, self.n_categories, self.encoders = name, n_categories, encoders
        self.case = (encoders.CASES | encoders.MORE_CASES)[name]

    @property
    def in_tiles(self) -> bool:
        """Whether the call works on a tile of rows at a time."""
        return isinstance(self.case.options.get("cv"), import_module("gpu_encode").Ordered)

    def run(self, tiles: int, tile: int, compared: bool = False) -> Run:
        """Run the case on its own rows."""
        n_rows, xp = tiles * tile, import_module("gpu_encode.cuda.runtime").xp
        keys = self.encoders.table_of(self.case, n_rows, self.n_categories)
        target = self.drawn.COLUMNS[self.case.target](n_rows)
        X, y = xp.asarray(keys), xp.asarray(target)
        settings = SETTINGS | ({"*.TILE": tile, "ordered.MOST_ROWS": tile} if self.in_tiles else {})
        settings |= OF_A_SHARE if self.share > 1 else {}
        with machine.counting(settings):
            call = self.encoders.call_of(SimpleNamespace(backend="cuda"), self.case, X, y)
            if self.case.work == "transform":
                # The first call makes a table that later calls reuse.
                call()
        with machine.counting(settings) as (launches, events):
            result = call()
        if compared:
            self.compare(keys, target, result)
        return Run(n_rows, launches, list(events))

    def compare(self, keys: Any, target: Any, result: Any) -> None:
        """Compare encodings with those of the CPU."""
        ops = import_module("gpu_encode.seam.ops")
        make = import_module("gpu_encode").TargetEncoder
        kind = self.encoders.KINDS.get(self.case.target, "binary")
        encoder = make(target_type=kind, dtype="float32", device="cpu", **self.case.options)
        with ops.use_backend("compiled"):
            expected = (
                encoder.fit_transform(keys, target)
                if self.case.work == "fit_transform"
                else encoder.fit(keys, target).transform(keys)
            )
        assert np.array_equal(result.held.view(np.uint32), expected.view(np.uint32)), "other bits than the CPU's"

    def count(self) -> Counts:
        """Count what rows cost."""
        tile, times = (TILE_OF_ORDERS, FOUR_TIMES) if self.in_tiles else (TILE, TWICE)
        small, large = self.run(TILES, tile, compared=True), self.run(TILES, times * tile)
        counts = compare(small, large, self.share)
        few = Case(self.name, FEW)
        few.run(1, FEW_ROWS)
        hosts = [few.run(TILES * more, FEW_ROWS) for more in (1, 2)]
        if self.in_tiles:
            counts.launches = per_tile([len(run.launches) for run in (small, self.run(TILES * 2, tile // 2))])
            counts.library_bytes = growing_bytes(small, large) / (large.rows - small.rows)
        else:
            counts.launches = len(small.launches), 0.0
            counts.library_bytes = growing_bytes(*hosts) / (hosts[1].rows - hosts[0].rows)
        counts.library, counts.waits = (calls_of(hosts, waits) for waits in (False, True))
        return counts


def kernels_of(run: Run) -> dict[str, list[machine.Launch]]:
    """Return the launches by kernel."""
    found: dict[str, list[machine.Launch]] = {}
    for launch in run.launches:
        found.setdefault(launch.kernel, []).append(launch)
    return found


def homes_of(launch: machine.Launch, larger: machine.Launch, rows: tuple[int, int], share: int) -> list[str]:
    """Classify each array of a launch on a GPU: "rows" if it grows with the rows, otherwise a table, by its size."""
    homes = []
    for access, other in zip(launch.accesses, larger.accesses, strict=True):
        growth = (other.size - access.size) / (rows[1] - rows[0])
        size = (access.size - growth * rows[0]) * share + growth * GPU_ROWS
        of_rows = growth * rows[0] > access.size / 2
        homes.append("rows" if of_rows else "far" if size > CACHED else "cached" if size > NEAR else "near")
    return homes


def cost_of(launches: list[machine.Launch], homes: list[list[str]]) -> Cost:
    """Add up the costs of launches."""
    cost = Cost()
    for launch, where in zip(launches, homes, strict=True):
        cost.instructions += launch.instructions
        cost.shared_atomics += launch.shared_atomics
        for access, home in zip(launch.accesses, where, strict=True):
            beyond = max(0.0, sum(access.sectors) - sum(access.moved) / SECTOR)
            cost.global_atomics += access.lanes[2]
            cost.moved += access.moved[0] + access.moved[1] if home == "rows" else 0
            cost.scattered += beyond if home == "rows" else 0
            cost.far += beyond if home == "far" else 0
            cost.cached += beyond if home == "cached" else 0
    return cost


def compare(small: Run, large: Run, share: int) -> Counts:
    """Compare a run with one on more rows."""
    before, after, rows = kernels_of(small), kernels_of(large), (small.rows, large.rows)
    counts = Counts()
    for name, launches in before.items():
        others = after.get(name, [])
        if len(others) == len(launches):
            homes = [homes_of(*pair, rows, share) for pair in zip(launches, others, strict=True)]
            ours, theirs = cost_of(launches, homes), cost_of(others, homes)
        else:
            # Launches without a counterpart in the other run: their arrays are classified by size alone.
            homes = [["rows" if 8 * each.size > small.rows else "near" for each in it.accesses] for it in launches]
            beyond = [["rows" if 8 * each.size > large.rows else "near" for each in it.accesses] for it in others]
            ours, theirs = cost_of(launches, homes), cost_of(others, beyond)
        # Kernels that only one run launches settle its doubtful categories.
        on_rows = others and any("rows" in each for each in homes)
        counts.kernels[name] = Kernel(
            len(launches), *costs_of(ours, theirs if others else ours, rows, share, bool(on_rows))
        )
    here, there = (
        sum(n * size for each in run.events if each.kind == "SYNC" for n, size in each.arrays) for run in (small, large)
    )
    a_row = max(0.0, (there - here) / (large.rows - small.rows))
    counts.to_host = (share * (here - a_row * small.rows), a_row) if a_row > LEAST_TO_HOST else (share * there, 0.0)
    return counts


def costs_of(ours: Cost, theirs: Cost, rows: tuple[int, int], share: int, on_rows: bool) -> tuple[Cost, Cost]:
    """Return the costs per row and per call, from the costs of two runs."""
    if not on_rows:
        return Cost(), Cost(**{name: share * value for name, value in asdict(theirs).items()})
    row, call = Cost(), Cost()
    for name, value in asdict(ours).items():
        slope = (getattr(theirs, name) - value) / (rows[1] - rows[0])
        setattr(row, name, slope * (32 if name == "instructions" else 1))
        setattr(call, name, share * max(0.0, value - slope * rows[0]))
    return row, call


def calls_of(runs: list[Run], waits: bool) -> tuple[float, float]:
    """Count waits, or calls of the array library, for `TILES` and twice as many tiles: (outside of tiles, per tile).

    Calls that only one run makes, to settle doubtful categories, are not counted.
    """
    few, more = (Counter(each.key for each in run.events if (each.kind == "SYNC") == waits) for run in runs)
    found = [0.0, 0.0]
    for key in few.keys() & more.keys():
        a_tile = (more[key] - few[key]) // TILES if few[key] < more[key] and (more[key] - few[key]) % TILES == 0 else 0
        found[1] += a_tile
        found[0] += few[key] - TILES * a_tile if a_tile else min(few[key], more[key])
    return found[0], found[1]


def per_tile(found: list[int]) -> tuple[float, float]:
    """Return the calls outside of tiles and per tile, from the counts for `TILES` and twice as many tiles."""
    a_tile = (found[1] - found[0]) / TILES
    return found[0] - TILES * a_tile, a_tile


def growing_bytes(small: Run, large: Run) -> float:
    """Additional bytes that array library functions move for twice the rows, in calls that both runs make."""
    by_line: list[dict[Any, list[int]]] = [{}, {}]
    for run, found in zip((small, large), by_line, strict=True):
        for event in run.events:
            if event.kind not in ("SYNC", "H2D"):
                found.setdefault(event.key, []).append(sum(n * size for n, size in event.arrays))
    same = [key for key, sizes in by_line[0].items() if len(by_line[1].get(key, ())) == len(sizes)]
    return float(sum(sum(by_line[1][key]) - sum(by_line[0][key]) for key in same))


def stamp() -> str:
    """Return a hash of the sources."""
    root = machine.ROOT
    paths = [
        path
        for part in ("gpu_encode", "cpu_fallback")
        for path in sorted((root / part).rglob("*"))
        if path.suffix in (".py", ".cu", ".cuh")
    ]
    paths += [*sorted(Path(__file__).parent.glob("instructions*")), root / "benchmarks/gpu/encoders.py"]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()[:16]


def count_here(name: str, n_categories: int) -> Counts:
    """Count a case, in a process that has not loaded the backend before."""
    path = machine.FOLDER / f"{name}-{n_categories}-{stamp()}.json"
    return Counts.of(
        json.loads(machine.kept(path.name, lambda: json.dumps(asdict(Case(name, n_categories).count()))).read_text())
    )


def count(cases: list[tuple[str, int]]) -> dict[tuple[str, int], Counts]:
    """Count cases, given as (name, number of categories), in a separate process."""
    found = {}
    # That process uses real kernels, even if this one uses the simulator.
    environment = {name: value for name, value in os.environ.items() if name not in OF_THE_SIMULATOR}
    for n_categories in dict.fromkeys(each for _, each in cases):
        names = [name for name, each in cases if each == n_categories]
        command = [sys.executable, "-m", "tests.cuda.instructions", *names, "--categories", str(n_categories), "--json"]
        done = subprocess.run(command, cwd=machine.ROOT, capture_output=True, check=False, text=True, env=environment)
        if done.returncode:
            raise RuntimeError(done.stderr[-3000:])
        lines = done.stdout.splitlines()[-len(names) :]
        found |= {(name, n_categories): Counts.of(json.loads(line)) for name, line in zip(names, lines, strict=True)}
    return found


def lines_of(name: str, counts: Counts) -> Iterator[str]:
    """Yield the lines of a case's table of costs."""
    calls = ", ".join(
        f"{name} {fixed:g}{f' + {a_tile:g} a tile' if a_tile else ''}"
        for name, (fixed, a_tile) in (("launches", counts.launches), ("CuPy", counts.library), ("waits", counts.waits))
    )
    host = f"{counts.to_host[0] / 1e6:.2f} MB and {counts.to_host[1]:.1f} bytes a row to the host"
    yield f"### {name}: {calls}; {host}, {counts.library_bytes:.1f} bytes a row by CuPy"
    heads = f"{'launches':>9}{'a row':>9}{'a call':>12}{'shared at.':>11}{'global at.':>11}"
    yield f"{'kernel':44}{heads}{'B/row':>8}{'cached':>8}{'far':>8}{'scattered':>10}"
    for kernel, each in counts.kernels.items():
        row = each.row
        numbers = f"{row.shared_atomics:11.2f}{row.global_atomics:11.2f}{row.moved:8.1f}"
        numbers += f"{row.cached:8.2f}{row.far:8.2f}{row.scattered:10.2f}"
        yield f"{kernel:44}{each.launches:9}{row.instructions:9.1f}{each.call.instructions:12.0f}{numbers}"


def bounds_of(counts: Counts) -> dict[str, int]:
    """Return the costs of the kernels on rows, in whole instructions per row."""
    found = {kernel: math.ceil(round(each.row.instructions, 1)) for kernel, each in counts.kernels.items()}
    return {kernel: number for kernel, number in found.items() if number > LEAST}


def main() -> None:
    """Read the arguments, count, and write."""
    parser = argparse.ArgumentParser(description="Count what rows cost on a GPU, without one.")
    parser.add_argument("cases", nargs="+", help="of benchmarks/gpu/encoders.py")
    parser.add_argument("--categories", type=lambda text: int(float(text)), default=4096)
    parser.add_argument("--json", action="store_true", help="a line of JSON for each case")
    parser.add_argument("--bounds", action="store_true", help="a line of BOUNDS for each case")
    given = parser.parse_args()
    # Loaded before the backend: NumPy makes the rows.
    import_module("benchmarks.gpu.drawn")
    machine.install()
    for name in given.cases:
        counts = count_here(name, given.categories)
        lines = [json.dumps(asdict(counts))] if given.json else lines_of(name, counts)
        lines = [f'    "{name}": {json.dumps(bounds_of(counts))},'] if given.bounds else lines
        sys.stdout.writelines(f"{line}\n" for line in lines)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
