"""Who is compared: ours with its own prior and with theirs, groupby and merge, cuML's encoder, and ours on the CPU."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.rapids import formulation
from benchmarks.rapids.grid import N_FOLDS, OWN_PRIOR, SMOOTH
from benchmarks.rapids.job import Job
from cpu_fallback.types import Array
from gpu_encode import TargetEncoder, interactions

# What cuML's encoder has.
OF_CUML = ("mean", "folds", "pairs")
KINDS = {2: "binary", 10: "multiclass"}


class NotOfferedError(Exception):
    """A contender does not do this work, or is not here."""


@dataclass(frozen=True)
class Contender:
    """One way to do the work of a job.

    Parameters
    ----------
    call : callable
        What is measured.
    matrix : callable
        Turns what it gives into an array of (rows, columns), in the order of the rows; not measured.
    on_host : bool
        Whether the CPU does it.
    """

    call: Callable[[], Any]
    matrix: Callable[[Any], Array]
    on_host: bool = False


def encoding(job: Job, X: Any, y: Any, device: str, own_prior: bool = False) -> Callable[[], Any]:
    """Give the call of our encoder, with the mean of all targets for prior, or its own."""
    work = job.work
    columns = interactions(work.names, order=2) if work.n_keys > 1 else None
    options = {**work.options, "columns": columns, "smooth": SMOOTH, "dtype": job.dtype, "device": device}
    options["target_type"] = KINDS[work.n_classes]
    if job.cell.work == "mean":
        return lambda: TargetEncoder(**options).fit(X, y).transform(X)
    if own_prior:
        return lambda: TargetEncoder(**options).fit_transform(X, y)
    # A prior of all rows, as the others have it: one question for all.
    return lambda: TargetEncoder(prior=job.prior(), **options).fit_transform(X, y)


def ours(job: Job) -> Contender:
    """TargetEncoder on the frame, where the frame is."""
    call = encoding(job, job.frame[job.work.names], job.frame["y"], job.library.device)
    return Contender(call, job.library.matrix)


def own_prior(job: Job) -> Contender:
    """TargetEncoder as it is by default: no row sees its own target, in its prior neither."""
    if job.cell.work == "mean":
        raise NotOfferedError("the prior of new rows is the mean of all targets")
    call = encoding(job, job.frame[job.work.names], job.frame["y"], job.library.device, own_prior=True)
    return Contender(call, job.library.matrix)


def cudf(job: Job) -> Contender:
    """Groupby and merge; rows are sorted back."""

    def matrix(found: list[Any]) -> Array:
        codes = stacked([job.library.matrix(each) for each in found])
        if job.cell.work != "ordered":
            return codes
        made = np.empty_like(codes)
        made[job.order] = codes
        return made

    return Contender(lambda: formulation.encoded(job), matrix)


def cudf_scatter(job: Job) -> Contender:
    """Groupby and merge; codes are written to their rows."""
    if job.cell.work == "ordered":
        raise NotOfferedError("nothing is merged")

    def call() -> list[Any]:
        return formulation.encoded(job, formulation.scattered_back)

    return Contender(call, lambda found: stacked([job.library.matrix(each) for each in found]))


def cuml(job: Job) -> Contender:
    """cuML's TargetEncoder, one for each key."""
    if find_spec("cuml") is None:
        raise NotOfferedError("cuML is not installed")
    if job.cell.work not in OF_CUML:
        raise NotOfferedError("cuML's encoder does not do this")
    made = import_module("cuml.preprocessing").TargetEncoder

    def call() -> list[Any]:
        return [cuml_codes(made, job, list(key)) for key in job.work.groups]

    return Contender(call, lambda found: stacked([job.library.matrix(each) for each in found]))


def cuml_codes(made: Any, job: Job, key: list[str]) -> Any:
    """Codes of one key by cuML."""
    X, y = job.frame[key], job.frame["y"]
    fixed = {"smooth": SMOOTH, "split_method": "interleaved", "output_type": "cupy"}
    if job.cell.work != "mean":
        return made(n_folds=N_FOLDS, **fixed).fit_transform(X, y)
    encoder = made(n_folds=1, **fixed).fit(X, y)
    # Else rows that equal those of training are given training codes: these are to be new ones.
    encoder.train = None
    return encoder.transform(X)


def cpu(job: Job) -> Contender:
    """TargetEncoder on the same rows in the host's memory."""
    X, y = job.library.on_host(job.frame[job.work.names]), job.library.on_host(job.frame[["y"]])
    return Contender(encoding(job, X, y, "cpu"), on_host, True)


def on_host(found: Any) -> Array:
    """Array of a table on the host."""
    columns = found.columns if hasattr(found, "column_names") else [found[name] for name in found]
    return np.column_stack([column.to_numpy() for column in columns])


def stacked(columns: list[Array]) -> Array:
    """Columns beside each other."""
    return columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)


CONTENDERS: dict[str, Callable[[Job], Contender]] = {
    "ours": ours,
    OWN_PRIOR: own_prior,
    "cudf": cudf,
    "cudf-scatter": cudf_scatter,
    "cuml": cuml,
    "cpu": cpu,
}
