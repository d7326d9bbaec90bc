"""Leave-one-out: every row's code from all other rows, priors included."""

from dataclasses import dataclass

import numpy as np

from cpu_fallback.exact import Floats, Integers
from gpu_encode.formula import Formula, Mask, Seen, row_codes
from gpu_encode.jobs import Job, Keying, tiles, without_key
from gpu_encode.moments import CategoryMoments, Moments
from gpu_encode.ops import Rows
from gpu_encode.smoothing import Context
from gpu_encode.statistics import Statistics


def leave_one_out(job: Job, statistics: Statistics) -> tuple[Floats, Mask]:
    """Code of each row from all other rows.

    Parameters
    ----------
    job : Job
    statistics : Statistics
        Sums of all rows, one view.

    Returns
    -------
    codes : float64 array (rows, outputs)
    unseen : bool array (rows,)
    """
    evaluate, rows = Evaluation(job, statistics), job.rows
    if job.measured.classification and rows.weight is None and rows.classes is not None:
        return by_own_class(job, statistics, evaluate)
    out, unseen = job.ops.empty((len(rows), job.n_outputs), np.float64), job.ops.empty(len(rows), np.bool_)
    for start, stop in tiles(len(rows), job.tile):
        out[start:stop], unseen[start:stop] = evaluate(rows.block(start, stop))
    return out, unseen


def by_own_class(job: Job, statistics: Statistics, evaluate: "Evaluation") -> tuple[Floats, Mask]:
    """Without weights a row's code depends on its category and class alone: a table of both, then one look-up a row."""
    ops, n = job.ops, job.key.n_categories
    category, label = np.nonzero(statistics.cells[:, 0, :, 0])
    codes = np.where(category >= n, category - n - 2, category).astype(np.int32)
    width = job.n_outputs + 1
    # Nobody looks at the cells without rows.
    table = ops.zeros((n + 2, job.n_classes, width), np.float64)
    for start, stop in tiles(len(codes), job.tile):
        part = slice(start, stop)
        values, unseen = evaluate(Rows(codes[part], label[part].astype(np.int32)))
        first = (category[part] * job.n_classes + label[part]) * width
        table.put(first[:, None] + ops.xp.arange(width), np.column_stack([values, unseen.astype(np.float64)]))
    out = ops.empty((len(job.rows), width), np.float64)
    ops.gather(table, job.rows.codes, job.rows.classes, out)
    return out[:, :-1], out[:, -1] != 0


@dataclass(frozen=True)
class Whole:
    """Sums over all rows at one level, from which each row is taken out."""

    keying: Keying
    cells: Integers
    moments: Moments
    categories: CategoryMoments | None


class Evaluation:
    """Codes of tiles of rows, each row left out of what it sees."""

    def __init__(self, job: Job, statistics: Statistics) -> None:
        self.job = job
        self.totals = statistics.totals().cells[:, 0]
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
        return row_codes(seen, rows.codes, job.formula.root(total, seen[-1].context.categories), job.formula)

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
