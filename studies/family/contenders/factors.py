"""Singular vectors: of one-hot columns, with scikit-learn; of counts of two columns, with pandas and SciPy."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.judge import Verdict, as_matrix
from benchmarks.harness.rows import Array, Rows
from gpu_encode import CooccurrenceEncoder, SpectralEncoder

N_COLUMNS = 5
N_VECTORS = {"spectral": 10, "spectral-100": 100, "co-occurrence": 10}
# The share of the best vectors' squares that vectors must reach: a randomized solver stops before the optimum.
LEAST_SHARE = 0.9
# Most categories, since pandas' table of all pairs is dense.
MOST_CROSSED = 2_000


def columns_of(rows: Rows, number: int) -> Array:
    """Make several columns from the drawn one: each equals the first in some rows, with other names and an offset."""
    codes, row = np.asarray(rows.codes), np.arange(rows.n_rows)
    mixed = [
        np.where(row % (column + 2), np.roll(codes, 7919 * column), (codes * 7 + column) % rows.categories)
        for column in range(1, number)
    ]
    return np.column_stack([codes, *mixed]).astype(np.int64)


def one_hot(X: Array) -> Any:
    """Make the sparse one-hot matrix of columns of numbers."""
    from scipy import sparse

    firsts = np.cumsum([0, *(X.max(axis=0) + 1)])
    columns = (X + firsts[:-1]).ravel()
    ends = np.arange(0, X.size + 1, X.shape[1])
    return sparse.csr_array((np.ones(X.size), columns, ends), shape=(len(X), int(firsts[-1])))


def crossed(X: Array) -> Any:
    """Count the pairs of two columns."""
    return (one_hot(X[:, :1]).T @ one_hot(X[:, 1:2])).tocsr()


@dataclass(frozen=True)
class BestVectors:
    """Judges left singular vectors by the share of a matrix's squares, compared with the best vectors.

    Parameters
    ----------
    matrix : callable
        Gives the sparse matrix.
    n_vectors : int
    codes : int array (rows,), optional
        For each row of an answer, the line of the matrix; by default, row and line have the same number.
    """

    matrix: Callable[[], Any]
    n_vectors: int
    codes: Array | None = None

    def verdict(self, given: Any) -> Verdict:
        """Give the fault of vectors ("" if there is none), and the missing share."""
        from scipy.sparse.linalg import svds

        matrix, vectors = self.matrix(), as_matrix(given)
        if self.codes is not None:
            lines = np.zeros((matrix.shape[0], vectors.shape[1]))
            lines[self.codes] = vectors
            vectors = lines
        if vectors.shape != (matrix.shape[0], self.n_vectors):
            return f"vectors of shape {vectors.shape}", np.inf
        basis = np.linalg.qr(vectors)[0]
        best = float(np.sum(svds(matrix, self.n_vectors, return_singular_vectors=False) ** 2))
        lacking = 1.0 - float(np.sum((matrix.T @ basis) ** 2)) / best
        return ("" if lacking <= 1.0 - LEAST_SHARE else f"lacks {lacking:.3f} of the squares"), abs(lacking)


def judge(rows: Rows) -> BestVectors:
    """Make the judge of a cell."""
    n_vectors = N_VECTORS[rows.work]
    if rows.work != "co-occurrence":
        return BestVectors(lambda: one_hot(columns_of(rows, N_COLUMNS)), n_vectors)
    return BestVectors(lambda: crossed(columns_of(rows, 2)), n_vectors, np.asarray(rows.codes))


def ours(rows: Rows) -> Prepared:
    """Prepare ours: training encodings."""
    n_vectors = N_VECTORS[rows.work]
    if rows.work != "co-occurrence":
        X = columns_of(rows, N_COLUMNS)
        return Prepared(lambda: SpectralEncoder(n_vectors, device="cpu").fit_transform(X), judge(rows))
    pair = columns_of(rows, 2)
    encoder = CooccurrenceEncoder(n_vectors, pairs=[(0, 1)], device="cpu")
    return Prepared(lambda: encoder.fit_transform(pair), judge(rows))


def scikit_learn(rows: Rows, algorithm: str) -> Prepared:
    """Prepare OneHotEncoder and TruncatedSVD, as users join them; "randomized" is the default of TruncatedSVD."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    X = columns_of(rows, N_COLUMNS)
    made = make_pipeline(OneHotEncoder(), TruncatedSVD(N_VECTORS[rows.work], algorithm=algorithm, random_state=0))
    return Prepared(lambda: made.fit_transform(X), judge(rows))


def crosstab(rows: Rows) -> Prepared:
    """Prepare pandas.crosstab, SciPy's svds of the table, and a look-up of each row."""
    import pandas as pd
    from scipy.sparse.linalg import svds

    X = columns_of(rows, 2)

    def call() -> Array:
        table = pd.crosstab(X[:, 0], X[:, 1])
        left, _, _ = svds(table.to_numpy(np.float64), N_VECTORS[rows.work])
        return np.asarray(left[table.index.get_indexer(X[:, 0])])

    return Prepared(call, judge(rows))


def counted(rows: Rows) -> Prepared:
    """Prepare codes by numpy.unique, counts in a sparse table, SciPy's svds of it, and a look-up of each row."""
    from scipy import sparse
    from scipy.sparse.linalg import svds

    X = columns_of(rows, 2)

    def call() -> Array:
        (firsts, one), (seconds, other) = (np.unique(column, return_inverse=True) for column in X.T)
        table = sparse.coo_array((np.ones(len(X)), (one, other)), shape=(len(firsts), len(seconds))).tocsr()
        left, _, _ = svds(table, N_VECTORS[rows.work], random_state=0)
        return np.asarray(left[one])

    return Prepared(call, judge(rows))


OF_ONE_HOT = {"work": ("spectral", "spectral-100")}
CONTENDERS = (
    Contender("ours", "ours", ours, compiles=True),
    Contender("one-hot-svd", "scikit-learn", partial(scikit_learn, algorithm="randomized"), OF_ONE_HOT),
    Contender("one-hot-arpack", "scikit-learn", partial(scikit_learn, algorithm="arpack"), OF_ONE_HOT),
    Contender("unique-svds", "hand-written", counted, {"work": ("co-occurrence",)}),
    Contender(
        "crosstab-svds",
        "hand-written",
        crosstab,
        {"work": ("co-occurrence",), "categories": range(MOST_CROSSED + 1)},
        ("pandas",),
    ),
)
