"""PySpark's daemon with this library loaded: workers that it forks neither load it nor collect its objects as garbage.

``spark.python.daemon.module`` names this module when a session is started.
"""

import gc

from pyspark.daemon import manager

from gpu_encode.scale.engines import calls  # noqa: F401

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    manager()
