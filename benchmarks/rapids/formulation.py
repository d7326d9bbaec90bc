"""The code that people write with groupby and merge, as NVTabular does it; pandas has the same methods."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.rapids.job import N_FOLDS, SMOOTH, Job

Key = tuple[str, ...]


def shrink(total: Any, count: Any, prior: float) -> Any:
    """Give the mean from sums and counts, shrunk towards the prior."""
    return (total + SMOOTH * prior) / (count + SMOOTH)


def sum_by(frame: Any, keys: Sequence[str], targets: Sequence[str] = ("y",)) -> Any:
    """Give the number of rows and the sum of each target, for every group."""
    groups = frame.groupby(list(keys), sort=False, observed=True)
    sums = groups.agg({targets[0]: ["count", "sum"], **{target: ["sum"] for target in targets[1:]}})
    sums.columns = ["rows", *targets]
    return sums.reset_index()


def put_back(merged: Any, columns: Sequence[str]) -> Any:
    """Give columns in the order of the rows, which a merge does not keep: each value is written to its row."""
    rows = merged["row"].values
    encodings = np.empty_like(rows, dtype="float64", shape=(len(rows), len(columns)), order="F")
    for number, name in enumerate(columns):
        encodings[:, number][rows] = merged[name].values
    return encodings


def mean(job: Job, frame: Any, key: Key) -> Any:
    """Fit and transform: groupby, merge, put back."""
    sums = sum_by(frame, key)
    sums["encoding"] = shrink(sums["y"], sums["rows"], job.prior)
    rows = frame[list(key)].assign(row=job.library.row_numbers(job.n_rows))
    return put_back(rows.merge(sums[[*key, "encoding"]], on=list(key), how="left"), ["encoding"])


def folds(job: Job, frame: Any, key: Key, targets: Sequence[str] = ("y",)) -> Any:
    """Sums by key and fold, taken from the sums by key."""
    names, row, both = [f"{target}_encoded" for target in targets], job.library.row_numbers(job.n_rows), [*key, "fold"]
    rows = frame.assign(row=row, fold=row % N_FOLDS)
    by_fold = sum_by(rows, both, targets)
    sums = by_fold.groupby(list(key), sort=False, observed=True).agg(dict.fromkeys(["rows", *targets], "sum"))
    by_fold = by_fold.merge(sums.reset_index(), on=list(key), how="left", suffixes=("", "_all"))
    count = by_fold["rows_all"] - by_fold["rows"]
    for name, target in zip(names, targets, strict=True):
        by_fold[name] = shrink(by_fold[f"{target}_all"] - by_fold[target], count, job.prior)
    return put_back(rows[[*both, "row"]].merge(by_fold[[*both, *names]], on=both, how="left"), names)


def leave_one_out(job: Job, frame: Any, key: Key) -> Any:
    """Sums by key, merged back, minus the row itself."""
    sums = sum_by(frame, key).rename(columns={"y": "total"})
    rows = frame.assign(row=job.library.row_numbers(job.n_rows)).merge(sums, on=list(key), how="left")
    rows["encoding"] = shrink(rows["total"] - rows["y"], rows["rows"] - 1, job.prior)
    return put_back(rows, ["encoding"])


def ordered(job: Job, frame: Any, key: Key) -> Any:
    """Running sums by key; the rows are already in the order of the scheme."""
    groups = frame.groupby(list(key), sort=False, observed=True)
    return shrink(groups["y"].cumsum() - frame["y"], groups.cumcount(), job.prior).astype("float64")


def classes(job: Job, frame: Any, key: Key) -> Any:
    """Each class as a target of its own, as in NVTabular."""
    targets = {f"y{label}": (frame["y"] == label).astype("int8") for label in range(job.work.n_classes)}
    return folds(job, frame[list(key)].assign(**targets), key, list(targets))


FORMS: dict[str, Callable[[Job, Any, Key], Any]] = {
    "folds": folds,
    "mean": mean,
    "leave-one-out": leave_one_out,
    "ordered": ordered,
    "classes": classes,
    "pairs": folds,
}


def encode(job: Job) -> list[Any]:
    """Encode every key, one after the other."""
    frame = job.rows_in_order if job.name == "ordered" else job.frame
    return [FORMS[job.name](job, frame[[*key, "y"]], key) for key in job.work.groups]
