"""The last step of a run: finished files take their final names, all of them or none.

No single rename moves two files.  A record in the hidden folder says that everything is finished and which renames are
left, so that a run that is killed between two of them is ended by the next run with the same destination.
"""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpu_encode.storage.archive import sync_file, sync_folder

RECORD = "publishing.json"
Move = tuple[Path, Path]


def publish(folder: Path, moves: Sequence[Move]) -> None:
    """Give finished files and folders their final names.

    Parameters
    ----------
    folder : Path
        The hidden folder in which they were made, for the record.
    moves : sequence of (Path, Path)
        The path at which each is made, and its final path.  What is there already is replaced.

    Raises
    ------
    OSError
        If one of them cannot be renamed; then all paths are as they were before.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "finished").write_text("city")
    ...     publish(Path(folder), [(Path(folder, "finished"), Path(folder, "encoded.csv"))])
    ...     Path(folder, "encoded.csv").read_text()
    'city'
    """
    near = [(beside(source, path), path) for source, path in moves]
    for source, path in near:
        if path.is_file():
            source.chmod(path.stat().st_mode & 0o777)
        sync_all(source)
    record, unfinished = folder / RECORD, folder / f"{RECORD}.partial"
    unfinished.write_text(json.dumps([[str(source), str(path)] for source, path in near]))
    sync_file(unfinished)
    unfinished.replace(record)
    sync_folder(folder)
    try:
        with ignore_interrupts():
            rename_all(near)
    except BaseException:
        record.unlink()
        raise


def go_on(folder: Path) -> None:
    """Do the renames that a killed run left."""
    rename_all([(Path(source), Path(path)) for source, path in json.loads((folder / RECORD).read_text())])


def beside(source: Path, path: Path) -> Path:
    """Give a finished file or folder on the file system of its final path; it is copied if it lies on another one."""
    if source.stat().st_dev == path.parent.stat().st_dev:
        return source
    # Each run from this folder uses the same name, so that the next run replaces the rest of a killed one.
    mark = hashlib.sha256(str(source).encode()).hexdigest()[:8]
    near = path.with_name(f".{path.name[-80:]}.{mark}.gpu-encode")
    if source.is_dir():
        shutil.copytree(source, near, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, near)
    return near


def path_of_model(model: str | os.PathLike[str], overwrite: bool, advice: str) -> Path:
    """Give the path of a model, without links; refuse, before long work, a path at which no model can be written.

    Parameters
    ----------
    model : path
    overwrite : bool
    advice : str
        How a caller asks to replace a model that is there.
    """
    path = Path(os.path.realpath(model))
    if path.exists() and not (path.is_file() or (path / "joined").is_dir()):
        raise FileExistsError(f"{str(model)!r} is there already and is no model")
    if path.exists() and not overwrite:
        raise FileExistsError(f"the model {str(model)!r} is there already: {advice}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(path.parent)!r} to write {path.name!r} to")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            return path
    except PermissionError:
        raise PermissionError(f"no permission to write to the folder {str(path.parent)!r}") from None


def sync_all(path: Path) -> None:
    """Wait until a file, or a folder with all its files, is on the disk."""
    if path.is_file():
        sync_file(path)
    for folder, _, names in os.walk(path):
        for name in names:
            sync_file(Path(folder, name))
        sync_folder(Path(folder))


def rename_all(moves: Sequence[Move]) -> None:
    """Do the renames that are left; if one fails, all paths are again as they were before."""
    steps = [(source, path, source.with_name(f"{source.name}.former")) for source, path in moves]
    begun = []
    try:
        for source, path, former in steps:
            if source.exists():
                if path.exists():
                    keep(path, former)
                begun.append((source, path, former))
                source.replace(path)
    except BaseException:
        for source, path, former in reversed(begun):
            take_back(source, path, former)
        raise
    for _, _, former in steps:
        shutil.rmtree(former, ignore_errors=True) if former.is_dir() else former.unlink(missing_ok=True)
    for parent in {path.parent for _, path in moves}:
        sync_folder(parent)


def take_back(source: Path, path: Path, former: Path) -> None:
    """Move a finished file back to where it was made, and the former one back to its path."""
    if not source.exists():
        path.replace(source)
    if former.exists():
        former.replace(path)
        former.unlink(missing_ok=True)  # a rename between two names of one file does nothing


def keep(path: Path, former: Path) -> None:
    """Keep the file at a path under a second name, until its replacement is sure."""
    try:
        former.hardlink_to(path)
    except OSError:  # a folder, or a file system without hard links
        path.replace(former)


@contextlib.contextmanager
def ignore_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C and SIGTERM for the few renames after which there is nothing left to interrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals arrive in the main thread only
        return
    former = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
