"""A hundredth of 6e7 rows of 2e7 categories, with scaled limits: files, Dask and Spark give the bits of memory."""

import json
import subprocess
import sys
from importlib.util import find_spec
from shutil import which

import pytest

from gpu_encode.seam import devices
from studies import many_categories

pytestmark = [
    pytest.mark.host,
    pytest.mark.long,
    pytest.mark.skipif(devices.simulated(), reason="other processes know nothing of the simulator's arrays"),
]
SPARK = pytest.mark.skipif(find_spec("pyspark") is None or which("java") is None, reason="Spark and Java are needed")
# Python and libraries are about 350 MiB of it, which files count as 450; Dask pauses a worker at 80 %, and Spark begins
# below no less than 450 MiB.
LIMITS = [("files", "512MiB"), ("dask", "640MiB"), pytest.param("spark", "512MiB", marks=SPARK)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    many_categories.write_rows(folder, 600_000, 200_000, rows_a_file=50_000)
    return folder


@pytest.fixture(scope="module")
def expected(folder):
    return many_categories.encode("memory", folder, "8GiB")["bits"]


@pytest.mark.parametrize(("way", "limit"), LIMITS)
def test_the_bits_of_memory(folder, expected, way, limit):
    command = [sys.executable, "-m", "studies.many_categories", way, "--folder", str(folder), "--limit", limit]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["bits"] == expected
    if way != "spark":
        assert max(found["most_mib"].values()) <= 1.02 * int(limit.removesuffix("MiB"))
