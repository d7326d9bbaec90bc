"""Boosting on one sample shifts the slope as much as theory says; fresh and ordered rows remove the shift."""

import importlib
import itertools
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tests.backends import ON_CUDA

FOLDER = Path(__file__).parents[2] / "examples" / "leaks"
LAWS = list(itertools.product(("same", "fresh", "ordered"), ("residuals", "model")))


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    yield importlib.import_module("prediction_shift")
    sys.modules.pop("prediction_shift", None)


def leaf_mean(rows, values, leaves, leaf):
    inside = [values[row] for row in rows if leaves[row] == leaf]
    return sum(inside, Fraction()) / len(inside) if inside else Fraction()


def slopes(script, x1, x2, fresh1, fresh2):
    """Return the errors of the slope in x2, with plain loops and fractions."""
    n, c1, c2 = len(x1), Fraction(script.C1), Fraction(script.C2)
    y, other = ([c1 * a + c2 * b for a, b in zip(*pair, strict=True)] for pair in ((x1, x2), (fresh1, fresh2)))
    predicted = {
        "same": [leaf_mean(range(n), y, x1, x1[row]) for row in range(n)],
        "fresh": [leaf_mean(range(n), other, fresh1, x1[row]) for row in range(n)],
        "ordered": [leaf_mean(range(row), y, x1, x1[row]) for row in range(n)],
    }
    errors = {}
    for sample, values in predicted.items():
        residuals = [y[row] - values[row] for row in range(n)]
        errors[sample, "residuals"] = (
            Fraction(2, n) * sum(r if b else -r for r, b in zip(residuals, x2, strict=True)) - c2
        )
        if 0 < sum(x2) < n:
            of_leaf = [leaf_mean(range(n), residuals, x2, leaf) for leaf in (0, 1)]
            errors[sample, "model"] = of_leaf[1] - of_leaf[0] - c2
    return errors


def test_slopes_are_those_of_plain_loops(script):
    coins = np.random.default_rng(1).integers(0, 2, (4, 6, 40)) == 1
    found = script.errors_of_slope(np, *coins)
    expected = {law: [] for law in LAWS}
    for repetition in range(40):
        for law, error in slopes(script, *(coins[:, :, repetition].astype(int).tolist())).items():
            expected[law].append(float(error))
    for law in LAWS:
        np.testing.assert_allclose(found[law], expected[law], rtol=0, atol=1e-14)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_laws_hold_exactly_over_all_samples(script, n):
    errors = {law: [] for law in LAWS}
    for coins in itertools.product((0, 1), repeat=2 * n):
        # The fresh sample only has to be independent: repetitions test its law.
        for law, error in slopes(script, coins[:n], coins[n:], coins[:n], coins[n:]).items():
            errors[law].append(error)
    for sample, of in LAWS:
        if sample != "fresh":
            mean = sum(errors[sample, of]) / len(errors[sample, of])
            assert float(mean) == pytest.approx(script.law(sample, of, n), abs=1e-15)


@pytest.mark.parametrize("n", [5, 10, 20, 50])
def test_measured_slopes_are_those_of_theory(script, n):
    for (sample, of), mean in script.measure(n, 30_000, seed=5).items():
        assert abs(mean.value - script.law(sample, of, n)) <= 4 * mean.error, (sample, of)
        shifted = (sample, of) in {("same", "residuals"), ("same", "model"), ("ordered", "model")}
        # The shifts exist: zero is far outside of the interval.
        assert (abs(mean.value) > 4 * mean.error) == shifted or n == 50
    assert script.law("same", "model", n) == pytest.approx(-script.C2 / (n - 1), rel=0.5 ** (n - 1) * 1.001)


def test_the_script_prints_its_table():
    command = [
        sys.executable,
        str(FOLDER / "prediction_shift.py"),
        "--repetitions",
        "2000",
        "--rows",
        "5",
        "--device",
        "cpu",
    ]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[0] == "Error of the slope in x2 (c2 = 2), 2,000 repetitions, numpy."
    assert len(lines) == 4 + len(LAWS)
    assert [line.split("|")[2].strip() for line in lines[4:]] == [sample for sample, _ in LAWS]


@pytest.mark.cuda
@pytest.mark.skipif("cuda" not in ON_CUDA, reason="the simulator's arrays toss no coins")
def test_a_gpu_measures_the_same_laws(script):
    for (sample, of), mean in script.measure(20, 30_000, seed=5, xp=script.library("cuda")).items():
        assert abs(mean.value - script.law(sample, of, 20)) <= 4 * mean.error
