"""The topics of one file each, on a few rows."""

import json
from importlib import import_module

import pytest

from benchmarks.harness import program
from gpu_encode import devices

pytestmark = pytest.mark.skipif(devices.simulated(), reason="the benchmarks of the CPU do not ask a simulator")


@pytest.mark.parametrize(
    ("name", "contenders"),
    [
        ("backends", "compiled,numpy"),
        ("tuning", "fit_transform,tune-1,tune-50,tune-usual"),
        ("dask_overhead", "direct,synchronous,threads"),
        pytest.param("dask_overhead", "cluster", marks=pytest.mark.slow),
    ],
)
def test_all_cells_are_timed(name, contenders, tmp_path, capsys):
    topic = import_module(f"benchmarks.{name}").TOPIC
    arguments = ["--quick", "--contenders", contenders, "--out", str(tmp_path)]
    assert program.main(topic, arguments=arguments) == 0, capsys.readouterr().out
    cells = json.loads((tmp_path / f"{name}.json").read_text())["cells"]
    assert {tuple(cell["contenders"]) for cell in cells} == {tuple(contenders.split(","))}
    assert {record["status"] for cell in cells for record in cell["contenders"].values()} == {"timed"}
