"""Target encoding of cuDF frames: ours beside cuDF's groupby and merge, cuML's encoder, and our own CPU path.

    python -m benchmarks.rapids [--rows 1e8,1e7] [--categories 1e5] [--keys int,string,category] [--work folds]
                                [--distributions uniform,zipf] [--contenders ours,cudf] [--time-limit SECONDS]
                                [--cell-limit SECONDS] [--out FOLDER] [--resume] [--tiny] [--frames cudf|pandas]
    python -m benchmarks.rapids --plot-only FOLDER/rapids.json

What a contender gives is checked before its time counts.  rapids.json and rapids.md are on disk after every cell of the
grid, and the cells that matter most come first, so that a run that is cut short keeps the best of it.  Finished cells
are never overwritten: `--resume` goes on with them.  `--tiny --frames pandas` runs every line without a GPU, with
pandas in cuDF's place, and measures nothing.
"""
