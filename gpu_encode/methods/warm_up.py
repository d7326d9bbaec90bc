"""The calls that compile the kernels that only this guest needs: see `gpu_encode.warm_up`."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from cpu_fallback.types import Array
from gpu_encode.methods.cluster.encoder import ClusterEncoder
from gpu_encode.methods.factors.tensor import FactorizationEncoder
from gpu_encode.methods.proximity.estimators import ProximityClassifier


def calls(keys: Array, labels: Array) -> Iterator[Callable[[], Any]]:
    """Give calls on keys (rows, 1) and a target of two classes (rows,)."""
    yield partial(FactorizationEncoder(2, solver="sgd", max_iter=1).fit, np.hstack([keys, keys // 7]), labels)
    yield partial(ClusterEncoder(2, by="statistics").fit, keys, labels)
    yield partial(ProximityClassifier(1).fit, np.hstack([keys % 3, keys % 5]), labels)
