"""Encodings of rows without weights, of few categories and classes, from the counts of the rows before them.

Each warp of the GPU walks over a chunk of the order by itself, with the counts of all categories in shared memory: see
raw/ordered.cu.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_fallback.fused_rules import M_ESTIMATE, FusedRule
from gpu_encode.cuda import raw
from gpu_encode.cuda.encodings import Doubts, exact_limit
from gpu_encode.cuda.indexed import source_of
from gpu_encode.cuda.memory import empty, to_device
from gpu_encode.cuda.order_segments import Segments
from gpu_encode.cuda.order_tiles import AS_NUMBERED, courses_of
from gpu_encode.cuda.row_encodings import Destination
from gpu_encode.cuda.runtime import MULTIPROCESSORS, SIMULATED

if TYPE_CHECKING:
    from cpu_fallback.row_numbers import Permutation
    from cpu_fallback.types import Array, Rows

WARP = 32
# Places that a warp reads at once; chunks are whole groups of them.
GROUP = 4 * WARP
# Threads of a block that counts a chunk, and of one that adds up the chunks before each.
COUNTERS = WARP if SIMULATED else 256
ADDERS = 2 * WARP if SIMULATED else 1024
# Warps of a block that walk, and of a multiprocessor.
MOST_WARPS = 2 if SIMULATED else 16
WARPS_AT_WORK = MOST_WARPS if SIMULATED else 32
# A lane counts each class, and a count has 32 bits.
MOST_CLASSES = 32
MOST_COUNTED = 2**32 - 1


def fits(n_rows: int, n_lines: int, n_classes: int) -> bool:
    """Say whether a warp has room for the counts of all categories."""
    few = n_classes <= MOST_CLASSES and 4 * n_lines * n_classes <= raw.table_bytes()
    return few and n_rows <= MOST_COUNTED


def warps_of(n_cells: int) -> int:
    """Warps of a block, whose counts share its memory."""
    together = min(raw.table_bytes() // (4 * n_cells), WARPS_AT_WORK)
    return together // -(-together // MOST_WARPS)


def chunk_size(n_places: int, n_cells: int) -> int:
    """Places of a chunk: as few as keep all warps at work, but no fewer than the counts that are written for it."""
    together = min(raw.table_bytes() // (4 * n_cells), WARPS_AT_WORK)
    n_chunks = max(1, min(MULTIPROCESSORS * together, n_places // max(n_cells, GROUP)))
    return -(-n_places // (n_chunks * GROUP)) * GROUP


def rule_words(rule: FusedRule) -> tuple[Any, ...]:
    """Give a rule as the kernel takes it."""
    shrinkage, least, has_unseen, unseen = rule.blend
    rows = math.ceil(min(max(least, 1.0), MOST_COUNTED))
    given = *map(float, shrinkage[1:]), rows, has_unseen, float(unseen)
    return (shrinkage.kind, *given, rule.by_mean, float(rule.prior), rule.missing, exact_limit(shrinkage))


def variant_of(to: Destination, rule: FusedRule) -> dict[str, str]:
    """Say for which type of encodings, and which smoothing, a walk is compiled."""
    estimates = rule.blend.shrinkage.kind == M_ESTIMATE
    return {"ENCODING": raw.ENCODINGS[to.out.itemsize], "ESTIMATES": str(int(estimates))}


def encode_counts(
    rows: "Rows",
    order: "Permutation | None",
    burned: int,
    n_lines: int,
    segments: Segments,
    to: Destination,
    doubts: Doubts,
) -> "Array":
    """Write the encodings of rows of whole counts; gives the counts of all, flat."""
    n_classes, first, rule = segments.shape.n_classes, segments.first, segments.rule
    known, n_cells = (source_of(rows.codes), to_device(rows.classes)), n_lines * n_classes
    fixed, warps = (n_lines, n_classes), warps_of(n_cells)
    output = to.out, to.by_row, to.by_output, to.flagged, to.unseen, doubts
    sums = empty(0, np.int64)
    for start, stop, course in courses_of(order, len(rows)):
        size, n_places = chunk_size(stop - start, n_cells), stop - start
        n_chunks, sums_after = -(-n_places // size), empty(n_cells, np.int64)
        of_chunks = empty(n_cells * n_chunks, np.uint32)
        cells = empty(0 if course.kind == AS_NUMBERED else n_places, np.uint16)
        counted = n_places, *fixed, size, segments.bits, of_chunks, segments.sums, cells
        raw.run("count_chunks", n_chunks, COUNTERS, *known, course, *counted, shared=4 * n_cells)
        behind = n_chunks, sums, sums_after, of_chunks
        raw.run("scan_chunks", -(-n_cells // WARP), ADDERS, *behind, shared=4 * ADDERS)
        segments.find_priors(start, stop)
        chunks = cells, n_places, *fixed, first, size, n_chunks, segments.bits, burned, of_chunks
        seen = rule_words(rule), segments.priors, segments.sums, segments.running
        given, options = (*known, course, *chunks, *seen, *output), {"variant": variant_of(to, rule)}
        raw.run("walk_chunks", -(-n_chunks // warps), WARP * warps, *given, shared=4 * warps * n_cells, **options)
        sums = sums_after
    return sums
