"""The contenders: ours with its own prior and with theirs, groupby and merge, cuML's encoder, and ours on the CPU."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.harness.grid import Contender, Prepared
from benchmarks.rapids import formulation
from benchmarks.rapids.job import N_CLASSES, N_FOLDS, SMOOTH, WORKS, Job
from benchmarks.rapids.judge import Judge
from cpu_fallback.types import Array
from gpu_encode import TargetEncoder, interactions

# Most rows for our CPU path.
CPU_ROWS = 10_000_000


def prepare(
    job: Job, call: Callable[[], Any], judge: Judge, matrix: Callable[[Any], Array] | None = None, gpu: bool = True
) -> Prepared:
    """Give the measured call, and the judge of its answer, which is an array in the order of the rows."""
    judge.matrix = matrix or job.library.matrix
    return Prepared(call, judge, watch=partial(job.library.watch, call)) if gpu else Prepared(call, judge)


def encoding_of(job: Job, X: Any, y: Any, device: str, own_prior: bool = False) -> Callable[[], Any]:
    """Give the call of our encoder; its prior is the mean of all targets, or the prior of its scheme."""
    work = job.work
    columns = interactions(work.names, order=2) if work.n_keys > 1 else None
    options = {**work.options, "columns": columns, "smooth": SMOOTH, "dtype": "float64", "device": device}
    options["target_type"] = "multiclass" if work.n_classes == N_CLASSES else "binary"
    if job.name == "mean":
        return lambda: TargetEncoder(**options).fit(X, y).transform(X)
    # The prior of the other contenders, so that all compute the same encodings.
    given = {} if own_prior else {"prior": job.prior}
    return lambda: TargetEncoder(**given, **options).fit_transform(X, y)


def ours(job: Job, own_prior: bool = False) -> Prepared:
    """TargetEncoder on the frame, on the frame's device."""
    call = encoding_of(job, job.frame[job.work.names], job.frame["y"], job.library.device, own_prior)
    return prepare(job, call, Judge(job, "own prior" if own_prior else "ours"))


def cudf(job: Job) -> Prepared:
    """cuDF's groupby and merge."""

    def matrix(answer: list[Any]) -> Array:
        encodings = stack(job, answer)
        if job.name != "ordered":
            return encodings
        made = np.empty_like(encodings)
        made[job.order] = encodings
        return made

    return prepare(job, lambda: formulation.encode(job), Judge(job), matrix)


def cuml(job: Job) -> Prepared:
    """cuML's TargetEncoder, one for each key."""
    encoder_of = import_module("cuml.preprocessing").TargetEncoder
    fixed = {"smooth": SMOOTH, "split_method": "interleaved", "output_type": "cupy"}

    def encode(key: list[str]) -> Any:
        X, y = job.frame[key], job.frame["y"]
        if job.name != "mean":
            return encoder_of(n_folds=N_FOLDS, **fixed).fit_transform(X, y)
        encoder = encoder_of(n_folds=1, **fixed).fit(X, y)
        # Otherwise cuML would give training encodings to rows that equal training rows; these rows are new rows.
        encoder.train = None
        return encoder.transform(X)

    return prepare(job, lambda: [encode(list(key)) for key in job.work.groups], Judge(job), partial(stack, job))


def cpu(job: Job) -> Prepared:
    """TargetEncoder on the same rows in host memory."""
    X, y = job.library.on_host(job.frame[job.work.names]), job.library.on_host(job.frame[["y"]])
    return prepare(job, encoding_of(job, X, y, "cpu"), Judge(job, "cpu"), from_host, gpu=False)


def from_host(answer: Any) -> Array:
    """Give a table on the host as an array."""
    columns = answer.columns if hasattr(answer, "column_names") else [answer[name] for name in answer]
    return np.column_stack([column.to_numpy() for column in columns])


def stack(job: Job, answer: list[Any]) -> Array:
    """Put the encodings of all keys side by side."""
    columns = [job.library.matrix(part) for part in answer]
    return columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)


# For new rows it would be the same as "ours".
TRAINING = {"work": tuple(name for name in WORKS if name != "mean")}
CONTENDERS = (
    # This contender is judged first, since the encodings of the others are compared with its encodings.
    Contender("ours", "ours", ours, compiles=True),
    Contender("ours-own-prior", "ours", partial(ours, own_prior=True), TRAINING, compiles=True),
    Contender("cudf", "cuDF", cudf, compiles=True),
    Contender("cuml", "cuML", cuml, {"work": ("mean", "folds", "pairs")}, ("cuml",), compiles=True),
    Contender("cpu", "ours on the CPU", cpu, {"rows": range(CPU_ROWS + 1)}),
)
