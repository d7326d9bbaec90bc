"""The demo shows true scores: greedy leaks, leave-one-out misleads, k-fold and ordered hold."""

import pytest

from gpu_encode.cli import demo, main


def test_the_demo_tells_who_leaks(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["demo"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    lines = {words[1]: words for words in (line.split() for line in said.out.splitlines()) if len(words) > 8}
    assert "Leaks:" in lines["greedy"]
    assert "Misleads:" in lines["leave-one-out"]
    for scheme in ("k-fold", "ordered"):
        assert "Holds:" in lines[scheme]
    assert "merchant" in said.out


def test_the_rows_are_the_same_every_time() -> None:
    assert demo.make_orders(500).equals(demo.make_orders(500))


@pytest.mark.parametrize("n_rows", ["0", "1500"])
def test_few_rows_do(n_rows: str) -> None:
    assert main(["demo", "--rows", n_rows]) == 0


def test_a_gap_without_a_leak_is_not_called_one() -> None:
    assert demo.verdict("ordered", 0.7, 0.6) == "No leak, but too few rows: 0.100 of it is the tree's own luck."
