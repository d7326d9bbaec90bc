"""Calls that need every kernel: the process in the background, and ``gpu-encode warm-up``, run them to compile all."""

import gc
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import chain, combinations, product
from typing import Any

import numpy as np
import pyarrow as pa

from cpu_fallback import kernel_folder
from gpu_encode.encoders.count import CountEncoder
from gpu_encode.encoders.impact import ImpactEncoder
from gpu_encode.encoders.statistic import StatisticEncoder
from gpu_encode.encoders.target import TargetEncoder
from gpu_encode.fitting.columns import interactions
from gpu_encode.schemes.folds import Holdout, KFold
from gpu_encode.schemes.orders import LeaveOneOut, Ordered
from gpu_encode.seam.ops import COMPILED, STRINGS, load, use_backend

# Guests with kernels of their own; the module `warm_up` of each has the calls that need them.
GUESTS = ("methods", "study")
# So many rows that two threads share them: then the kernels that join the work of threads are compiled, too.
N_ROWS = 70_000

Call = Callable[[], Any]


def calls() -> Iterator[Call]:
    """Give calls that need every kernel, the most usual first."""
    random = np.random.default_rng(0)
    keys = random.integers(0, 100, (N_ROWS, 1))
    labels, weights = keys[:, 0], random.random(N_ROWS)
    targets = labels % 2, random.normal(size=N_ROWS), labels % 5
    text = pa.table({"a": pa.array([f"category {number}" for number in random.integers(0, 2000, N_ROWS)])})
    for table in (keys, text, keys * 0.37, keys * 10**9):
        for y in targets:
            yield partial(fit_and_encode, TargetEncoder(), table, y)
    yield from (partial(TargetEncoder().fit, keys, y) for y in targets)
    # For few rows, fold numbers are stored in an array.
    yield partial(fit_and_encode, TargetEncoder(), keys[:5000], targets[0][:5000])
    for scheme in (KFold(), Ordered(), Ordered(shuffle=False), LeaveOneOut()):
        for y in targets:
            for weight in (None, weights):
                for smooth in ("auto", 10.0):
                    yield partial(fit_and_encode, TargetEncoder(cv=scheme, smooth=smooth), keys, y, weight)
    # Numbers that do not begin at zero; with gaps; with one beyond the range of a sample; and nearly all different.
    spread, late = keys * 3 + 1000, np.where(np.arange(N_ROWS) == 1, 9000, labels).reshape(-1, 1)
    for table in (keys + 1000, spread, late, random.random((N_ROWS, 1))):
        yield partial(fit_and_encode, TargetEncoder(), table, targets[0])
    yield partial(
        fit_and_encode, TargetEncoder(columns=interactions([0, 1], 2)), np.hstack([keys, keys // 7]), targets[0]
    )
    for cv, n in ((KFold(), N_ROWS), (Ordered(), 5000), (LeaveOneOut(), 5000)):  # NumPy computes those of single rows.
        each = StatisticEncoder(["mean", "std", "skew"], cv=cv)
        yield partial(fit_and_encode, each, keys[:n], targets[1][:n], weights[:n])
    by_age = [TargetEncoder(columns=[0], cv=cv) for cv in (Ordered(time=1, half_life=1), Ordered(time=1, window=2))]
    yield from (partial(fit_and_encode, *call) for call in product(by_age, [np.hstack([keys, keys])], targets[:2]))
    yield partial(fit_and_encode, StatisticEncoder(["median", "max"]), keys, targets[1])
    yield partial(fit_and_encode, ImpactEncoder(["deviation"], smooth=10.0, cv=LeaveOneOut()), keys, targets[1])
    for dtype in ("float64", "float32"):
        yield from (partial(fit_and_encode, CountEncoder("log", dtype=dtype), table) for table in (text, spread))
    yield from chain.from_iterable(
        import_module(f"gpu_encode.{guest}.warm_up").calls(keys, targets[0]) for guest in GUESTS
    )
    yield from many_keys(targets[:2])
    codes = np.zeros((2, 3), np.int32)
    yield partial(load(COMPILED).sum_agreements, codes, codes, np.ones((3, 1), np.int64))


def many_keys(targets: Sequence[Any]) -> Iterator[Call]:
    """Give calls that encode many keys together; codes of the columns take one byte, or four."""
    sizes = 100, 1000, N_ROWS
    tables = [np.column_stack([np.arange(N_ROWS) % size for size in (first, *range(2, 9))]) for first in sizes]
    keys = [*range(8), (0, 1), *combinations(range(1, 8), 2)]
    # New rows see all folds, or some of them.
    encoders = [TargetEncoder(columns=keys, dtype=dtype) for dtype in ("float64", "float32")]
    encoders.append(TargetEncoder(columns=keys, cv=Holdout(0.5)))
    yield from (partial(fit_and_encode, *call) for call in product(encoders, tables, targets))
    yield from (partial(TargetEncoder(columns=keys).fit, table, targets[0]) for table in tables)


def fit_and_encode(encoder: Any, table: Any, y: Any = None, weight: Any = None) -> None:
    """Encode training rows, and then the same rows as new rows."""
    encoder.fit_transform(table, y, sample_weight=weight)
    encoder.transform(table)


def compile_all(tell: Callable[[int, int], object] | None = None) -> bool:
    """Make every call, and mark on disk that all kernels are compiled; return whether the disk could store them.

    Parameters
    ----------
    tell : callable, optional
        Called with the number of calls made so far, and the number of all calls.

    Examples
    --------
    >>> from gpu_encode.warm_up import compile_all
    >>> compile_all()  # doctest: +SKIP
    True
    """
    with compiling() as cache:
        work, lost = list(calls()), cache.lost
        for number, call in enumerate(work):
            if tell is not None:
                tell(number, len(work))
            call()
            if cache.lost > lost:
                return False
    try:
        kernel_folder.set_complete()
    except OSError:
        return False
    return True


@contextmanager
def compiling() -> Iterator[Any]:
    """Let every call use kernels, on two threads; give the cache that counts the compiled kernels."""
    threads, _ = load(f"{COMPILED}.threads"), load(STRINGS)
    thresholds = gc.get_threshold()
    with use_backend("compiled"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        threads.set_threads(2)
        # Objects of numba stay in memory; the garbage collector would search them in vain, for a tenth of the time.
        gc.set_threshold(100_000, 20, 100)
        try:
            yield load(f"{COMPILED}.kernel_files").KernelCache
        finally:
            gc.set_threshold(*thresholds)
            threads.set_threads(None)
