"""What schemes and smoothings are worth on real data, with a linear model and a boosted tree.

    python -m benchmarks.comparison --data FOLDER [--out FOLDER] [--datasets adult,hotel_bookings] [--rows 12000]
                                    [--folds 5] [--schemes kfold-5,ordered] [--smoothings none,auto] [--jobs 2]
    python -m benchmarks.comparison --quick --rows 600    # every line once, on rows made here; measures nothing

FOLDER holds adult.parquet, diabetes130.parquet, employee_salaries.parquet, hotel_bookings.parquet and
nycflights13.parquet, or some of them. comparison.json and comparison.md go to the output folder.
"""

import argparse
import sys
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
from benchmarks.comparison.datasets import READERS, Dataset, describe, load
from benchmarks.comparison.report import markdown
from benchmarks.comparison.scores import MODELS, score_both
from benchmarks.harness import machine
from benchmarks.harness.arguments import folder_of, names_of, whole_number
from benchmarks.harness.results import save
from benchmarks.harness.worker import Record

PACKAGES = ("gpu-encode", "numpy", "pandas", "scikit-learn", "scipy")
GENERATED = ("generated-binary", "generated-multiclass", "generated-continuous")


@dataclass(frozen=True)
class Job:
    """One contender on one outer fold of a data set: a baseline, or a scheme with a smoothing."""

    dataset: str
    folder: Path | None
    n_rows: int
    n_folds: int
    fold: int
    contender: tuple[str, ...]

    @property
    def axes(self) -> dict[str, str]:
        """The contender as axes of a cell."""
        names = ("baseline",) if len(self.contender) == 1 else ("scheme", "smoothing")
        return {"dataset": self.dataset} | dict(zip(names, self.contender, strict=True))


def split(data: Dataset, n_folds: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows, the same for every contender; groups stay whole."""
    if data.groups:
        return list(GroupKFold(n_folds, shuffle=True, random_state=0).split(data.X, groups=data.X[data.groups]))
    return list(KFold(n_folds, shuffle=True, random_state=0).split(data.X))


def work(job: Job) -> list[Record]:
    """Scores of a job, one record for each model; what a formula or scheme refuses is kept in its words."""
    data = load(job.dataset, job.folder, job.n_rows)
    train, test = split(data, job.n_folds)[job.fold]
    (X, y), (X_new, y_new) = data.rows(train), data.rows(test)
    models, categories = MODELS, 0
    try:
        if len(job.contender) == 1:
            encode, models = BASELINES[job.contender[0]]
            encoded = encode(data, (X, y, X_new))
            categories = len(data.keys) if job.contender[0] == "native categories" else 0
        else:
            encoded = ours(data, (X, y, X_new), *job.contender)
    except (ValueError, TypeError) as error:
        return [{**job.axes, "model": model, "refused": str(error)} for model in models]
    scores = {model: score_both(model, data.kind, encoded, y, y_new, categories) for model in models}
    return [{**job.axes, "model": model, "train": found[0], "test": found[1]} for model, found in scores.items()]


def jobs_of(data: Dataset, options: argparse.Namespace) -> list[Job]:
    """Give the jobs of a data set."""
    schemes = [name for name in schemes_of(data) if name in options.schemes]
    contenders = [(name,) for name in BASELINES] + [(name, each) for name in schemes for each in options.smoothings]
    shared = data.name, options.data, options.rows, options.folds
    return [Job(*shared, fold, contender) for contender in contenders for fold in range(options.folds)]


def one_thread() -> None:
    """Leave each process one thread: as many threads as cores in each would wait for one another."""
    threadpool_limits(1)


def run(jobs: list[Job], processes: int) -> Iterator[tuple[Job, list[Record]]]:
    """Do jobs, and give what each found as it ends."""
    if processes == 1:
        with threadpool_limits(1):
            yield from ((job, work(job)) for job in jobs)
        return
    # A fork would break the threads of OpenMP.
    with ProcessPoolExecutor(processes, get_context("spawn"), one_thread) as pool:
        waiting = {pool.submit(work, job): job for job in jobs}
        for each in as_completed(waiting):
            yield waiting[each], each.result()


def gather(found: Iterable[tuple[Job, list[Record]]], jobs: list[Job]) -> list[Record]:
    """One cell for all folds of a contender and a model: scores in the order of the folds."""
    cells: dict[tuple[Any, ...], Record] = {}
    for job, records in sorted(found, key=lambda each: jobs.index(each[0])):
        for record in records:
            key = (*job.axes.values(), record["model"])
            cell = cells.setdefault(key, {**job.axes, "model": record["model"], "train": [], "test": []})
            if "refused" in record:
                cell["refused"] = record["refused"]
            else:
                cell["train"].append(record["train"])
                cell["test"].append(record["test"])
    return list(cells.values())


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.comparison",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    rows = parser.add_mutually_exclusive_group(required=True)
    rows.add_argument("--data", type=Path, help="folder of the data sets")
    rows.add_argument("--quick", "--generated", action="store_true", help="on rows made here; measures nothing")
    for name, known in (("datasets", READERS), ("schemes", SCHEMES), ("smoothings", SMOOTHINGS)):
        add(f"--{name}", type=names_of(known, name[:-1], True), default=list(known), help=f"of {','.join(known)}")
    add("--rows", type=whole_number, default=12_000, help="at most, of each data set, drawn at random")
    add("--folds", type=whole_number, default=5, help="outer folds")
    add("--jobs", type=whole_number, default=2, help="processes, of one thread each")
    add("--out", "--output", type=Path, help="folder of the results")
    options = parser.parse_args(arguments)
    if options.folds < 2:
        parser.error("--folds: at least 2 outer folds, or differences have no noise to be compared with")
    return options


def datasets_of(options: argparse.Namespace) -> list[Dataset]:
    """Data sets that are asked for and there."""
    names = GENERATED if options.quick else options.datasets
    missing = [] if options.quick else [name for name in names if not (options.data / f"{name}.parquet").exists()]
    for name in missing:
        print(f"{name} is left out: no {name}.parquet in {options.data}")
    return [load(name, options.data, options.rows) for name in names if name not in missing]


def main(arguments: list[str] | None = None) -> int:
    """Run it; 2 if there are no data."""
    options = parse(arguments)
    datasets = datasets_of(options)
    if not datasets:
        print("none of the data sets is there", file=sys.stderr)
        return 2
    path = folder_of(options, "comparison") / "comparison.json"
    document = machine.describe(PACKAGES, True) | {"quick": options.quick, "folds": options.folds}
    document |= {"most rows": options.rows, "datasets": [], "cells": []}
    for data in datasets:
        jobs, found = jobs_of(data, options), []
        for job, records in run(jobs, options.jobs):
            found.append((job, records))
            print(f"{len(found)}/{len(jobs)} {', '.join(job.axes.values())}, fold {job.fold}", flush=True)
        document["datasets"].append(describe(data))
        document["cells"] += gather(found, jobs)
        # Each data set is on disk once it is done.
        save(document, path, markdown(document))
    print(path.with_suffix(".md"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
