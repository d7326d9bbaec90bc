"""What is measured: kinds of work, of keys, and sizes."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

SMOOTH = 10.0
N_FOLDS = 5
N_CLASSES = 10
ROWS = (1_000_000, 10_000_000)
CATEGORIES = (100, 100_000, 1_000_000)
MIDDLE_CATEGORIES = 100_000
WARM_UP_ROWS = 3_000

# Work -> what it is, in a title.
WORKS = {
    "mean": "smoothed mean, fit and transform, 0/1 target",
    "mean-real": "smoothed mean, fit and transform, real target",
    "folds": "5-fold cross-fitted fit_transform, 0/1 target",
    "folds-real": "5-fold cross-fitted fit_transform, real target",
    "ordered": "ordered target statistics, 0/1 target",
    "leave-one-out": "leave-one-out, 0/1 target",
    "count": "count encoding",
    "classes": "10 classes, 5 folds, 10 columns out",
    "codes": "values into integer codes",
}
KEYS = {
    "int": "int64, small range",
    "sparse": "int64, hashed to 64 bits",
    "text": "text of 11 bytes",
    "category": "dictionary",
}
# Keys that only some works have, at one number of categories.
FEW_KEYS = ("sparse", "category")
WORKS_OF_FEW_KEYS = ("mean", "folds", "codes")
REAL_WORKS = ("mean-real", "folds-real")
FOLD_WORKS = ("folds", "folds-real", "classes")


@dataclass(frozen=True)
class Cell:
    """One line of the table at one size.

    Parameters
    ----------
    work, keys : str
    categories, rows : int
    """

    work: str
    keys: str
    categories: int
    rows: int

    @property
    def described(self) -> dict[str, str | int]:
        """What tells it from others, as it is written down."""
        return asdict(self)

    @property
    def name(self) -> str:
        """The cell in words."""
        return f"{self.work}, {self.keys}, {self.categories:,} categories, {self.rows:,} rows"

    @property
    def target(self) -> str:
        """Which target it has."""
        if self.work in REAL_WORKS:
            return "real"
        return "classes" if self.work == "classes" else "binary"

    @property
    def n_outputs(self) -> int:
        """Columns that come out."""
        return N_CLASSES if self.work == "classes" else 1


def cells(
    rows: Sequence[int], categories: Sequence[int], works: Sequence[str], keys: Sequence[str], full: bool = False
) -> Iterator[Cell]:
    """Cells of a grid, few rows first, since what they take says what more rows would take.

    Parameters
    ----------
    rows, categories : sequence of int
    works, keys : sequence of str
    full : bool
        Every combination, and not only those of the default.
    """
    for n_rows in sorted(rows):
        # One after the other on the same rows: few of them are in memory at a time.
        for n_categories in categories:
            for kind in keys:
                for work in works:
                    few = kind in FEW_KEYS and not full
                    if few and (work not in WORKS_OF_FEW_KEYS or n_categories != middle(categories)):
                        continue
                    yield Cell(work, kind, n_categories, n_rows)


def middle(categories: Sequence[int]) -> int:
    """Give the number of categories at which keys of the second kind are asked for."""
    return MIDDLE_CATEGORIES if MIDDLE_CATEGORIES in categories else categories[0]
