"""A model file appears complete or not at all, and loads without the libraries with which it was fitted."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_encode import TargetEncoder, load
from gpu_encode.storage import archive

X = np.array([["a"], ["b"], ["a"]] * 4, dtype=object)
Y = np.arange(12) % 2


@pytest.fixture
def encoder() -> TargetEncoder:
    return TargetEncoder().fit(X, Y)


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def fill_disk(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("failure", [interrupt, fill_disk])
@pytest.mark.parametrize("step", ["array", "document", "sync", "rename"])
@pytest.mark.parametrize("there", [True, False])
def test_a_failure_leaves_everything_as_it_was(
    encoder: Any, path: Path, monkeypatch: pytest.MonkeyPatch, failure: Any, step: str, there: bool
) -> None:
    if there:
        path.write_bytes(b"what was here")
    owner, name = {
        "array": (archive.Writer, "add"),
        "document": (archive.Writer, "finish"),
        "sync": (os, "fsync"),
        "rename": (Path, "replace"),
    }[step]
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, failure)
        with pytest.raises((KeyboardInterrupt, OSError)):
            encoder.save(path)
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == (
        {path.name: b"what was here"} if there else {}
    )


def test_a_file_that_is_there_is_replaced_and_keeps_its_mode(encoder: Any, path: Path) -> None:
    path.write_bytes(b"what was here")
    path.chmod(0o640)
    encoder.save(path)
    assert path.stat().st_mode & 0o777 == 0o640
    assert load(path).transform(X).tobytes() == encoder.transform(X).tobytes()
    assert list(path.parent.iterdir()) == [path]


def test_a_link_stays_a_link(encoder: Any, path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "target.model")
    encoder.save(path)
    assert path.is_symlink()
    assert load(tmp_path / "target.model").transform(X).tobytes() == encoder.transform(X).tobytes()


@pytest.mark.parametrize("as_path", [str, Path])
def test_paths_may_be_text(encoder: Any, path: Path, as_path: Any) -> None:
    encoder.save(as_path(path))
    assert load(as_path(path)).n_features_in_ == 1


def test_places_that_are_none(encoder: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        encoder.save(tmp_path / "absent" / "encoder.model")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        encoder.save(tmp_path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.model")
    assert list(tmp_path.iterdir()) == []


def test_loading_needs_no_frame_library(encoder: Any, path: Path) -> None:
    encoder.save(path)
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name in ('pandas', 'polars', 'numba', 'dask'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import gpu_encode\n"
        "print(gpu_encode.load(sys.argv[1]).transform([['a'], ['b']]).ravel().tolist())\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(encoder.transform(X[:2]).ravel().tolist())
