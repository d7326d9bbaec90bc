"""The module that replaces `cupy` when the CUDA backend runs in the simulator, with strict arrays.

GPU_ENCODE_SIMULATED_ARRAYS=tests.cuda.stand_in selects this module.
"""

from typing import Any

from tests.cuda import turns
from tests.cuda.emulated import RawModule  # noqa: F401 - CuPy's name
from tests.cuda.strict import Library
from tests.cuda.strict import StrictArray as ndarray  # noqa: F401 - CuPy's name

# Numba's kernels run in turns in every process that has these arrays.
turns.install()
_LIBRARY = Library()


def __getattr__(name: str) -> Any:
    return getattr(_LIBRARY, name)
