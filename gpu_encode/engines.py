"""Public address of the encoder for categories that fit no process: it lies in `gpu_encode.scale.engines`."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu_encode.scale.engines import *  # noqa: F403
else:
    sys.modules[__name__] = import_module("gpu_encode.scale.engines")
