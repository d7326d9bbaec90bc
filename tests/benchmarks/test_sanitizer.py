"""compute-sanitizer is found, and called on tests that exist; a stand-in records the call."""

import argparse
import json
import os
import subprocess
import sys
import time
from importlib import import_module

import pytest

from benchmarks.gpu.report import Run, open_report

# It needs no simulator.
pytestmark = pytest.mark.host

suites = import_module("benchmarks.gpu.suites")
RECORD = """#!{python}
import json, os, sys
with open({log!r}, "a") as log:
    log.write(json.dumps([os.environ["OPS_BACKENDS"], *sys.argv[1:]]) + "\\n")
print("========= ERROR SUMMARY: {errors} errors")
sys.exit({errors} and 86)
"""


@pytest.fixture
def step(tmp_path):
    """Give the step as on a machine with a GPU."""
    report = open_report(tmp_path / "report", "a GPU")
    report.begin("sanitizer", "abc")
    options = argparse.Namespace(tiny=False, only=["sanitizer", "kernels"])
    return Run("sanitizer", report, options, time.monotonic() + 1e6)


def stand_in(folder, log, errors=0):
    """Put a program where compute-sanitizer is looked for."""
    program = folder / "compute-sanitizer"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(RECORD.format(python=sys.executable, log=str(log), errors=errors))
    program.chmod(0o755)
    return program


def failures(step):
    return step.report.steps["sanitizer"]["failures"]


def test_memcheck_and_racecheck_watch_tests_on_the_gpu(step, tmp_path, monkeypatch):
    stand_in(tmp_path / "bin", tmp_path / "log")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    suites.sanitize(step)
    memcheck, racecheck = map(json.loads, (tmp_path / "log").read_text().splitlines())
    assert memcheck[:5] == ["cuda", "--tool", "memcheck", "--error-exitcode", "86"]
    assert racecheck == [each.replace("memcheck", "racecheck") for each in memcheck]
    assert not failures(step)
    # Nothing is looked for where no test is called.
    found = subprocess.run([*memcheck[5:], "--collect-only"], cwd=suites.machine.ROOT, capture_output=True, check=False)
    assert found.returncode == 0
    assert found.stdout.count(b"::") > 20


def test_what_it_finds_is_wrong(step, tmp_path, monkeypatch):
    stand_in(tmp_path / "bin", tmp_path / "log", errors=3)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    suites.sanitize(step)
    assert failures(step) == [f"{tool}: status 86; ERROR SUMMARY: 3 errors" for tool in ("memcheck", "racecheck")]


def test_it_is_found_in_its_wheel(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert suites.find_sanitizer() is None
    inside = "nvidia/cu13/bin/compute-sanitizer"
    program = stand_in((tmp_path / inside).parent, tmp_path / "log")
    described = tmp_path / "nvidia_cuda_sanitizer_api-13.0.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: nvidia-cuda-sanitizer-api\nVersion: 13.0.0\n")
    (described / "RECORD").write_text(f"{inside},,\nnvidia/cu13/compute-sanitizer/compute-sanitizer,,\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert suites.find_sanitizer() == str(program)


def test_a_run_for_nothing_else_fails_without_it(step, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    suites.sanitize(step)
    assert not failures(step)
    step.options.only = ["sanitizer"]
    suites.sanitize(step)
    assert "neither on the PATH" in failures(step)[0]
