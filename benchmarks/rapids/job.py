"""The work of one cell and its rows, for the contenders and the judge."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.gpu.drawn import DRAWN, codes, labels
from benchmarks.rapids.library import Pandas, library
from cpu_fallback.row_numbers import Permutation
from cpu_fallback.types import Array
from gpu_encode import KFold, LeaveOneOut, Ordered, interactions
from gpu_encode.schemes.plans import seed_of
from gpu_encode.seam.ops import resolve

N_FOLDS, N_CLASSES = 5, 10
# The number of rows of a category that weighs as much as the prior.
SMOOTH = 10.0
# Categories of the second and third column, if a work has three.
FEWER_CATEGORIES = (1000, 100)
FOLDS = {"cv": KFold(N_FOLDS, order="interleaved")}


@dataclass(frozen=True)
class Work:
    """One kind of work, which every contender does in its own way.

    Parameters
    ----------
    options : dict
        Parameters of our encoder, in addition to smoothing and prior.
    n_keys : int
        Columns of categories; if there are several, all pairs are keys, too.
    n_classes : int
        Classes of the target.
    """

    options: dict[str, Any] = field(default_factory=dict)
    n_keys: int = 1
    n_classes: int = 2

    @property
    def names(self) -> list[str]:
        """Names of the columns of categories."""
        return ["a", "b", "c"][: self.n_keys]

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """List the columns of each key, in the order of the output."""
        keys = interactions(self.names, order=min(self.n_keys, 2))
        return [key if isinstance(key, tuple) else (key,) for key in keys]

    @property
    def n_outputs(self) -> int:
        """The number of columns of encodings."""
        return len(self.groups) * (1 if self.n_classes == 2 else self.n_classes)


WORKS = {
    "folds": Work(FOLDS),
    "mean": Work(),
    "leave-one-out": Work({"cv": LeaveOneOut()}),
    "ordered": Work({"cv": Ordered()}),
    "classes": Work(FOLDS, n_classes=N_CLASSES),
    "pairs": Work(FOLDS, n_keys=3),
}


@dataclass(frozen=True)
class Job:
    """One cell and its rows; each part is made on first use.

    Parameters
    ----------
    library : Pandas
    cell : dict
    n_rows : int
    ours : list of array
        Our encodings, after they were judged to be right.
    """

    library: Pandas
    cell: dict[str, Any]
    n_rows: int
    ours: list[Array] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of the work."""
        return str(self.cell["work"])

    @property
    def work(self) -> Work:
        """The work of the cell."""
        return WORKS[self.name]

    @cached_property
    def categories(self) -> list[Array]:
        """The category number of each row, for each column; the judge uses these numbers."""
        most = self.cell["categories"]
        how = DRAWN[self.cell["distribution"] == "zipf"]
        sizes = [most, *(min(most, fewer) for fewer in FEWER_CATEGORIES)][: self.work.n_keys]
        return [self.library.hold(codes(self.n_rows, n, how, seed=10 + number)) for number, n in enumerate(sizes)]

    @cached_property
    def target(self) -> Array:
        """Class of each row (int32)."""
        return self.library.hold(labels(self.n_rows, self.work.n_classes))

    @cached_property
    def frame(self) -> Any:
        """The columns of keys, and the target y."""
        keys = zip(self.work.names, self.categories, strict=True)
        columns = {name: self.library.key(self.cell["keys"], numbers) for name, numbers in keys}
        return self.library.module.DataFrame({**columns, "y": self.target})

    @cached_property
    def order(self) -> Array:
        """The row of each rank in the order of our encoder."""
        ops = resolve(self.n_rows, self.library.device)
        order = Permutation(self.n_rows, seed_of(0, "Ordered"))
        return self.library.hold(ops.rows_at(order, 0, self.n_rows))

    @cached_property
    def rows_in_order(self) -> Any:
        """The frame in that order."""
        return self.frame.take(self.order).reset_index(drop=True)

    @cached_property
    def prior(self) -> float:
        """Encoding of a category without rows, as in cuML: the mean of all targets; for a class its share."""
        return 1 / N_CLASSES if self.work.n_classes > 2 else int(self.target.sum()) / self.n_rows


JOBS: dict[int, Job] = {}


def open_job(_: Path, cell: dict[str, Any], first: int | None = None) -> Job:
    """Give the rows of a cell, the same for all contenders; the rows of the cell before are freed."""
    if any(job.cell != cell for job in JOBS.values()):
        JOBS.clear()
    n_rows = min(first or cell["rows"], cell["rows"])
    if n_rows not in JOBS:
        made = Job(library(), cell, n_rows)
        # These are made now, so that their time is not measured.
        assert len(made.frame) == n_rows
        JOBS[n_rows] = made
    return JOBS[n_rows]
