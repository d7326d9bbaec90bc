"""The scripts of container images call the commands of the README, and all files that they name exist."""

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.gpu.__main__ import parse

ROOT = Path(__file__).resolve().parents[2]
FRAMES = "test PYTEST_ARGS=tests/tables tests/rapids tests/guides"
MEASURED = "gpu GPU_ARGS=--only machine,suites,bits,encoders,races,examples"


@pytest.fixture
def calls(tmp_path):
    """Run a script of docker/ with a `make` that does nothing but write down how it was called."""
    stand_in = tmp_path / "make"
    stand_in.write_text(f'#!/bin/sh\necho "$@" >>"{tmp_path}/log"; exit 3\n')
    stand_in.chmod(0o755)

    def run(script, *arguments):
        settings = {name: value for name, value in os.environ.items() if name not in ("PYTEST_ARGS", "GPU_ARGS")}
        settings["PATH"] = f"{tmp_path}:{settings['PATH']}"
        done = subprocess.run([ROOT / "docker" / script, *arguments], env=settings, check=False)
        assert done.returncode == 3
        return (tmp_path / "log").read_text().splitlines()

    return run


@pytest.mark.parametrize(
    ("script", "arguments", "expected"),
    [
        ("install.sh", ["cpu"], ["install"]),
        ("install.sh", ["cuda", "12"], ["install EXTRAS=suite,workflows-cu12"]),
        ("install.sh", ["cuda", "13"], ["install EXTRAS=suite,workflows-cu13,sanitizer"]),
        ("test.sh", ["cpu"], ["test"]),
        # The second is called although the first fails.
        ("test.sh", ["cuda"], [f"--old-file=pyproject.toml {FRAMES}", MEASURED]),
    ],
)
def test_the_commands_of_the_readme_are_called(calls, script, arguments, expected):
    assert calls(script, *arguments) == expected


def test_the_steps_and_suites_of_a_gpu_exist():
    assert all((ROOT / folder).is_dir() for folder in FRAMES.partition("=")[2].split())
    assert parse(MEASURED.partition("=")[2].split()).only
