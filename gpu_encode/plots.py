"""Public address of pictures: they lie in `gpu_encode.study.plots`."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu_encode.study.plots import *  # noqa: F403
else:
    sys.modules[__name__] = import_module("gpu_encode.study.plots")
