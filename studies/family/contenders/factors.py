"""Singular vectors: of one-hot columns, with scikit-learn; of counts of two columns, with pandas and SciPy."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.judge import Verdict, as_matrix
from benchmarks.harness.rows import Array, Rows
from gpu_encode import CooccurrenceEncoder, SpectralEncoder

N_COLUMNS, N_VECTORS = 5, 10
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
    codes : int array (rows,), optional
        For each row of an answer, the line of the matrix; by default, row and line have the same number.
    """

    matrix: Callable[[], Any]
    codes: Array | None = None

    def verdict(self, given: Any) -> Verdict:
        """Give the fault of vectors ("" if there is none), and the missing share."""
        from scipy.sparse.linalg import svds

        matrix, vectors = self.matrix(), as_matrix(given)
        if self.codes is not None:
            lines = np.zeros((matrix.shape[0], vectors.shape[1]))
            lines[self.codes] = vectors
            vectors = lines
        if vectors.shape != (matrix.shape[0], N_VECTORS):
            return f"vectors of shape {vectors.shape}", np.inf
        basis = np.linalg.qr(vectors)[0]
        best = float(np.sum(svds(matrix, N_VECTORS, return_singular_vectors=False) ** 2))
        lacking = 1.0 - float(np.sum((matrix.T @ basis) ** 2)) / best
        return ("" if lacking <= 1.0 - LEAST_SHARE else f"lacks {lacking:.3f} of the squares"), abs(lacking)


def judge(rows: Rows) -> BestVectors:
    """Make the judge of a cell."""
    if rows.work == "spectral":
        return BestVectors(lambda: one_hot(columns_of(rows, N_COLUMNS)))
    return BestVectors(lambda: crossed(columns_of(rows, 2)), np.asarray(rows.codes))


def ours(rows: Rows) -> Prepared:
    """Prepare ours: training encodings."""
    if rows.work == "spectral":
        X = columns_of(rows, N_COLUMNS)
        return Prepared(lambda: SpectralEncoder(N_VECTORS, device="cpu").fit_transform(X), judge(rows))
    pair = columns_of(rows, 2)
    encoder = CooccurrenceEncoder(N_VECTORS, pairs=[(0, 1)], device="cpu")
    return Prepared(lambda: encoder.fit_transform(pair), judge(rows))


def scikit_learn(rows: Rows) -> Prepared:
    """Prepare OneHotEncoder and TruncatedSVD, as users join them."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    X = columns_of(rows, N_COLUMNS)
    made = make_pipeline(OneHotEncoder(), TruncatedSVD(N_VECTORS, random_state=0))
    return Prepared(lambda: made.fit_transform(X), judge(rows))


def crosstab(rows: Rows) -> Prepared:
    """Prepare pandas.crosstab, SciPy's svds of the table, and a look-up of each row."""
    import pandas as pd
    from scipy.sparse.linalg import svds

    X = columns_of(rows, 2)

    def call() -> Array:
        table = pd.crosstab(X[:, 0], X[:, 1])
        left, _, _ = svds(table.to_numpy(np.float64), N_VECTORS)
        return np.asarray(left[table.index.get_indexer(X[:, 0])])

    return Prepared(call, judge(rows))


CONTENDERS = (
    Contender("ours", "ours", ours, compiles=True),
    Contender("one-hot-svd", "scikit-learn", scikit_learn, {"work": ("spectral",)}),
    Contender(
        "crosstab-svds",
        "hand-written",
        crosstab,
        {"work": ("co-occurrence",), "categories": range(MOST_CROSSED + 1)},
        ("pandas",),
    ),
)
