"""How long do Ward's merges and a hundred singular vectors take, without reading a row, beside SciPy and scikit-learn?

    python -m studies.solvers [--categories 1000,3000] [--numbers 2,50,1000] [--rows 10000] [--turns 5]

The first table merges categories of random numbers to eight clusters.  The second one decomposes five one-hot columns
of random categories, which have nothing in common, so that their singular values lie close together.  Calls are made in
turns in this process, after a first call each that loads kernels; times are the least processor times.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import linkage
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import OneHotEncoder

from benchmarks.harness.arguments import whole_number
from gpu_encode import SpectralEncoder
from gpu_encode.methods.cluster.ward import merge_by_ward
from gpu_encode.seam import ops

CLUSTERS, COLUMNS, COMPONENTS = 8, 5, 100
OTHERS: dict[str, dict[str, Any]] = {
    "randomised, 5 iterations": {"n_iter": 5},
    "randomised, 60 iterations": {"n_iter": 60},
    "ARPACK": {"algorithm": "arpack"},
}


def least_seconds(calls: Sequence[Callable[[], Any]], turns: int) -> tuple[list[float], list[Any]]:
    """Call each in turns; give the least processor time of each, and the answers."""
    answers = [call() for call in calls]
    least = [np.inf] * len(calls)
    for _ in range(turns):
        for number, call in enumerate(calls):
            began = process_time()
            call()
            least[number] = min(least[number], process_time() - began)
    return least, answers


def merge(n_categories: int, n_numbers: int, turns: int) -> str:
    """Give a line for Ward's merges of some categories."""
    profiles, weights = np.random.default_rng(0).normal(size=(n_categories, n_numbers)), np.ones(n_categories)
    with ops.use_backend("compiled"):
        calls = [lambda: merge_by_ward(profiles, weights, CLUSTERS), lambda: linkage(profiles, "ward")]
        (ours, theirs), _ = least_seconds(calls, turns)
    return f"| {n_categories:,} | {n_numbers:,} | {ours * 1e3:.1f} | {theirs * 1e3:.1f} | {theirs / ours:.2f} |"


def decompose(n_rows: int, n_categories: int, turns: int) -> list[str]:
    """Give a line for each other solver: its time over ours, and how good its singular values are."""
    random = np.random.default_rng(0)
    X = pd.DataFrame({f"c{number}": random.integers(n_categories, size=n_rows) for number in range(COLUMNS)})
    calls = [lambda: SpectralEncoder(COMPONENTS).fit(X).singular_values_]
    for given in OTHERS.values():
        solver = TruncatedSVD(COMPONENTS, random_state=0, **given)
        calls.append(lambda solver=solver: solver.fit(OneHotEncoder().fit_transform(X)).singular_values_)
    times, (ours, *theirs) = least_seconds(calls, turns)
    return [
        f"| {name} | {seconds / times[0]:.2f} | {1 - values.min() / ours.min():.2%} | "
        f"{1 - (values**2).sum() / (ours**2).sum():.2%} |"
        for name, seconds, values in zip(OTHERS, times[1:], theirs, strict=True)
    ]


def main(arguments: list[str] | None = None) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.solvers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    numbers = {"type": lambda text: [whole_number(part) for part in text.split(",")]}
    parser.add_argument("--categories", default=[1_000, 3_000], **numbers, help="the second table takes the first")
    parser.add_argument("--numbers", default=[2, 50, 1_000], **numbers, help="numbers of a category")
    parser.add_argument("--rows", type=whole_number, default=10_000)
    parser.add_argument("--turns", type=whole_number, default=5)
    options = parser.parse_args(arguments)
    print("| categories | numbers | merge_by_ward, ms | linkage, ms | times as fast |\n|---|---|---|---|---|")
    for n_categories in options.categories:
        for n_numbers in options.numbers:
            print(merge(n_categories, n_numbers, options.turns), flush=True)
    print(f"\n| TruncatedSVD({COMPONENTS}) | time over ours | last value too small by | squares too small by |")
    print("|---|---|---|---|")
    print(*decompose(options.rows, options.categories[0], options.turns), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
