"""Encodings of rows without weights, for few categories and classes, from counts of earlier rows.

Each warp of the GPU walks over one chunk of the order, with the counts of all categories in shared memory: see
raw/ordered.cu.
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cpu_fallback.fused_rules import M_ESTIMATE, FusedRule
from gpu_encode.cuda import raw
from gpu_encode.cuda.encodings import exact_limit
from gpu_encode.cuda.indexed import source_of
from gpu_encode.cuda.memory import empty, to_device
from gpu_encode.cuda.order_segments import OrderedPass
from gpu_encode.cuda.order_tiles import AS_NUMBERED, Course, courses_of
from gpu_encode.cuda.row_encodings import Destination
from gpu_encode.cuda.runtime import MULTIPROCESSORS, SIMULATED, blocks_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cpu_fallback.types import Array, Rows

WARP = 32
# Ranks that a warp reads at once; a chunk is a whole number of such groups.
GROUP = 4 * WARP
# Threads of a block that counts a chunk, and of a block that sums the chunks before each chunk.
COUNTERS = WARP if SIMULATED else 256
ADDERS = 2 * WARP if SIMULATED else 1024
# Warps of a block that walks, and of a multiprocessor.
MOST_WARPS = 2 if SIMULATED else 16
WARPS_AT_WORK = MOST_WARPS if SIMULATED else 32
# If segments are shorter than a group, priors differ from row to row; chunks of these ranks are short.
EARLY_CHUNKS, EARLY = (1, GROUP) if SIMULATED else (16, 4096)
# Each lane counts one class, in 32 bits.
MOST_CLASSES = 32
MOST_COUNTED = 2**32 - 1


def fits(n_rows: int, n_lines: int, n_classes: int) -> bool:
    """Say whether the counts of all categories fit into the memory of a warp."""
    few = n_classes <= MOST_CLASSES and 4 * n_lines * n_classes <= raw.table_bytes()
    return few and n_rows <= MOST_COUNTED


def warps_of(n_cells: int) -> int:
    """Number of warps in a block whose counts fit into its memory."""
    together = min(raw.table_bytes() // (4 * n_cells), WARPS_AT_WORK)
    return together // -(-together // MOST_WARPS)


class Chunks(NamedTuple):
    """Chunks of ranks, in the form that raw/ordered.cu reads: short ones first, then long ones.

    Parameters
    ----------
    n_ranks, n_chunks : int
    n_early, early, size : int
        The number of short chunks, and the ranks of a short and of a long chunk.
    """

    n_ranks: int
    n_chunks: int
    n_early: int
    early: int
    size: int


def chunks_of(n_ranks: int, n_cells: int) -> Chunks:
    """Choose chunks: enough to keep all warps busy, but with at least as many ranks as the counts that are written."""
    together = min(raw.table_bytes() // (4 * n_cells), WARPS_AT_WORK)
    most = max(1, min(MULTIPROCESSORS * together, n_ranks // max(n_cells, GROUP)))
    n_early = EARLY_CHUNKS if most >= 4 * EARLY_CHUNKS and n_ranks > most * EARLY else 0
    n_late = n_ranks - n_early * EARLY
    size = -(-n_late // ((most - n_early) * GROUP)) * GROUP
    return Chunks(n_ranks, n_early + -(-n_late // size), n_early, EARLY, size)


def rule_words(rule: FusedRule) -> tuple[Any, ...]:
    """Give a rule in the form that the kernel takes."""
    shrinkage, least, has_unseen, unseen = rule.blend
    rows = math.ceil(min(max(least, 1.0), MOST_COUNTED))
    given = *map(float, shrinkage[1:]), rows, has_unseen, float(unseen)
    return (shrinkage.kind, *given, rule.by_mean, float(rule.prior), rule.missing, exact_limit(shrinkage))


def variant_of(to: Destination, rule: FusedRule) -> dict[str, str]:
    """Name the type of encodings and the smoothing for which a walk is compiled."""
    estimates = rule.blend.shrinkage.kind == M_ESTIMATE
    return {"ENCODING": raw.ENCODINGS[to.out.itemsize], "ESTIMATES": str(int(estimates))}


def cells_of(rows: "Rows", n_lines: int, n_classes: int) -> "Array":
    """Give each row's cell in 16 bits, since data that is read in another order should be small."""
    cells, classes = empty(len(rows), np.uint16), to_device(rows.classes)
    blocks = blocks_for(len(cells), 4 * raw.THREADS, raw.BLOCKS)
    raw.run("number_cells", blocks, raw.THREADS, source_of(rows.codes), classes, n_lines, n_classes, cells)
    return cells


def encode_counts(rows: "Rows", n_lines: int, given: OrderedPass) -> "Array":
    """Write the encodings of rows that are counted; give the counts of all rows, flat."""
    cells, sums = cells_of(rows, n_lines, given.segments.cell_rule.shape.n_classes), empty(0, np.int64)
    for *ranks, course in courses_of(given.order, len(rows)):
        sums = encode_tile(cells, ranks, course, n_lines, sums, given)
        # The next tile reuses the memory of this one.
        del course
    return sums


def encode_tile(
    cells: "Array", ranks: "Sequence[int]", course: Course, n_lines: int, sums: "Array", given: OrderedPass
) -> "Array":
    """Write the encodings of the rows at the ranks [start, stop) from the counts before; give the counts after them."""
    (start, stop), (_, burned, segments, to, doubts) = ranks, given
    n_classes, first, rule = segments.cell_rule.shape.n_classes, segments.cell_rule.first, segments.cell_rule.rule
    n_cells, fixed = n_lines * n_classes, (n_lines, n_classes)
    chunks, warps, sums_after = chunks_of(stop - start, n_cells), warps_of(n_cells), empty(n_cells, np.int64)
    n_chunks, as_numbered = chunks.n_chunks, course.kind == AS_NUMBERED
    of_chunks = empty(n_cells * n_chunks, np.uint32)
    in_order = empty(0 if as_numbered else stop - start, np.uint16)
    counted = *fixed, segments.bits, of_chunks, segments.sums, in_order
    raw.run("count_chunks", n_chunks, COUNTERS, cells, course, chunks, *counted, shared=4 * n_cells)
    behind = n_chunks, sums, sums_after, of_chunks
    raw.run("scan_chunks", -(-n_cells // WARP), ADDERS, *behind, shared=4 * ADDERS)
    segments.find_priors(start, stop)
    walked = cells[start:stop] if as_numbered else in_order, course, chunks, *fixed, first, segments.bits, burned
    seen = of_chunks, *rule_words(rule), segments.priors, segments.sums, segments.running
    output = to.out, to.by_row, to.by_output, to.flagged, to.unseen, doubts
    shared, options = 4 * warps * n_cells, {"variant": variant_of(to, rule)}
    raw.run("walk_chunks", -(-n_chunks // warps), WARP * warps, *walked, *seen, *output, shared=shared, **options)
    return sums_after
