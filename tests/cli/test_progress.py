"""A bar with rows per second in a terminal, and no bar in a pipe."""

import io
import sys
from types import SimpleNamespace

import pytest

from gpu_encode.cli.messages import on_terminal
from gpu_encode.words.progress import Progress, rate


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


def test_a_notebook_gets_bars_to_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    class Output:
        def __enter__(self) -> None: ...

        def __exit__(self, *error: object) -> None: ...

        def clear_output(self, wait: bool) -> None: ...

    shown: list[object] = []
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=shown.append))
    monkeypatch.setitem(sys.modules, "ipywidgets", SimpleNamespace(Output=Output))
    work()
    *_, last = (text for text in (getattr(one, "text", "") for one in shown) if "reading" in text)
    assert last.count("10 rows") == 2


@pytest.mark.parametrize(("speed", "text"), [(3.2e9, "3.2 G rows/s"), (5e6, "5.0 M rows/s"), (12, "12 rows/s")])
def test_rate(speed: float, text: str) -> None:
    assert rate(speed) == text
