"""Who is compared, a family a file."""

from importlib import import_module

from benchmarks.cpu.contenders import duckdb_forms, hand_written, libraries, limit, ours, polars_forms
from benchmarks.cpu.contenders.base import Contender
from benchmarks.cpu.grid import Cell

MODULES = (ours, libraries, polars_forms, duckdb_forms, hand_written, limit)
CONTENDERS: dict[str, Contender] = {each.name: each for module in MODULES for each in module.CONTENDERS}


def contender(name: str) -> Contender:
    """Find a contender: one of these, or one that a module elsewhere holds, as `module:NAME`."""
    if ":" in name:
        module, _, attribute = name.partition(":")
        found: Contender = getattr(import_module(module), attribute)
        return found
    return CONTENDERS[name]


def contenders_for(cell: Cell, names: list[str]) -> list[str]:
    """Those of the named that do the work of a cell and whose libraries are installed."""
    return [name for name in names if contender(name).does(cell) and not contender(name).missing]
