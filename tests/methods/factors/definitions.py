"""One-hot columns, counts of pairs and their singular vectors, in loops over rows and values."""

import math
from typing import Any

import numpy as np

Matrix = Any
Key = tuple[int, ...]


def values_of(rows: list[tuple[Any, ...]], key: Key) -> list[Any]:
    """Value of a key in each row: a tuple of the values of its columns."""
    return [tuple(row[column] for column in key) for row in rows]


def categories_of(rows: list[tuple[Any, ...]], key: Key) -> list[Any]:
    """Distinct values in order, with missing ones last."""
    return sorted(set(values_of(rows, key)), key=lambda value: [(part is None, str(part)) for part in value])


def one_hot(rows: list[tuple[Any, ...]], known: list[list[Any]], keys: list[Key]) -> Matrix:
    """Return a matrix with a 1 in the column of each key's value; an unknown value has no 1."""
    matrix = []
    for row in rows:
        line = []
        for key, categories in zip(keys, known, strict=True):
            own = tuple(row[column] for column in key)
            line += [1.0 if own == category else 0.0 for category in categories]
        matrix.append(line)
    return np.array(matrix)


def column_factors(matrix: Matrix, weight: list[float], weighting: str | None) -> Matrix:
    """Return the factor of each column, from the weight of its rows."""
    factors = []
    for column in matrix.T:
        n = sum(w * entry for w, entry in zip(weight, column, strict=True))
        if n == 0:
            factors.append(0.0)
        elif weighting == "eta":
            factors.append(1 / math.sqrt(n))
        elif weighting == "mu":
            factors.append(math.sqrt(n))
        elif weighting == "tfidf":
            factors.append(math.log(sum(weight) / n))
        else:
            factors.append(1.0)
    return np.array(factors)


def singular_vectors(matrix: Matrix, k: int) -> tuple[Matrix, Matrix, Matrix]:
    """Singular vectors of a dense matrix: the largest entry in size of each column of V is positive, of ties the first.

    Gives U, the singular values and V.
    """
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    left, values, right = left[:, :k], values[:k], right[:k].T
    for component in range(k):
        largest = max(abs(entry) for entry in right[:, component])
        first = next(entry for entry in right[:, component] if abs(entry) > largest * (1 - 1e-6))
        if first < 0:
            left[:, component] *= -1
            right[:, component] *= -1
    return left, values, right


def spectral(
    rows: list[tuple[Any, ...]],
    new: list[tuple[Any, ...]],
    keys: list[Key],
    k: int,
    weighting: str | None = None,
    ridge: float = 0.0,
    weight: list[float] | None = None,
) -> tuple[Matrix, Matrix, Matrix]:
    """Singular values, encodings of training rows and of new ones.

    A row of weight w counts as w rows: its line of the matrix is multiplied by the root of w.
    """
    weight = [1.0] * len(rows) if weight is None else [float(w) for w in weight]
    known = [categories_of(rows, key) for key in keys]
    matrix = one_hot(rows, known, keys)
    factors = column_factors(matrix, weight, weighting)
    weighed = matrix * factors
    left, values, right = singular_vectors(np.sqrt(weight)[:, None] * weighed, k)
    training = []
    for line, w, plain in zip(left, weight, weighed, strict=True):
        # The decomposition does not define U for a row of weight 0.
        own = line / math.sqrt(w) if w else plain @ right / values
        training.append(own * values**2 / (values**2 + ridge))
    fresh = [line * factors @ right * values / (values**2 + ridge) for line in one_hot(new, known, keys)]
    return values, np.array(training), np.array(fresh)


def counts(rows: list[tuple[Any, ...]], one: Key, other: Key, weight: list[float] | None = None) -> Matrix:
    """Weight of the rows of every pair of values."""
    firsts, seconds = categories_of(rows, one), categories_of(rows, other)
    table = np.zeros((len(firsts), len(seconds)))
    for number, row in enumerate(rows):
        i = firsts.index(tuple(row[column] for column in one))
        j = seconds.index(tuple(row[column] for column in other))
        table[i, j] += 1 if weight is None else weight[number]
    return table


def weigh(table: Matrix, weighting: str | None) -> Matrix:
    """Weigh counts entry by entry."""
    weighed = np.zeros_like(table)
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            n = table[i, j]
            if n == 0:
                continue
            if weighting == "eta":
                n = n / math.sqrt(sum(table[:, j]))
            elif weighting == "mu":
                n = n * math.sqrt(sum(table[:, j]))
            elif weighting == "log":
                n = math.log(1 + n)
            elif weighting == "ppmi":
                n = max(0.0, math.log(n * table.sum() / (sum(table[i]) * sum(table[:, j]))))
            weighed[i, j] = n
    return weighed


def encode_by(table: Matrix, rows: list[tuple[Any, ...]], new: list[tuple[Any, ...]], one: Key) -> Matrix:
    """Return the table's line for the value of each new row; zeros for an unknown value."""
    known = categories_of(rows, one)
    lines = []
    for row in new:
        own = tuple(row[column] for column in one)
        lines.append(table[known.index(own)] if own in known else np.zeros(table.shape[1]))
    return np.array(lines)
