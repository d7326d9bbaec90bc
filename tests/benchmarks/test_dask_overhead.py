"""`python benchmarks/dask_overhead.py` from end to end on a few rows."""

import json
from importlib import import_module

import pytest

program = import_module("benchmarks.dask_overhead")
FEW = ["--rows", "900", "--partitions", "3", "--workers", "1", "--repeats", "1"]


def test_every_scheduler_in_this_process_gives_the_bits_of_the_direct_call(tmp_path, capsys):
    file = tmp_path / "dask.json"
    assert program.main([*FEW, "--schedulers", "synchronous", "threads", "--write", str(file)]) == 0
    found = json.loads(file.read_text())
    assert found["size"] == {"rows": 900, "partitions": 3, "workers": 1, "repeats": 1}
    assert set(found["times"]) == {"direct", "synchronous", "threads"}
    assert all(times["seconds"] > 0 for times in found["times"].values())
    assert "times the direct call, a partition" in capsys.readouterr().out


def test_other_bits_are_told(monkeypatch, capsys):
    monkeypatch.setattr(program, "measured", lambda name, options, n_rows: ([0.1, 0.1], ["other"]))
    assert program.main([*FEW, "--schedulers", "threads"]) == 1
    assert "OTHER BITS" in capsys.readouterr().out


@pytest.mark.slow
def test_a_cluster():
    assert program.main([*FEW, "--schedulers", "cluster"]) == 0
