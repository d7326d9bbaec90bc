"""Measurements on a machine with a GPU: whether the bits are those of the CPU, and how fast every kernel is.

    python -m benchmarks.gpu [--tiny] [--only bits,kernels] [--skip suites] [--out FOLDER] [--time-limit SECONDS]
    python -m benchmarks.gpu --queue
    python -m benchmarks.gpu --only probe
    python -m benchmarks.gpu --only encoders [--rows 1e8,1e9] [--categories 4096,1e6] [--drawn uniform,zipf]
                             [--cases folds-int,loo-int] [--repeats 5] [--profile]

`--queue` is for the first eight minutes on a GPU.  It checks the bits of every kernel that no GPU has run yet, and
times each of these kernels alone beside a bare primitive.  It times cases beside their predictions
(`benchmarks.gpu.predict`), profiles the kernels that are furthest behind their predictions, and measures cuDF and cuML
if time is left.

Each step runs in a process of its own, so that a step that crashes or hangs does not affect the results of others.  A
step writes its results to report.json and report.md at once.  In numba's simulator (NUMBA_ENABLE_CUDASIM=1) `--tiny`
runs every line without a GPU, and measures nothing.
"""
