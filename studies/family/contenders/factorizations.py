"""Factors of a target over several columns: ours, implicit's and tensorly's alternating least squares."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.judge import Verdict, as_matrix
from benchmarks.harness.rows import Array, Rows
from gpu_encode import FactorizationEncoder, roc_auc_score
from studies.family.contenders.factors import columns_of

N_FACTORS, N_TRUE, N_ITERATIONS = 8, 2, 20
# The least area for predictions of training rows; the probabilities from which labels are drawn have about 0.8.
LEAST_AREA = 0.7
# Most cells, since tensorly's tensor of all cells is dense.
MOST_CELLS = 2_000_000
# implicit treats a cell as a preference with this confidence, and all other cells as one against it, with 1.
CONFIDENCE = 40.0


def columns_and_labels(rows: Rows) -> tuple[Array, Array]:
    """Give two or three columns, and labels of -1 and 1, whose probabilities follow from products of factors."""
    X = columns_of(rows, 3 if rows.work == "factors-of-three" else 2)
    random = np.random.default_rng(0)
    score = np.ones((len(X), N_TRUE))
    for column in X.T:
        score *= random.normal(size=(rows.categories + 1, N_TRUE))[column % (rows.categories + 1)]
    return X, np.where(2 * score.sum(axis=1) + random.logistic(size=len(X)) > 0, 1.0, -1.0)


@dataclass(frozen=True)
class Telling:
    """Judges predictions by the area under the ROC curve.

    Parameters
    ----------
    labels : float64 array (rows,)
    """

    labels: Array

    def verdict(self, given: Any) -> Verdict:
        """Give the fault of predictions ("" if there is none), and the difference of the area from 1."""
        area = float(roc_auc_score(self.labels, as_matrix(given)[:, 0].astype(np.float64)))
        return ("" if area >= LEAST_AREA else f"has an area of {area:.3f}"), 1.0 - area


def sums_of_cells(X: Array, labels: Array) -> tuple[tuple[int, ...], Array, Array, Array]:
    """Give the shape of the table, the numbers of the cells with rows, and the sums and counts of these cells."""
    shape = tuple(int(size) for size in X.max(axis=0) + 1)
    cells, codes = np.unique(np.ravel_multi_index(tuple(X.T), shape), return_inverse=True)
    return shape, cells, np.bincount(codes, labels), np.bincount(codes)


def predict(tables: list[Array], X: Array) -> Array:
    """Give the sum of the products of each row's factors."""
    product = tables[0][X[:, 0]]
    for table, column in zip(tables[1:], X.T[1:], strict=True):
        product = product * table[column]
    return np.asarray(product.sum(axis=1))


def prepare(rows: Rows, fit: Callable[[Array, Array], Array]) -> Prepared:
    """Prepare a fit to all rows, and predictions of these rows."""
    X, labels = columns_and_labels(rows)
    return Prepared(lambda: fit(X, labels), Telling(labels))


def ours(X: Array, labels: Array) -> Array:
    """Fit ours without folds, since the others have none."""
    encoder = FactorizationEncoder(N_FACTORS, max_iter=N_ITERATIONS, tol=0.0, target_type="continuous", device="cpu")
    return np.asarray(encoder.fit(X, labels).transform(X))


def implicit(X: Array, labels: Array) -> Array:
    """Fit implicit: means of cells are confidences for and against, in float32, by conjugate gradients."""
    from implicit.cpu.als import AlternatingLeastSquares
    from scipy import sparse

    shape, cells, sums, counts = sums_of_cells(X, labels)
    table = sparse.csr_matrix((CONFIDENCE * sums / counts, np.unravel_index(cells, shape)), shape=shape)
    model = AlternatingLeastSquares(N_FACTORS, iterations=N_ITERATIONS, random_state=0)
    model.fit(table, show_progress=False)
    return predict([model.user_factors, model.item_factors], X)


def tensorly(X: Array, labels: Array) -> Array:
    """Fit tensorly: CP of the means of cells in a dense tensor, with a mask of the cells that have rows."""
    from tensorly.decomposition import parafac

    shape, cells, sums, counts = sums_of_cells(X, labels)
    means, known = np.zeros(shape), np.zeros(shape)
    means.flat[cells], known.flat[cells] = sums / counts, 1.0
    made = parafac(means, N_FACTORS, n_iter_max=N_ITERATIONS, init="random", tol=0, random_state=0, mask=known)
    return predict([table * (made.weights if not mode else 1.0) for mode, table in enumerate(made.factors)], X)


OF_TWO = {"work": ("factors-of-two",)}
# Names of the works, and the largest sides of a dense table.
SIDES = {"factors-of-two": round(MOST_CELLS ** (1 / 2)), "factors-of-three": round(MOST_CELLS ** (1 / 3))}
CONTENDERS = (
    Contender("ours", "ours", partial(prepare, fit=ours), compiles=True),
    Contender("implicit", "library", partial(prepare, fit=implicit), OF_TWO, ("implicit",)),
    *(
        Contender(
            f"tensorly-{work.rpartition('-')[2]}",
            "library",
            partial(prepare, fit=tensorly),
            {"work": (work,), "categories": range(side + 1)},
            ("tensorly",),
        )
        for work, side in SIDES.items()
    ),
)
