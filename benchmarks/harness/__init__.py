"""One harness for all benchmarks: a grid of cells, contenders in processes of their own, a judge, results, tables.

A *topic* is one command (`python -m benchmarks.cpu`). It has *grids*; a grid has *axes* (rows, keys, work ...), and a
*cell* is a dictionary with one value of each axis. *Contenders* do the work of a cell; the first one of a grid is ours,
and every ratio is against it. A topic is one module with `TOPIC` in it and one line that runs it:

    from benchmarks.harness.grid import Contender, Grid, Prepared, Topic
    from benchmarks.harness.judge import Answer
    from benchmarks.harness.program import main

    def prepare(rows, make):          # `rows` are drawn by `benchmarks.harness.rows` from the cell's axes
        X, y = rows.matrix, rows.target
        reference = scikit_learn().fit(X, y).transform(X)
        return Prepared(lambda: make().fit(X, y).transform(X), Answer.of(reference, tolerance=1e-9))

    AXES = {"rows": (1_000, 280_000), "categories": (1_000,), "target": ("binary", "continuous"), "keys": ("text",)}
    CONTENDERS = (
        Contender("ours", "ours", partial(prepare, make=ours)),
        Contender("sklearn", "scikit-learn", partial(prepare, make=scikit_learn), needs=("sklearn",)),
    )
    TOPIC = Topic("benchmarks.example", "Ours beside scikit-learn", (Grid("fit", AXES, CONTENDERS, fresh=True),))

    if __name__ == "__main__":
        sys.exit(main(TOPIC))

What a topic gets: the command line (one option for each axis, `--only`, `--contenders`, `--quick`,
`--resume`, `--time-limit`, `--out`), drawn rows that all processes map, a worker process for each contender (for each
call, where a grid is `fresh`), one judged call before anything is timed, timed calls in turns, memory, `<topic>.json`
and `<topic>.md` on disk after every cell.

What a topic may change of a grid (see `grid.Grid`): how inputs are drawn and opened, which combinations exist (`keep`,
or a list of cells), environment variables of the processes, whether processes are used at all (`isolated`: a GPU is
held by one process), the clock (`clock`, such as CUDA events), marks behind ratios. A call that times itself gives
`Seconds`. Each part also stands alone: `results.Results`, `tables.table`, `arguments`, `machine`, `memory`.
"""
