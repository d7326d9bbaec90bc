"""Public address of what serves other libraries' encoders, which lies in `gpu_encode.serve.accel`.

``python -m gpu_encode.accel script.py`` runs a script.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu_encode.serve.accel import *  # noqa: F403
elif __name__ == "__main__":
    import_module("gpu_encode.serve.accel.__main__").main(sys.argv[1:])
else:
    sys.modules[__name__] = import_module("gpu_encode.serve.accel")
