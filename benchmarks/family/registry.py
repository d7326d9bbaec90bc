"""Contenders by name."""

from benchmarks.cpu.contenders.base import Contender
from benchmarks.family.contenders.libraries import CONTENDERS as OF_LIBRARIES
from benchmarks.family.contenders.ours import CONTENDERS as OURS
from benchmarks.family.contenders.pandas_forms import CONTENDERS as OF_PANDAS
from benchmarks.family.contenders.polars_forms import CONTENDERS as OF_POLARS

CONTENDERS: dict[str, Contender] = {each.name: each for each in (*OURS, *OF_LIBRARIES, *OF_POLARS, *OF_PANDAS)}
# By such names processes of `benchmarks.cpu` find contenders of other modules.
HOME = f"{__name__}:"


def __getattr__(name: str) -> Contender:
    """Find a contender as an attribute of this module."""
    if name in CONTENDERS:
        return CONTENDERS[name]
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
