"""The process that compiles kernels, their folder, the time of compilation, and the backend that serves meanwhile."""

import errno
import os
import subprocess
import sys
import time
from itertools import cycle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpu_encode as ge
from gpu_encode.seam import compilation, ops

pytestmark = [pytest.mark.host, pytest.mark.skipif(os.name != "posix", reason="processes as on Linux")]

MANY = ops.LOADING_ROWS[ops.COMPILED]


@pytest.fixture
def background(monkeypatch, tmp_path):
    """Make this process one that has not asked for kernels yet, with its own folder of kernels."""
    monkeypatch.setenv("GPU_ENCODE_COMPILE", "background")
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.setattr(compilation.kernel_folder, "folder", lambda: tmp_path)
    monkeypatch.setattr(compilation.kernel_folder, "_complete", [])
    monkeypatch.setattr(compilation, "_children", {})
    monkeypatch.setattr(ops, "_rows_asked_for", dict.fromkeys(ops.LOADING_ROWS, 0))
    yield tmp_path
    compilation.stop()


@pytest.fixture
def started(background, monkeypatch):
    """Return a list of the requests to compile in the background."""
    asked = []
    monkeypatch.setattr(compilation, "start", lambda: asked.append(1))
    monkeypatch.delitem(sys.modules, ops.COMPILED, raising=False)
    return asked


def test_numpy_serves_while_nothing_is_compiled(started):
    assert not ops.compiled_serves(MANY - 1)
    assert started == []
    assert not ops.compiled_serves(MANY)
    assert started == [1]
    # Waiting takes less time than NumPy would take.
    assert ops.compiled_serves(ops.WAITING_ROWS)
    assert started == [1]


def test_small_calls_add_up(started):
    for _ in range(ops.TIMES_ASKED - 1):
        assert not ops.compiled_serves(MANY - 1)
    assert started == []
    ops.compiled_serves(MANY)
    assert started == [1]


def test_compiled_kernels_serve_from_when_they_are_there(started, background):
    assert not ops.compiled_serves(MANY)
    compilation.kernel_folder.seal(background).touch()
    assert ops.compiled_serves(MANY)
    assert not ops.compiled_serves(ops.LOADED_ROWS - 1)


def test_never_and_now(started, monkeypatch):
    monkeypatch.setenv("GPU_ENCODE_COMPILE", "never")
    assert not ops.compiled_serves(ops.WAITING_ROWS)
    monkeypatch.setenv("GPU_ENCODE_COMPILE", "now")
    assert ops.compiled_serves(MANY)
    monkeypatch.setenv("GPU_ENCODE_COMPILE", "later")
    with pytest.raises(ValueError, match=r"GPU_ENCODE_COMPILE must be one of background, now, never\. Got 'later'\."):
        ops.compiled_serves(MANY)


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def wait_for(condition):
    for _ in range(400):
        if condition():
            return True
        time.sleep(0.025)
    return False


@pytest.fixture
def noting(background, monkeypatch):
    """A child process that records its start, niceness and settings, and waits for the end of its parent."""
    noted = background / "noted"
    program = (
        "import os, sys, time; from pathlib import Path; sys.path[:] = sys.argv[2:]\n"
        "from gpu_encode.seam import compilation\n"
        f"note = Path({str(noted)!r}).open('a')\n"
        "note.write(' '.join([str(os.getpid()), os.environ['GPU_ENCODE_COMPILE'], str(len(sys.path) > 1)]) + '\\n')\n"
        "note.close(); compilation.end_with(int(sys.argv[1])); time.sleep(600)"
    )
    monkeypatch.setattr(compilation, "PROGRAM", program)
    return noted


def test_one_process_compiles_for_all(noting, monkeypatch):
    compilation.start()
    (child,) = compilation._children.values()
    assert wait_for(lambda: lines(noting) == [f"{child.pid} now True"])
    compilation.start()
    # Another process with the same folder finds the folder locked.
    monkeypatch.setattr(compilation, "_children", {})
    compilation.start()
    assert compilation._children == {}
    child.kill()
    child.wait()
    compilation.start()
    (other,) = compilation._children.values()
    assert wait_for(lambda: len(lines(noting)) == 2)
    compilation.stop()
    assert other.returncode is not None


def test_a_child_that_failed_is_not_started_again(background, monkeypatch):
    monkeypatch.setattr(compilation, "PROGRAM", "raise SystemExit(1)")
    compilation.start()
    (child,) = compilation._children.values()
    child.wait()
    compilation.start()
    assert list(compilation._children.values()) == [child]


def test_a_child_that_is_done_is_waited_for(background, monkeypatch):
    monkeypatch.setattr(compilation, "PROGRAM", "")
    compilation.start()
    (child,) = compilation._children.values()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    compilation.kernel_folder.seal(background).touch()
    assert compilation.is_ready()
    assert child.returncode == 0


def test_where_files_cannot_be_locked_every_process_compiles(noting, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(compilation.fcntl, "flock", refuse)
    compilation.start()
    (child,) = compilation._children.values()
    assert wait_for(lambda: lines(noting) == [f"{child.pid} now True"])


def test_a_child_ends_with_its_parent(noting):
    parent = (
        "import os; from pathlib import Path\n"
        "from gpu_encode.seam import compilation; from cpu_fallback import kernel_folder\n"
        f"kernel_folder.folder = lambda: Path({str(noting.parent)!r}); compilation.PROGRAM = {compilation.PROGRAM!r}\n"
        f"compilation.start()\nimport time\n"
        f"while not Path({str(noting)!r}).exists() or not Path({str(noting)!r}).read_text(): time.sleep(0.02)\n"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", parent], check=True)
    child = int(lines(noting)[0].split()[0])
    assert wait_for(lambda: not is_running(child))


def is_running(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # A child process that its parent has not waited for is still listed.
    return (
        ") Z " not in (Path("/proc") / str(process) / "stat").read_text() if Path("/proc/self/stat").exists() else True
    )


@pytest.mark.parametrize("program", ["", None, "uwsgi"])
def test_no_other_program_is_started(program, background, monkeypatch):
    """A program with an embedded interpreter is named as the running program, and would start again."""
    if program:
        (background / program).symlink_to(sys.executable)
        program = str(background / program)
    monkeypatch.setattr(sys, "executable", program)
    compilation.start()
    assert compilation._children == {}


def test_a_folder_that_takes_no_file_starts_nothing(background, monkeypatch):
    monkeypatch.setattr(compilation.kernel_folder, "folder", lambda: background / "missing")
    compilation.start()
    assert compilation._children == {}


N = 700
ROWS = pd.DataFrame({"whole": np.arange(N) * 7 % 31, "text": [f"name {row * row % 17}" for row in range(N)]})
REAL = np.random.default_rng(5).normal(size=N) * 10.0 ** (np.arange(N) % 9)


@pytest.mark.filterwarnings("ignore:1 rows see no rows")
@pytest.mark.parametrize(
    ("encoder", "y"),
    [
        (ge.TargetEncoder(columns=["whole", ("whole", "text")]), REAL),
        (ge.TargetEncoder(columns=["text"], cv=ge.Ordered()), np.arange(N) % 2),
        (ge.TargetEncoder(columns=["whole", "text"], cv=ge.Ordered(shuffle=False)), REAL),
        (ge.StatisticEncoder(["mean", "skew", "median"], columns=["text"]), REAL),
        (ge.CountEncoder(columns=["text", "whole"]), None),
    ],
)
def test_a_switch_at_any_time_changes_no_bit(encoder, y, monkeypatch):
    """Each request for a backend, and so each operation and piece, may get another backend."""
    answers = {"numpy": cycle([False]), "in turns": cycle([True, False]), "in other turns": cycle([False, True, True])}
    pieces, targets = [ROWS[:200], ROWS[200:450], ROWS[450:]], None if y is None else [y[:200], y[200:450], y[450:]]
    found = []
    for answer in answers.values():
        asked = []
        monkeypatch.setattr(
            ops, "compiled_serves", lambda *_, turns=answer, asked=asked: asked.append(1) or next(turns)
        )
        encoder.fit_transform(pieces, targets)
        training = pd.concat(encoder.fit_transform(pieces, targets))
        found.append((training, encoder.transform(ROWS)))
        assert len(asked) > 5
    for other in found[1:]:
        for one, another in zip(found[0], other, strict=True):
            pd.testing.assert_frame_equal(one, another, check_exact=True)
