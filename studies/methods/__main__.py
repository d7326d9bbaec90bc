"""Every method of D'yakonov's comparison on a table of categorical columns: ROC AUC of new rows.

    python -m studies.methods TABLE [TABLE ...] [--target COLUMN] [--positive VALUE] [--columns a,b,c] [--order 2]
                                 [--numbers d,e] [--rows 6000] [--folds 5 | --split N] [--methods NAME ...] [--jobs 2]
                                 [--out FOLDER]
    python -m studies.methods --merge FOLDER [FOLDER ...] [--out FOLDER]     # one report of finished runs
    python -m studies.methods --quick --rows 300         # every line once, on rows made here; measures nothing

TABLE is a Parquet or CSV file.  Of adult, diabetes130, diamonds, employee_salaries, hotel_bookings, nycflights13,
online_retail, taxis, titanic and used_cars_uk the target and the columns are known; of others they are arguments.
Whole numbers are categories, unless `--numbers` names a column, which is then cut at deciles.  Parameters are chosen by
folds of the training rows alone; the report also has the score of the choice that would have been best on the test
rows.  `--split N` trains on the first N rows and scores all others, once.  Of several tables the report compares
methods over the tables, too.  With `--rows 2500 --folds 4`, a table took 5 to 36 minutes on two busy cores.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.harness import machine
from benchmarks.harness.arguments import folder_of, names_of, whole_number
from benchmarks.harness.results import save
from benchmarks.harness.worker import Record
from gpu_encode import UnseenWarning
from studies.methods.blends import blend_pairs
from studies.methods.classifiers import scores_of
from studies.methods.merging import merge
from studies.methods.methods import METHODS, Method, Parameters, Task
from studies.methods.report import markdown
from studies.methods.tables import Table, add_options, parse_checked, read_all

PACKAGES = ("gpu-encode", "numpy", "pandas", "scikit-learn", "scipy")
INNER_FOLDS = 3


def scores_by(
    method: Method, choice: Parameters, table: Table, train: np.ndarray, test: np.ndarray, order: int
) -> np.ndarray:
    """Fit a method to some rows, and give the scores of others."""
    X, X_new = table.X.iloc[train].reset_index(drop=True), table.X.iloc[test].reset_index(drop=True)
    model = method.make(Task(list(X.columns), order, X_new), **choice)
    return scores_of(model.fit(X, table.y[train]), X_new)


def auc_of(method: Method, choice: Parameters, table: Table, part: tuple[np.ndarray, np.ndarray], order: int) -> float:
    """Fit a method to the first rows of a part, and score it on the second."""
    return float(roc_auc_score(table.y[part[1]], scores_by(method, choice, table, *part, order)))


def score(name: str, table: Table, fold: tuple[np.ndarray, np.ndarray], order: int) -> Record:
    """Choose the parameters of a method on the training rows of an outer fold, and score it on the others."""
    method, (train, test) = METHODS[name], fold
    inner = StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=1)
    began = perf_counter()
    # With as many threads as cores in each of several processes, threads would wait for one another.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Most values of conjunctions in new rows may be new.
        warnings.simplefilter("ignore", UnseenWarning)
        chosen = 0
        if len(method.grid) > 1:
            parts = [(train[kept], train[held]) for kept, held in inner.split(train, table.y[train])]
            means = [np.mean([auc_of(method, choice, table, part, order) for part in parts]) for choice in method.grid]
            chosen = int(np.argmax(means))
        scores = [scores_by(method, choice, table, train, test, order) for choice in method.grid]
    tests = [float(roc_auc_score(table.y[test], of_choice)) for of_choice in scores]
    return {
        "auc": tests[chosen],
        "best on test": max(tests),
        "choice": method.grid[chosen],
        "seconds": perf_counter() - began,
        "scores": scores[chosen],
    }


def score_all(
    table: Table, folds: list[tuple[np.ndarray, np.ndarray]], options: argparse.Namespace
) -> Iterator[tuple[Record, list[np.ndarray]]]:
    """Yield a cell for each method, with its score on each outer fold, and its scores of the rows of each fold."""
    tasks = (delayed(score)(name, table, fold, options.order) for name in options.methods for fold in folds)
    records = Parallel(options.jobs, return_as="generator")(tasks)
    for name in options.methods:
        of_folds = [next(records) for _ in folds]
        said = [record.pop("scores") for record in of_folds]
        cell = {"dataset": table.name, "family": METHODS[name].family, "method": name}
        yield cell | {key: [record[key] for record in of_folds] for key in of_folds[0]}, said
        print(table.name, name, f"{np.mean([record['auc'] for record in of_folds]):.4f}", flush=True)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.methods",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser)
    add = parser.add_argument
    add("--order", type=whole_number, default=2, help="most columns of a conjunction")
    add("--rows", type=whole_number, help="at most, of each table, drawn at random (6000; with --split all)")
    outer = parser.add_mutually_exclusive_group()
    outer.add_argument("--folds", type=whole_number, default=5, help="outer folds")
    outer.add_argument(
        "--split", type=whole_number, metavar="N", help="train on the first N rows, and score the others"
    )
    add("--methods", type=names_of(METHODS, "method"), default=list(METHODS), help="separated by commas")
    add("--merge", type=Path, nargs="+", metavar="FOLDER", help="folders of finished runs: one report of all")
    add("--jobs", type=whole_number, default=2, help="processes, of one thread each")
    add("--out", "--output", type=Path, help="folder of the results")
    options = parse_checked(parser, arguments)
    if options.rows is None and options.split is None:
        options.rows = 6_000
    return options


def outer_folds(table: Table, options: argparse.Namespace) -> list[tuple[np.ndarray, np.ndarray]]:
    """Give training and test rows of each outer fold.

    Raises
    ------
    ValueError
        If rows on one side of a split have no two classes.
    """
    if options.split is None:
        folds = StratifiedKFold(options.folds, shuffle=True, random_state=0)
        return list(folds.split(table.X, table.y))
    train, test = np.split(np.arange(len(table.y)), [options.split])
    if len(set(table.y[train])) < 2 or len(set(table.y[test])) < 2:
        message = f"--split {options.split}: {table.name} has {len(table.y):,} rows; both sides need both classes"
        raise ValueError(message)
    return [(train, test)]


def main(arguments: list[str] | None = None) -> int:
    """Run it; return 2 if a table cannot be used, or if runs cannot be merged."""
    options = parse(arguments)
    path = folder_of(options, "methods") / "methods.json"
    try:
        if options.merge:
            merged = merge([json.loads((folder / path.name).read_text()) for folder in options.merge])
            save(merged, path, markdown(merged))
            print(path.with_suffix(".md"))
            return 0
        tables = read_all(options, options.rows or 6_000)
        outer = [outer_folds(table, options) for table in tables]
    except (ValueError, OSError) as reason:
        print(reason, file=sys.stderr)
        return 2
    document = machine.describe(PACKAGES, True) | {"quick": options.quick, "folds": len(outer[0])}
    document |= {
        "split": options.split,
        "numbers": options.numbers,
        "most rows": options.rows,
        "order": options.order,
        "datasets": [],
        "blends": {},
        "cells": [],
    }
    for table, folds in zip(tables, outer, strict=True):
        document["datasets"].append(table.describe())
        scores: dict[str, list[np.ndarray]] = {}
        for cell, said in score_all(table, folds, options):
            document["cells"].append(cell)
            scores[cell["method"]] = said
            # The results of each method are saved at once.
            save(document, path, markdown(document))
        if len(folds) > 1:
            document["blends"][table.name] = blend_pairs(scores, [table.y[test] for _, test in folds])
        save(document, path, markdown(document))
    print(path.with_suffix(".md"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
