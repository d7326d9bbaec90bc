"""Target encoding of cuDF frames: ours beside cuDF's groupby and merge, cuML's encoder, and our own CPU path.

    python -m benchmarks.rapids [--rows 1e8,1e7] [--categories 1e5] [--keys int,string,category] [--work folds]
                                [--distributions uniform,zipf] [--contenders ours,cudf] [--time-limit SECONDS]
                                [--out FOLDER] [--resume] [--quick]

What a contender gives is checked before its time counts.  rapids.json and rapids.md are on disk after every cell of the
grid.  Finished cells are never overwritten: `--resume` goes on with them.  Without a GPU, `--quick` runs every line
with pandas for cuDF, and measures nothing.
"""
