"""Calls on threads, in forks, interrupted and killed at random points: `python -m tests.stress --minutes 30`.

Every round is a process of its own, from a seed that is printed, and a round of one seed asks for the same calls.  Each
call has to give the bits that it gives alone, whatever happens to others beside it or happened to it before:

- two threads call encoders, fitted ones that they share and new ones, and files;
- the main thread forks children, which call the same; it is interrupted in the middle of calls, and calls again;
- children that write files and models are killed, terminated and interrupted: what is at the destination is the old
  output or the new one, whole, and `resume=True` ends the work.
"""

import argparse
import contextlib
import faulthandler
import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

# Seconds of a round, and seconds after which a process that should have ended is said to hang.
ROUND, HANGS = 20.0, 240.0
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
Job = Callable[[], bytes]


class Calls:
    """The calls of a round, and the bits that each gives alone.

    Parameters
    ----------
    seed : int
    folder : Path
        For files; each process and thread writes files of its own.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        import gpu_encode
        from gpu_encode import KFold, LeaveOneOut, Ordered, TargetEncoder

        drawn, self._folder, self._library = np.random.default_rng(seed), folder, gpu_encode
        n_rows = int(drawn.choice([300, 5_000, 60_000]))
        self.X = pd.DataFrame(
            {"word": drawn.integers(0, 300, n_rows).astype(str), "number": drawn.integers(0, 50, n_rows)}
        )
        self.targets = {"classes": drawn.integers(0, 2, n_rows), "reals": drawn.normal(size=n_rows)}
        self._encoders = {
            "folds": TargetEncoder(cv=KFold(3)),
            "left out": TargetEncoder(cv=LeaveOneOut()),
            "ordered": TargetEncoder(cv=Ordered(2)),
            "pairs": TargetEncoder(columns=["word", ("word", "number")]),
        }
        table = pa.Table.from_pandas(self.X).append_column("y", pa.array(self.targets["reals"]))
        self._rows = folder / "rows.parquet"
        pyarrow.parquet.write_table(table, self._rows, row_group_size=max(100, n_rows // 7))
        self.jobs = {
            f"{method.__name__} {name} {target}": self._bound(method, name, target)
            for method in (self.train, self.learn)
            for name in self._encoders
            for target in self.targets
        }
        self._shared = {name: self._new(name).fit(self.X, self.targets["reals"]) for name in self._encoders}
        self.jobs |= {f"transform {name}": self._bound(self.transform, name) for name in self._encoders}
        self.jobs |= {f"keep {name}": self._bound(self.keep, name) for name in self._encoders}
        self.jobs |= {f"encode {name}": self._bound(self.encode, name) for name in self._encoders}
        self.alone = {name: job() for name, job in self.jobs.items()}

    @staticmethod
    def _bound(method: Callable[..., bytes], *given: str) -> Job:
        return lambda: method(*given)

    def _new(self, name: str) -> Any:
        from sklearn.base import clone

        return clone(self._encoders[name])

    def own_folder(self) -> Path:
        """Give a folder of this process and thread."""
        path = self._folder / f"{os.getpid()}-{threading.get_ident()}"
        path.mkdir(exist_ok=True)
        return path

    def train(self, name: str, target: str) -> bytes:
        """Encode training rows."""
        return self._new(name).fit_transform(self.X, self.targets[target]).to_numpy().tobytes()

    def learn(self, name: str, target: str) -> bytes:
        """Fit, and encode new rows."""
        return self._new(name).fit(self.X, self.targets[target]).transform(self.X[:100]).to_numpy().tobytes()

    def transform(self, name: str) -> bytes:
        """Encode new rows with an encoder that all threads share."""
        return self._shared[name].transform(self.X[::7]).to_numpy().tobytes()

    def keep(self, name: str) -> bytes:
        """Save, load and pickle a shared encoder."""
        path = self.own_folder() / "encoder.model"
        self._shared[name].save(path)
        loaded = pickle.loads(pickle.dumps(self._library.load(path)))
        return loaded.transform(self.X[:50]).to_numpy().tobytes()

    def encode(self, name: str) -> bytes:
        """Encode files."""
        return content(self.encode_to(self.own_folder() / "codes.parquet", name))

    def encode_to(self, path: Path, name: str, **choices: Any) -> Path:
        """Encode files to a path."""
        self._library.encode_dataset(
            self._rows, path, self._new(name), target="y", overwrite=True, model=f"{path}.model", **choices
        )
        return path


def content(path: Path) -> bytes:
    """Bits of the columns of a file."""
    table = pyarrow.parquet.read_table(path)
    return b"".join(np.asarray(column.to_numpy()).tobytes() for column in table.columns if column.type != pa.string())


class Round:
    """What happens in one process.

    Parameters
    ----------
    calls : Calls
    seed : int
    """

    def __init__(self, calls: Calls, seed: int) -> None:
        self.calls, self.seed, self.found = calls, seed, list[str]()
        self.counts, self.drawn = Counter[str](), random.Random(seed)
        self.is_over = threading.Event()

    def check(self, name: str, where: str) -> None:
        """Make one call, and note what is wrong with it."""
        self.counts[where] += 1
        try:
            if self.calls.jobs[name]() != self.calls.alone[name]:
                self.found.append(f"{where}: {name} gave other bits")
        except Exception:
            self.found.append(f"{where}: {name}: {traceback.format_exc(limit=-6)}")

    def call_until_over(self, number: int) -> None:
        """Make calls on a thread."""
        drawn = random.Random(f"{self.seed} {number}")
        while not self.is_over.is_set():
            self.check(drawn.choice([*self.calls.jobs]), "thread")

    def fork(self) -> None:
        """Fork a child, which makes some of the calls."""
        names = self.drawn.sample([*self.calls.jobs], 3)
        child = os.fork()
        if child == 0:
            self.found.clear()
            for name in names:
                self.check(name, f"child {os.getpid()}")
            sys.stderr.writelines(f"{line}\n" for line in self.found)
            sys.stderr.flush()
            os._exit(bool(self.found))
        if (ended := wait_for(child)) != 0:
            self.found.append(f"a forked child ended with {ended}: {names}")

    def interrupt(self) -> None:
        """Interrupt a call of the main thread, and call again."""
        name = self.drawn.choice([*self.calls.jobs])
        with contextlib.suppress(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, self.drawn.random() ** 3 / 5 + 1e-4)
            try:
                self.calls.jobs[name]()
            except KeyboardInterrupt:
                pass
            except Exception:
                self.found.append(f"interrupted: {name}: {traceback.format_exc(limit=-6)}")
            signal.setitimer(signal.ITIMER_REAL, 0)
        self.check(name, "after an interrupt")

    def kill(self) -> None:
        """Kill a child that replaces an output, look at what is there, and finish the work."""
        folder = self.calls.own_folder() / "killed"
        folder.mkdir()
        before, name = self.drawn.choices([*self.calls._encoders], k=2)
        path = folder / "codes.parquet"
        self.calls.encode_to(path, before)
        former = self.calls.alone[f"encode {before}"]
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            with contextlib.suppress(KeyboardInterrupt):
                self.calls.encode_to(path, name)
            os._exit(0)
        time.sleep(self.drawn.random() ** 2 / 2)
        how = self.drawn.choice(SIGNALS)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, how)
        wait_for(child)
        for resume in (False, True):
            self.counts[f"{how.name}, {'resumed' if resume else 'looked at'}"] += 1
            try:
                if resume:
                    self.calls.encode_to(path, name, resume=True)
                there = content(path)
                if there != self.calls.alone[f"encode {name}"] and (resume or there != former):
                    self.found.append(f"after {how.name}, resume={resume}: {before} -> {name}: other bits")
            except Exception:
                self.found.append(
                    f"after {how.name}, resume={resume}: {before} -> {name}: {traceback.format_exc(limit=-6)}"
                )
        shutil.rmtree(folder)

    def run(self) -> None:
        """Do all that at random for some seconds."""
        signal.signal(signal.SIGALRM, raise_interrupt)
        others = [threading.Thread(target=self.call_until_over, args=[number]) for number in range(2)]
        for other in others:
            other.start()
        end = time.monotonic() + ROUND
        while time.monotonic() < end:
            self.drawn.choice([self.fork, self.interrupt, self.kill])()
        self.is_over.set()
        for other in others:
            other.join()
        left = [thread.name for thread in threading.enumerate() if thread.name.startswith("gpu-encode")]
        if any("compil" not in name for name in left):
            self.found.append(f"threads are left: {left}")


def raise_interrupt(*_: object) -> None:
    """Do what Ctrl-C does."""
    raise KeyboardInterrupt


def wait_for(child: int) -> int:
    """Wait for a child, and give how it ended; kill one that hangs, which then has ended by SIGABRT."""
    end = time.monotonic() + HANGS
    while time.monotonic() < end:
        pid, state = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(state)
        time.sleep(0.002)
    os.kill(child, signal.SIGABRT)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_round(seed: int) -> None:
    """Run one round in this process, and print what was found as the last line."""
    warnings.simplefilter("ignore")
    faulthandler.enable()
    faulthandler.dump_traceback_later(2 * HANGS, exit=True)
    with tempfile.TemporaryDirectory() as folder:
        this = Round(Calls(seed, Path(folder)), seed)
        this.run()
    sys.stdout.write(json.dumps([this.found, this.counts]) + "\n")


def rounds(minutes: float, seed: int) -> Iterator[tuple[int, list[str], dict[str, int]]]:
    """Run rounds one after the other: give the seed of each, what it found, and how many calls it made."""
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        done = subprocess.run(
            [sys.executable, "-m", "tests.stress", "--round", str(seed)], capture_output=True, text=True, check=False
        )
        try:
            found, counts = json.loads(done.stdout.splitlines()[-1])
        except (IndexError, ValueError):
            found, counts = [f"the process ended with {done.returncode}: {done.stderr[-3000:]}"], {}
        yield seed, found + ([done.stderr[-3000:]] if found and done.stderr else []), counts
        seed += 1


def main() -> int:
    """Run rounds for some minutes, and print what they found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--round", type=int, help="run the one round of this seed, in this process")
    given = parser.parse_args()
    if given.round is not None:
        run_round(given.round)
        return 0
    in_all, failed = Counter[str](), list[int]()
    for seed, found, counts in rounds(given.minutes, given.seed):
        in_all.update(counts)
        words = f"seed {seed}: {sum(counts.values())} calls{', FAILED' if found else ''}"
        sys.stdout.write("\n  ".join([words, *found]) + "\n")
        sys.stdout.flush()
        failed += [seed] if found else []
    sys.stdout.write(f"{dict(in_all)}\nfailed: {failed or 'none'}\n")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
