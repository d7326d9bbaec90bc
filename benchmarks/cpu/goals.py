"""Goals for our encoders: how many times faster than others, and which share of bare loops."""

from benchmarks.cpu.grid import REAL_WORKS
from benchmarks.harness.grid import Cell
from benchmarks.harness.tables import fastest

# How many times faster than each family, and the share of the limit.
TIMES = {"scikit-learn": 15.0, "library": 2.0, "engine": 2.0, "hand-written": 1.3}
SHARE, SHARE_OF_REAL = 0.7, 0.5
# Goals are for a million or more rows.
FEWEST_ROWS = 1_000_000
MISSED, OUT_OF_REACH = " (!)", " (limit)"
NOTES = """
`x limit` is the share of the limit: the time of bare loops (`benchmarks/cpu/contenders/limit.py`) divided by ours.
`(!)` marks a missed goal. The goals are 15 times scikit-learn's speed, 2 times that of the best library and of the best
engine, 1.3 times that of the best hand-written form, 0.7 of the limit (0.5 for real targets); on small data, no slower
than scikit-learn, and half a second for `import gpu_encode`. `(limit)` marks a missed goal that could be reached only
with a larger share of the limit than that goal.

Folds of other contenders and of the limit are the row number modulo 5; scikit-learn and ours make their own folds. The
prior of other contenders and of the limit is the mean of all targets; the prior of ours, of scikit-learn and of the
limit's order is the mean of the rows that a row may see. An order is that of the rows; `ours-shuffled` takes a random
order. Fit and transform look every value up twice; hand-written forms, the limit and `ours-one-call` (`cv=Greedy()`,
`fit_transform`) do so once. LeaveOneOutEncoder of category_encoders has no prior, and is judged by its own rule. Text
has Arrow's type for ours, engines and the limit, pandas' own type for hand-written forms; the others and `ours-objects`
get Python objects.

In `row-by-row` the goals are 2 times the best engine's speed, 0.3 of the limit (`contenders/row_loops.py`), and with
half-lives or windows half of the speed without them (`ours-without-ages`). Engines compute m-estimates for `auto`, too.
""".strip()


def mark(cell: Cell, family: str, ratio: float) -> str:
    """Give the mark after a ratio: its goal is missed, or out of reach."""
    share = SHARE_OF_REAL if cell["work"] in REAL_WORKS else SHARE
    if cell["rows"] < FEWEST_ROWS or ratio >= TIMES.get(family, share):
        return ""
    peer, limit = fastest(cell, family), fastest(cell, "limit")
    beyond = family in TIMES and peer and limit and limit[1] * TIMES[family] > share * peer[1]
    return OUT_OF_REACH if beyond else MISSED
