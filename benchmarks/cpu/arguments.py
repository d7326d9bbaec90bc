"""The command line of benchmarks whose contenders are timed in turns."""

import argparse
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.gpu.arguments import names_of, whole_number, whole_numbers
from benchmarks.gpu.machine import ROOT


def parser_of(
    module: str, description: str | None, works: Collection[str], keys: Collection[str], contenders: Collection[str]
) -> argparse.ArgumentParser:
    """Give a reader of what all of them take.

    Parameters
    ----------
    module : str
        What is run.
    description : str
    works, keys, contenders : collection of str
        What there is.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--rows", type=whole_numbers, help="such as 1e6,1e7")
    add("--categories", type=whole_numbers, help="such as 100,1e5,1e6")
    for name, known in (("works", works), ("keys", keys), ("contenders", contenders)):
        add(f"--{name}", type=names_of(known, name.rstrip("s"), True), help=f"of {','.join(known)}")
    add("--also", action="append", default=[], metavar="MODULE:NAME", help="a further contender")
    add("--repeats", type=whole_number, help="timed calls of each contender; by its speed unless given")
    add("--contender-limit", type=float, default=60.0, help="seconds; slower contenders are not run")
    add("--out", type=Path, help="folder of the results")
    add("--resume", action="store_true", help="keep the cells that an earlier run left in that folder")
    add("--quick", action="store_true", help="every line once on a few rows, which measures nothing")
    return parser


def folder_of(options: argparse.Namespace, stem: str) -> Path:
    """Where results go."""
    if options.out:
        return Path(options.out).resolve()
    return ROOT / (f"build/{stem}-quick" if options.quick else f"benchmarks/results/{stem}-{datetime.now(UTC).date()}")
