"""What people write with groupby and merge, the way cuML and NVTabular do it; pandas has the same methods."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.rapids.job import N_FOLDS, SMOOTH, Job

Key = tuple[str, ...]
# Gives the named columns of a merged frame in the order of its column "row".
Back = Callable[[Any, Sequence[str]], Any]


def shrink(total: Any, count: Any, prior: float) -> Any:
    """Mean of sums and counts, shrunk towards the prior."""
    return (total + SMOOTH * prior) / (count + SMOOTH)


def sum_by(frame: Any, keys: Sequence[str], targets: Sequence[str]) -> Any:
    """Rows, and the sum of each target, of every group."""
    groups = frame.groupby(list(keys), sort=False, observed=True)
    found = groups.agg({targets[0]: ["count", "sum"], **{target: ["sum"] for target in targets[1:]}})
    found.columns = ["rows", *targets]
    return found.reset_index()


def sort_back(merged: Any, columns: Sequence[str]) -> Any:
    """Columns in the order of the rows, which a merge does not keep: by a sort, as cuML does it."""
    return merged.sort_values("row", ignore_index=True)[list(columns)].astype("float64")


def scatter_back(merged: Any, columns: Sequence[str]) -> Any:
    """Columns in the order of the rows, each value written to its row."""
    rows = merged["row"].values
    found = np.empty_like(rows, dtype="float64", shape=(len(rows), len(columns)), order="F")
    for place, name in enumerate(columns):
        found[:, place][rows] = merged[name].values
    return found


def names_of(targets: Sequence[str]) -> list[str]:
    """Names of the encodings."""
    return [f"{target}_encoded" for target in targets]


def mean(job: Job, frame: Any, key: Key, targets: Sequence[str], back: Back) -> Any:
    """Fit and transform: groupby, merge, sort back."""
    sums, made = sum_by(frame, key, targets), names_of(targets)
    for name, target in zip(made, targets, strict=True):
        sums[name] = shrink(sums[target], sums["rows"], job.prior)
    rows = frame[list(key)].assign(row=job.library.row_numbers(job.n_rows))
    return back(rows.merge(sums[[*key, *made]], on=list(key), how="left"), made)


def folds(job: Job, frame: Any, key: Key, targets: Sequence[str], back: Back) -> Any:
    """Sums by key and fold, taken from the sums by key."""
    made, row, both = names_of(targets), job.library.row_numbers(job.n_rows), [*key, "fold"]
    rows = frame.assign(row=row, fold=row % N_FOLDS)
    by_fold = sum_by(rows, both, targets)
    sums = by_fold.groupby(list(key), sort=False, observed=True).agg(dict.fromkeys(["rows", *targets], "sum"))
    by_fold = by_fold.merge(sums.reset_index(), on=list(key), how="left", suffixes=("", "_all"))
    count = by_fold["rows_all"] - by_fold["rows"]
    for name, target in zip(made, targets, strict=True):
        by_fold[name] = shrink(by_fold[f"{target}_all"] - by_fold[target], count, job.prior)
    return back(rows[[*both, "row"]].merge(by_fold[[*both, *made]], on=both, how="left"), made)


def leave_one_out(job: Job, frame: Any, key: Key, targets: Sequence[str], back: Back) -> Any:
    """Sums by key, merged back, less the row."""
    (target,), made = targets, names_of(targets)
    sums = sum_by(frame, key, targets).rename(columns={target: "total"})
    rows = frame.assign(row=job.library.row_numbers(job.n_rows)).merge(sums, on=list(key), how="left")
    rows[made[0]] = shrink(rows["total"] - rows[target], rows["rows"] - 1, job.prior)
    return back(rows, made)


def ordered(job: Job, frame: Any, key: Key, targets: Sequence[str], back: Back) -> Any:  # noqa: ARG001
    """Running sums by key; the rows are in the order that they are walked in."""
    (target,) = targets
    groups = frame.groupby(list(key), sort=False, observed=True)
    total = groups[target].cumsum() - frame[target]
    return shrink(total, groups.cumcount(), job.prior).astype("float64")


def classes(job: Job, frame: Any, key: Key, targets: Sequence[str], back: Back) -> Any:  # noqa: ARG001
    """Each class a target of its own, as NVTabular has it."""
    own = {f"y{label}": (frame["y"] == label).astype("int8") for label in range(job.work.n_classes)}
    return folds(job, frame[list(key)].assign(**own), key, list(own), back)


FORMS: dict[str, Callable[[Job, Any, Key, Sequence[str], Back], Any]] = {
    "folds": folds,
    "mean": mean,
    "leave-one-out": leave_one_out,
    "ordered": ordered,
    "classes": classes,
    "pairs": folds,
}


def encode(job: Job, back: Back = sort_back) -> list[Any]:
    """Encodings of every key, one after the other."""
    frame = job.rows_in_order if job.name == "ordered" else job.frame
    return [FORMS[job.name](job, frame[[*key, "y"]], key, ["y"], back) for key in job.work.groups]
