"""Public address of exports of fitted encoders: they lie in `gpu_encode.serve.export`."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu_encode.serve.export import *  # noqa: F403
else:
    sys.modules[__name__] = import_module("gpu_encode.serve.export")
