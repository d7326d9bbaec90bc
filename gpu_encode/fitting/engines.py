"""Which engine runs a call of an encoder: this process, or the engine that holds the table in partitions."""

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, Protocol, TypeVar, cast

from gpu_encode import devices, frames

Method = TypeVar("Method", bound=Callable[..., Any])


class Engine(Protocol):
    """The calls that an engine takes over from an encoder; each is given the encoder and what its method was given."""

    def fit(self, encoder: Any, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None) -> Any:
        """Fit the encoder to all partitions, and give it back."""

    def fit_transform(
        self, encoder: Any, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None
    ) -> Any:
        """Fit the encoder to all partitions, and give their training encodings."""

    def transform(self, encoder: Any, X: Any) -> Any:
        """Give the encodings of new rows."""

    def partial_fit(self, encoder: Any, X: Any, y: Any = None, *, sample_weight: Any = None) -> Any:
        """Add rows to what the encoder knows, or refuse to."""


# Each is a module, loaded by the first call on a table of its own.
ENGINES = {"dask": "gpu_encode.distributed"}


def engine_of(X: Any) -> Engine | None:
    """Give the engine that holds a table; None if this process does."""
    return cast(Engine, import_module(ENGINES["dask"])) if frames.is_partitioned(X) else None


def dispatch(method: Method) -> Method:
    """Make a method of an encoder leave its calls to the engine that holds X, and explain a lack of a GPU's memory."""

    @wraps(method)
    def call(encoder: Any, X: Any, *vectors: Any, **named: Any) -> Any:
        engine = engine_of(X)
        if engine is not None:
            return getattr(engine, method.__name__)(encoder, X, *vectors, **named)
        with devices.memory_explained():
            return method(encoder, X, *vectors, **named)

    return cast(Method, call)
