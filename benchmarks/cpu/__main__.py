"""Target encoding on the CPU: ours beside libraries, engines, hand-written forms, and the limit of bare loops.

    python -m benchmarks.cpu [--only table,row-by-row,small,sizes,scaling,wide] [--rows 1e6,1e7]
                             [--categories 100,1e5,1e6] [--works mean,folds] [--keys int,text]
                             [--contenders ours,polars] [--out FOLDER] [--resume] [--quick]

The answer of a contender is compared with an independent definition before its time counts. cpu.json and cpu.md are on
disk after every cell. The exit status is 1 if anything was wrong.
"""

import sys

from benchmarks.cpu.contenders import CONTENDERS
from benchmarks.cpu.contenders.ours import VIEWS
from benchmarks.cpu.goals import NOTES, mark
from benchmarks.cpu.grid import AXES, QUICK, open_cell
from benchmarks.cpu.row_by_row import ROW_BY_ROW
from benchmarks.cpu.scaling import SCALING
from benchmarks.cpu.small import FIRST_CALLS, IMPORTS, SIZES, SMALL
from benchmarks.cpu.wide import WIDE
from benchmarks.harness.grid import Grid, Topic
from benchmarks.harness.program import main

PACKAGES = ("gpu-encode", "numpy", "numba", "llvmlite", "pandas", "pyarrow", "polars", "duckdb", "scikit-learn")
TABLE = Grid(
    "table",
    AXES,
    CONTENDERS,
    QUICK,
    open=open_cell,
    views=VIEWS,
    mark=mark,
)
TOPIC = Topic(
    "benchmarks.cpu.__main__",
    "Target encoding on the CPU",
    (TABLE, ROW_BY_ROW, SMALL, SIZES, IMPORTS, FIRST_CALLS, SCALING, WIDE),
    NOTES,
    (*PACKAGES, "category_encoders"),
)

if __name__ == "__main__":
    sys.exit(main(TOPIC, __doc__))
