"""Target encoding on the CPU: ours beside libraries, engines, hand-written forms, and the limit of bare loops.

    python -m benchmarks.cpu [--only table,small,scaling] [--rows 1e6,1e7] [--categories 100,1e5,1e6]
                             [--works mean,folds] [--keys int,text] [--contenders ours,polars-join]
                             [--out FOLDER] [--resume] [--quick]

Every contender is a process of its own.  What it gives is judged against an independent definition before its time
counts, and timed runs are taken in turns.  cpu.json and cpu.md are on disk after every cell.  The exit status is 1 if
anything was wrong.
"""
