"""The folder of compiled kernels, and the mark that all of them are there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cpu_fallback import kernel_folder, kernel_sources

CACHED = [getattr(kernel_folder, name) for name in ("folder", "sources_stamp", "machine_stamp", "stamps_told")]


def forget():
    kernel_folder._complete.clear()
    for function in CACHED:
        function.cache_clear()


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    """Forget the folder before and after each test."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    forget()
    yield
    forget()


def test_a_folder_that_is_named_is_taken_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "named"))
    assert [path.parent for path in kernel_folder.folders()] == [tmp_path / "named"]
    assert kernel_folder.folder().parent == tmp_path / "named"
    assert kernel_folder.environment() == {}


def test_else_beside_the_sources_or_in_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # Not the sources of this checkout: beside them all kernels may already lie.
    monkeypatch.setattr(kernel_folder, "SOURCES", tmp_path / "package")
    beside, in_cache = kernel_folder.folders()
    assert beside == kernel_folder.SOURCES / "compiled" / "__pycache__"
    assert in_cache.parent == tmp_path
    monkeypatch.setattr(kernel_folder, "takes_files", lambda path: path != beside)
    assert kernel_folder.folder() == in_cache


def test_kernels_that_are_there_are_read_where_nothing_can_be_written(tmp_path, monkeypatch):
    folders = [tmp_path / name for name in ("written", "shared", "later")]
    monkeypatch.setattr(kernel_folder, "folders", lambda: folders)
    monkeypatch.setattr(kernel_folder, "takes_files", lambda path: path == folders[2])
    folders[1].mkdir()
    kernel_folder.seal(folders[1]).touch()
    assert kernel_folder.folder() == folders[1]
    assert kernel_folder.is_complete()


def test_where_nothing_can_be_written_a_process_has_its_own(monkeypatch):
    monkeypatch.setattr(kernel_folder, "takes_files", lambda _: False)
    monkeypatch.setattr(kernel_folder, "folders", lambda: [Path("/nowhere")])
    removed = []
    monkeypatch.setattr(kernel_folder.atexit, "register", lambda *given: removed.append(given))
    private = kernel_folder.folder()
    assert kernel_folder.environment() == {"NUMBA_CACHE_DIR": str(private.parent)}
    assert private.parent.stat().st_mode & 0o777 == 0o700
    ((remove, path, process),) = removed
    remove(path, process + 1)
    assert path.exists()
    remove(path, process)
    assert not path.exists()


def test_kernels_are_complete_for_these_sources_and_this_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert not kernel_folder.is_complete()
    kernel_folder.folder().mkdir(exist_ok=True)
    kernel_folder.set_complete()
    assert kernel_folder.is_complete()
    forget()
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    assert not kernel_folder.is_complete()
    kernel_folder.set_complete()
    monkeypatch.setattr(kernel_folder, "this_processor", lambda: "another")
    forget()
    assert kernel_folder.is_complete(), "what numba is told counts"
    monkeypatch.delenv("NUMBA_CPU_NAME")
    forget()
    assert not kernel_folder.is_complete()
    monkeypatch.setattr(kernel_folder, "sources_stamp", lambda: "changed")
    kernel_folder.set_complete()
    assert [path.name.split(".")[1] for path in kernel_folder.folder().glob("complete.*")] == ["changed"]


def test_sources_are_told_apart_by_what_they_hold(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_sources, "SOURCES", tmp_path)
    source, stamps = tmp_path / "sums.py", []
    for text, seconds in (("a = 1", 1.5), ("a = 1", 1.0), ("a = 2", 1.0)):
        source.write_text(text)
        # A container image loses fractions of a second when it is sent to another machine.
        os.utime(source, (seconds, seconds))
        forget()
        stamps.append(kernel_folder.sources_stamp())
    assert stamps[0] == stamps[1] != stamps[2]


def test_kernels_of_other_sources_are_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    folder, every, own = kernel_folder.folder(), kernel_folder.sources_stamp(), kernel_folder.current_stamps()
    folder.mkdir(exist_ok=True)
    names = [("sums.add", own["cpu_fallback.compiled.sums.accumulate"]), ("tests.f-7", every), ("cuda.sums.add", "any")]
    kept = {folder / f"{name}.cpython-311.0.61.0.{stamp}.00ff.nbc" for name, stamp in names}
    for file in (*kept, folder / "sums.add.cpython-311.0.61.0.old.00ff.nbc"):
        file.touch()
    kernel_folder.set_complete()
    assert set(folder.iterdir()) == {*kept, kernel_folder.seal(folder)}


def test_all_this_is_known_without_numba():
    program = (
        "import sys; from cpu_fallback import kernel_folder as f; f.is_complete(); sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], env=os.environ, check=False).returncode == 0
