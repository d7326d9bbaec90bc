"""Exact counts and sums per (category, fold, class) cell, in one pass over the rows.

Integers are added, so no bit depends on where, or in which order, rows are added.
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cpu_fallback.types import SumsByNumber, SumShape
from gpu_encode.cuda import counting, partition, raw, windows
from gpu_encode.cuda.addition import MOST_ADDED, plan_of
from gpu_encode.cuda.categories import base_and_mask, factorize, index_numbers, marked, numbers_at, spans_of, words_of
from gpu_encode.cuda.counting import Engine, count
from gpu_encode.cuda.digits import number_words
from gpu_encode.cuda.folds import fold_source
from gpu_encode.cuda.indexed import WORDS, CodeSource, Index, codes_by, source_of
from gpu_encode.cuda.memory import empty, to_device, to_host, zeros
from gpu_encode.cuda.runtime import xp
from gpu_encode.cuda.windows import COPIED_SHARE, MOST_COPIES

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Folds, Layout, Rows

# Atomics on the same address run one after another (1 to 2 G rows/s were measured if one category has most rows).  A
# category with more than this share of the rows (an estimate) would hold up all others, so it is summed in tables.
HOT_SHARE = 1 / 128
SAMPLE = 1 << 12
MOST_RANKS = 255
# Looking for hot categories is estimated to cost as much as adding this many rows to the same cell.
SAMPLED_ROWS = 1 << 18


def engine() -> Engine:
    """Give the kernels and their launch limits: registers allow 768 threads on a multiprocessor."""
    return Engine(raw.run, min(raw.THREADS, 768), raw.BLOCKS, raw.table_bytes())


def accumulate(rows: "Rows", shape: SumShape, folds: "Folds" = None, sums: "Array | None" = None, /) -> "Array":
    """Exact counts and sums: (n_categories + 2, n_folds, n_classes, layout.width) int64 digits, in one pass."""
    accumulators = zeros(math.prod(shape.extents), np.int64)
    if are_counts(rows, shape.layout):
        classes = None if rows.classes is None else int32(rows.classes)
        count(rows.codes, classes, folds, shape.extents[:3], accumulators)
    elif len(rows.codes):
        add_rows(job_of(rows, folds, shape, accumulators))
    added = accumulators.reshape(shape.extents)
    if sums is None:
        return added
    sums += added
    return sums


def are_counts(rows: "Rows", layout: "Layout") -> bool:
    """Whether the sums are only numbers of rows."""
    return rows.weight is None and layout.count.whole and layout.total is None and layout.square is None


def int32(array: "Array") -> "Array":
    """Codes or classes on the device."""
    found: Array = to_device(array).astype(np.int32, copy=False)
    return found


class Addition(NamedTuple):
    """The arguments of all launches of one call: rows and folds, the plan of the sums, sizes, and arrays.

    Parameters
    ----------
    rows : tuple
        Codes, classes, target, weight, and the seven arguments of folds.
    plan : list of int
        Lines of the measures, then the numbers from N_LINES to TARGET_BYTES.
    n_rows, n_lines, in_line, words : int
        Number of rows, lines, cells of a line, and words of a cell in a table.
    accumulators : int64 device array
    codes : int32 device array
        In the form in which they were given.
    variant : dict, optional
        Macros with which the kernel that adds in windows is compiled; None if that kernel cannot be used.
    """

    rows: tuple[Any, ...]
    plan: list[int]
    n_rows: int
    n_lines: int
    in_line: int
    words: int
    accumulators: "Array"
    codes: "Array"
    variant: dict[str, str] | None = None


def job_of(rows: "Rows", folds: "Folds", shape: SumShape, accumulators: "Array") -> Addition:
    """Copy rows to the device, and plan their addition."""
    # Without classes, the kernel reads none.
    classes = empty(1, np.int32) if rows.classes is None else int32(rows.classes)
    target, target_kind = number_words(rows.target)
    weight, weight_kind = number_words(rows.weight)
    layout, (n_lines, n_folds, n_classes, width) = shape.layout, shape.extents
    lines, words = plan_of(layout, weight_kind)
    further = [n_lines, n_classes, int(rows.classes is not None), target_kind, weight_kind, n_folds * n_classes, width]
    further.append(target.itemsize)
    given = (source_of(rows.codes), classes, target, weight, *fold_source(folds))
    return Addition(
        given,
        [*lines.ravel().tolist(), *further],
        len(rows),
        n_lines,
        n_folds * n_classes,
        words,
        accumulators,
        rows.codes,
        windows.variant_of(rows, folds, layout, target, target_kind),
    )


def accumulate_numbers(rows: "Rows", n_classes: int, layout: "Layout", /) -> SumsByNumber:
    """Sum rows by number; see `gpu_encode.seam.ops.Ops`."""
    numbers = to_device(rows.codes)
    if numbers.dtype.kind not in "iu":
        codes, distinct = factorize(numbers)
    else:
        if are_counts(rows, layout) and (found := count_numbers(numbers, rows.classes, n_classes)) is not None:
            return found
        codes, distinct = index_numbers(numbers)
    shape = SumShape(len(distinct), 1, n_classes, layout)
    return SumsByNumber(accumulate(rows.with_codes(codes), shape), distinct, codes)


def count_numbers(numbers: "Array", classes: "Array | None", n_classes: int) -> SumsByNumber | None:
    """Count rows by the offset of their number in a range; None if the range does not fit into the tables of blocks.

    The host then knows the count at each offset, and so which numbers occur.
    """
    words, labels = words_of(numbers).words, None if classes is None else int32(classes)
    most = counting.engine().table_bytes // 2 // n_classes - 2 if words.dtype in WORDS else 0
    for lowest, size in spans_of(numbers, most):
        base, mask = base_and_mask(lowest, numbers.dtype)
        source = CodeSource(words, base, mask, np.uint64(size), empty(0, np.int32))
        counted = zeros((size + 2) * n_classes, np.int64)
        count(source, labels, None, (size + 2, 1, n_classes), counted)
        cells = to_host(counted).reshape(size + 2, n_classes)
        # Numbers outside of the range are unknown.
        if not cells[size].any():
            offsets = marked(cells.any(axis=1))
            chosen = slice(offsets.start, offsets.stop) if isinstance(offsets, range) else offsets
            accumulators, ranks = np.zeros((len(offsets) + 2, 1, n_classes, 1), np.int64), np.zeros(size, np.int32)
            accumulators[:-2, 0, :, 0], ranks[chosen] = cells[chosen], np.arange(1, len(offsets) + 1)
            codes = codes_by(words, Index(base, mask, to_device(ranks)), offsets)
            return SumsByNumber(to_device(accumulators), numbers_at(offsets, base, numbers.dtype), codes)
    return None


def add_rows(job: Addition) -> None:
    """Choose where to add: in windows or tables if all cells fit, else by buckets or with hot categories apart.

    Measured on an H200 for 2**26 rows, before windows and buckets existed: one pass over tables took 1.4 to 3.2 ms;
    with cells in memory it took 1.6 to 6.5 ms, if thousands of categories are equally frequent.
    """
    chosen = engine()
    if windows.add(chosen, job) or partition.add(chosen, job):
        return
    most_lines = chosen.table_bytes // (4 * job.words * job.in_line)
    if job.n_lines <= most_lines:
        launch_tables(chosen, "add_in_tables", job, job.n_lines)
        return
    hot = hot_lines(job, min(most_lines, MOST_RANKS) if job.n_rows >= SAMPLED_ROWS else 0)
    if len(hot):
        ranks = zeros(job.n_lines, np.uint8)
        ranks.put(hot, xp.arange(1, len(hot) + 1, dtype=np.uint8))
        launch_tables(chosen, "add_hot_in_tables", job, len(hot), hot, ranks)
    else:
        plan = to_device(np.array(job.plan, np.int64))
        blocks = chosen.blocks_for(job.n_rows)
        chosen.run("add_in_cells", blocks, chosen.threads, *job.rows, plan, job.accumulators)


def launch_tables(chosen: Engine, name: str, job: Addition, n_lines: int, *more: "Array") -> None:
    """Run a kernel whose blocks add the rows of some lines in tables."""
    size = job.words * n_lines * job.in_line
    fitting = max(1, min(chosen.table_bytes // COPIED_SHARE // (4 * size + 4), MOST_COPIES))
    copies = 1 << (fitting.bit_length() - 1)
    # With an odd distance, copies are in different banks.
    size |= int(copies > 1)
    # A block adds enough rows to make clearing and merging its tables cheap, and begins at a whole vector.
    chunk = max(-(-job.n_rows // chosen.blocks), copies * size, chosen.threads)
    chunk = min(-(-chunk // 4) * 4, MOST_ADDED)
    blocks = min(-(-job.n_rows // chunk), chosen.blocks)
    plan = to_device(np.array([*job.plan, n_lines * job.in_line, copies, size, chunk], np.int64))
    chosen.run(name, blocks, chosen.threads, *job.rows, plan, job.accumulators, *more, shared=4 * copies * size)


def hot_lines(job: Addition, most: int) -> "Array":
    """Lines with more than their share of a sample of rows, at most `most`, the most frequent first."""
    if not most:
        return zeros(0, np.int64)
    sample = to_device(job.codes[:: -(-job.n_rows // SAMPLE)]).astype(np.int64)
    lines, counts = xp.unique(xp.where(sample < 0, sample + job.n_lines, sample), return_counts=True)
    order = xp.argsort(-counts, kind="stable")[:most]
    found: Array = lines[order][counts[order] > HOT_SHARE * len(sample)]
    return found
