"""The command itself: it starts without large libraries, writes errors in one line, and cleans up after Ctrl-C."""

import importlib.metadata
import json
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import gpu_encode
from gpu_encode.cli import doctor, main
from gpu_encode.cli.arguments import build, parse
from gpu_encode.cli.encoders import encoder_parameters

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "gpu_encode.cli"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(next(iter(gpu_encode.__path__))).parent)}


def command(monkeypatch: pytest.MonkeyPatch, run: object) -> None:
    module = ModuleType("gpu_encode.cli.doctor")
    module.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gpu_encode.cli.doctor", module)


def raising(error: BaseException) -> object:
    def run(_: object) -> int:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (ValueError("two\n  lines"), 2, "gpu-encode: error: two lines\n"),
        (KeyError("city"), 2, "gpu-encode: error: city\n"),
        (IsADirectoryError(21, "Is a directory", "rows.csv"), 2, "gpu-encode: error: rows.csv: Is a directory\n"),
        (RuntimeError("odd"), 1, "gpu-encode: error: RuntimeError: odd (add --debug for the traceback)\n"),
        (OSError(28, "No space left on device"), 1, "the disk is full (no space left on device): free some space"),
        (OSError(28, "No space left on device", "x"), 1, "the disk is full (no space left on device, at 'x'): free"),
        (KeyboardInterrupt(), 130, "gpu-encode: interrupted\n"),
        (SystemExit(143), 143, "gpu-encode: terminated\n"),
    ],
)
def test_errors(
    error: BaseException, status: int, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command(monkeypatch, raising(error))
    assert main(["doctor"]) == status
    said = capsys.readouterr().err
    assert says in said
    assert len(said.splitlines()) <= 1


def test_what_is_kept_is_said_however_a_run_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for error in (KeyboardInterrupt(), SystemExit(143), OSError(28, "No space left on device")):
        error.add_note("What is finished is kept.")
        command(monkeypatch, raising(error))
        main(["doctor"])
        assert capsys.readouterr().err.splitlines()[-1] == "gpu-encode: What is finished is kept."


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    command(monkeypatch, raising(RuntimeError("odd")))
    assert main(["doctor", "--debug"]) == 1
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert said.endswith("gpu-encode: error: RuntimeError: odd\n")


def test_the_librarys_warnings_are_said_and_those_of_others_only_when_debugging(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: object) -> int:
        warnings.warn("greedy\nleaks", UserWarning, stacklevel=1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        return 0

    command(monkeypatch, run)
    assert main(["doctor"]) == 0
    assert capsys.readouterr().err == "gpu-encode: warning: greedy leaks\n"
    assert main(["doctor", "--debug"]) == 0
    assert "gpu-encode: warning: old\n" in capsys.readouterr().err


def test_termination_unwinds(monkeypatch: pytest.MonkeyPatch) -> None:
    unwound = []

    def run(_: object) -> int:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            unwound.append(True)
        return 0

    before = signal.getsignal(signal.SIGTERM)
    command(monkeypatch, run)
    assert main(["doctor"]) == 143
    assert unwound == [True]
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["fit-transfrm"], "did you mean 'fit-transform'?"),
        (["inspect", "x.model", "--top", "-1"], "argument --top: '-1' is not a whole number from 0 up"),
        (["doctor", "--jsn"], "unknown option '--jsn'; did you mean '--json'?"),
    ],
)
def test_wrong_words(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("gpu-encode: error: ")
    assert says in line


def test_the_entry_point_starts_light() -> None:
    code = (
        "import sys; from gpu_encode.cli import main; status = main(['fit-transform', '--help']); import json;"
        "print(json.dumps([status, sorted({name.split('.')[0] for name in sys.modules})]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT)
    status, modules = json.loads(done.stdout.splitlines()[-1])
    assert status == 0
    assert "--cv" in done.stdout
    assert not {"numpy", "pyarrow", "rich", "sklearn", "numba", "pandas", "polars", "narwhals"} & set(modules)


@pytest.mark.parametrize("module", ["gpu_encode", "gpu_encode.cli"])
def test_python_m_runs_the_command(module: str) -> None:
    words = [sys.executable, "-m", module, "transform"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert done.returncode == 2
    assert done.stderr.startswith("gpu-encode: error: the following arguments are required: INPUT, OUTPUT, --model")


def test_version_says_what_is_at_work(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    python, numpy, numba = platform.python_version(), np.__version__, importlib.metadata.version("numba")
    found = f"gpu-encode {gpu_encode.__version__}, Python {python}, numpy {numpy}, numba {numba}, backend: "
    for gpu, ready, backend in (
        (False, True, "compiled kernels on the CPU"),
        (False, False, "NumPy on the CPU (kernels are not compiled yet)"),
        (True, True, "GPU 0: H100, 80 GiB"),
    ):
        monkeypatch.setattr(doctor, "has_gpu", lambda gpu=gpu: gpu)
        monkeypatch.setattr(doctor.compilation, "is_ready", lambda ready=ready: ready)
        monkeypatch.setattr(doctor, "cuda_devices", lambda: (["GPU 0: H100, 80 GiB"], 13000))
        assert main(["--version"]) == 0
        assert capsys.readouterr().out == f"{found}{backend}\n"


def test_every_command_has_an_example_that_it_takes() -> None:
    for name, command in build()[1].items():
        [example] = re.findall(r"^  gpu-encode (.*)$", command.format_help(), re.MULTILINE)
        assert parse(example.split()).command == name


def test_every_command_line_of_the_documents_is_read() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    begun = rf"^ *gpu-encode ((?:{'|'.join(build()[1])})\b.*)$"
    lines = [line for page in pages for line in re.findall(begun, folded(page), re.MULTILINE)]
    assert len(lines) > 10
    for line in lines:
        options = parse(shlex.split(line.partition(" | ")[0], comments=True))
        if options.command in ("fit-transform", "leak-report"):
            encoder_parameters(options)


def folded(page: Path) -> str:
    return page.read_text().replace("\\\n", " ")


@pytest.mark.parametrize("words", [["doctor"], ["doctor", "--json"]])
def test_a_reader_that_leaves_gets_no_complaint(words: list[str]) -> None:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*COMMAND, *words], env=ENVIRONMENT, **pipes) as work:
        work.stdout.close()
        assert work.stderr.read() == ""
    assert work.returncode == 1


@pytest.mark.usefixtures("heeded")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_in_mid_run_leaves_neither_output_nor_model(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    random = np.random.default_rng(0)
    n_rows = 60_000
    city = random.integers(0, 1000, n_rows).astype(str).astype(object)
    note = [random.bytes(300).hex() for _ in range(n_rows)]
    orders = pa.table({"city": city, "price": random.random(n_rows), "note": note})
    pyarrow.parquet.write_table(orders, tmp_path / "orders.parquet")
    words = ["fit-transform", "orders.parquet", "codes.csv.gz", "--target", "price", "--columns", "city"]
    deadline = time.monotonic() + 120
    words = [*COMMAND, *words, "--model", "orders.model"]
    partial = tmp_path / ".codes.csv.gz.gpu-encode" / "partial"
    with subprocess.Popen(words, cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as work:
        # Compressing all that noise takes seconds: once some of it is written, the work is in the middle.
        while sum(path.stat().st_size for path in partial.glob("codes.csv.gz")) == 0:
            assert work.poll() is None, work.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        work.send_signal(number)
        said = work.stderr.read()
    assert work.returncode == status
    assert "Traceback" not in said
    assert ("interrupted" if number == signal.SIGINT else "terminated") in said
    assert [path.name for path in tmp_path.iterdir()] == ["orders.parquet"]
