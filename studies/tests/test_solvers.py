"""`python -m studies.solvers`: a line for each size and each solver, and exact solvers find the same values."""

import pytest

from studies.solvers import least_seconds, main

pytestmark = pytest.mark.host


def test_calls_take_turns():
    said = []
    times, answers = least_seconds([lambda: said.append("a") or 1, lambda: said.append("b") or 2], turns=2)
    assert said == ["a", "b"] * 3
    assert answers == [1, 2]
    assert min(times) >= 0


def test_the_command(capsys):
    assert main(["--categories", "60,30", "--numbers", "2,3", "--rows", "300", "--turns", "1"]) == 0
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert [line[0] for line in lines[1:5]] == ["| 60", "| 60", "| 30", "| 30"]
    quality = {name.strip("| "): others for name, *others in lines[6:]}
    assert [*quality] == ["randomised, 5 iterations", "randomised, 60 iterations", "ARPACK"]
    assert quality["ARPACK"][1:] == ["0.00%", "0.00% |"]
    assert float(quality["randomised, 5 iterations"][1].strip("%")) > 1
