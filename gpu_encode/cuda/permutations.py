"""Random orders: the rank of each row, and the row of each rank."""

from typing import Any, NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array
from cpu_fallback.row_numbers import ROUNDS, Permutation
from gpu_encode.cuda import raw
from gpu_encode.cuda.memory import empty, keep_on_device
from gpu_encode.cuda.runtime import MOST_BLOCKS, MULTIPROCESSORS, blocks_for, current_device

# Positions in a block of this size fit into a byte.
LARGEST_BLOCK = 256
WARP = 32
# Threads of a block that tabulates rounds, of which a multiprocessor runs only one, and of all other blocks.
WALKERS, SHUFFLERS = raw.THREADS, min(raw.THREADS, 256)
# The most rounds of a network, counted from the first, that kernels read from a table.
TABULATED = (ROUNDS, ROUNDS - 1, 3)


class Blocks(NamedTuple):
    """Blocks of consecutive rows, in the sequence in which an order takes them.

    Parameters
    ----------
    numbers : uint32 array
        The block at each rank of blocks, from `first` on.
    size, first : int
        Rows of a block; the last block has fewer.
    turn, lacking : int
        The first rank after the last block; from there on `lacking` is added to a rank before it is divided by `size`.
    """

    numbers: Array
    size: int
    first: int
    turn: int
    lacking: int


def network_of(permutation: Permutation, forward: bool) -> tuple[Any, ...]:
    """Describe the network that orders rows, or blocks, to kernels."""
    blocks = permutation.blocks if permutation.block > 1 else permutation
    keys = blocks.keys if forward else blocks.keys[::-1]
    keys = keep_on_device(current_device(), keys.tobytes()).view(np.uint64)
    return np.uint64(blocks.n_rows), blocks.half_bits, keys, forward


def tabulated(half_bits: int, n_numbers: int) -> int:
    """Give the number of rounds in the table: as many as fit, unless making the table costs more than it saves."""
    if n_numbers < 1 << half_bits or half_bits > 16:
        return 0
    return next((rounds for rounds in TABULATED if rounds << (half_bits + 1) <= raw.table_bytes()), 0)


def walk_rows(permutation: Permutation, start: int, stop: int, forward: bool, dtype: Any = np.int64) -> Array:
    """Give the rank of each row in [start, stop), or the row at each rank."""
    size = max(stop - start, 0)
    out = empty(size, dtype if permutation.block == 1 else np.int64)
    if not size:
        return out
    network = network_of(permutation, forward)
    if permutation.block > 1:
        last, lacking = map(np.uint64, permutation.last_block)
        fixed = np.uint64(start), np.uint64(permutation.n_rows), np.uint64(permutation.block), permutation.inside_bits
        blocks = blocks_for(size, SHUFFLERS, MOST_BLOCKS)
        raw.run("walk_blocks", blocks, SHUFFLERS, *fixed, last, lacking, *network, permutation.inside_key, out)
        return out.astype(dtype, copy=False)
    rounds = tabulated(network[1], size)
    name = "walk_rows_32" if out.itemsize == 4 else "walk_rows_64"
    blocks = blocks_for(size, WALKERS, MULTIPROCESSORS if rounds else MOST_BLOCKS)
    shared = rounds << (network[1] + 1)
    raw.run(name, blocks, WALKERS, *network, rounds, np.uint64(start), out, shared=shared)
    return out


def walk_in_blocks(permutation: Permutation, start: int, stop: int) -> tuple[Blocks, Array]:
    """Give the blocks at the ranks [start, stop) of an order, and the position of each row in its block, in one byte.

    Blocks have between 2 and `LARGEST_BLOCK` rows; the range of ranks must not be empty.
    """
    size, (last, lacking) = permutation.block, permutation.last_block
    turn = (last + 1) * size - lacking
    first, end = ((rank + lacking * (rank >= turn)) // size for rank in (start, stop - 1))
    blocks = Blocks(walk_rows(permutation.blocks, first, end + 1, False, np.uint32), size, first, turn, lacking)
    inside, fixed = empty(stop - start, np.uint8), (permutation.inside_bits, permutation.inside_key)
    grid = blocks_for(len(blocks.numbers) * WARP, SHUFFLERS, MOST_BLOCKS)
    raw.run("shuffle_blocks", grid, SHUFFLERS, start, np.uint64(permutation.n_rows), *blocks, *fixed, inside)
    return blocks, inside
