"""A plugin of pytest: the real cuDF with numba's simulator, on a machine without a GPU.

cuDF needs the real numba.cuda when it is imported, but no GPU.  After this import, the simulator replaces numba.cuda
for our backend.  Frames are in the host's memory (`tests/rapids/frames.py`), as the simulator's arrays are: cuDF
handles columns, types and indices, and every computation that it would do on a GPU raises an error.
"""

import os
import sys
from importlib import import_module

# A worker of pytest-xdist has it from the process that started it.
os.environ.pop("NUMBA_ENABLE_CUDASIM", None)
import_module("cudf")
numba = import_module("numba")

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
numba.config.ENABLE_CUDASIM = 1
for name in [name for name in sys.modules if name.startswith("numba.cuda.") or name == "numba.cuda"]:
    del sys.modules[name]
del numba.cuda
