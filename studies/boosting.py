"""Target statistics inside boosted trees, as in the table of CatBoost's paper: what does each cost on new rows?

    python -m studies.boosting TABLE [TABLE ...] [--target COLUMN] [--positive VALUE] [--columns a,b,c]
                               [--numbers d,e] [--order 1] [--rows 10000] [--folds 5] [--rounds 100]
                               [--statistics NAME ...] [--out FOLDER]
    python -m studies.boosting --quick --rows 300        # every line once, on rows made here; measures nothing

Tables are those of `studies.methods`.  Every statistic has the same smoothing, one row of the training mean, as
CatBoost's has.  Trees are XGBoost's, one call a tree, so that each tree can read other encodings: another random order
(`draw`), other folds, or the statistics of the current gradients, as LightGBM makes them.

The table is that of Prokhorenkova et al., "CatBoost: unbiased boosting with categorical features", 2018, section 6.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import xgboost
from sklearn.metrics import log_loss, zero_one_loss
from sklearn.model_selection import StratifiedKFold

from benchmarks.harness import machine
from benchmarks.harness.arguments import folder_of, names_of, whole_number
from benchmarks.harness.results import Document, save
from benchmarks.harness.tables import counts_text, preface, table
from benchmarks.harness.worker import Record
from gpu_encode import (
    CountEncoder,
    GradientEncoder,
    Greedy,
    Holdout,
    KFold,
    LeakWarning,
    LeaveOneOut,
    Ordered,
    TargetEncoder,
    UnseenWarning,
    interactions,
)
from studies.comparison.scores import compare
from studies.methods.tables import Table, add_options, parse_checked, read_all

PACKAGES = ("gpu-encode", "numpy", "pandas", "scikit-learn", "xgboost-cpu")
TREES: dict[str, Any] = {
    "objective": "binary:logistic",
    "base_score": 0.5,
    "eta": 0.1,
    "max_depth": 6,
    "tree_method": "hist",
    "nthread": 1,
}
USUAL = "ordered"
LEGEND = f"""Log loss and error of new rows, means over outer folds. The differences to "{USUAL}" are paired, fold by
fold, in percent of its loss; the number after ± is half of an interval by Student's t with the correction of Nadeau and
Bengio for training rows that folds share, and the intervals of one column of a table hold together with a probability
of 95 % (Bonferroni). **Bold** differences are more than noise. "Numbers kept" counts the encodings that new rows need.
Seconds are those of one outer fold."""
# Training encodings and encodings of new rows, for one tree.
Encoded = tuple[np.ndarray, np.ndarray]
# The number of the tree and the gradients of the training rows, to encodings.
Statistic = Callable[[int, np.ndarray], Encoded]


@dataclass(frozen=True)
class Rows:
    """Training rows, new rows, and the columns and conjunctions that are encoded."""

    X: pd.DataFrame
    y: np.ndarray
    X_new: pd.DataFrame
    keys: list[Any]


def fixed(scheme: Any, rows: Rows) -> Statistic:
    """Give all trees the same encodings."""
    encoder = TargetEncoder(columns=rows.keys, cv=scheme, smooth=1.0)
    encoded = encoder.fit_transform(rows.X, rows.y).to_numpy(), encoder.transform(rows.X_new).to_numpy()
    return lambda *_: encoded


def orders(rows: Rows) -> Statistic:
    """Give each tree the encodings of another random order."""
    encoder = TargetEncoder(columns=rows.keys, cv=Ordered(), smooth=1.0).fit(rows.X, rows.y)
    new = encoder.transform(rows.X_new).to_numpy()
    return lambda number, _: (encoder.draw(rows.X, rows.y, number).to_numpy(), new)


def folds(rows: Rows) -> Statistic:
    """Give each tree the encodings of other folds."""
    return lambda number, sums: fixed(KFold(5, random_state=number), rows)(number, sums)


def gradients(scheme: Any, rows: Rows) -> Statistic:
    """Encode by sums of the current gradients and hessians, new for each tree."""

    def encode(_: int, sums: np.ndarray) -> Encoded:
        encoder = GradientEncoder(columns=rows.keys, cv=scheme)
        return encoder.fit_transform(rows.X, sums).to_numpy(), encoder.transform(rows.X_new).to_numpy()

    return encode


# The function of a statistic, and whether new rows need other encodings for each tree.
STATISTICS: dict[str, tuple[Callable[[Rows], Statistic], bool]] = {
    "greedy": (partial(fixed, Greedy()), False),
    "holdout": (partial(fixed, Holdout(0.5)), False),
    "leave-one-out": (partial(fixed, LeaveOneOut()), False),
    "ordered": (partial(fixed, Ordered()), False),
    "4 orders averaged": (partial(fixed, Ordered(4)), False),
    "another order for each tree": (orders, False),
    "5 folds": (partial(fixed, KFold(5)), False),
    "other folds for each tree": (folds, False),
    "gradients of all rows (LightGBM)": (partial(gradients, Greedy()), True),
    "gradients by 5 folds": (partial(gradients, KFold(5)), True),
}


def boost(statistic: Statistic, y: np.ndarray, n_new: int, n_rounds: int) -> np.ndarray:
    """Add one tree after another; give the probabilities of new rows.

    Parameters
    ----------
    statistic : Statistic
    y : int64 ndarray of shape (n_rows,)
    n_new, n_rounds : int
        Numbers of new rows and of trees.
    """
    start = np.log(y.mean() / (1 - y.mean()))
    margins, margins_new = np.full(len(y), start), np.full(n_new, start)
    for number in range(n_rounds):
        p = 1 / (1 + np.exp(-margins))
        train, new = statistic(number, np.column_stack([p - y, p * (1 - p)]))
        rows = xgboost.DMatrix(train, y, base_margin=margins)
        tree = xgboost.train(TREES, rows, 1)
        margins = tree.predict(rows, output_margin=True)
        margins_new = tree.predict(xgboost.DMatrix(new, base_margin=margins_new), output_margin=True)
    return np.asarray(1 / (1 + np.exp(-margins_new.astype(np.float64))))


def score(name: str, rows: Rows, y_new: np.ndarray, n_rounds: int) -> Record:
    """Boost with a statistic on the training rows of an outer fold, and score the others."""
    make, by_tree = STATISTICS[name]
    began = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeakWarning)
        # Most values of conjunctions in new rows may be new.
        warnings.simplefilter("ignore", UnseenWarning)
        probabilities = boost(make(rows), rows.y, len(y_new), n_rounds)
    seconds = perf_counter() - began
    tables = CountEncoder(columns=rows.keys).fit(rows.X).categories_
    return {
        "log loss": float(log_loss(y_new, probabilities)),
        "error": float(zero_one_loss(y_new, probabilities > 0.5)),
        "numbers": sum(map(len, tables)) * (n_rounds if by_tree else 1),
        "seconds": seconds,
    }


def measure(data: Table, options: argparse.Namespace) -> Iterator[Record]:
    """Yield a cell for each statistic, with lists of what each outer fold gave."""
    keys = interactions(list(data.X.columns), order=options.order)
    outer = list(StratifiedKFold(options.folds, shuffle=True, random_state=0).split(data.X, data.y))
    parts = [
        (Rows(data.X.iloc[train].reset_index(drop=True), data.y[train], data.X.iloc[test], keys), data.y[test])
        for train, test in outer
    ]
    for name in options.statistics:
        records = [score(name, *part, options.rounds) for part in parts]
        of_folds = {key: [record[key] for record in records] for key in records[0]}
        yield {"dataset": data.name, "statistic": name, **of_folds}
        print(data.name, name, f"{np.mean([record['log loss'] for record in records]):.4f}", flush=True)


def list_statistics(cells: list[Record]) -> list[Record]:
    """Give a row for each statistic on one table."""
    usual = next((cell for cell in cells if cell["statistic"] == USUAL), None)
    rows = []
    for cell in cells:
        row: Record = {"statistic": cell["statistic"]}
        for loss in ("log loss", "error"):
            row[loss] = f"{np.mean(cell[loss]):.4f}"
            if usual is not None:
                one, other = (list(100 / np.mean(usual[loss]) * np.array(each[loss])) for each in (cell, usual))
                difference = compare(one, other, len(cells) - 1 or 1)
                text = f"{difference.mean:+.1f} ± {difference.half:.1f} %"
                bold = "" if difference.is_noise else "**"
                row[f"{loss} less {USUAL}"] = "" if cell is usual else f"{bold}{text}{bold}"
        row |= {"numbers kept": f"{np.mean(cell['numbers']):,.0f}", "seconds": f"{np.mean(cell['seconds']):.1f}"}
        rows.append(row)
    return rows


def markdown(document: Document) -> str:
    """Write the whole report."""
    lines = [*preface(document, "Target statistics inside boosted trees"), "", LEGEND, ""]
    for described in document["datasets"]:
        name = described["dataset"]
        distinct = counts_text(described["distinct values"])
        lines += [f"## {name}", "", f"{described['rows']:,} rows; class 1: {described['target']}."]
        lines += ["", f"Columns and their distinct values: {distinct}.", ""]
        lines += [*table(list_statistics([cell for cell in document["cells"] if cell["dataset"] == name])), ""]
    return "\n".join(lines)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.boosting", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser)
    add = parser.add_argument
    add("--order", type=whole_number, default=1, help="most columns of a conjunction")
    add("--rows", type=whole_number, default=10_000, help="at most, of each table, drawn at random")
    add("--folds", type=whole_number, default=5, help="outer folds")
    add("--rounds", type=whole_number, default=100, help="trees")
    add("--statistics", type=names_of(STATISTICS, "statistic"), default=list(STATISTICS), help="separated by commas")
    add("--out", "--output", type=Path, help="folder of the results")
    return parse_checked(parser, arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run it; return 2 if a table cannot be used."""
    options = parse(arguments)
    try:
        tables = read_all(options, options.rows)
    except (ValueError, OSError) as reason:
        print(reason, file=sys.stderr)
        return 2
    path = folder_of(options, "boosting") / "boosting.json"
    document = machine.describe(PACKAGES, True) | {"quick": options.quick, "folds": options.folds}
    document |= {"rounds": options.rounds, "order": options.order, "trees": TREES, "datasets": [], "cells": []}
    for data in tables:
        document["datasets"].append(data.describe())
        for cell in measure(data, options):
            document["cells"].append(cell)
            save(document, path, markdown(document))
    print(path.with_suffix(".md"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
