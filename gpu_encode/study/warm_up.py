"""The call that compiles the kernels that only this guest needs: see `gpu_encode.warm_up`."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from cpu_fallback.types import Array
from gpu_encode.encoders.target import TargetEncoder
from gpu_encode.study.tuning.interactions import choose_interactions


def calls(keys: Array, labels: Array) -> Iterator[Callable[[], Any]]:
    """Give calls on keys (rows, 1) and a target of two classes (rows,)."""
    # One pair of columns in which all pairs of values have rows, and one in which few have rows.
    columns = np.hstack([keys, keys // 7, np.arange(len(keys)).reshape(-1, 1) % 1000])
    yield partial(choose_interactions, TargetEncoder(), columns, labels)
