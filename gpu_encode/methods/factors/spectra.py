"""The leading singular vectors of sparse matrices, with signs that do not depend on the solver."""

from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import ArpackNoConvergence, aslinearoperator, eigsh

from cpu_fallback.types import Array
from gpu_encode.schemes.plans import read_seed
from gpu_encode.seam import devices

# A matrix is decomposed in full if its side is at most this, or if a quarter of its vectors is wanted.
WHOLE_SIDE = 512
WHOLE_SHARE = 4
# A matrix with at most this number of entries is decomposed itself; instead of a larger one, its matrix of products is.
WHOLE_ENTRIES = 1 << 22
# Entries this close to the largest count as equal, since solvers cannot tell them apart.
TIE = 1e-6


def is_decomposed_whole(side: int, n_components: int) -> bool:
    """Say whether all singular vectors of a matrix with this smaller side are computed, though only some are kept."""
    return side <= WHOLE_SIDE or n_components * WHOLE_SHARE >= side


def leading_eigenvectors(
    products: Any, n_components: int, tol: float, random_state: Any, device: str, factor: Any = None
) -> tuple[Array, Array]:
    """Give the largest eigenvalues of a symmetric matrix without negative eigenvalues, and a column for each.

    Parameters
    ----------
    products : array, sparse array or LinearOperator (side, side)
        An array is decomposed as a whole; other forms are only used as factors of products.
    n_components : int
    tol : float
        Relative accuracy of the eigenvalues; 0 means the accuracy of the floats.
    random_state : int, RandomState, Generator or None
        Gives the vector with which the solver starts.
    device : str
        The parameter `device` of an encoder; together with the size of the matrix it decides where a solver runs.
    factor : sparse array, optional
        The matrix whose transpose times itself is `products`.

    Returns
    -------
    values : float64 array (found,)
        The largest eigenvalue first; eigenvalues that are zero up to rounding are left out.
    vectors : float64 array (side, found)
    """
    side = products.shape[0]
    wanted = min(n_components, side)
    if isinstance(products, np.ndarray):
        values, vectors = linalg.eigh(products, subset_by_index=[side - wanted, side - 1])
    else:
        values, vectors = iterate(products, wanted, tol, random_state, device, factor)
    order = np.argsort(-values, kind="stable")
    values, vectors = values[order], vectors[:, order]
    kept = values > max(float(values[0]), 0.0) * side * np.finfo(np.float64).eps
    return values[kept], vectors[:, kept]


def iterate(products: Any, wanted: int, tol: float, random_state: Any, device: str, factor: Any) -> tuple[Array, Array]:
    """Run an iterative solver: the GPU's if the matrix is large enough; otherwise, or if it fails, ARPACK."""
    start = np.random.RandomState(read_seed(random_state) % (1 << 32)).uniform(-1.0, 1.0, products.shape[0])
    matrix = products if factor is None else factor
    if sparse.issparse(matrix) and devices.choose(device, n_rows=matrix.nnz) == "cuda":
        found = devices.cuda().leading_eigenvectors(matrix, factor is not None, wanted, start, tol)
        if found is not None:
            return found
    try:
        values, vectors = eigsh(products, wanted, which="LA", v0=start, tol=tol)
    except ArpackNoConvergence as error:
        raise ValueError(
            f"The solver found {len(error.eigenvalues)} of {wanted} singular vectors to the accuracy tol={tol!r}. "
            "Ask for a larger tol, or for fewer components."
        ) from None
    return values, vectors


def leading_singular_vectors(
    matrix: Any, n_components: int, tol: float, random_state: Any, device: str = "cpu"
) -> tuple[Array, Array, Array]:
    """Give U (rows, found), the singular values and V (columns, found) of a sparse matrix.

    Values that are zero up to rounding are left out: if there are fewer than were asked for, their number is the rank.
    """
    side = min(matrix.shape)
    whole = is_decomposed_whole(side, n_components)
    if whole and matrix.shape[0] * matrix.shape[1] <= WHOLE_ENTRIES:
        left, values, right = linalg.svd(matrix.toarray(), full_matrices=False)
        kept = values > values[0] * max(matrix.shape) * np.finfo(np.float64).eps
        kept[n_components:] = False
        return left[:, kept], values[kept], right[kept].T
    if matrix.shape[0] < matrix.shape[1]:
        right, values, left = leading_singular_vectors(matrix.T.tocsr(), n_components, tol, random_state, device)
        return left, values, right
    if whole:
        products: Any = (matrix.T @ matrix).toarray()
    else:
        operator = aslinearoperator(matrix)
        products = operator.T @ operator
    factor = None if whole else matrix
    squares, vectors = leading_eigenvectors(products, n_components, tol, random_state, device, factor)
    values = np.sqrt(squares)
    return matrix @ vectors / values, values, vectors


def settle_signs(vectors: Array) -> Array:
    """Give a sign for each column that makes its entry of largest size positive; among equals, the first entry."""
    sizes = np.abs(vectors)
    first = np.argmax(sizes >= sizes.max(axis=0, initial=0.0) * (1.0 - TIE), axis=0)
    largest = np.take_along_axis(vectors, first[None, :], axis=0)[0] if len(vectors) else np.ones(vectors.shape[1])
    signs: Array = np.where(largest < 0.0, -1.0, 1.0)
    return signs


def weigh_columns(sums: Array, total: float, weighting: str | None) -> Array:
    """Give a factor for each column from the weight of its rows; a column without weight gets 0.

    Parameters
    ----------
    sums : array (columns,)
        Weight of the rows of each column.
    total : float
        Weight of all rows.
    weighting : {None, "eta", "mu", "tfidf"}
    """
    weights = np.where(sums > 0, sums, np.inf).astype(np.float64)
    if weighting is None:
        factors: Array = np.ones_like(weights)
    elif weighting == "tfidf":
        factors = np.log(total / np.where(sums > 0, weights, total))
    else:
        factors = 1.0 / np.sqrt(weights) if weighting == "eta" else np.sqrt(weights)
    return np.where(sums > 0, factors, 0.0)
