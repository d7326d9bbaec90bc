"""The hidden folder beside a destination in which work is done: the final name shows nothing before the end."""

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gpu_encode.datasets.destinations import Destination, Output
from gpu_encode.errors import datasets as errors
from gpu_encode.storage.archive import sync_file, sync_folder

VERSION = 1
MANIFEST = "manifest.json"


class Staging:
    """The hidden folder in which work is done.

    It holds the manifest (whose work this is), finished outputs, saved sums, and files being written; only the last are
    ever incomplete.

    Parameters
    ----------
    destination : Destination
    keep : bool, default=True
        Whether what is finished when an error comes is kept, for a later run to go on from.

    Examples
    --------
    >>> Staging(Destination(Path("/data/codes"), True, ".parquet", None)).folder.as_posix()
    '/data/.codes.gpu-encode'
    """

    def __init__(self, destination: Destination, keep: bool = True) -> None:
        place = destination.place
        self.folder = place.with_name(f".{place.name}.gpu-encode")
        self.finished = self.folder / "finished"
        self.partial = self.folder / "partial"
        self.sums = self.folder / "sums"
        self._place, self._is_folder, self._keep = place, destination.is_folder, keep
        self._lock: Any = None

    def __enter__(self) -> Self:
        try:
            self.folder.mkdir(exist_ok=True)
        except PermissionError:
            raise errors.folder_is_closed(str(self.folder.parent)) from None
        self._lock = locked(self.folder / "lock")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            shutil.rmtree(self.partial, ignore_errors=True)
            if error is None or not (self._keep and self.is_useful):
                shutil.rmtree(self.folder, ignore_errors=True)
            else:
                error.add_note(errors.KEPT.format(folder=self.folder))
        finally:
            self._lock.close()

    @property
    def is_useful(self) -> bool:
        """Whether there is finished work to go on from."""
        return self.sums.exists() or any(path.is_file() for path in self.finished.rglob("*"))

    def begin(self, described: Mapping[str, Any], resume: bool) -> dict[str, Any]:
        """Start afresh, or give what an interrupted run noted of its work: nothing where there is none.

        Parameters
        ----------
        described : mapping of str to object
            What is done, as JSON has it: the same, or finished work does not fit.
        resume : bool
        """
        noted = self._noted() if resume else {}
        if noted:
            for name, value in described.items():
                before = noted["described"].get(name)
                if before != value:
                    raise errors.other_work(str(self.folder), name, before, value)
        for path in (self.partial, *(() if noted else (self.finished, self.sums))):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        self.finished.mkdir(exist_ok=True)
        self.partial.mkdir()
        work: dict[str, Any] = noted.get("work", {})
        return work

    def note(self, described: Mapping[str, Any], work: Mapping[str, Any]) -> None:
        """Write the manifest."""
        document = {"format": "gpu-encode staging", "version": VERSION, "described": described, "work": work}
        path = self.partial / MANIFEST
        path.write_text(json.dumps(document, indent=1))
        self.keep(path, self.folder / MANIFEST)

    def _noted(self) -> dict[str, Any]:
        """Read the manifest, if there is one."""
        path = self.folder / MANIFEST
        if not path.exists():
            return {}
        try:
            document: dict[str, Any] = json.loads(path.read_text())
            fits = document["format"] == "gpu-encode staging" and document["version"] == VERSION
        except (ValueError, KeyError, TypeError):
            fits = False
        if not fits:
            raise errors.unreadable_manifest(str(path))
        return document

    def keep(self, path: Path, place: Path) -> None:
        """Put a finished file in its place, once it is on the disk."""
        sync_file(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        path.replace(place)
        sync_folder(place.parent)

    def partial_path(self, output: Output) -> Path:
        """Path at which an output is written."""
        return self.partial / Path(output.relative).name

    def keep_output(self, path: Path, output: Output) -> None:
        """Put a finished output in its place."""
        self.keep(path, self.finished / output.relative)

    def left(self, outputs: Iterable[Output]) -> list[Output]:
        """Give the outputs that are still to be written."""
        listed = list(outputs)
        while listed and (self.finished / listed[0].relative).is_file():
            listed.pop(0)
        return listed

    def publish(self) -> None:
        """Rename what is finished to its final name."""
        if not self._is_folder:
            (self.finished / self._place.name).replace(self._place)
        else:
            for folder, _, _ in os.walk(self.finished):
                sync_folder(Path(folder))
            with contextlib.suppress(FileNotFoundError):
                self._place.rmdir()  # an empty folder may be there
            self.finished.replace(self._place)
        sync_folder(self._place.parent)


def locked(path: Path) -> Any:
    """Open a file that only one process may have; the system lets go of it when the process ends, however it ends."""
    stream = path.open("w")
    try:
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        stream.close()
        raise errors.staging_in_use(str(path.parent)) from None
    except (ImportError, OSError):
        pass  # a system, or a file system, without such locks
    return stream


@contextlib.contextmanager
def failures_explained(destination: Destination) -> Iterator[None]:
    """Say what a full disk means."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise errors.disk_is_full(str(destination.place)) from error
        raise
