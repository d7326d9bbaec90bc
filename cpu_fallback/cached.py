"""Values that are computed once for each object, without a lock."""

import functools
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

Value = TypeVar("Value")

if sys.version_info >= (3, 12):
    cached_property = functools.cached_property
else:

    class cached_property(functools.cached_property[Value]):  # noqa: N801
        """The `cached_property` of `functools` as of Python 3.12.

        Before 3.12 it takes a lock of the whole class, and a process that is forked while another thread holds this
        lock waits forever.  Here, two threads may compute a value twice: code that needs the same object twice keeps it
        in a variable.
        """

        lock: Any

        def __init__(self, function: Callable[[Any], Value]) -> None:
            super().__init__(function)
            self.lock = nullcontext()
