"""Products with the one-hot matrix of several keys, which is never built: the codes of its rows stand for it."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.encoders.codes import UNSEEN, CodedRows
from gpu_encode.seam import ops

# With at most this number of keys, pairs of keys are counted first: each product then needs few numbers.
MOST_COUNTED = 32
# Most pairs that are counted for each code of a row; with more, products with codes are as fast and need less memory.
PAIRS_A_CODE = 2
# Rows whose products are computed at a time.
TILE_ROWS = 1 << 16
# Numbers in memory at a time, for each row of a backend's tile.
TILE_ENTRIES = 4


def starts_of(sizes: Sequence[int]) -> Array:
    """Give the first one-hot column of each key, and last the number of all columns."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def most_pairs(n_keys: int, n_rows: int, whole: bool) -> float:
    """Give the largest number of pairs to count; `whole` says that the full matrix of products is built in any case."""
    return np.inf if whole else PAIRS_A_CODE * n_keys * n_rows / 2 if n_keys <= MOST_COUNTED else 0.0


def products_of_counts(counts: dict[tuple[int, int], Any], sums: Sequence[Floats], factors: Array, whole: bool) -> Any:
    """Give the products of all one-hot columns with each other, D F' W F D, with column factors D.

    Parameters
    ----------
    counts : dict of tuple of int to sparse array
        By pair of keys, the weight of the rows with each pair of their categories.
    sums : list of float64 array
        Weight of each category of each key, which is the diagonal.
    factors : float64 array (columns,)
    whole : bool
        Whether a dense array is wanted.

    Returns
    -------
    array or sparse array (columns, columns)
    """
    blocks: list[list[Any]] = [[None] * len(sums) for _ in sums]
    for key, of_key in enumerate(sums):
        blocks[key][key] = sparse.dia_array((of_key[None, :], [0]), shape=(len(of_key),) * 2)
    for (one, other), block in counts.items():
        blocks[one][other], blocks[other][one] = block, block.T
    joined = sparse.block_array(blocks, format="csr")
    scale = sparse.dia_array((factors[None, :], [0]), shape=joined.shape)
    products = (scale @ joined @ scale).tocsr()
    return products.toarray() if whole else products


def product_of_rows(rows: CodedRows, factors: Array) -> LinearOperator:
    """Multiply by the one-hot rows themselves, on the host; each row is stored as one int32 for each key."""
    weight = None if rows.weight is None else rows.ops.to_host(rows.weight).astype(np.float64)
    tiles = list(one_hot_tiles(rows))

    def multiply(vector: Array) -> Array:
        scaled = factors * vector.reshape(-1)
        product = np.zeros_like(scaled)
        start = 0
        for tile in tiles:
            of_rows = tile @ scaled
            if weight is not None:
                of_rows *= weight[start : start + len(of_rows)]
            product += tile.T @ of_rows
            start += len(of_rows)
        scaled_back: Array = factors * product
        return scaled_back

    return LinearOperator((len(factors),) * 2, matvec=multiply, dtype=np.float64)


def one_hot_tiles(rows: CodedRows) -> Iterator[Any]:
    """Yield the one-hot rows as sparse matrices, tile by tile; all share one array of ones."""
    starts, n_keys = starts_of(rows.sizes), len(rows.codes)
    n_columns = int(starts[-1])
    # The product of a tile has all columns.
    size = min(max(TILE_ROWS, n_columns), rows.n_rows)
    ones, ends = np.ones(size * n_keys), np.arange(size + 1, dtype=np.int32) * np.int32(n_keys)
    for start, stop in ops.tiles(rows.n_rows, size):
        columns = np.empty((stop - start, n_keys), np.int32)
        for key, codes in enumerate(rows.codes):
            columns[:, key] = rows.ops.to_host(codes[start:stop]) + np.int32(starts[key])
        parts = (ones[: columns.size], columns.reshape(-1), ends[: stop - start + 1])
        yield sparse.csr_array(parts, shape=(stop - start, n_columns))


def multiply_rows(rows: CodedRows, table: Array) -> Array:
    """Multiply the one-hot rows by a table: for each row, add up one line of the table for each key, in order.

    Parameters
    ----------
    rows : CodedRows
        A code of -1 adds nothing.
    table : float64 array (columns, outputs)
        On the host.

    Returns
    -------
    float64 array (rows, outputs)
        On the device of the rows; the same bits on every backend.
    """
    outputs = table.shape[1]
    starts = starts_of(rows.sizes)
    # NumPy would count a negative code from the end of the table.
    assert UNSEEN == -1
    nothing = np.zeros((1, outputs))
    tables = [rows.ops.to_device(np.concatenate([table[start:stop], nothing])) for start, stop in pairwise(starts)]
    products = rows.ops.zeros((rows.n_rows, outputs), np.dtype(np.float64))
    for start, stop in ops.tiles(rows.n_rows, max(TILE_ENTRIES * rows.ops.TILE // max(outputs, 1), 1)):
        for of_key, codes in zip(tables, rows.codes, strict=True):
            products[start:stop] += of_key[codes[start:stop]]
    return products
