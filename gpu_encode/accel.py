"""Public address of `gpu_encode.serve.accel`, which serves the encoders of other libraries.

``python -m gpu_encode.accel script.py`` runs a script.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from gpu_encode.seam.loading import door_to

if TYPE_CHECKING:
    from gpu_encode.serve.accel import *  # noqa: F403
else:
    __getattr__ = door_to("gpu_encode.serve.accel")

if __name__ == "__main__":
    import_module("gpu_encode.serve.accel.__main__").main(sys.argv[1:])
