"""The rest of the family on the CPU: counts, ranks, one-hot columns, evidence, statistics, hashes, mixed models.

    python -m benchmarks.family [--rows 1e6] [--categories 100,1e5] [--works count,one-hot] [--keys int,text]
                                [--contenders ours,polars-join] [--out FOLDER] [--resume] [--quick]

Ours beside category_encoders, scikit-learn, polars and pandas.  Every contender is a process of its own.  What it gives
is judged against an independent definition before its time counts, and timed runs are taken in turns, as in
`benchmarks.cpu`.  family.json and family.md are on disk after every cell.  The exit status is 1 if anything was wrong.
"""
