"""Output and model get their final names together, or nothing changes; the next run completes a killed one."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpu_encode
from gpu_encode.scale.files.staging import RECORD, go_on, publish
from tests.architecture.imports import ROOT
from tests.scale.files.encoded import write_pieces

NAMES = ("model", "codes.csv")


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def hidden(tmp_path: Path) -> Path:
    """The hidden folder, with the finished files."""
    folder = tmp_path / "hidden"
    folder.mkdir()
    for name in NAMES:
        (folder / name).write_text("new")
    return folder


def publish_all(hidden: Path) -> None:
    publish(hidden, [(hidden / name, hidden.parent / name) for name in NAMES])


def test_all_appear(hidden: Path, tmp_path: Path) -> None:
    publish_all(hidden)
    assert contents(tmp_path) == dict.fromkeys(NAMES, "new")
    assert list(contents(hidden)) == [RECORD]


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("before", [{}, {"codes.csv": "old"}, {"codes.csv": "old", "model": "older"}])
@pytest.mark.parametrize("failing", NAMES)
def test_a_rename_that_fails_takes_the_others_back(
    hidden: Path, tmp_path: Path, before: dict[str, str], failing: str, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in before.items():
        (tmp_path / name).write_text(content)
    finished, replace = contents(hidden), Path.replace

    def fail_once(source: Path, place: Path) -> Path:
        if source == hidden / failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return replace(source, place)

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(Path, "replace", fail_once)
    if not links:
        monkeypatch.setattr(Path, "hardlink_to", refuse)
    with pytest.raises(OSError, match="No space"):
        publish_all(hidden)
    assert contents(tmp_path) == before
    # The finished files are where they were, so that a later run can resume.
    assert contents(hidden) == finished


def test_folders_are_replaced_whole(tmp_path: Path) -> None:
    for name in ("hidden/finished", "codes"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / f"of {name[:5]}").write_text("rows")
    publish(tmp_path / "hidden", [(tmp_path / "hidden/finished", tmp_path / "codes")])
    assert contents(tmp_path / "codes") == {"of hidde": "rows"}


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs a second file system")
def test_a_copy_lies_beside_its_place(hidden: Path, tmp_path: Path) -> None:
    place = Path("/dev/shm") / f"{tmp_path.parent.name}-{tmp_path.name}-model"
    if place.parent.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("temporary files are in memory")
    try:
        publish(hidden, [(hidden / "model", place)])
        assert place.read_text() == "new"
        assert [path for path in place.parent.iterdir() if place.name in path.name] == [place]
    finally:
        place.unlink()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupts_wait_for_the_renames(
    number: signal.Signals, hidden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, came = Path.replace, []

    def interrupted(source: Path, place: Path) -> Path:
        if place.name in NAMES:
            signal.raise_signal(number)
        return replace(source, place)

    def handler(number: int, _: object) -> None:
        came.append(number)

    monkeypatch.setattr(Path, "replace", interrupted)
    former = signal.signal(number, handler)
    try:
        publish_all(hidden)
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, former)
    assert set(contents(tmp_path)) == set(NAMES)
    assert came == []


def test_going_on_twice_is_no_harm(hidden: Path, tmp_path: Path) -> None:
    publish_all(hidden)
    (tmp_path / "model").write_text("newer")
    go_on(hidden)
    assert contents(tmp_path) == {"codes.csv": "new", "model": "newer"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
def test_a_kill_at_any_step_of_publishing(tmp_path: Path, orders: pa.Table) -> None:
    source = write_pieces(tmp_path / "in", orders, 112, row_group_size=25)
    program = [sys.executable, "-m", "tests.scale.files.killed", str(source), str(tmp_path / "out"), "publishing"]
    subprocess.run(program, cwd=ROOT, check=True, timeout=300)
    story = json.loads((tmp_path / "out" / "story.json").read_text())
    states = set()
    for case, last, _, state, again, after, left in story:
        where = f"{case}: killed at {last}"
        # Both files are old, both are new, or a record names the remaining steps.
        states.add(tuple(state))
        assert state[0] == state[1] or state[2], where
        assert (again, after) == (0, ["new", "new"]), where
        assert not left, where
    assert {("new", "old", True), ("old", "old", False), ("new", "new", False)} <= states
    assert {ended for _, _, ended, *_ in story} == {0, -9}


def killed_at(step: int, work: Callable[[], object]) -> int:
    """Do some work in a process that is killed before a change of its files; give how the process ended."""
    if (child := os.fork()) == 0:
        changes = iter(range(step))

        def kill(event: str, _: object) -> None:
            changed = event in ("os.rename", "os.remove", "os.rmdir", "os.link", "shutil.rmtree", "ctypes.dlsym")
            if changed and next(changes, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(kill)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
@pytest.mark.parametrize(("output", "former"), [("codes.parquet", False), ("codes.parquet", True), ("codes", True)])
def test_resume_finishes_what_was_killed_at_any_step(output: str, former: bool, tmp_path: Path) -> None:
    sources = [tmp_path / f"{name}.parquet" for name in ("old", "rows")]
    for number, source in enumerate(sources):
        pq.write_table(pa.table({"key": [*range(9)] * 2, "y": [number, 1] * 9}), source)

    def run(source: Path, **given: Any) -> None:
        made = gpu_encode.TargetEncoder(columns=["key"], cv=3)
        gpu_encode.encode_dataset(source, tmp_path / output, made, target="y", model=tmp_path / "model", **given)

    def state() -> tuple[bytes, bytes] | None:
        path = tmp_path / output
        if not path.exists():
            return None
        [file] = [path] if path.is_file() else path.iterdir()
        return file.read_bytes(), (tmp_path / "model").read_bytes()

    run(sources[1])
    new, old = state(), None
    for step in count():
        for path in [path for path in tmp_path.iterdir() if path not in sources]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if former:
            run(sources[0])
            old = state()
        ended = killed_at(step, lambda: run(sources[1], overwrite=former))
        found = state()
        assert (found or (None,))[0] in [(each or (None,))[0] for each in (old, new)], step
        # An empty folder is left, or nothing: then the work is known to be finished.
        if ended == 0 or (found == new and not any((tmp_path / f".{output}.gpu-encode").iterdir())):
            break
        assert ended == -signal.SIGKILL
        run(sources[1], resume=True, overwrite=former)
        assert state() == new, step
        assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")], step
    assert step > 5
