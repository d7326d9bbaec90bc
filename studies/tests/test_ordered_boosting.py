"""`python -m studies.ordered_boosting`: only plain boosting moves a row's prediction by its own target."""

import numpy as np
import pytest

from studies.ordered_boosting import boost, main, moved_by_own_target


@pytest.mark.parametrize(("mode", "moved"), [("plain", 19), ("ordered", 0)])
def test_rows_that_see_their_own_target(mode, moved):
    assert moved_by_own_target(mode, 20, 3) == moved


def test_one_tree_of_four_rows_by_hand():
    features, y = np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([2.0, 4.0, 6.0, 8.0])
    trees = [[(0, 0.5), (0, 0.5)]]
    plain, _ = boost("plain", features, y, 1, trees)
    # Half of the shrunk mean of each side: (2 + 6) / 3 and (4 + 8) / 3.
    assert plain.tolist() == pytest.approx([4 / 3, 2.0, 4 / 3, 2.0], abs=1e-15)
    ordered, _ = boost("ordered", features, y, 1, trees)
    # Models of one row, and of two: row 1 sees row 0 alone, rows 2 and 3 see rows 0 and 1.
    assert ordered.tolist()[1:] == pytest.approx([0.0, 0.5, 1.0], abs=1e-15)


def test_the_command(capsys):
    assert main(["--rows", "8", "--iterations", "1"]) == 0
    assert "plain: the own target moves the training prediction of 7 of 7 rows" in capsys.readouterr().out
