"""Runs to the same destination at the same time: one run writes, and the others get an error."""

from pathlib import Path
from typing import Any

import pytest

from gpu_encode.scale.files import staging
from gpu_encode.scale.files.staging import Staging, is_at
from gpu_encode.scale.files.writing import Destination


def test_a_lock_that_a_run_removes_as_it_ends_is_taken_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that opened the lock before its removal would hold a lock that no other run can see."""
    lock_file, removals = staging.lock_file, [True, True]

    def lock_late(path: Path) -> Any:
        stream = lock_file(path)
        if removals:
            removals.pop()
            path.unlink()
            path.parent.rmdir()
        return stream

    monkeypatch.setattr(staging, "lock_file", lock_late)
    destination = Destination(tmp_path / "out.parquet", False, ".parquet", None)
    with Staging(destination) as mine:
        assert is_at(mine._lock, mine.folder / "lock")
        with pytest.raises(FileExistsError, match="another run is writing to this destination"), Staging(destination):
            pass
    assert list(tmp_path.iterdir()) == []


def test_what_another_run_makes_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run releases its lock after it has removed all its own files."""
    destination = Destination(tmp_path / "out.parquet", False, ".parquet", None)
    unlink, others = Path.unlink, []

    def unlink_and_start_another(path: Path, missing_ok: bool = False) -> None:
        unlink(path, missing_ok)
        if path.name == "lock" and not others:
            others.append(Staging(destination))
            others[0].__enter__()

    monkeypatch.setattr(Path, "unlink", unlink_and_start_another)
    with Staging(destination):
        pass
    (other,) = others
    assert is_at(other._lock, other.folder / "lock")
    other.__exit__(None, None, None)
    assert list(tmp_path.iterdir()) == []
