"""Values that are computed once an object, without a lock."""

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
        """What `functools` gives from Python 3.12 on.

        Before, it takes a lock of the whole class, and a process that is forked while another thread holds it waits for
        ever.  Two threads may compute a value twice: whoever reads it twice keeps the first in a variable.
        """

        lock: Any

        def __init__(self, function: Callable[[Any], Value]) -> None:
            super().__init__(function)
            self.lock = nullcontext()
