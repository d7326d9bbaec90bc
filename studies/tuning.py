"""What does a grid of smoothings cost, compared with one fit_transform? `tune` sums the rows once for any grid.

python -m studies.tuning [--rows 1e6] [--categories 100,1e5] [--quick]
"""

import sys
from functools import partial

import numpy as np

from benchmarks.cpu.contenders.ours import own_folds
from benchmarks.cpu.grid import SMOOTH
from benchmarks.cpu.judge import Rule
from benchmarks.harness.grid import Contender, Grid, Prepared, Topic
from benchmarks.harness.judge import Answer, Unjudged
from benchmarks.harness.program import main
from benchmarks.harness.rows import Rows
from gpu_encode import KFold, MEstimate, TargetEncoder, tune
from gpu_encode.study.tuning.candidates import default_smoothings


def prepare(rows: Rows, smoothings: int | None) -> Prepared:
    """Prepare one `fit_transform`, or `tune` with this number of smoothings (0: the usual ones)."""
    X, y = rows.matrix, rows.target
    encoder = TargetEncoder(cv=KFold(5), smooth=SMOOTH, target_type=rows.kind, device="cpu")
    if smoothings is None:
        rule = Rule("by_fold", folds=own_folds(rows.n_rows), visible_prior=True)
        return Prepared(lambda: encoder.fit_transform(X, y), Answer.of(rule.encode(rows.codes, y)))
    candidates = [MEstimate(float(m)) for m in np.geomspace(0.1, 1e4, smoothings)] or default_smoothings()
    return Prepared(lambda: tune(encoder, X, y, smoothings=candidates), Unjudged())


CONTENDERS = (
    Contender("fit_transform", "ours", partial(prepare, smoothings=None), compiles=True),
    Contender("tune-1", "tune, 1 value", partial(prepare, smoothings=1), compiles=True),
    Contender("tune-50", "tune, 50 values", partial(prepare, smoothings=50), compiles=True),
    Contender("tune-usual", "tune, the usual 60", partial(prepare, smoothings=0), compiles=True),
)
AXES = {
    "rows": (1_000_000,),
    "categories": (100, 1_000, 10_000, 100_000),
    "keys": ("int",),
    "target": ("binary", "continuous"),
}
GRID = Grid("tuning", AXES, CONTENDERS, {"rows": (3_000,), "categories": (40,)})
TOPIC = Topic("studies.tuning", "What tuning costs", (GRID,), packages=("gpu-encode", "numpy", "numba"))

if __name__ == "__main__":
    sys.exit(main(TOPIC, __doc__))
