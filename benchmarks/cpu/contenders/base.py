"""What a contender is."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.cpu.grid import FOLD_WORKS, KEYS, N_FOLDS, WORKS, Cell
from benchmarks.cpu.judge import LABELS, Expected
from benchmarks.cpu.rows import Array, Rows

FAMILIES = {
    "ours": "ours",
    "scikit-learn": "scikit-learn",
    "library": "best library",
    "engine": "best engine",
    "hand-written": "best hand-written",
    "limit": "limit",
    "limit, twice": "limit, values looked up twice",
}
SCHEMES = {"ordered": "ordered", "leave-one-out": "leave-one-out", "count": "count", "codes": "codes"}
NUMBERS = ("int", "sparse")
# An order's prior is taken at its places of nine binary digits and zeros.
DIGITS_OF_PLACE = 9


@dataclass(frozen=True)
class Prepared:
    """A contender with the rows of a cell.

    Parameters
    ----------
    call : callable
        What is measured: native container in, NumPy array (or what NumPy makes one of) out, in the order of the rows.
    expected : Expected
        What it should give.
    finish : callable, optional
        What has to be given back at the end.
    """

    call: Callable[[], Any]
    expected: Expected
    finish: Callable[[], Any] = bool


@dataclass(frozen=True)
class Contender:
    """One way to do some kinds of work.

    Parameters
    ----------
    name : str
    family : str
        One of `FAMILIES`.
    prepare : callable
        Rows to `Prepared`.
    works, keys : tuple of str
        What it does.
    needs : tuple of str
        Modules without which it cannot run.
    compiles : bool
        Whether it compiles what it needs in a first call with as many rows.
    """

    name: str
    family: str
    prepare: Callable[[Rows], Prepared]
    works: tuple[str, ...] = tuple(WORKS)
    keys: tuple[str, ...] = tuple(KEYS)
    needs: tuple[str, ...] = ()
    compiles: bool = False

    def does(self, cell: Cell) -> bool:
        """Whether it does this work on these keys."""
        return cell.work in self.works and cell.keys in self.keys

    @property
    def missing(self) -> list[str]:
        """Modules that it needs and that are not installed."""
        return [name for name in self.needs if find_spec(name) is None]


def splitter(kind: str) -> Any:
    """What scikit-learn splits rows with; before 1.9 its encoder takes a number only."""
    from sklearn.model_selection import KFold, StratifiedKFold

    return (KFold if kind == "continuous" else StratifiedKFold)(N_FOLDS, shuffle=True, random_state=0)


def splitting(kind: str) -> dict[str, Any]:
    """The same as arguments of scikit-learn's TargetEncoder."""
    import sklearn

    release = tuple(int(number) for number in sklearn.__version__.split(".")[:2])
    return {"cv": splitter(kind)} if release >= (1, 9) else {"cv": N_FOLDS, "random_state": 0}


def expected_of(rows: Rows, **changes: Any) -> Expected:
    """What those give who take given folds, the order of the rows, and the mean of all targets for prior."""
    scheme = SCHEMES.get(rows.work, "folds" if rows.work in FOLD_WORKS else "all")
    given: dict[str, Any] = {"folds": rows.folds if scheme == "folds" else None}
    if rows.work == "classes":
        given["classes"] = LABELS
    return Expected(scheme, **{**given, **changes})


def floored(places: Array) -> Array:
    """Places with all but their highest binary digits cleared."""
    spare = np.maximum(np.frexp(places.astype(np.float64))[1] - DIGITS_OF_PLACE, 0)
    found: Array = places >> spare << spare
    return found
