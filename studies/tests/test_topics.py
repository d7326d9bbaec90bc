"""Every study of the harness on a few rows: the answers of its contenders are right."""

import json
import os
from importlib import import_module

import pytest

from benchmarks.harness import program
from gpu_encode.seam import devices

pytestmark = pytest.mark.skipif(devices.simulated(), reason="the benchmarks of the CPU do not ask a simulator")


BEFORE_A_RELEASE = pytest.mark.skipif("EVERY_BENCHMARK" not in os.environ, reason="EVERY_BENCHMARK=1 runs it")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("family.__main__", "--contenders ours,ours-objects"),
        pytest.param("family.__main__", "", marks=BEFORE_A_RELEASE),
        ("tuning", ""),
        ("dask_overhead", "--contenders direct,synchronous,threads"),
        pytest.param("dask_overhead", "--contenders cluster", marks=BEFORE_A_RELEASE),
    ],
)
def test_all_cells_are_timed(name, arguments, tmp_path, capsys):
    topic, words = import_module(f"studies.{name}").TOPIC, arguments.split()
    # What is compiled at a first call takes longer than any contender may.
    words += ["--quick", "--contender-limit", "600", "--out", str(tmp_path)]
    assert program.main(topic, arguments=words) == 0, capsys.readouterr().out
    cells = json.loads((tmp_path / f"{topic.name}.json").read_text())["cells"]
    assert {record["status"] for cell in cells for record in cell["contenders"].values()} == {"timed"}
    if "--only" not in words:
        assert {cell["grid"] for cell in cells} == {grid.name for grid in topic.grids}
