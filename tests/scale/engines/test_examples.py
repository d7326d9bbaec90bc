"""The examples for other engines, each in its own process, so that the processes of the engine end with it."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import which

import pytest

from gpu_encode.seam import devices

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "examples/engines"
SAME = "the same bits as one table of all rows: training True, new rows True"
pytestmark = pytest.mark.skipif(devices.simulated(), reason="other processes know nothing of the simulator's arrays")


def lines(script, *arguments):
    """Run a script, with its files in a temporary folder, and give its output."""
    # Ray's sockets need a short path.
    with tempfile.TemporaryDirectory(prefix="ge-", dir="/tmp") as scratch:
        settings = {"RAY_TMPDIR": scratch, "RAY_USAGE_STATS_ENABLED": "0", "SPARK_LOCAL_DIRS": scratch}
        settings |= {"PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", "TMPDIR": scratch, "HOME": scratch}
        # Java starts in half the time if it compiles quickly rather than well.
        settings["JAVA_TOOL_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        done = subprocess.run(
            [sys.executable, str(FOLDER / f"{script}.py"), *arguments],
            cwd=scratch,
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout.splitlines()[-2:]


COMMANDS = {
    "pyspark": ("spark_frame", "--rows=3001", "--master=local[2]"),
    "ray": ("ray_dataset", "--rows=3001"),
}


@pytest.mark.slow
@pytest.mark.parametrize("engine", COMMANDS)
def test_an_engine_gives_the_bits_of_one_table(engine):
    pytest.importorskip(engine, reason="the extra engines has Spark and Ray")
    if engine == "pyspark" and which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java")
    columns = "shop, customer, shop_x_customer, order_id, price, returned"
    assert lines(*COMMANDS[engine]) == [f"3001 rows: {columns}", SAME]


def test_every_example_is_listed():
    names = re.findall(r"^\| `engines/(\w+)\.py`", (ROOT / "examples/README.md").read_text(), re.MULTILINE)
    assert sorted(names) == sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "made_rows")
