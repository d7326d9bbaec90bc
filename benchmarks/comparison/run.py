"""All contenders on all folds, in a few processes."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, KFold
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.comparison.contenders import BASELINES, SCHEMES, SMOOTHINGS, ours, schemes_of
from benchmarks.comparison.datasets import Dataset, loaded
from benchmarks.comparison.models import MODELS, scores

Record = dict[str, Any]
NAMES = ("dataset", "model", "baseline", "scheme", "smoothing")


@dataclass(frozen=True)
class Job:
    """One scheme (none: the baselines) with some smoothings on one outer fold of a data set."""

    dataset: str
    folder: Path | None
    n_rows: int
    n_folds: int
    fold: int
    scheme: str | None
    smoothings: tuple[str, ...] = ()


def outer_folds(data: Dataset, n_folds: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows, the same for every contender; groups stay whole."""
    if data.groups:
        return list(GroupKFold(n_folds, shuffle=True, random_state=0).split(data.X, groups=data.X[data.groups]))
    return list(KFold(n_folds, shuffle=True, random_state=0).split(data.X))


def done(job: Job) -> list[Record]:
    """Scores of a job; what a formula or scheme refuses is kept in its words."""
    data = loaded(job.dataset, job.folder, job.n_rows)
    train, test = outer_folds(data, job.n_folds)[job.fold]
    (X, y), (X_new, y_new) = data.rows(train), data.rows(test)
    records = []
    where = {"dataset": data.name, "fold": job.fold}
    if job.scheme is None:
        for name, (encode, models) in BASELINES.items():
            encoded = encode(data, (X, y, X_new))
            categories = len(data.keys) if name == "native categories" else 0
            for model in models:
                found = scores(model, data.kind, encoded, y, y_new, categories)
                records.append({**where, "model": model, "baseline": name, "train": found[0], "test": found[1]})
        return records
    for smoothing in job.smoothings:
        named = {**where, "scheme": job.scheme, "smoothing": smoothing}
        try:
            encoded = ours(data, job.scheme, smoothing, (X, y, X_new))
        except (ValueError, TypeError) as error:
            records += [{**named, "model": model, "refused": str(error)} for model in MODELS]
            continue
        for model in MODELS:
            train_score, test_score = scores(model, data.kind, encoded, y, y_new)
            records.append({**named, "model": model, "train": train_score, "test": test_score})
    return records


def jobs_of(
    data: Dataset, folder: Path | None, n_rows: int, n_folds: int, asked: tuple[list[str], list[str]]
) -> list[Job]:
    """Give the jobs of a data set."""
    schemes, smoothings = asked
    found: list[str | None] = [None, *(name for name in schemes_of(data) if name in schemes)]
    return [
        Job(data.name, folder, n_rows, n_folds, fold, scheme, tuple(smoothings) if scheme else ())
        for scheme in found
        for fold in range(n_folds)
    ]


def one_thread() -> None:
    """Leave each process one thread: as many threads as cores in each would wait for one another."""
    threadpool_limits(1)


def results(jobs: list[Job], processes: int) -> Iterator[tuple[Job, list[Record]]]:
    """Do jobs, and give what each found as it ends."""
    if processes == 1:
        yield from ((job, done(job)) for job in jobs)
        return
    # A fork would break the threads of OpenMP.
    with ProcessPoolExecutor(processes, get_context("spawn"), one_thread) as pool:
        waiting = {pool.submit(done, job): job for job in jobs}
        for each in as_completed(waiting):
            yield waiting[each], each.result()


def gathered(records: Iterable[Record]) -> list[Record]:
    """One cell for all folds: scores in the order of the folds."""
    cells: dict[tuple[Any, ...], Record] = {}
    for record in sorted(records, key=lambda record: record["fold"]):
        named: Record = {name: record[name] for name in NAMES if name in record}
        cell = cells.setdefault(tuple(named.items()), {**named, "train": [], "test": []})
        if "refused" in record:
            cell["refused"] = record["refused"]
        else:
            cell["train"].append(record["train"])
            cell["test"].append(record["test"])
    return sorted(cells.values(), key=place)


def place(cell: Record) -> tuple[Any, ...]:
    """Where a cell stands among all."""
    known = ([*BASELINES, None], [*SCHEMES, None], [*SMOOTHINGS, None])
    named = zip(known, ("baseline", "scheme", "smoothing"), strict=True)
    return (cell["dataset"], cell["model"], *(order.index(cell.get(name)) for order, name in named))
