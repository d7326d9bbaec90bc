"""The last step of a run: what is finished takes its final names, all of it or nothing.

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
        Where each is and where it shall be.  One that is there already is replaced.

    Raises
    ------
    OSError
        If one of them cannot be renamed: then everything is again as it was before.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "finished").write_text("city")
    ...     publish(Path(folder), [(Path(folder, "finished"), Path(folder, "encoded.csv"))])
    ...     Path(folder, "encoded.csv").read_text()
    'city'
    """
    near = [(beside(source, place), place) for source, place in moves]
    for source, place in near:
        if place.is_file():
            source.chmod(place.stat().st_mode & 0o777)
        sync_all(source)
    record, unfinished = folder / RECORD, folder / f"{RECORD}.partial"
    unfinished.write_text(json.dumps([[str(source), str(place)] for source, place in near]))
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
    rename_all([(Path(source), Path(place)) for source, place in json.loads((folder / RECORD).read_text())])


def beside(source: Path, place: Path) -> Path:
    """Give what is finished as it lies on the file system of its place, to which it is copied if it is on another."""
    if source.stat().st_dev == place.parent.stat().st_dev:
        return source
    # The same name in each run from this folder: what a killed run leaves is replaced by the next.
    mark = hashlib.sha256(str(source).encode()).hexdigest()[:8]
    near = place.with_name(f".{place.name[-80:]}.{mark}.gpu-encode")
    if source.is_dir():
        shutil.copytree(source, near, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, near)
    return near


def place_of_model(model: str | os.PathLike[str], overwrite: bool, advice: str) -> Path:
    """Give where a model is to be, without links; refuse before long work a place where it cannot be after it.

    Parameters
    ----------
    model : path
    overwrite : bool
    advice : str
        How a caller asks for what is there to be replaced.
    """
    place = Path(os.path.realpath(model))
    if place.exists() and not (place.is_file() or (place / "joined").is_dir()):
        raise FileExistsError(f"{str(model)!r} is there already and is no model")
    if place.exists() and not overwrite:
        raise FileExistsError(f"the model {str(model)!r} is there already: {advice}")
    if not place.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(place.parent)!r} to write {place.name!r} to")
    try:
        with tempfile.TemporaryFile(dir=place.parent):
            return place
    except PermissionError:
        raise PermissionError(f"no permission to write to the folder {str(place.parent)!r}") from None


def sync_all(path: Path) -> None:
    """See a file, or a folder and all that it holds, onto the disk."""
    if path.is_file():
        sync_file(path)
    for folder, _, names in os.walk(path):
        for name in names:
            sync_file(Path(folder, name))
        sync_folder(Path(folder))


def rename_all(moves: Sequence[Move]) -> None:
    """Rename what is not renamed yet; where one fails, everything is again as it was before."""
    steps = [(source, place, source.with_name(f"{source.name}.former")) for source, place in moves]
    begun = []
    try:
        for source, place, former in steps:
            if source.exists():
                if place.exists():
                    keep(place, former)
                begun.append((source, place, former))
                source.replace(place)
    except BaseException:
        for source, place, former in reversed(begun):
            take_back(source, place, former)
        raise
    for _, _, former in steps:
        shutil.rmtree(former, ignore_errors=True) if former.is_dir() else former.unlink(missing_ok=True)
    for parent in {place.parent for _, place in moves}:
        sync_folder(parent)


def take_back(source: Path, place: Path, former: Path) -> None:
    """Put what is finished where it was made, and what was there before at its place."""
    if not source.exists():
        place.replace(source)
    if former.exists():
        former.replace(place)
        former.unlink(missing_ok=True)  # a rename between two names of one file does nothing


def keep(place: Path, former: Path) -> None:
    """Keep what is at its place under a second name, until its replacement is sure."""
    try:
        former.hardlink_to(place)
    except OSError:  # a folder, or a file system without hard links
        place.replace(former)


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
