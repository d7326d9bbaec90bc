"""Public address of the steps for rows in parts: they lie in `gpu_encode.scale.parts`."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu_encode.scale.parts import *  # noqa: F403
else:
    sys.modules[__name__] = import_module("gpu_encode.scale.parts")
