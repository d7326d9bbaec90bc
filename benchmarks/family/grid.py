"""What is measured: kinds of work, of keys, and sizes."""

from collections.abc import Iterator, Sequence

from benchmarks.cpu.grid import Cell

ROWS = (1_000_000,)
CATEGORIES = (100, 100_000)
KEYS = {"int": "int64, small range", "text": "text of 11 bytes"}

# Work -> what it is, in a title.
WORKS = {
    "count": "count of each category",
    "ordinal": "place of each value among the sorted values",
    "ordinal-frequency": "place of each value, the most frequent first",
    "one-hot": "a column of zeros and ones for each category",
    "evidence": "weight of evidence, fit and transform",
    "evidence-folds": "weight of evidence, 5-fold cross-fitted",
    "statistics": "mean, standard deviation and count of a column of reals",
    "median": "median of a column of reals",
    "impact-folds": "impact, deviation and prevalence, 5-fold cross-fitted",
    "hashing": "hashed to 8 columns",
    "glmm": "random-intercept model of a real target, fit and transform",
}
# Rows and categories of works of which peers can do no more.
MOST = {"glmm": (10_000, 100)}
N_COMPONENTS = 8


def cells(rows: Sequence[int], categories: Sequence[int], works: Sequence[str], keys: Sequence[str]) -> Iterator[Cell]:
    """Cells of a grid, few rows first, each once.

    Parameters
    ----------
    rows, categories : sequence of int
    works, keys : sequence of str
    """
    found: dict[Cell, None] = {}
    for n_rows in sorted(rows):
        for n_categories in categories:
            for kind in keys:
                for work in works:
                    most_rows, most_categories = MOST.get(work, (n_rows, n_categories))
                    found[Cell(work, kind, min(n_categories, most_categories), min(n_rows, most_rows))] = None
    yield from found
