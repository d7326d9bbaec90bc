"""Target encoding of cuDF frames: ours beside cuDF's groupby and merge, cuML's encoder, and our own CPU path.

    python -m benchmarks.rapids [--rows 1e8,1e7] [--categories 1e5] [--keys int,string,category] [--work folds]
                                [--distributions uniform,zipf] [--contenders ours,cudf] [--time-limit SECONDS]
                                [--out FOLDER] [--resume] [--quick]

The answer of a contender is checked before its time counts.  rapids.json and rapids.md are on disk after every cell.
Finished cells are never overwritten: `--resume` continues with the other cells.  Without a GPU, `--quick` runs every
line with pandas in place of cuDF, and measures nothing.
"""
