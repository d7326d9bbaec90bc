"""Load and use forged model files in processes of their own: each is refused in words, or is a model that works.

    python -m tests.storage.fuzz --minutes 60 [--seed 1] [--only ordinal] [--keep FOLDER]

A forged file fails if its process dies, takes longer than some seconds or more memory than a limit, or raises an error
that no line of ours raises.  The files of failures are kept in a folder.
"""

import argparse
import contextlib
import io
import json
import os
import pickle
import random
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import gpu_encode
from gpu_encode import export, load
from gpu_encode.cli import inspect_model
from tests.family.members import MEMBERS, ROWS
from tests.storage.fitted import CASES
from tests.storage.forgeries import Forgery, forge

ROOT = Path(gpu_encode.__file__).parents[1]
OURS = (str(ROOT / "gpu_encode"), str(ROOT / "cpu_fallback"))
SAID = (ValueError, TypeError, ImportError, AttributeError, NotImplementedError, MemoryError)
SECONDS = 20.0
# Bytes that a process may take beside what it has when it begins.
MEMORY = 2 << 30
# Forged files of one process.
TURNS = 200

# What makes a fitted encoder, and new rows for it.
Model = Callable[[], tuple[Any, Any]]


@dataclass
class Failure:
    """A forged file that is neither refused in words nor works."""

    number: int
    change: str
    end: str
    content: bytes

    def __str__(self) -> str:
        return f"#{self.number}: {self.end}\n    {self.change}"


def is_said(error: BaseException) -> bool:
    """Tell whether a line of ours has raised an error."""
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    # scikit-learn says that two outputs have one name, and pyarrow that a name is no text.
    return isinstance(error, SAID) and last.startswith(OURS)


def use(path: Path, rows: Any) -> str:
    """Load a file and use what it holds; give what went wrong, or nothing."""
    try:
        encoder = load(path)
    except ValueError as error:
        refused = str(error).startswith(str(path)) and str(error).isprintable()
        return "" if refused and not isinstance(error.__cause__, MemoryError) else f"load says {error!r}"
    uses: list[Callable[[], Any]] = [
        partial(encoder.transform, rows),
        encoder.get_feature_names_out,
        partial(repr, encoder),
        partial(inspect, path),
        partial(encoder.save, path.with_name("again")),
        partial(pickle.dumps, encoder),
        partial(export.to_json, encoder),
        partial(export.to_sql, encoder, "rows"),
        partial(export.to_arrow, encoder),
    ]
    for one in uses:
        try:
            one()
        except Exception as error:  # every error is looked at
            if not is_said(error):
                return "".join(traceback.format_exception(error)[-4:])
    return ""


def inspect(path: Path) -> None:
    """Do what the command `inspect` does."""
    options = argparse.Namespace(model=str(path), column=None, top=5, json=False)
    with contextlib.redirect_stdout(io.StringIO()):
        inspect_model.run(options)


def use_in_turn(make: Callable[[int], Forgery], numbers: range, rows: Any, path: Path, out: int) -> None:
    """Use one forged file after the other, and write how each ended; the process ends with it."""
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, held + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    with contextlib.suppress(BaseException):
        for number in numbers:
            path.write_bytes(make(number)[1])
            os.write(out, f"[{number}, null]\n".encode())
            os.write(out, (json.dumps([number, use(path, rows)[-1500:]]) + "\n").encode())
    os._exit(0)


def lines_of(source: int, limit: float) -> Iterator[str | None]:
    """Give the lines that a process writes; None if it writes nothing for too long."""
    held = b""
    while True:
        ready, _, _ = select.select([source], [], [], limit)
        if not ready:
            yield None
            return
        if not (piece := os.read(source, 1 << 16)):
            return
        *lines, held = (held + piece).split(b"\n")
        yield from (line.decode() for line in lines)


def run_turn(make: Callable[[int], Forgery], numbers: range, rows: Any, seconds: float) -> tuple[int, dict[int, str]]:
    """Use forged files in one process; give the number of the last one, and how those that failed ended."""
    source, out = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        with warnings.catch_warnings():
            # The child must not wait for threads of numba that it has not, and it ends if it does.
            warnings.filterwarnings("ignore", ".*use of fork", DeprecationWarning)
            process = os.fork()
        if process == 0:
            os.close(source)
            use_in_turn(make, numbers, rows, Path(folder) / "model", out)
        os.close(out)
        last, ended, failed, end = numbers.start, False, {}, ""
        for line in lines_of(source, seconds):
            if line is None:
                end = f"takes more than {seconds} seconds"
                os.kill(process, signal.SIGKILL)
                break
            last, said = json.loads(line)
            ended = said is not None
            if said:
                failed[last] = said
        os.close(source)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if not ended:
        failed[last] = end or f"the process ended with {status}"
    return last, failed


def run(make: Callable[[int], Forgery], numbers: range, rows: Any, seconds: float = SECONDS) -> list[Failure]:
    """Use forged files, by their numbers, in as many processes as this takes; give those that fail."""
    failures = []
    first = numbers.start
    while first < numbers.stop:
        last, failed = run_turn(make, range(first, min(first + TURNS, numbers.stop)), rows, seconds)
        for number, end in failed.items():
            change, content = make(number)
            failures.append(Failure(number, change, end, content))
        first = last + 1
    return failures


def forgeries_of(name: str, content: bytes, seed: int) -> Callable[[int], Forgery]:
    """Give the function that makes the forged files of a model by their numbers."""
    return lambda number: forge(content, random.Random(f"{seed} {name} {number}"))


def fit_member(name: str) -> tuple[Any, Any]:
    make, y = MEMBERS[name]
    return make().fit(ROWS, y), ROWS[:20]


def fit_case(name: str) -> tuple[Any, Any]:
    case = CASES[name]()
    return case.encoder(), case.new


def fit_votes(kind: str) -> tuple[Any, Any]:
    y = {"binary": np.arange(90) % 2, "multiclass": np.arange(90) % 3, "continuous": np.arange(90) * 0.25}[kind]
    parameters = {"columns": ["city", "zip"], "target_type": kind}
    return gpu_encode.ProximityEncoder(order=2, weights=[1.0, 0.5, 0.25, 1.0], **parameters).fit(ROWS, y), ROWS[:20]


def fit_factors(output: str) -> tuple[Any, Any]:
    encoder = gpu_encode.FactorizationEncoder(2, columns=["city", "zip"], output=output, max_iter=5)
    return encoder.fit(ROWS, np.arange(90) * 0.25), ROWS[:20]


MODELS: dict[str, Model] = {
    **{name: partial(fit_member, name) for name in MEMBERS},
    **{name: partial(fit_case, name) for name in CASES if name.startswith(("values", "option", "labels"))},
    **{f"votes, {kind}": partial(fit_votes, kind) for kind in ("binary", "multiclass", "continuous")},
    **{f"factors, {output}": partial(fit_factors, output) for output in ("prediction", "both")},
}


def saved(name: str) -> tuple[bytes, Any]:
    """Give the file of an encoder, and new rows for it."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoder, rows = MODELS[name]()
        encoder.save(f"{folder}/model")
        # Threads of polars do not survive the fork of `run_turn`.
        return Path(f"{folder}/model").read_bytes(), rows.to_arrow() if hasattr(rows, "to_arrow") else rows


def main() -> int:
    """Fuzz until the time is over."""
    parser = argparse.ArgumentParser(description="load and use forged model files")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", default="", help="models whose name has this")
    parser.add_argument("--each", type=int, default=100, help="forged files of a model before the next one")
    parser.add_argument("--keep", type=Path, default=Path("build/forged"), help="folder for files that fail")
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    say = partial(print, flush=True)
    say(f"--seed {options.seed}")
    names = [name for name in MODELS if options.only in name]
    files: dict[str, tuple[bytes, Any]] = {}
    stop, n_failures, n_done = time.monotonic() + 60 * options.minutes, 0, 0
    while time.monotonic() < stop:
        name, first = names[n_done // options.each % len(names)], n_done // options.each // len(names) * options.each
        if name not in files:
            files[name] = saved(name)
        content, rows = files[name]
        for failure in run(forgeries_of(name, content, options.seed), range(first, first + options.each), rows):
            n_failures += 1
            (options.keep / f"{options.seed}-{n_failures}.model").write_bytes(failure.content)
            say(f"{n_failures}: {name} {failure}")
        n_done += options.each
    say(f"{n_done} forged files of {len(files)} models, {n_failures} failures")
    return int(n_failures > 0)


if __name__ == "__main__":
    sys.exit(main())
