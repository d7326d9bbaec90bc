"""Training encodings of many keys by fold: one launch counts rows, one encodes cells, one looks up rows.

A row's cell is the mixed-radix number of its codes in the key's columns; kernels compute it, see raw/keys.cuh.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cpu_fallback.cached import cached_property
from cpu_fallback.compiled.views import Views
from cpu_fallback.fused_rules import M_ESTIMATE, FusedRule, PopulationMoments
from gpu_encode.cuda import raw
from gpu_encode.cuda.columns import VECTOR_BYTES, NarrowCodes, bytes_of, codes_at, room_for, write_codes
from gpu_encode.cuda.deferred import DeferredCopy
from gpu_encode.cuda.encodings import Priors
from gpu_encode.cuda.fallbacks import DOUBTS, leave_to_arrays
from gpu_encode.cuda.folds import fold_source
from gpu_encode.cuda.indexed import narrow_source_of
from gpu_encode.cuda.memory import empty, to_device, to_host, zeros
from gpu_encode.cuda.ordered_counts import rule_words
from gpu_encode.cuda.runtime import SIMULATED, blocks_for
from gpu_encode.cuda.table_encodings import priors_of, views_of

if TYPE_CHECKING:
    from cpu_fallback.fused_rules import FoldedRows
    from cpu_fallback.types import Array, Codes, KeyColumns, KeyEncodings

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


def narrow_codes(columns: "Sequence[Codes]", sizes: Sequence[int], /) -> NarrowCodes:
    """Give codes of columns as `encode_keys_by_fold` reads them; see `gpu_encode.seam.ops.FusedOps`."""
    codes = room_for(sizes, [*map(bytes_of, sizes)], len(columns[0]))
    write_codes([*map(narrow_source_of, columns)], codes)
    return codes


def number_rows(rows: "FoldedRows", n_views: int) -> NarrowCodes:
    """Give two columns: the fold of each row, and its fold and class as one number."""
    assert rows.rows.classes is not None
    within = len(rows.new_rows) * rows.n_classes
    codes = room_for([n_views, within], [bytes_of(within)] * 2, len(rows.rows.classes))
    blocks = blocks_for(codes.n_rows, 4 * raw.THREADS, raw.BLOCKS)
    given = (
        to_device(rows.rows.classes),
        *fold_source(rows.folds),
        rows.n_classes,
        codes_at(codes, 0),
        codes_at(codes, 1),
    )
    raw.run("number_rows", blocks, raw.THREADS, *given, variant={"NARROW": raw.TYPES[bytes_of(within)]})
    return codes


class Formula(NamedTuple):
    """Arguments with which raw/encode_keys.cu turns counts into encodings; exact priors are quotients of `totals`."""

    first: int
    views: Views
    new_rows: "Array"
    rule: tuple[Any, ...]
    priors: Priors
    totals: "Array"
    counters: "Array"


class Batch(NamedTuple):
    """Keys whose tables lie one after the other in one array.

    Parameters
    ----------
    plan : int64 device array
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


def batch_of(keys: "KeyColumns", first: Sequence[int], within: int, n_rows: int) -> Batch:
    """Describe keys to the kernels."""
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
    return Batch(to_device(np.array(words + columns, np.int64)), cells, chunk, PLAN_BYTES + shared)


class DeferredCounts:
    """Categories of a key, and the rows of each by class that new rows see; copied from the GPU at first use.

    Parameters
    ----------
    copy : DeferredCopy
        Counts of the cells of all keys of a batch (cells, classes); a cell that no row has begins with -1.
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
        cells = np.flatnonzero(kept[:, 0] >= 0).astype(np.uint32)
        ends = np.zeros((2, kept.shape[1]), np.int32)
        if not self._is_joint and len(cells) and cells[-1] == len(kept) - 1:
            ends[1], cells = kept[-1], cells[:-1]
        return cells, np.concatenate([kept[cells], ends])[..., None]

    @property
    def cells(self) -> "Array":
        """Cells that any row has (categories,), sorted."""
        return self._found[0]

    @property
    def counts(self) -> "Array":
        """Rows that new rows see (categories + 2, classes, 1)."""
        return self._found[1]


def totals_of(rule: FusedRule, population: PopulationMoments) -> "Array":
    """Give the numerators of priors: the sums of the rows that each view sees, or the prior itself (views, outputs)."""
    if not rule.by_mean or population.exact is None:
        return np.full(population.prior.shape, rule.prior)
    total = population.exact.total
    digits = to_host(total.digits)
    powers = 2.0 ** (32 * (total.low + np.arange(digits.shape[-1])))
    return np.ascontiguousarray(np.broadcast_to((digits * powers).sum(axis=-1), population.prior.shape))


def encode_keys_by_fold(
    keys: "KeyColumns",
    rows: "FoldedRows",
    rule: FusedRule,
    population: PopulationMoments,
    out: "KeyEncodings",
    /,
) -> tuple[list[DeferredCounts], int] | None:
    """Write the training encodings of many keys; see `gpu_encode.seam.ops.FusedOps`."""
    n_folds, shape = len(rows.new_rows), population.prior.shape
    priors, counters = priors_of(population, rule.blend.shrinkage)
    # Both arrays are copied to the device at once.
    both = to_device(np.concatenate([totals_of(rule, population).reshape(-1).view(np.int64), rows.new_rows]))
    new_rows, totals = both[-n_folds:], both[:-n_folds].view(np.float64)
    views, first = views_of(rows.visibility, n_folds, rows.n_classes), rows.n_classes - shape[1]
    formula = Formula(first, views, new_rows, rule_words(rule), priors, totals, counters)
    numbers, found, tables = number_rows(rows, views.n_views), [], []
    cell_bytes = 4 * n_folds * rows.n_classes + out.values.itemsize * population.prior.size
    for start, stop in split_keys(keys.n_cells, cell_bytes):
        some = keys._replace(members=keys.members[start:stop])
        batch = batch_of(some, out.first[start:stop], n_folds * rows.n_classes, numbers.n_rows)
        tables.append((some.members, batch.cells, encode_batch(batch, keys.codes, numbers, rows, formula, out)))
    lost, doubtful, _ = to_host(counters).tolist()
    if doubtful:
        leave_to_arrays("encode_keys_by_fold", DOUBTS)
        return None
    for members, cells, table in tables:
        copy, ends = DeferredCopy(table), [0, *accumulate(cells)]
        for number, of_key in enumerate(members):
            found.append(DeferredCounts(copy, ends[number], ends[number + 1], len(of_key) > 1))
    return found, lost


def encode_batch(
    batch: Batch,
    codes: NarrowCodes,
    numbers: NarrowCodes,
    rows: "FoldedRows",
    formula: Formula,
    out: "KeyEncodings",
) -> "Array":
    """Count, encode and look up the rows of some keys; give, by cell, the rows of each class that new rows see."""
    n_keys, n_cells, itemsize = len(batch.cells), sum(batch.cells), out.values.itemsize
    (by_fold, within), n_outputs = numbers.columns, rows.n_classes - formula.first
    given, blocks = (codes.held, batch.plan, n_keys, numbers.n_rows, batch.chunk), batch.blocks(numbers.n_rows)
    counts, kept = zeros(n_cells * within.radix, np.uint32), empty((n_cells, rows.n_classes), np.int32)
    last = codes_at(numbers, 1), within.bytes, within.radix
    raw.run("count_keys", blocks, THREADS, *given, *last, counts, shared=batch.shared)
    entries = empty(n_cells * by_fold.radix * n_outputs, out.values.dtype)
    first, views, *others = formula
    variant = {"ENCODING": raw.ENCODINGS[itemsize], "ESTIMATES": str(int(formula.rule[0] == M_ESTIMATE))}
    of_cells = batch.plan, n_keys, n_cells, counts, len(rows.new_rows), rows.n_classes, first, views.kind, views.n_views
    results = views.matrix, *others, entries, kept.reshape(-1)
    raw.run("encode_keys", blocks_for(n_cells, CELL_THREADS), CELL_THREADS, *of_cells, *results, variant=variant)
    del counts
    last, variant = (codes_at(numbers, 0), by_fold.bytes, by_fold.radix), {"ENTRY": raw.TYPES[itemsize]}
    variant["OUTPUTS"] = "1" if n_outputs == 1 else "0"
    written = n_outputs, entries.view(f"u{itemsize}"), out.values.reshape(-1).view(f"u{itemsize}")
    raw.run("gather_keys", blocks, THREADS, *given, *last, *written, shared=PLAN_BYTES, variant=variant)
    return kept
