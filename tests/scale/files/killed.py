"""A process that encodes files and kills itself at chosen points: `test_resume.py` runs it and never imports it.

Everything is imported once; every attempt is a fork of this process, which starts quickly.
"""

import json
import os
import random
import shutil
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpu_encode import LeaveOneOut, Ordered, TargetEncoder
from gpu_encode.cli import main as command
from gpu_encode.scale.files import encoding, run, staging
from gpu_encode.scale.files.staging import RECORD
from gpu_encode.scale.files.writing import RowWriter
from tests.cases import EVERY_COMBINATION
from tests.scale.files.encoded import encode

CONFIGURATIONS: dict[str, tuple[dict[str, Any], str]] = {
    "folds to a folder": ({}, "codes"),
    "leave one out to parts": ({"cv": LeaveOneOut()}, "codes"),
    "an order to a folder": ({"cv": Ordered(shuffle=False)}, "codes"),
    "a permutation to a file": ({"cv": Ordered()}, "codes.parquet"),
}


class Counted:
    """Counts calls, and kills the process at the call number `last`."""

    def __init__(self, last: int | None) -> None:
        self.events, self._last, self._lock = 0, last, threading.Lock()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **choices: Any) -> Any:
            with self._lock:
                self.events += 1
                if self.events == self._last:
                    os.kill(os.getpid(), signal.SIGKILL)
            return function(*given, **choices)

        return counted

    def install(self) -> None:
        """Count every step at which the process may be killed."""
        for owner, name in (
            (os, "fsync"),
            (Path, "replace"),
            (RowWriter, "write"),
            (encoding, "profile_rows"),
            (encoding, "measure"),
            (encoding, "fit"),
            (encoding, "encode"),
            (encoding, "write_sums"),
            (encoding, "read_sums"),
            (run, "OutputFiles"),
            (staging.shutil, "rmtree"),
        ):
            setattr(owner, name, self(getattr(owner, name)))


def attempt(source: Path, folder: Path, name: str, last: int | None, resume: bool) -> int:
    """Encode in a forked process; give its exit code: 0, or minus the signal."""
    child = os.fork()
    if child == 0:
        choices, place = CONFIGURATIONS[name]
        counted = Counted(last)
        counted.install()
        encoding.SAVE_AFTER = 0
        given = sorted(source.iterdir()) if "parts" not in name else sorted(source.iterdir())[0]
        encoder = TargetEncoder(**({"columns": ["city", ("device", "zip")], "cv": 3} | choices))
        encode(given, folder / place, encoder, "price", chunk_rows=40, resume=resume)
        encoder.save(folder / "model")
        (folder / "events").write_text(str(counted.events))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(source: Path, folder: Path, kills: int) -> None:
    """Encode once without interruption, then once per interruption, in numbered folders; write the results."""
    seeded = random.Random(11)
    story = []
    for name, (_, place) in CONFIGURATIONS.items():
        whole = folder / name / "whole"
        whole.mkdir(parents=True)
        assert attempt(source, whole, name, None, resume=False) == 0
        events = int((whole / "events").read_text())
        for number, last in enumerate(sorted(seeded.sample(range(1, events + 1), kills))):
            own = folder / name / str(number)
            own.mkdir()
            ended = attempt(source, own, name, last, resume=False)
            there = (own / place).exists()
            left = sorted(path.name for path in own.iterdir())
            again = None if there else attempt(source, own, name, None, resume=True)
            used = None if again is None else int((own / "events").read_text())
            story.append([name, number, last, events, ended, there, left, again, used])
    (folder / "story.json").write_text(json.dumps(story))


def command_in_a_fork(words: str, last: int | None) -> int:
    """Run a command in a forked process, which is killed at a step of publishing; give its exit code."""
    child = os.fork()
    if child == 0:
        publish, counted = staging.Staging.publish, Counted(last)

        def publish_counted(*given: Any) -> None:
            for owner, name in (
                (os, "fsync"),
                (os, "open"),
                (Path, "replace"),
                (Path, "hardlink_to"),
                (Path, "unlink"),
                (Path, "rmdir"),
                (Path, "write_text"),
                (staging.shutil, "rmtree"),
            ):
                setattr(owner, name, counted(getattr(owner, name)))
            publish(*given)

        staging.Staging.publish = publish_counted  # type: ignore[method-assign]
        os._exit(command(words.split()))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_publishing(source: Path, folder: Path) -> None:
    """Kill a command at every step of its publication, and resume it; write the results."""
    story: list[Any] = []
    options = "--target price --columns city --target-type continuous --overwrite"
    cases = (("codes.parquet", True), ("codes", True), ("codes.parquet", False))
    # A third of the steps in each case, each time another third; at night all steps.
    stride = 1 if EVERY_COMBINATION else len(cases)
    for number, (output, before) in enumerate(cases):
        old = folder / f"{output} {before} old".replace(" ", "-")
        old.mkdir(parents=True)
        if before:
            words = f"fit-transform {source} {old / output} --model {old / 'model'} {options}"
            command(words.replace("city", "zip").split())
        ended, last = -9, number % stride + 1 - stride
        while ended:
            last += stride
            own = folder / f"{output} {before} {last}".replace(" ", "-")
            shutil.copytree(old, own)
            places = [own / "model", own / output]
            words = f"fit-transform {source} {places[1]} --model {places[0]} {options}"
            former = [content(place) for place in places]
            ended = command_in_a_fork(words, last)
            state = ["old" if content(place) == old else "new" for place, old in zip(places, former, strict=True)]
            recorded = (staging.folder_beside(places[1]) / RECORD).exists()
            again = command_in_a_fork(f"{words} --resume", None)
            after = ["old" if content(place) == old else "new" for place, old in zip(places, former, strict=True)]
            left = sorted(path.name for path in own.iterdir() if path not in places)
            story.append([own.name, last, ended, [*state, recorded], again, after, left])
    (folder / "story.json").write_text(json.dumps(story))


def content(place: Path) -> dict[str, bytes] | None:
    """Return the bytes of a file, or of the files in a folder; None if neither exists."""
    if not place.exists():
        return None
    return {path.name: path.read_bytes() for path in (place.iterdir() if place.is_dir() else [place])}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[3] == "publishing":
        kill_publishing(Path(sys.argv[1]), Path(sys.argv[2]))
    else:
        main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
