"""A bar with rows per second on a terminal, nothing in a pipe."""

import io
import sys

import pytest

from gpu_encode.cli.messages import on_terminal
from gpu_encode.datasets.run import Progress, rate


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def work(fail: bool = False) -> None:
    with Progress(on_terminal()) as progress:
        progress.stage("reading", 10)
        progress.advance(10)
        progress.stage("encoding")
        progress.advance(10)
        if fail:
            raise ValueError


def test_a_pipe_gets_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    work()
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    work()
    said = terminal.getvalue()
    for word in ("reading", "encoding", "10 rows", "rows/s"):
        assert word in said
    last = said.rpartition("reading")[2]
    assert last.count("10 rows") == 2
    with pytest.raises(ValueError, match=r"^$"):
        work(fail=True)


@pytest.mark.parametrize(("speed", "text"), [(3.2e9, "3.2 G rows/s"), (5e6, "5.0 M rows/s"), (12, "12 rows/s")])
def test_rate(speed: float, text: str) -> None:
    assert rate(speed) == text
