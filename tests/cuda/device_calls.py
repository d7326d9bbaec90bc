"""Counts what calls do on a GPU, in the simulator: ``python -m tests.cuda.device_calls [case ...] [--tiles 12]``.

Without a case it prints a table of all cases; with cases, which may be patterns (``"ordered-*"``), their calls line by
line.  Device calls are launches of kernels, functions of CuPy and copies from the host; waits of the host are counted
separately.

A case runs three times: on a few tiles, on more tiles of the same size, and on a few larger tiles.  The difference
between the calls of the second run and of the first are the calls for each tile.  The third run makes the same calls as
the first, so the difference in the sizes of its arrays shows which sizes grow with the rows; tables do not grow, and
count 0.  If a call chooses a way by the size of its sums, it chooses the way for few rows.
"""

import argparse
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from fractions import Fraction
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pytest

from gpu_encode import KFold, LeaveOneOut, Ordered, TargetEncoder, interactions
from tests.cuda.call_recorder import KERNEL, RAW, SYNC, TO_DEVICE, Event, load_backend, recording

# Number of tiles in the first and third run, and in the second: no array of a tile has as many items per row.
FEW, MORE = 11, 13
# Rows of a tile in the first two runs, and in the third.  Both have the same octave, so that orders have equally many
# checkpoints; shares of a tile leave a remainder where they do in a GPU's tiles, whose size is a power of two.
TILES = (64, 88)
# Tables of encodings with folds are made in tiles too; these tables are smaller than one tile.
TILES_OF_FOLDS = (256, 352)
# Tiles of orders of blocks hold whole blocks, as on a GPU.
TILES_OF_BLOCKS = (64, 80)
# Kernels that get all rows as an argument, but read only the few rows of a list.
OF_A_LIST = ("leave_row_out_and_encode",)
CATEGORIES = 3
# Number of columns of joint keys.
WIDTH = 4
SETTINGS = {"NUMBA_ENABLE_CUDASIM": "1", "GPU_ENCODE_SIMULATED_ARRAYS": "tests.cuda.stand_in"}


class Case(NamedTuple):
    """A call on device arrays, described by types and parameters; its encodings are float32.

    With an `order` its keys are `width` columns and all their conjunctions of up to `order` columns.
    """

    cv: Any
    target: str = "int32"
    smooth: Any = 10.0
    keys: str = "int32"
    call: str = "fit_transform"
    order: int = 0
    width: int = WIDTH

    @property
    def tiles(self) -> tuple[int, int]:
        """Rows of a tile, and of a larger tile."""
        if isinstance(self.cv, KFold):
            return TILES_OF_FOLDS
        return TILES_OF_BLOCKS if isinstance(self.cv, Ordered) and self.cv.block > 1 else TILES


SCHEMES = {
    "folds": KFold(5),
    "loo": LeaveOneOut(),
    "ordered": Ordered(),
    "ordered-rows": Ordered(shuffle=False),
    # "auto" takes blocks of 256 rows for 1e8 rows, and of one row here.  Blocks of 16 rows use the same kernels; their
    # numbers, which are read once per row, take one byte per row, and those of 256 rows take a sixteenth of it.
    "ordered-blocks": Ordered(block=16),
}
TARGETS = {"int": {}, "f32": {"target": "float32"}}
SMOOTHINGS = {"": {}, "-auto": {"smooth": "auto"}}
CASES = {
    f"{scheme}-{target}{smoothing}": Case(cv, **TARGETS[target], **SMOOTHINGS[smoothing])
    for scheme, cv in SCHEMES.items()
    for target in TARGETS
    for smoothing in SMOOTHINGS
    if (scheme, smoothing) not in [("ordered-blocks", "-auto"), ("ordered-rows", "-auto")]
}
CASES |= {
    # The first call for new rows makes tables of encodings, which later calls reuse.
    "first-transform": Case(KFold(5), call="first transform"),
    "transform": Case(KFold(5), call="transform"),
}
CASES |= {
    f"{name}-int64-keys": CASES[name]._replace(keys="int64")
    for name in ("folds-int", "loo-int", "ordered-int", "transform")
}
CASES |= {f"wide-{order}": Case(KFold(5), order=order) for order in (2, 3, 4)}
# Fewer columns and more of them: what a call does does not depend on their number.
CASES |= {f"wide-of-{width}": Case(KFold(5), order=order, width=width) for width, order in ((2, 2), (9, 1))}
CASES |= {
    f"{name}-{call.replace(' ', '-')}": CASES[name]._replace(call=call)
    for call in ("fit", "first transform", "transform")
    for name in ("wide-2", "wide-4", "wide-of-9")
}


@contextmanager
def in_tiles(n_rows: int) -> Iterator[None]:
    """Set tiles of `n_rows` rows, and lower the thresholds for many rows so that these few rows reach them."""
    load_backend()
    small = {"TILE": n_rows, "MOST_ROWS": n_rows, "CHECKPOINT_BITS": 1, "EXACT_RANKS": 2}
    small |= dict.fromkeys(("FEW_ROWS", "GUESSED_FROM", "SAMPLE"), 16)
    # With 1e8 rows, orders with counted cells are one tile, and sums are one slab (really three).  No other order has
    # fewer rows because of its many digits.
    small |= {"RANKS": 1 << 27, "BYTES_A_ROW": 1 << 20}
    owners = {"TILE": "gpu_encode.cuda", "MOST_ROWS": "gpu_encode.cuda.ordered", "SAMPLE": "gpu_encode.fitting.model"}
    owners["FEW_ROWS"] = "gpu_encode.sums.targets"
    import_module("gpu_encode.fitting.ordered")
    with pytest.MonkeyPatch.context() as patch:
        for module in [module for name, module in sys.modules.items() if name.startswith("gpu_encode.")]:
            for name in small.keys() & vars(module).keys():
                if module.__name__.startswith(owners.get(name, "gpu_encode.")):
                    patch.setattr(module, name, small[name])
        yield


def record(case: Case, tiles: int, tile: int) -> list[Event]:
    """Run a case on its own rows, and record what reaches the device."""
    memory, numbers = import_module("gpu_encode.cuda.memory"), np.arange(tiles * tile)
    columns = [numbers // CATEGORIES**k % CATEGORIES for k in range(case.width if case.order else 1)]
    X = memory.to_device(np.stack(columns, axis=1).astype(case.keys))
    # Classes, or float32 numbers between 1 and 2 with all bits used: sums of any rows take equally many digits.
    y = numbers // 2 % 2 if case.target == "int32" else 1 + numbers * 2_654_435_761 % 2**23 / 2**23
    y = memory.to_device(y.astype(case.target))
    keys = interactions(range(case.width), case.order) if case.order else None
    encoder = TargetEncoder(cv=case.cv, smooth=case.smooth, dtype="float32", device="cuda", columns=keys)
    with in_tiles(tile):
        if case.call.endswith("transform") and case.call != "fit_transform":
            encoder.fit(X, y)
        if case.call == "transform":
            encoder.transform(X)
        with recording() as events:
            if case.call.startswith("fit"):
                getattr(encoder, case.call)(X, y)
            else:
                encoder.transform(X)
    return events


def growing_bytes(event: Event, larger: Event, tiles: tuple[int, int]) -> Fraction:
    """Additional bytes that a call touches for each additional row.

    A call on a tile may get all rows, but touches only the rows of the tile.  Its arrays, or its numbers (where the
    tile starts, how many rows it has), are then multiples of the tile's rows, and not of all rows.
    """
    small, large = tiles
    more, more_rows = large - small, FEW * (large - small)
    growth = [after - before for (before, _), (after, _) in zip(event.arrays, larger.arrays, strict=True)]
    if event.key[1] in OF_A_LIST and any(growth):
        shortest = min(more_of for more_of in growth if more_of)
        growth = [min(more_of, shortest) for more_of in growth]
    of_tile = [more_of % more == 0 and more_of % more_rows > 0 for more_of in growth]
    of_tile += [
        before * large == after * small and before % small == 0 and before % (FEW * small) > 0
        for before, after in zip(event.numbers, larger.numbers, strict=True)
    ]
    shares = [FEW if any(of_tile) and more_of % more_rows == 0 else 1 for more_of in growth]
    touched = [more_of * size for more_of, (_, size) in zip(growth, event.arrays, strict=True)]
    return sum((Fraction(each, share * more_rows) for each, share in zip(touched, shares, strict=True)), Fraction())


class Line(NamedTuple):
    """All calls of one kind from one line."""

    key: tuple[str, str, str]
    fixed: Fraction
    a_tile: Fraction
    bytes_a_row: Fraction

    @property
    def waits(self) -> bool:
        """Whether the host waits."""
        return self.key[0] == SYNC

    def of(self, tiles: int) -> int:
        """Return the number of calls for a number of tiles."""
        return int(self.fixed + tiles * self.a_tile)


@dataclass(frozen=True)
class Counts:
    """What a case does on the device, line by line; each number of calls is a pair (outside of tiles, per tile)."""

    lines: list[Line]

    @classmethod
    def of(cls, few: list[Event], more: list[Event], larger: list[Event], tiles: tuple[int, int]) -> "Counts":
        """Compare three runs, which differ in the number and the size of tiles."""
        assert [event.key for event in few] == [event.key for event in larger], "calls depend on the size of a tile"
        calls, with_more, moved = Counter(e.key for e in few), Counter(e.key for e in more), Counter[Any]()
        for event, same in zip(few, larger, strict=True):
            moved[event.key] += growing_bytes(event, same, tiles)
        slopes = {key: Fraction(with_more[key] - calls[key], MORE - FEW) for key in calls | with_more}
        return cls([Line(key, calls[key] - FEW * slope, slope, Fraction(moved[key])) for key, slope in slopes.items()])

    @property
    def calls(self) -> tuple[Fraction, Fraction]:
        """Launches, functions of CuPy and copies from the host."""
        return self._sum(waits=False)

    @property
    def waits(self) -> tuple[Fraction, Fraction]:
        """Waits of the host."""
        return self._sum(waits=True)

    @property
    def bytes_a_row(self) -> Fraction:
        """Bytes of arrays that grow with the rows; each call reads or writes each array once."""
        return sum((line.bytes_a_row for line in self.lines), Fraction())

    def _sum(self, waits: bool) -> tuple[Fraction, Fraction]:
        lines = [line for line in self.lines if line.waits == waits]
        return sum((line.fixed for line in lines), Fraction()), sum((line.a_tile for line in lines), Fraction())

    def number(self, *kinds: str, tiles: int) -> int:
        """Return the number of calls of some kinds for a number of tiles."""
        return sum(line.of(tiles) for line in self.lines if line.key[0] in kinds)


def compare(run: Callable[[int, int], list[Event]], tiles: tuple[int, int]) -> Counts:
    """Count the device calls of a function that runs on a number of tiles of some rows; a first run is not counted."""
    small, large = tiles
    run(1, small)
    return Counts.of(run(FEW, small), run(MORE, small), run(FEW, large), tiles)


def count(case: Case) -> Counts:
    """Count the device calls of a case."""
    return compare(partial(record, case), case.tiles)


HEAD = f"{'case':26}{'calls':>7}{'a tile':>8}{'waits':>7}{'a tile':>8}{'B/row':>8}"


def summarize(name: str, counts: Counts) -> str:
    """Return the line of a case."""
    numbers = [f"{float(number):g}" for number in (*counts.calls, *counts.waits, counts.bytes_a_row)]
    return f"{name:26}" + "".join(f"{text:>{width}}" for text, width in zip(numbers, (7, 8, 7, 8, 8), strict=True))


def list_calls(name: str, counts: Counts, tiles: int) -> Iterator[str]:
    """Return the calls of a case for a number of tiles, with a line for each line of the package."""
    calls, waits = (int(fixed + tiles * a_tile) for fixed, a_tile in (counts.calls, counts.waits))
    launches, copies = counts.number(KERNEL, RAW, tiles=tiles), counts.number(TO_DEVICE, tiles=tiles)
    yield (
        f"### {name} ({tiles} tiles): {calls} device calls ({launches} launches, {copies} H2D, "
        f"{calls - launches - copies} of CuPy), {waits} waits, {float(counts.bytes_a_row):g} bytes a row"
    )
    for line in counts.lines:
        kind, function, where = line.key
        yield f"{line.of(tiles):8} x {kind:7} {function:20}{float(line.bytes_a_row):9.1f} B/row  {where}"


def main() -> None:
    """Read the arguments and write the table, or the calls."""
    parser = argparse.ArgumentParser(description="Count what calls do on a GPU, in the simulator.")
    parser.add_argument("cases", nargs="*", help="list the calls of these")
    parser.add_argument("--tiles", type=int, default=12, help="as so many tiles make them; 12 are 1e8 rows")
    given = parser.parse_args()
    chosen = [name for name in CASES if not given.cases or any(fnmatch(name, each) for each in given.cases)]
    if not chosen:
        parser.error(f"cases are {', '.join(CASES)}")
    if not given.cases:
        sys.stdout.write(f"{HEAD}\n")
    for name in chosen:
        counts = count(CASES[name])
        lines = list_calls(name, counts, given.tiles) if given.cases else [summarize(name, counts)]
        sys.stdout.writelines(f"{line}\n" for line in lines)
        sys.stdout.flush()


if __name__ == "__main__":
    # The backend reads these settings when it is loaded, and nothing has loaded it yet.
    os.environ.update(SETTINGS)
    warnings.simplefilter("ignore")
    main()
