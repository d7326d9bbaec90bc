"""A plugin of pytest: the real cuDF beside numba's simulator, on a machine without a GPU.

cuDF wants the real numba.cuda when it is imported, and needs no GPU for that; only then is the simulator put in its
place for us.  Frames are made of the host's memory (`tests/rapids/frames.py`), as the simulator's arrays are: cuDF
looks after columns, types and indices, and what it would compute on a GPU raises.
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
