"""What contenders of the family share."""

from dataclasses import dataclass, field
from functools import partial

from benchmarks.cpu.contenders.base import Contender
from benchmarks.cpu.grid import Cell
from benchmarks.cpu.judge import Expected
from benchmarks.cpu.rows import Array, Rows
from benchmarks.family import judge, mixed, words

# Dense matrices of more columns than this are not asked for.
MOST_DENSE = 1_000
STATISTICS = ("mean", "std", "count")
# What is told of sums of reals that are not exact.
TOLERANCE = 1e-8


@dataclass(frozen=True)
class Bounded(Contender):
    """A contender that does some works for few categories only.

    Parameters
    ----------
    most_categories : dict
        Work to the most categories.
    """

    most_categories: dict[str, int] = field(default_factory=dict)

    def does(self, cell: Cell) -> bool:
        """Whether it does this work on these keys."""
        return super().does(cell) and cell.categories <= self.most_categories.get(cell.work, cell.categories)


def values_of(rows: Rows) -> Array:
    """Column of reals, every page of it read, so that no run is charged with that."""
    found = rows.mapped("real")
    found.sum()
    return found


def expected_of(rows: Rows, folds: Array | None = None) -> Expected:
    """What most contenders should give.

    Parameters
    ----------
    rows : Rows
    folds : array, optional
        Fold of each row; its number modulo 5 unless given.
    """
    folds = rows.folds if folds is None else folds
    found = {
        "count": Expected("count"),
        "ordinal": judge.defined(judge.by_value),
        "ordinal-frequency": judge.defined(judge.by_frequency),
        "one-hot": judge.defined(judge.by_value),
        "evidence": judge.defined(judge.evidence),
        "evidence-folds": judge.defined(partial(judge.evidence, folds=folds)),
        "statistics": judge.defined(judge.statistics, len(STATISTICS), TOLERANCE),
        "median": judge.defined(judge.median),
        "impact-folds": judge.defined(partial(judge.impact, folds=folds), 3),
        "hashing": judge.defined(words.components),
        "glmm": judge.defined(mixed.values_of, tolerance=1e-6),
    }
    return found[rows.work]
