"""Counts of the rows of many keys by cell, fold and class, in one launch: no row is sorted or hashed.

A row's cell is the mixed-radix number of its codes in the key's columns; kernels compute it, see raw/keys.cuh.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.cached import cached_property
from gpu_encode.cuda import raw
from gpu_encode.cuda.columns import VECTOR_BYTES, NarrowCodes, bytes_of, codes_at, room_for
from gpu_encode.cuda.deferred import DeferredCopy
from gpu_encode.cuda.folds import fold_source
from gpu_encode.cuda.memory import empty, to_device, zeros
from gpu_encode.cuda.runtime import SIMULATED, blocks_for

if TYPE_CHECKING:
    from cpu_fallback.fused_rules import FoldedRows
    from cpu_fallback.types import Array, KeyColumns

# Most columns of a key, folds included; bytes of shared memory before a block's table; numbers of a plan for each key:
# see raw/keys.cuh.
MOST_COLUMNS, PLAN_BYTES, KEY_NUMBERS = 16, 256, 7
# Most bytes of counts and encodings of keys that are encoded together; a key that needs more is encoded alone.
TABLE_BYTES = 1 << 30
# The most rows of a chunk, so that counts fit 16 bits, and the fewest, so that a block has enough work; and the
# approximate number of blocks.
MOST_ROWS, FEWEST_ROWS = (64, 64) if SIMULATED else (65_520, 4096)
BLOCKS = 4 * raw.BLOCKS
# Most counts of a table in shared memory for each row of a chunk; most words of all its copies; most copies.
COUNTS_A_ROW, COPIED_WORDS, MOST_COPIES = 0.5, 4096, 32
# Threads of a block that walks over rows, and of a block that walks over cells: as many as registers allow.
THREADS, CELL_THREADS = (raw.THREADS, 32) if SIMULATED else (512, 256)


def number_rows(rows: "FoldedRows", n_rows: int, n_views: int, n_cells: int) -> "tuple[NarrowCodes, Array]":
    """Give two columns, the fold of each row, and its fold and class as one number; and zeros for counts of cells."""
    classes, within = rows.rows.classes, len(rows.new_rows) * rows.n_classes
    codes = room_for([n_views, within], [bytes_of(within)] * 2, n_rows)
    counts = empty(n_cells * within, np.uint32)
    blocks = blocks_for(codes.n_rows, 4 * raw.THREADS, raw.BLOCKS)
    given = (
        n_rows,
        empty(0, np.int32) if classes is None else to_device(classes),
        *fold_source(rows.folds),
        rows.n_classes,
        codes_at(codes, 0),
        codes_at(codes, 1),
        counts,
    )
    raw.run("number_rows", blocks, raw.THREADS, *given, variant={"NARROW": raw.TYPES[bytes_of(within)]})
    return codes, counts


class Batch(NamedTuple):
    """Keys whose tables lie one after the other in one array.

    Parameters
    ----------
    plan : int64 array
        Describes each key and its columns: `Key` and `Column` of raw/keys.cuh.
    cells : list of int
        Cells of each key.
    chunk : int
        Rows that a block takes of one key.
    shared : int
        Bytes of the tables in shared memory.
    """

    plan: "Array"
    cells: Sequence[int]
    chunk: int
    shared: int

    def blocks(self, n_rows: int) -> int:
        """Give the blocks of a launch that walks over the rows of all keys."""
        return len(self.cells) * -(-n_rows // self.chunk)


def split_keys(cells: Sequence[int], cell_bytes: int) -> Iterator[tuple[int, int]]:
    """Give ranges of keys whose tables fit the limit together."""
    start, held = 0, 0
    for number, n_cells in enumerate(cells):
        if number > start and (held + n_cells) * cell_bytes > TABLE_BYTES:
            yield start, number
            start, held = number, 0
        held += n_cells
    yield start, len(cells)


def copies_of(n_counts: int, chunk: int) -> int:
    """Give the number of copies of a table in shared memory in which a block counts; 0 for global memory."""
    words, room = -(-n_counts // 2), (raw.table_bytes() - raw.KEPT_BYTES) // 2 - PLAN_BYTES
    if 4 * words > room or n_counts > COUNTS_A_ROW * chunk:
        return 0
    most = min(MOST_COPIES, COPIED_WORDS // words, room // (4 * (words | 1)))
    return 1 << max(most, 1).bit_length() - 1


def batch_of(keys: "KeyColumns", first: Sequence[int], within: int, n_rows: int, more: Sequence[int] = ()) -> Batch:
    """Describe keys to the kernels, on the host; `more` numbers come after those of the columns."""
    n_keys, cells, codes = len(keys.members), keys.n_cells, keys.codes
    per_key = -(-n_rows // -(-BLOCKS // n_keys))
    chunk = min(max(-(-per_key // VECTOR_BYTES) * VECTOR_BYTES, FEWEST_ROWS), MOST_ROWS)
    words: list[int] = []
    columns: list[int] = []
    shared = cell = 0
    for members, n_cells, missing, line in zip(keys.members, cells, keys.missing, first, strict=True):
        n_counts = n_cells * within
        copies, begin = copies_of(n_counts, chunk), KEY_NUMBERS * n_keys + len(columns)
        words += [begin, len(members), n_cells, cell, missing, line, copies]
        columns += [number for column in members for number in codes.columns[column]]
        shared, cell = max(shared, 4 * copies * (-(-n_counts // 2) | 1)), cell + n_cells
    return Batch(np.array([*words, *columns, *more], np.int64), cells, chunk, PLAN_BYTES + shared)


def count_rows(batch: Batch, codes: NarrowCodes, numbers: NarrowCodes, counts: "Array") -> None:
    """Count the rows of each cell by fold and class, in a flat uint32 array of zeros."""
    within = numbers.columns[1]
    given = codes.held, batch.plan, len(batch.cells), numbers.n_rows, batch.chunk, codes_at(numbers, 1)
    blocks, sizes = batch.blocks(numbers.n_rows), (within.bytes, within.radix)
    raw.run("count_keys", blocks, THREADS, *given, *sizes, counts, shared=batch.shared)


class DeferredCounts:
    """Categories of a key and the rows of each, in the form of `KeyCounts`; copied from the GPU at first use.

    Parameters
    ----------
    copy : DeferredCopy
        Counts of the cells of all keys of a batch (cells, counts); the first of a cell is -1 if it has rows, none of
        which are counted.
    begin, stop : int
        Cells of the key.
    is_joint : bool
        Whether the key has several columns; then missing values are one more value of each.
    """

    def __init__(self, copy: DeferredCopy, begin: int, stop: int, is_joint: bool) -> None:
        self._copy, self._cells, self._is_joint = copy, slice(begin, stop), is_joint

    @cached_property
    def _found(self) -> "tuple[Array, Array]":
        kept = self._copy.on_host[self._cells]
        cells = np.flatnonzero(kept.any(axis=1)).astype(np.uint32)
        ends = np.zeros((2, kept.shape[1]), np.int32)
        if not self._is_joint and len(cells) and cells[-1] == len(kept) - 1:
            ends[1], cells = kept[-1], cells[:-1]
        return cells, np.maximum(np.concatenate([kept[cells], ends])[..., None], 0)

    @property
    def cells(self) -> "Array":
        """Cells that any row has (categories,), sorted."""
        return self._found[0]

    @property
    def counts(self) -> "Array":
        """Rows of each category (categories + 2, counts, 1)."""
        return self._found[1]


def defer_counts(members: Sequence[Sequence[int]], cells: Sequence[int], counts: "Array") -> list[DeferredCounts]:
    """Give the counts of each key of a batch; those of all its cells stay on the GPU until they are needed."""
    copy = DeferredCopy(counts)
    ends = pairwise(accumulate(cells, initial=0))
    return [DeferredCounts(copy, *range_, len(of_key) > 1) for of_key, range_ in zip(members, ends, strict=True)]


def sum_keys(keys: "KeyColumns", rows: "FoldedRows", /) -> list[DeferredCounts]:
    """Count the rows of many keys by fold and class; see `gpu_encode.seam.ops.FusedOps`."""
    n_counts, parts = len(rows.new_rows) * rows.n_classes, []
    for start, stop in split_keys(keys.n_cells, 4 * n_counts):
        some = keys._replace(members=keys.members[start:stop])
        parts.append((some.members, batch_of(some, [0] * len(some.members), n_counts, keys.codes.n_rows)))
    numbers, counts = number_rows(rows, keys.codes.n_rows, len(rows.new_rows), sum(parts[0][1].cells))
    found: list[DeferredCounts] = []
    for members, batch in parts:
        if found:
            counts = zeros(sum(batch.cells) * n_counts, np.uint32)
        count_rows(batch._replace(plan=to_device(batch.plan)), keys.codes, numbers, counts)
        found += defer_counts(members, batch.cells, counts.view(np.int32).reshape(-1, n_counts))
    return found
