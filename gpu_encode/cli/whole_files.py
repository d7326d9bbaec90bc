"""Files that appear whole or not at all, several of them together."""

import contextlib
import os
import secrets
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from gpu_encode.cli.messages import refuse
from gpu_encode.storage.archive import sync_file, sync_folder


@contextlib.contextmanager
def whole_files(*destinations: Path, then: Callable[[], object] = lambda: None) -> Iterator[list[Path]]:
    """Give out one temporary file per destination, and put all in place at the end, or none of them.

    The temporary files lie beside their destinations, so that the last step is a rename, and they are made at once,
    so that a folder one may not write to is found before the work and not after it.

    Parameters
    ----------
    *destinations : Path
        Where the files shall appear. A file that is there already is replaced, at the end.
    then : callable, optional
        Called once the files are in place; where it raises, they are as they were before.

    Yields
    ------
    list of Path
        The files to write to.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_files(Path(folder, "encoded.csv")) as [temporary]:
    ...         _ = temporary.write_text("city")
    ...     Path(folder, "encoded.csv").read_text()
    'city'
    """
    paths = [Path(os.path.realpath(destination)) for destination in destinations]
    temporaries = temporaries_of(paths)
    try:
        for path, temporary in zip(paths, temporaries, strict=True):
            reserve(path, temporary)
        yield temporaries
        for path, temporary in zip(paths, temporaries, strict=True):
            finish(path, temporary)
        put_in_place(temporaries, paths, then)
    finally:
        for temporary in temporaries:
            temporary.unlink(missing_ok=True)


def temporaries_of(paths: list[Path]) -> list[Path]:
    """Name a temporary file beside each place."""
    mark = secrets.token_hex(4)
    # The suffix stays: libraries look at it.
    return [path.with_name(f".partial-{mark}-{path.name[-80:]}") for path in paths]


def refuse_closed_places(*destinations: Path) -> None:
    """Say before long work what could not be written after it; unlike `whole_files`, leaves nothing if work is killed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     refuse_closed_places(Path(folder, "model"))
    ...     list(Path(folder).iterdir())
    []
    """
    paths = [Path(os.path.realpath(destination)) for destination in destinations]
    for path, temporary in zip(paths, temporaries_of(paths), strict=True):
        reserve(path, temporary)
        temporary.unlink()


def reserve(path: Path, temporary: Path) -> None:
    """Make the empty temporary file, or say why none can be made here."""
    if not path.parent.is_dir():
        refuse(f"there is no folder {str(path.parent)!r} to write {path.name!r} to")
    if path.exists() and not path.is_file():
        refuse(f"{str(path)!r} is there already and is not a file")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except PermissionError:
        refuse(f"no permission to write to the folder {str(path.parent)!r}")


def finish(path: Path, temporary: Path) -> None:
    """Give the temporary file its final mode and see it onto the disk."""
    if path.exists():
        temporary.chmod(path.stat().st_mode & 0o777)
    sync_file(temporary)


def put_in_place(temporaries: list[Path], paths: list[Path], then: Callable[[], object]) -> None:
    """Rename every file to its place, and call `then`; where one fails, everything is again as it was before."""
    formers = [temporary.with_name(f"{temporary.name}.former") for temporary in temporaries]
    renamed: list[tuple[Path, Path]] = []
    with ignore_interrupts():
        try:
            for temporary, path, former in zip(temporaries, paths, formers, strict=True):
                if path.exists():
                    keep(path, former)
                renamed.append((path, former))
                temporary.replace(path)
            then()
        except BaseException:
            for path, former in reversed(renamed):
                if former.exists():
                    former.replace(path)
                else:
                    path.unlink(missing_ok=True)
            raise
        finally:
            for former in formers:
                former.unlink(missing_ok=True)
    for folder in {path.parent for path in paths}:
        sync_folder(folder)


def keep(path: Path, former: Path) -> None:
    """Keep what is at `path` under a second name, until its replacement is sure."""
    try:
        former.hardlink_to(path)
    except OSError:  # a file system without hard links
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
