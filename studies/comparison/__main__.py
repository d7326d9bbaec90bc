"""A comparison of schemes and smoothings on real data, with a linear model and boosted trees.

    python -m studies.comparison --data FOLDER [--out FOLDER] [--datasets adult,hotel_bookings] [--rows 12000]
                                    [--folds 5] [--schemes kfold-5,ordered] [--smoothings none,auto] [--jobs 2]
                                    [--sort target]
    python -m studies.comparison --quick --rows 600    # every line once, on rows made here; measures nothing

FOLDER holds adult.parquet, diabetes130.parquet, employee_salaries.parquet, hotel_bookings.parquet,
nycflights13.parquet, used_cars_uk.parquet and taxis.parquet, or some of them. comparison.json and comparison.md go to
the output folder.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]
from pandas import factorize
from sklearn.model_selection import GroupKFold, KFold
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.harness import machine
from benchmarks.harness.arguments import folder_of, names_of, whole_number
from benchmarks.harness.results import save
from benchmarks.harness.worker import Record
from studies.comparison.contenders import BASELINES, SCHEMES, SMOOTHINGS, ours, schemes_of
from studies.comparison.datasets import READERS, Dataset, describe, load
from studies.comparison.report import markdown
from studies.comparison.scores import MODELS, score_both

PACKAGES = ("gpu-encode", "numpy", "pandas", "scikit-learn", "scipy")
GENERATED = ("generated-binary", "generated-multiclass", "generated-continuous")
# A baseline, or a scheme and a smoothing.
Contender = tuple[str, ...]


def split(data: Dataset, n_folds: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Give the training and test rows of each fold, the same for every contender; groups are not split."""
    if data.groups:
        return list(GroupKFold(n_folds, shuffle=True, random_state=0).split(data.X, groups=data.X[data.groups]))
    return list(KFold(n_folds, shuffle=True, random_state=0).split(data.X))


def sort(data: Dataset, train: np.ndarray, by: str | None) -> np.ndarray:
    """Give training rows in their order, sorted by target or by the first key, or in a random order."""
    if by is None:
        return train
    if by == "random":
        return np.random.default_rng(0).permutation(train)
    X, y = data.rows(train)
    return train[np.argsort(y if by == "target" else factorize(X[data.keys[0]])[0], kind="stable")]


def contenders_of(data: Dataset, options: argparse.Namespace) -> list[Contender]:
    """List the contenders of a data set."""
    schemes = [name for name in schemes_of(data) if name in options.schemes]
    return [(name,) for name in BASELINES] + [(scheme, name) for scheme in schemes for name in options.smoothings]


def score(name: str, options: argparse.Namespace, contender: Contender, fold: int) -> list[Record]:
    """Score a contender on one outer fold with each model; if it refuses the rows, keep its message."""
    data = load(name, options.data, options.rows)
    train, test = split(data, options.folds)[fold]
    (X, y), (X_new, y_new) = data.rows(sort(data, train, options.sort)), data.rows(test)
    models, categories = MODELS, 0
    # With as many threads as cores in each of several processes, threads would wait for one another.
    with threadpool_limits(1):
        try:
            if len(contender) == 1:
                encode, models = BASELINES[contender[0]]
                encoded = encode(data, (X, y, X_new))
                categories = len(data.keys) if contender[0] == "native categories" else 0
            else:
                encoded = ours(data, (X, y, X_new), *contender)
        except (ValueError, TypeError) as error:
            return [{"model": model, "refused": str(error)} for model in models]
        scores = {model: score_both(model, data.kind, encoded, y, y_new, categories) for model in models}
    return [{"model": model, "train": pair[0], "test": pair[1]} for model, pair in scores.items()]


def score_all(data: Dataset, options: argparse.Namespace) -> Iterator[Record]:
    """Yield a cell for each contender and model, with its scores in the order of the outer folds."""
    contenders, folds = contenders_of(data, options), range(options.folds)
    tasks = (delayed(score)(data.name, options, contender, fold) for contender in contenders for fold in folds)
    records = Parallel(options.jobs, return_as="generator")(tasks)
    for contender in contenders:
        names = ("baseline",) if len(contender) == 1 else ("scheme", "smoothing")
        axes = {"dataset": data.name, **dict(zip(names, contender, strict=True))}
        for of_model in zip(*[next(records) for _ in folds], strict=True):
            cell = axes | {"model": of_model[0]["model"]}
            cell |= {part: [record[part] for record in of_model if part in record] for part in ("train", "test")}
            refused = [record["refused"] for record in of_model if "refused" in record]
            yield cell | ({"refused": refused[0]} if refused else {})
        print(", ".join(axes.values()), flush=True)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.comparison",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    rows = parser.add_mutually_exclusive_group(required=True)
    rows.add_argument("--data", type=Path, help="folder of the data sets")
    rows.add_argument("--quick", "--generated", action="store_true", help="on rows made here; measures nothing")
    for name, known in (("datasets", READERS), ("schemes", SCHEMES), ("smoothings", SMOOTHINGS)):
        add(f"--{name}", type=names_of(known, name[:-1]), default=list(known), help=f"of {','.join(known)}")
    add("--sort", choices=("target", "key", "random"), help="sort the training rows, or mix them")
    add("--rows", type=whole_number, default=12_000, help="at most, of each data set, drawn at random")
    add("--folds", type=whole_number, default=5, help="outer folds")
    add("--jobs", type=whole_number, default=2, help="processes, of one thread each")
    add("--out", "--output", type=Path, help="folder of the results")
    options = parser.parse_args(arguments)
    if options.folds < 2:
        parser.error("--folds: at least 2 outer folds, or differences have no noise to be compared with")
    return options


def datasets_of(options: argparse.Namespace) -> list[Dataset]:
    """Yield the requested data sets whose files exist."""
    names = GENERATED if options.quick else options.datasets
    missing = [] if options.quick else [name for name in names if not (options.data / f"{name}.parquet").exists()]
    for name in missing:
        print(f"{name} is left out: no {name}.parquet in {options.data}")
    return [load(name, options.data, options.rows) for name in names if name not in missing]


def main(arguments: list[str] | None = None) -> int:
    """Run it; return 2 if there are no data."""
    options = parse(arguments)
    datasets = datasets_of(options)
    if not datasets:
        print("none of the data sets is there", file=sys.stderr)
        return 2
    path = folder_of(options, "comparison") / "comparison.json"
    document = machine.describe(PACKAGES, True) | {"quick": options.quick, "folds": options.folds}
    document |= {"most rows": options.rows, "sorted by": options.sort, "datasets": [], "cells": []}
    for data in datasets:
        document["cells"] += score_all(data, options)
        document["datasets"].append(describe(data))
        # The results of each data set are saved at once.
        save(document, path, markdown(document))
    print(path.with_suffix(".md"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
