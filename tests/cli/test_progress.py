"""A bar with rows per second in a terminal, and no bar in a pipe."""

import io
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

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


def drawn(progress: Progress) -> list[str]:
    console = Console(file=io.StringIO(), width=200)
    console.print(progress._bars.get_renderable())
    return console.file.getvalue().splitlines()


def test_a_stage_that_has_ended_keeps_its_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(sys, "stderr", Terminal())
    progress = Progress(True)
    progress._bars.get_time = lambda: clock[0]
    for task in ("reading", "encoding"):
        progress.stage(task, 4000, done=2000 if task == "encoding" else 0)
        clock[0] += 2
        progress.advance(1000)
        assert "500 rows/s" in drawn(progress)[-1]
        assert drawn(progress)[-1].rstrip().endswith("left")
        clock[0] += 2
        progress.advance(1000 if task == "encoding" else 3000)
    clock[0] += 1000
    reading, encoding = drawn(progress)
    # Half of the rows of the second stage were done by an earlier run.
    assert "1.0 k rows/s" in reading
    assert "500 rows/s" in encoding
    assert reading.split()[-1] == encoding.split()[-1] == "0:00:04"


@pytest.mark.parametrize(("speed", "text"), [(3.2e9, "3.2 G rows/s"), (5e6, "5.0 M rows/s"), (12, "12 rows/s")])
def test_rate(speed: float, text: str) -> None:
    assert rate(speed) == text
