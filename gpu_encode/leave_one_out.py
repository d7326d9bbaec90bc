"""Leave-one-out: every row's code from all other rows, priors included."""

from dataclasses import dataclass

import numpy as np

from cpu_fallback.exact import Floats, Integers
from gpu_encode.cells import Array, Rows
from gpu_encode.formula import CodeTable, Formula, Mask, in_one_pass
from gpu_encode.indicators import indicator
from gpu_encode.jobs import Job, Keying, tiles, without_key
from gpu_encode.moments import CategoryMoments, Moments
from gpu_encode.outputs import Output, in_type
from gpu_encode.readouts.base import Context
from gpu_encode.readouts.other_rows import OtherRows
from gpu_encode.row_codes import Seen, by_policies, row_codes
from gpu_encode.statistics import Statistics


def leave_one_out(
    job: Job, statistics: Statistics, out: Array, want_unseen: bool, others: OtherRows | None = None
) -> Mask | None:
    """Write the code of each row from all other rows.

    Parameters
    ----------
    job : Job
    statistics : Statistics
        Sums of all rows, one view.
    out : array (rows, outputs)
    want_unseen : bool
    others : OtherRows, optional
        The values of `statistics` in order, where they are asked for and have been sorted already.

    Returns
    -------
    bool array (rows,) or None
        Rows whose category no other row has.
    """
    rows = job.rows
    if job.measured.classification and rows.weight is None and rows.classes is not None:
        return by_own_class(job, statistics, out, want_unseen)
    output, unseen = Output(out, job.ops), job.ops.xp.ones(len(rows), np.bool_) if want_unseen else None
    if (lost := rows_in_one_pass(job, statistics, out, unseen)) is not None:
        output.count(lost)
        output.close()
        return unseen
    evaluate = Evaluation(job, statistics, others)
    for start, stop in tiles(len(rows), job.tile):
        values, missing = evaluate(rows.block(start, stop))
        output.write(start, stop, values)
        if unseen is not None:
            unseen[start:stop] = missing
    output.close()
    return unseen


def rows_in_one_pass(job: Job, statistics: Statistics, out: Array, unseen: Mask | None) -> int | None:
    """Write the codes by one pass of the backend over the rows, with the same bits; None where it has no such pass."""
    if (rule := job.rule()) is None:
        return None
    cells, total, measured = statistics.cells[:, 0], statistics.totals(job.ops).cells[0, 0], job.measured
    return job.ops.leave_one_out_codes(
        cells, total, job.rows, measured.layout, measured.first_output, rule, out, unseen
    )


def by_own_class(job: Job, statistics: Statistics, out: Array, want_unseen: bool) -> Mask | None:
    """Without weights a row's code depends on its category and class alone: a table of both, then one look-up a row."""
    ops, rows = job.ops, job.rows
    codes = table_in_one_pass(job, statistics) or table_by_cells(job, statistics)
    ops.gather(in_type(codes.values, out.dtype.name, ops), rows.codes, rows.classes, out)
    return indicator(ops, codes.unseen, rows.codes, rows.classes) if want_unseen else None


def table_in_one_pass(job: Job, statistics: Statistics) -> CodeTable | None:
    """Give the table from one pass of the backend over the cells; None where it has no such pass."""
    if job.key.levels or job.formula.for_backends() is None:
        return None
    one_each = Rows(job.ops.zeros(job.n_classes, np.int32), job.ops.xp.arange(job.n_classes, dtype=np.int32))
    others = job.ops.leave_one_out(statistics.totals(job.ops).cells[:, 0], one_each, job.measured.layout)
    total = job.formula.moments(job.ops, others, job.measured)
    codes = in_one_pass(statistics, None, job.formula, total, job.ops, less_one=True)
    if codes is not None:
        # Nobody looks at cells without rows, and nobody is to be warned of what the policies say of them.
        codes.values[-2:][statistics.cells[-2:, 0, :, 0] == 0] = 0.0
    return codes


def table_by_cells(job: Job, statistics: Statistics) -> CodeTable:
    """Give the table from the array expressions, for the cells that hold rows; nobody looks at the others."""
    ops, n, width = job.ops, job.key.n_categories, job.n_outputs
    evaluate = Evaluation(job, statistics)
    category, label = np.nonzero(statistics.cells[:, 0, :, 0])
    codes = np.where(category >= n, category - n - 2, category).astype(np.int32)
    table = ops.zeros((n + 2, job.n_classes, width), np.float64)
    alone = ops.zeros((n + 2, job.n_classes), np.bool_)
    for start, stop in tiles(len(codes), job.tile):
        part = slice(start, stop)
        values, unseen = evaluate(Rows(codes[part], label[part].astype(np.int32)))
        cell = category[part] * job.n_classes + label[part]
        table.put(cell[:, None] * width + ops.xp.arange(width), values)
        alone.put(cell, unseen)
    return CodeTable(table, alone)


@dataclass(frozen=True)
class Whole:
    """Sums over all rows at one level, from which each row is taken out."""

    keying: Keying
    cells: Integers
    moments: Moments
    categories: CategoryMoments | None


class Evaluation:
    """Codes of tiles of rows, each row left out of what it sees."""

    def __init__(self, job: Job, statistics: Statistics, others: OtherRows | None = None) -> None:
        self.job = job
        self.others = OtherRows.of(statistics) if others is None else others
        self.totals = statistics.totals(job.ops).cells[:, 0]
        self.levels = [self._whole(keying, statistics) for keying in job.keyings()]

    def _whole(self, keying: Keying, statistics: Statistics) -> Whole:
        job, level = self.job, keying.level
        at_level = statistics if level is None else statistics.grouped(job.ops, level.of_leaf, level.n)
        moments = job.formula.moments(job.ops, at_level.cells[:, 0], job.measured)
        counted = job.formula.leaf_counts(moments)
        if level is not None:
            counted[-1] = False
        return Whole(keying, at_level.cells[:, 0], moments, job.formula.categories_of(moments, counted))

    def __call__(self, rows: Rows) -> tuple[Floats, Mask]:
        """Codes of a tile, and which rows' categories are unseen."""
        job = self.job
        everything = job.ops.leave_one_out(self.totals, without_key(rows), job.measured.layout)
        total = job.formula.moments(job.ops, everything, job.measured)
        seen = [self._seen(level, rows, total) for level in self.levels]
        if self.others is not None:
            return self._in_order(self.others, rows, seen[-1], total)
        return row_codes(seen, rows.codes, job.formula.root(total, seen[-1].context.categories), job.formula)

    def _in_order(self, others: OtherRows, rows: Rows, leaf: Seen, total: Moments) -> tuple[Floats, Mask]:
        """Codes of a tile that follow from values in order, and which rows' categories are unseen."""
        job = self.job
        counted = job.formula.counts(leaf.moments) & leaf.has[:, None]
        # Other rows than these have codes of their own categories alone.
        values = others.seen_by(job.ops, rows, ~counted[:, 0])
        codes, root = job.formula.readout.ranked(job.ops, leaf.moments, total, values)
        return by_policies(codes, root, root, leaf, rows.codes, job.formula)

    def _seen(self, level: Whole, rows: Rows, total: Moments) -> Seen:
        job, codes = self.job, level.keying.codes(rows)
        cells = job.ops.leave_one_out(level.cells, rows.with_codes(codes), job.measured.layout)
        moments = job.formula.moments(job.ops, cells, job.measured)
        has = level.keying.has(codes, job.formula)
        if level.categories is None:
            return Seen(moments, Context(total), has)
        lost = own_category(level.moments.at(codes), has, job.formula)
        left = own_category(moments, has, job.formula)
        return Seen(moments, Context(total, level.categories.changed(left, lost)), has)


def own_category(moments: Moments, has: Mask, formula: Formula) -> CategoryMoments:
    """Each row's own category as sums over one category, or over none where it does not count."""
    return CategoryMoments.of(moments.mean[None], (formula.counts(moments) & has[:, None])[None])
