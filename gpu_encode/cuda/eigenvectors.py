"""Leading eigenvectors of sparse matrices by the GPU's iterative solver, checked on the host."""

from typing import Any

import numpy as np

from cpu_fallback.types import Array
from gpu_encode.cuda.runtime import iterate_eigenvectors

# Residuals are relative to the largest eigenvalue; rounding allows no smaller ones than this.
LEAST_RESIDUAL = 1e-14
# A residual that the solver accepts may be larger by this factor when it is measured.
MEASURED = 16.0


def leading_eigenvectors(
    matrix: Any, squared: bool, wanted: int, start: Array, tol: float
) -> tuple[Array, Array] | None:
    """Give leading eigenvectors, as `DeviceOps.leading_eigenvectors` describes them."""
    side = matrix.shape[1]
    if wanted + 2 >= side:
        return None
    # No diagonal entry exceeds the largest eigenvalue.
    diagonal = matrix.multiply(matrix).sum(axis=0) if squared else matrix.diagonal()
    accuracy = max(tol, LEAST_RESIDUAL) * float(np.asarray(diagonal).max(initial=0.0))
    if accuracy <= 0.0:
        return None
    values, vectors = iterate_eigenvectors(matrix, squared, wanted, start, accuracy)
    products = matrix.T @ (matrix @ vectors) if squared else matrix @ vectors
    residuals = np.sqrt(np.square(products - vectors * values).sum(axis=0))
    return (values, vectors) if bool((residuals <= MEASURED * accuracy).all()) else None
