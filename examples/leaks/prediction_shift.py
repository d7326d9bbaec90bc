"""Prediction shift of boosting, measured with two stumps; x1 and x2 are coins, and the target is c1 * x1 + c2 * x2.

The first stump splits by x1; the second one is fitted to the residuals and splits by x2.  If both are fitted to the
same sample, the residual of each row is shrunk by the row's own target, and the slope of the model in x2 is on average
c2 - c2 / (n - 1).  Residuals of rows that the first stump has not seen have no such shift.  There are two kinds of
them: residuals of a fresh sample, and ordered residuals, for which a stump fitted to the rows before a row predicts it.

python examples/leaks/prediction_shift.py
python examples/leaks/prediction_shift.py --repetitions 1000000 --device cuda
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

SIZES = (5, 10, 20, 50)
C1, C2 = 3.0, 2.0
# Repetitions that are computed at a time; each takes some hundred bytes a row.
CHUNK = 20_000
# The sample to which the first stump is fitted.
SAMPLES = ("same", "fresh", "ordered")


@dataclass
class Mean:
    """The mean of values that come in chunks, and its standard error."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, values: Any) -> None:
        """Add an array of values."""
        self.n += len(values)
        self.total += float(values.sum())
        self.squares += float((values * values).sum())

    @property
    def value(self) -> float:
        """The mean."""
        return self.total / self.n

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return float(np.sqrt(max(self.squares / self.n - self.value**2, 0.0) / (self.n - 1)))


def law(sample: str, of: str, n: int) -> float:
    """Give the expected error of the slope in x2: of the "residuals", or of the "model" with their means in its leaves.

    A slope needs both values of x2, so the error of the model is an average over samples that have both.
    """
    if sample == "fresh":
        return 0.0
    if of == "residuals":
        return -C2 * 2 * (1 - 0.5**n) / n if sample == "same" else 0.0
    if sample == "same":
        return -C2 * (1 - 0.5 ** (n - 1)) / (n - 1)
    # Leaf means are ratios: seen from a row with x2 = 1, earlier rows have x2 = 1 less often if it is frequent overall.
    return C2 * (n - 2 + 0.5 ** (n - 1)) / (n * (n - 1))


def stump(xp: Any, counts: Any, totals: Any) -> list[Any]:
    """Give the values of the first stump for x1 = 0 and x1 = 1, from counts and sums of x2; 0 if there are no rows."""
    return [xp.where(counts[s] > 0, C1 * s + C2 * totals[s] / xp.maximum(counts[s], 1), 0.0) for s in range(2)]


def errors_of_slope(xp: Any, x1: Any, x2: Any, fresh1: Any, fresh2: Any) -> dict[tuple[str, str], Any]:
    """Give the error of the slope in x2 of each repetition.

    Parameters
    ----------
    xp : module
        Library of the arrays: NumPy, or CuPy.
    x1, x2 : bool array (rows, repetitions)
        The sample to which the second stump is fitted.
    fresh1, fresh2 : bool array (rows, repetitions)
        Another sample.

    Returns
    -------
    dict of (sample, "residuals" or "model") to float64 array (repetitions,)
        For models, repetitions in which x2 is constant are left out.
    """
    first = {
        "same": stump(xp, [(~x1).sum(axis=0), x1.sum(axis=0)], [(x2 & ~x1).sum(axis=0), (x2 & x1).sum(axis=0)]),
        "fresh": stump(
            xp,
            [(~fresh1).sum(axis=0), fresh1.sum(axis=0)],
            [(fresh2 & ~fresh1).sum(axis=0), (fresh2 & fresh1).sum(axis=0)],
        ),
    }
    y = C1 * x1 + C2 * x2
    residuals = {sample: y - xp.where(x1, values[1], values[0]) for sample, values in first.items()}
    residuals["ordered"] = y - predict_in_order(xp, x1, x2)
    n, ones = len(x2), x2.sum(axis=0)
    both = (ones > 0) & (ones < n)
    errors = {}
    for sample, of_rows in residuals.items():
        above, below = (of_rows * x2).sum(axis=0), (of_rows * ~x2).sum(axis=0)
        # Twice the mean of residuals over all rows is unbiased: x2 is a fair coin.
        errors[sample, "residuals"] = 2 * (above - below) / n - C2
        errors[sample, "model"] = above[both] / ones[both] - below[both] / (n - ones[both]) - C2
    return errors


def predict_in_order(xp: Any, x1: Any, x2: Any) -> Any:
    """Predict each row by the stump of the rows before it."""
    counts = [xp.cumsum(~x1, axis=0) - ~x1, xp.cumsum(x1, axis=0) - x1]
    totals = [xp.cumsum(x2 & ~x1, axis=0) - (x2 & ~x1), xp.cumsum(x2 & x1, axis=0) - (x2 & x1)]
    values = stump(xp, counts, totals)
    return xp.where(x1, values[1], values[0])


def measure(n: int, repetitions: int, seed: int = 0, xp: Any = np) -> dict[tuple[str, str], Mean]:
    """Measure the error of the slope, averaged over many samples of n rows."""
    means = {(sample, of): Mean() for sample in SAMPLES for of in ("residuals", "model")}
    for coins in toss(xp, n, repetitions, seed):
        for which, values in errors_of_slope(xp, *coins).items():
            means[which].add(values)
    return means


def toss(xp: Any, n: int, repetitions: int, seed: int) -> Iterator[Any]:
    """Give the coins of all repetitions, some repetitions at a time."""
    random = xp.random.default_rng(1000 * seed + n)
    for start in range(0, repetitions, CHUNK):
        yield random.integers(0, 2, (4, n, min(CHUNK, repetitions - start))) == 1


def library(device: str) -> Any:
    """Give CuPy if the user asks for it or there is a GPU, otherwise NumPy."""
    if device == "cpu":
        return np
    try:
        cupy = import_module("cupy")
        if cupy.cuda.runtime.getDeviceCount():
            return cupy
    except (ImportError, RuntimeError):
        if device == "cuda":
            raise
    return np


def main() -> None:
    """Print the error of the slope for several sizes of the sample, and the error that theory predicts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repetitions", type=int, default=100_000)
    parser.add_argument("--rows", type=int, nargs="+", default=list(SIZES), help="sizes of the sample")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where to compute")
    given = parser.parse_args()
    xp = library(given.device)
    print(f"Error of the slope in x2 (c2 = {C2:g}), {given.repetitions:,} repetitions, {xp.__name__}.\n")
    print("| rows | first stump from | slope of | measured | standard error | expected |")
    print("|---|---|---|---|---|---|")
    for n in given.rows:
        for (sample, of), mean in measure(n, given.repetitions, given.seed, xp).items():
            expected = law(sample, of, n)
            print(f"| {n} | {sample} | {of} | {mean.value:.5f} | {mean.error:.5f} | {expected:.5f} |")


if __name__ == "__main__":
    main()
