"""scikit-learn's own tests pass while this library serves every call, also for few rows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import sklearn

pytestmark = pytest.mark.host

ROOT = Path(__file__).resolve().parents[3]
# Tests that cannot pass, with the reason of each: none.
LEFT_OUT: dict[str, str] = {}
ENCODERS = ("preprocessing.tests.test_target_encoder", "preprocessing.tests.test_encoders")
OTHERS = (
    "preprocessing.tests.test_discretization",
    "compose.tests.test_column_transformer",
    "tests.test_pipeline",
    "tests.test_metadata_routing",
    "tests.test_metaestimators_metadata_routing",
    "model_selection.tests.test_search",
    "model_selection.tests.test_validation",
    "model_selection.tests.test_split",
)
BEFORE_A_RELEASE = pytest.mark.skipif("EVERY_SCIKIT_LEARN_TEST" not in os.environ, reason="takes minutes")


def run(modules, folder):
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", *(f"--deselect={name}" for name in LEFT_OUT)]
    done = subprocess.run(
        [sys.executable, "-m", "gpu_encode.accel", "--report", "--fewest-rows=0", "-m", "pytest", *options, "--pyargs"]
        + [f"sklearn.{module}" for module in modules],
        capture_output=True,
        text=True,
        check=False,
        # Out of the reach of our own settings of pytest.
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout[-3000:]
    lines = [line.split() for line in done.stderr.splitlines()]
    return sum(int(line[2].replace(",", "")) for line in lines if line[1:2] == ["cpu"])


@pytest.mark.skipif(not sklearn.__version__.startswith("1.9."), reason="other versions serve themselves")
@pytest.mark.parametrize(
    ("modules", "n_served"),
    [(ENCODERS, 600), pytest.param(OTHERS, 100, marks=BEFORE_A_RELEASE)],
    ids=["encoders", "rest"],
)
def test_tests_of_scikit_learn(modules, n_served, tmp_path):
    assert run(modules, tmp_path) >= n_served
