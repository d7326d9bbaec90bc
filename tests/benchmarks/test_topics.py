"""Every topic of the harness on a few rows: the answers of its contenders are right."""

import json
from importlib import import_module

import pytest

from benchmarks.harness import program
from gpu_encode.seam import devices

pytestmark = pytest.mark.skipif(devices.simulated(), reason="the benchmarks of the CPU do not ask a simulator")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        (
            "cpu.__main__",
            "--keys int --works mean,fit_transform,import,half-life --contenders ours,sklearn,numpy-range",
        ),
        pytest.param("cpu.__main__", "--only table,row-by-row", marks=pytest.mark.slow),
        ("backends", ""),
    ],
)
def test_all_cells_are_timed(name, arguments, tmp_path, capsys):
    topic, words = import_module(f"benchmarks.{name}").TOPIC, arguments.split()
    # What is compiled at a first call takes longer than any contender may.
    words += ["--quick", "--contender-limit", "600", "--out", str(tmp_path)]
    assert program.main(topic, arguments=words) == 0, capsys.readouterr().out
    cells = json.loads((tmp_path / f"{topic.name}.json").read_text())["cells"]
    assert {record["status"] for cell in cells for record in cell["contenders"].values()} == {"timed"}
    if "--only" not in words:
        assert {cell["grid"] for cell in cells} == {grid.name for grid in topic.grids}
