"""Calls go where the data is: to the encoder itself, or to Dask."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from gpu_encode import devices, frames

Method = TypeVar("Method", bound=Callable[..., Any])


def dispatched(method: Method) -> Method:
    """Hand a call over to `gpu_encode.distributed` if X is in partitions of Dask; else explain a lack of memory."""

    @wraps(method)
    def call(encoder: Any, X: Any, *vectors: Any, **named: Any) -> Any:
        if frames.is_partitioned(X):
            from gpu_encode import distributed

            return getattr(distributed, method.__name__)(encoder, X, *vectors, **named)
        with devices.memory_explained():
            return method(encoder, X, *vectors, **named)

    return cast(Method, call)
