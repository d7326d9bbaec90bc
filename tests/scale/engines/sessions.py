"""A session of Spark, and frames in it."""

import os
import re
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest

from gpu_encode.seam import devices
from tests.scale.engines.rows import rows, same

ROOT = Path(__file__).parents[3]
NEEDS_SPARK = [
    pytest.mark.skipif(find_spec("pyspark") is None, reason="the extra engines has Spark"),
    pytest.mark.slow,
    pytest.mark.host,
    pytest.mark.skipif(devices.simulated(), reason="other processes know nothing of the simulator's arrays"),
    pytest.mark.skipif(which("java") is None and "JAVA_HOME" not in os.environ, reason="Spark needs Java"),
    # Warnings of pandas that Spark causes.
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "3",
    # The examples run with PySpark's own.
    "spark.python.daemon.module": "gpu_encode.scale.engines.spark_daemon",
    # So little memory that the sums of ten thousand categories do not fit.
    "spark.driver.maxResultSize": "1m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
# Compiling each query in Java takes longer than running it on a few rows; the long lane runs compiled queries.
UNCOMPILED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def start(settings):
    """Start a session of Spark on two processors, in which a task may fail twice."""
    from pyspark.sql import SparkSession

    # "local-cluster[2,1,1200]" has two processes of executors.
    builder = SparkSession.builder.master(os.environ.get("SPARK_MASTER", "local[2,3]"))
    session = builder.config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


@pytest.fixture(scope="session")
def spark(tmp_path_factory, request):
    daily = request.config.getoption("markexpr") == "daily"

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", str(ROOT))
        # Otherwise each worker would load kernels.
        patch.setenv("GPU_ENCODE_COMPILE", "never")
        patch.setenv("SPARK_LOCAL_DIRS", str(tmp_path_factory.mktemp("spark")))
        session = start(SETTINGS | (UNCOMPILED if daily else {}))
        yield session
        session.stop()


@pytest.fixture(scope="session")
def frame(spark, tmp_path_factory):
    """Rows of a file in three partitions: one is empty, and one has nearly all rows."""
    path = str(tmp_path_factory.mktemp("rows") / "rows.parquet")
    spark.createDataFrame(rows()).coalesce(1).write.parquet(path)
    stored = spark.read.parquet(path)
    few, none = stored.where("id < 5"), stored.where("id < 0")
    return few.union(none).union(stored.where("id >= 5"))


def code_of_page(needed="Spark and Java"):
    """Give the examples in docs/engines.md that need an engine."""
    page = (ROOT / "docs/engines.md").read_text()
    return re.findall(rf"^```python no-run \(needs {needed}\)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def check_killed_workers(frame, order, encoder, expected):
    """Kill a worker in a fit, and one while encodings are computed; a file `order` is the order to die."""

    def die_if_told(batches):
        if order.exists():
            order.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    dying = frame.mapInArrow(die_if_told, frame.schema)
    order.touch()
    encodings = encoder.fit_transform(dying, "sold")
    assert not order.exists()
    order.touch()
    assert same(encodings.toArrow(), expected, "sold")
    assert not order.exists()
