"""Several files appear together and whole, or everything stays as it was."""

import errno
import os
import signal
from pathlib import Path

import pytest

from gpu_encode.cli.messages import UsageError
from gpu_encode.cli.whole_files import whole_files


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def write(*places: Path, then: type[BaseException] | None = None) -> None:
    with whole_files(*places) as temporaries:
        for temporary in temporaries:
            temporary.write_text("new")
        if then is not None:
            raise then


def test_nothing_is_seen_until_the_end(tmp_path: Path) -> None:
    places = [tmp_path / "codes.csv", tmp_path / "model"]
    with whole_files(*places) as temporaries:
        for temporary in temporaries:
            temporary.write_text("new")
        assert not any(place.exists() for place in places)
        assert [temporary.parent for temporary in temporaries] == [tmp_path, tmp_path]
        assert temporaries[0].suffix == ".csv"
    assert contents(tmp_path) == {"codes.csv": "new", "model": "new"}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_inside_leaves_everything_as_it_was(tmp_path: Path, error: type[BaseException]) -> None:
    (tmp_path / "codes.csv").write_text("old")
    with pytest.raises(error):
        write(tmp_path / "codes.csv", tmp_path / "model", then=error)
    assert contents(tmp_path) == {"codes.csv": "old"}


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("before", [{}, {"codes.csv": "old"}, {"codes.csv": "old", "model": "older"}])
@pytest.mark.parametrize("failing", ["codes.csv", "model"])
def test_a_rename_that_fails_takes_the_others_back(
    tmp_path: Path, before: dict[str, str], failing: str, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in before.items():
        (tmp_path / name).write_text(content)
    replace = Path.replace

    def fail_once(source: Path, place: Path) -> Path:
        if place.name == failing and source.name.endswith(failing):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return replace(source, place)

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(Path, "replace", fail_once)
    if not links:
        monkeypatch.setattr(Path, "hardlink_to", refuse)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path / "codes.csv", tmp_path / "model")
    assert contents(tmp_path) == before


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "codes.csv").symlink_to(tmp_path / "far" / "codes.csv")
    with whole_files(tmp_path / "codes.csv") as [temporary]:
        temporary.write_text("new")
    assert (tmp_path / "codes.csv").is_symlink()
    assert contents(tmp_path / "far") == {"codes.csv": "new"}


def test_interrupts_wait_for_the_renames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = Path.replace

    def interrupted(source: Path, place: Path) -> Path:
        signal.raise_signal(signal.SIGINT)
        return replace(source, place)

    monkeypatch.setattr(Path, "replace", interrupted)
    handler = signal.getsignal(signal.SIGINT)
    with whole_files(tmp_path / "codes.csv", tmp_path / "model"):
        pass
    assert set(contents(tmp_path)) == {"codes.csv", "model"}
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("absent/codes.csv", "there is no folder '.*' to write 'codes.csv' to"),
        (".", "is there already and is not a file"),
    ],
)
def test_refusals(tmp_path: Path, place: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        write(tmp_path / place)


def test_a_folder_without_permission_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(UsageError, match="no permission to write to the folder"):
        write(tmp_path / "codes.csv")
