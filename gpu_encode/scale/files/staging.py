"""The hidden folder beside a destination: work is done there, and finished files are moved from there to the end.

An interrupted run leaves its files in the folder.  The manifest describes the run as JSON; a later run continues it
only if its own description is the same.  Sums that were measured are saved as Arrow arrays and JSON, never as a pickle.

All files of a run get their final names, or none does.  But no single rename can move two files.  So a record in the
folder says that everything is finished, and which files still have to be renamed.  If a run is killed between two
renames, the next run with the same destination does the others.
"""

import contextlib
import ctypes
import hashlib
import io
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile
from numbers import Integral
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

import gpu_encode
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.scale import messages
from gpu_encode.scale.files.source import Source
from gpu_encode.scale.files.stores import RECORD
from gpu_encode.scale.files.text import TextRules
from gpu_encode.scale.files.writing import Destination, Output, store_of, work_path
from gpu_encode.scale.parts import PartialSums
from gpu_encode.scale.parts.sums import SegmentSums
from gpu_encode.schemes import Splits
from gpu_encode.storage import archive, encoders, models
from gpu_encode.storage.archive import sync_file, sync_folder
from gpu_encode.storage.json_fields import read_count, read_field, read_list
from gpu_encode.storage.parameters import UnwritableError, decode_array, describe, encode, show
from gpu_encode.sums.category_sums import CategorySums, DigitSpan, SumSpec
from gpu_encode.words.sizes import amount
from gpu_encode.words.terminal import one_line

VERSION = 1
MANIFEST = "manifest.json"
LOCK = "lock"
KEPT = (
    "The finished part ({size}) is kept in {folder}: the same call with resume=True (--resume) continues "
    "from there. Delete the folder if you do not need it."
)
Move = tuple[Path, Path]


def path_of(destination: Any) -> Path:
    """Give the path on this machine at which the output of a destination is made, without links."""
    store = store_of(destination)
    return Path(os.path.realpath(destination)) if store is None else work_path(store)


def folder_beside(path: Path) -> Path:
    """Give the hidden folder for the work of a destination."""
    return path.with_name(f".{path.name}.gpu-encode")


def is_begun(path: Path) -> bool:
    """Whether an interrupted run with this destination exists."""
    return (folder_beside(path) / MANIFEST).exists()


class Staging:
    """The hidden folder of a run.

    It holds the manifest (the description of the run), finished outputs, saved sums, and files that are being written.
    Only the latter are ever incomplete.

    Parameters
    ----------
    destination : Destination
    keep : bool, default=True
        Whether finished files are kept after an error, so that a later run can continue.

    Examples
    --------
    >>> Staging(Destination(Path("/data/encoded"), True, ".parquet", None)).folder.as_posix()
    '/data/.encoded.gpu-encode'
    """

    def __init__(self, destination: Destination, keep: bool = True) -> None:
        path = destination.path
        self.folder = folder_beside(path)
        self.finished = self.folder / "finished"
        self.partial = self.folder / "partial"
        self.sums = self.folder / "sums"
        self._path, self._is_folder, self.keeps = path, destination.is_folder, keep
        self._store = destination.store
        self._lock: Any = None

    def __enter__(self) -> Self:
        if self._store is not None:
            make_private(self.folder.parent)
            self._store.check_writable()
        try:
            self._lock = lock_folder(self.folder)
        except PermissionError:
            reason = f"no permission to write to the folder {str(self.folder.parent)!r}"
            raise PermissionError(f"{reason}: {str(self._path)!r} was not written.") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            shutil.rmtree(self.partial, ignore_errors=True)
            # If the source has changed, finished files are useless.
            keep = self.keeps and not isinstance(error, messages.SourceChangedError)
            if error is None or not (keep and self.is_useful):
                remove_folder(self.folder)
            elif not isinstance(error, RefusedResumeError):
                files = (path for path in self.folder.rglob("*") if path.is_file())
                n_bytes = sum(path.stat().st_size for path in files)
                error.add_note(KEPT.format(folder=self.folder, size=amount(n_bytes)))
        finally:
            self._lock.close()
            if self._store is not None:
                with contextlib.suppress(OSError):
                    self.folder.parent.rmdir()

    @property
    def is_useful(self) -> bool:
        """Whether there is finished work from which a run can continue."""
        return self.sums.exists() or any(path.is_file() for path in self.finished.rglob("*"))

    def begin(
        self, described: Mapping[str, Any], resume: bool, plan_work: Callable[[], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Start, or continue an interrupted run; give the sizes of pieces of work, from that run or from `plan_work`.

        Parameters
        ----------
        described : mapping of str to object
            The description of the run as JSON: finished work is used only if it has the same description.
        resume : bool
        plan_work : callable
        """
        manifest = self._read_manifest() if resume else {}
        if manifest:
            for name, value in described.items():
                before = manifest["described"].get(name)
                if before != value:
                    raise _other_work(str(self.folder), name, before, value)
        for path in (self.partial, *(() if manifest else (self.finished, self.sums))):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        self.finished.mkdir(exist_ok=True)
        self.partial.mkdir()
        work = {**plan_work(), **manifest.get("work", {})}
        document = {"format": "gpu-encode staging", "version": VERSION, "described": described, "work": work}
        path = self.partial / MANIFEST
        path.write_text(json.dumps(document, indent=1))
        self.keep(path, self.folder / MANIFEST)
        return work

    def _read_manifest(self) -> dict[str, Any]:
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
            raise RefusedResumeError(
                f"cannot continue an interrupted run: {str(path)!r} is damaged, or of another version of gpu-encode. "
                "Run without resume to start afresh."
            )
        return document

    def keep(self, path: Path, final: Path) -> None:
        """Give a finished file its final name, once it is safely on the disk."""
        sync_file(path)
        final.parent.mkdir(parents=True, exist_ok=True)
        path.replace(final)
        sync_folder(final.parent)

    def left(self, outputs: Iterable[Output]) -> list[Output]:
        """List the outputs that still have to be written."""
        return list(dropwhile(lambda output: (self.finished / output.relative).is_file(), outputs))

    def model_path(self, model: Path) -> Path:
        """Give the path at which the model is written first; remove what an earlier run left there."""
        path = self.folder / f"model{model.suffix}"
        if path.is_dir():
            shutil.rmtree(path)
        return path

    def publish(self, model: Path | None = None) -> None:
        """Give the finished outputs, and the model, their final names."""
        models = [] if model is None else [(self.folder / f"model{model.suffix}", model)]
        finished = self.finished if self._is_folder else self.finished / self._path.name
        if self._store is None:
            models.append((finished, self._path))
        else:
            self._store.publish(finished)
        publish(self.folder, models)


class RefusedResumeError(ValueError):
    """Error for interrupted work that this call cannot continue."""


def _other_work(folder: str, what: str, before: object, now: object) -> RefusedResumeError:
    """Error for interrupted work of a different call."""
    shown = [repr(value) if len(repr(value)) <= 200 else repr(value)[:200] + "..." for value in (before, now)]
    return RefusedResumeError(
        f"cannot continue the interrupted run in {folder!r}: {what} was {shown[0]} there and is {shown[1]} now. "
        "Change it back, or run without resume to start afresh."
    )


def end_publication(destination: Any) -> set[Path]:
    """Finish the renames of a run that was killed before all its outputs had their final names; give these names."""
    ended, path = set(), path_of(destination)
    if (store := store_of(destination)) is not None and store.end_publication():
        ended.add(path)
    folder = folder_beside(path)
    # Without a manifest, a run was killed while it removed the folder.
    if not folder.is_dir() or ((folder / MANIFEST).exists() and not (folder / RECORD).exists()):
        return ended
    lock = lock_folder(folder)
    try:
        if (folder / RECORD).exists():
            ended.update(go_on(folder))
        else:
            with contextlib.suppress(ValueError):  # the lock of a run that has published nothing
                ended.update(Path(path) for _, path, *_ in json.loads((folder / LOCK).read_text()))
        if (folder / RECORD).exists() or not (folder / MANIFEST).exists():
            remove_folder(folder)
    finally:
        lock.close()
    return ended


def remove_folder(folder: Path) -> None:
    """Remove a hidden folder, and its lock last; files that another run makes there afterwards stay."""
    last = [folder / RECORD, folder / LOCK]
    if last[0].exists():
        # The record is copied to the last file: a run that is killed here has published.
        with contextlib.suppress(OSError):
            shutil.copyfile(*last)
    for path in [*(path for path in folder.iterdir() if path not in last), *last]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()


def lock_folder(folder: Path) -> Any:
    """Make a folder, and open its lock, which only one process can hold; it is released when the process ends.

    Raises
    ------
    FileExistsError
        If another process holds it.
    """
    while True:
        try:
            folder.mkdir()
        except FileExistsError:
            if folder.is_symlink() and not folder.exists():
                raise  # a broken link cannot become a folder
        # A run that is just ending may remove the folder, or the lock that was opened.
        with contextlib.suppress(FileNotFoundError):
            stream = lock_file(folder / LOCK)
            if is_at(stream, folder / LOCK):
                return stream
            stream.close()


def is_at(stream: Any, path: Path) -> bool:
    """Whether an open file is still the file at this path."""
    try:
        return os.path.samestat(os.fstat(stream.fileno()), path.stat())
    except FileNotFoundError:
        return False


def lock_file(path: Path) -> Any:
    """Open a file as a lock: only one process can hold it, and the system releases it when the process ends."""
    stream = path.open("a")
    try:
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        stream.close()
        raise FileExistsError(
            f"another run is writing to this destination (in {str(path.parent)!r}). Wait for it, or end it."
        ) from None
    except (ImportError, OSError):
        pass  # a system, or a file system, without such locks
    return stream


def make_private(folder: Path) -> None:
    """Make a folder below the folder of temporary files that no other user may read."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "getuid") and folder.parent.stat().st_uid != os.getuid():
        raise PermissionError(f"the folder {str(folder.parent)!r} belongs to another user. Set TMPDIR to one of yours.")


def publish(folder: Path, moves: Sequence[Move]) -> None:
    """Give finished files and folders their final names.

    Parameters
    ----------
    folder : Path
        The hidden folder of these files; the record is written there.
    moves : sequence of (Path, Path)
        The path at which each was made, and its final path.  An existing file there is replaced.

    Raises
    ------
    OSError
        If one of them cannot be renamed; then no path has changed.

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
    unfinished.write_text(json.dumps([[str(source), str(path), source.stat().st_ino] for source, path in near]))
    sync_file(unfinished)
    unfinished.replace(record)
    sync_folder(folder)
    try:
        with ignore_interrupts():
            rename_all(near)
    except BaseException:
        record.unlink()
        raise


def go_on(folder: Path) -> list[Path]:
    """Do the renames that a killed run did not do; give the final names."""
    moves = []
    for source, path, *numbers in json.loads((folder / RECORD).read_text()):
        moves.append((Path(source), Path(path)))
        # Two folders had exchanged their names, and the replaced one is left.
        if Path(source).is_dir() and Path(path).exists() and Path(path).stat().st_ino in numbers:
            shutil.rmtree(source)
    rename_all(moves)
    return [path for _, path in moves]


def beside(source: Path, path: Path) -> Path:
    """Give a finished file or folder on the file system of its final path; copy it if it is on another one."""
    if source.stat().st_dev == path.parent.stat().st_dev:
        return source
    # All runs from this folder use the same name here, so the next run replaces what a killed run left.
    mark = hashlib.sha256(str(source).encode()).hexdigest()[:8]
    near = path.with_name(f".{path.name[-80:]}.{mark}.gpu-encode")
    if source.is_dir():
        shutil.copytree(source, near, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, near)
    return near


def path_of_model(model: str | os.PathLike[str], overwrite: bool, advice: str) -> Path:
    """Give the path of a model, without links; before long work, refuse a path at which no model can be written.

    Parameters
    ----------
    model : path
    overwrite : bool
    advice : str
        How a caller can ask to replace an existing model.
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
    except OSError as error:
        if error.errno not in archive.FORBIDDEN:
            raise
        reason = f"no permission to write to the folder {str(path.parent)!r}: {path.name!r} was not written"
        raise PermissionError(reason) from None


def sync_all(path: Path) -> None:
    """Wait until a file, or a folder with all its files, is safely on the disk."""
    if path.is_file():
        sync_file(path)
    for folder, _, names in os.walk(path):
        for name in names:
            sync_file(Path(folder, name))
        sync_folder(Path(folder))


def rename_all(moves: Sequence[Move]) -> None:
    """Do the renames that were not done yet; if one fails, undo the others."""
    steps = [(source, path, source.with_name(f"{source.name}.former")) for source, path in moves]
    begun, exchanged, replaced = [], [], []
    try:
        for source, path, former in steps:
            replaced.append(former)
            if source.is_dir() and path.is_dir() and exchange(source, path):
                exchanged.append((source, path))
                replaced.append(source)
            elif source.exists():
                if path.exists():
                    keep(path, former)
                begun.append((source, path, former))
                source.replace(path)
    except BaseException:
        for source, path, former in reversed(begun):
            take_back(source, path, former)
        for source, path in exchanged:
            exchange(source, path)
        raise
    for former in replaced:
        shutil.rmtree(former, ignore_errors=True) if former.is_dir() else former.unlink(missing_ok=True)
    for parent in {path.parent for _, path in moves}:
        sync_folder(parent)


def exchange(one: Path, other: Path) -> bool:
    """Let two folders exchange their names in one step, so that neither name is ever absent; False if impossible."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None
    # AT_FDCWD and RENAME_EXCHANGE of Linux.
    return rename is not None and rename(-100, os.fsencode(one), -100, os.fsencode(other), 2) == 0


def take_back(source: Path, path: Path, former: Path) -> None:
    """Move a finished file back to the path at which it was made, and the former file back to its path."""
    if not source.exists():
        path.replace(source)
    if former.exists():
        former.replace(path)
        former.unlink(missing_ok=True)  # renaming between two names of one file does nothing


def keep(path: Path, former: Path) -> None:
    """Give the file at a path a second name, so that it is kept until its replacement is complete."""
    try:
        former.hardlink_to(path)
    except OSError:  # a folder, or a file system without hard links
        path.replace(former)


@contextlib.contextmanager
def ignore_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C and SIGTERM during the few last renames."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals arrive in the main thread only
        return
    former = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def describe_run(source: Source, destination: Destination, choices: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the input and the output of a run.

    Parameters
    ----------
    source : Source
    destination : Destination
    choices : mapping of str to object
        Other choices that decide the output, as JSON values.
    """
    facts: dict[str, Any] = {"the version of gpu-encode": gpu_encode.__version__}
    rules = source.contents[0].rules or TextRules()
    for name in ("missing_words", "text", "delimiter", "quote", "encoding"):
        given = getattr(rules, name)
        facts[f"the parameter {name}"] = given if isinstance(given, str | None) else [*given]
    for file, state in zip(source.files, source.states, strict=True):
        facts[f"size and time of the last change of {file.path}"] = list(state)
    facts |= {
        "the files of the source": len(source.files),
        "the columns": source.schema.to_string(show_schema_metadata=False, show_field_metadata=False),
        "the texts that are missing values": list(source.missing_text),
        "the columns without which rows are left out": list(source.complete),
        "the compression": destination.compression,
        "the suffix of the output": destination.suffix,
    }
    # The values become what they would be when read from a manifest.
    described: dict[str, Any] = json.loads(json.dumps(facts | dict(choices)))
    return described


def describe_parameters(encoder: Any) -> dict[str, Any]:
    """Describe the parameters of an encoder, one by one.

    Examples
    --------
    >>> describe_parameters(gpu_encode.TargetEncoder(cv=3))["parameter cv"]
    3
    """
    facts = {}
    for name, value in encoder.get_params(deep=False).items():
        if name == "device":
            continue  # it does not change any bit
        content = io.BytesIO()
        writer = archive.Writer(content)
        try:
            document = describe({name: value}, writer)[0][name]
        except TypeError:
            document = show(value)
        arrays = writer._names
        if arrays:
            document = {"value": document, "arrays": sorted(mark.hex() for mark in arrays)}
        facts[f"parameter {name}"] = document
    return facts


def is_describable(statistics: Sequence[Any], resume: bool) -> bool:
    """Whether the parameters can be described in a file; otherwise two runs cannot be compared.

    Raises
    ------
    TypeError
        If they cannot, and `resume` is True.

    Examples
    --------
    >>> is_describable([gpu_encode.StatisticEncoder([max])._parameters().statistic], resume=False)
    False
    """
    try:
        encode(list(statistics), archive.Writer(io.BytesIO()))
    except UnwritableError as reason:
        if resume:
            raise TypeError(
                f"resume=True needs an encoder that a file can hold, and it has {reason!s}. Run without resume to "
                "start afresh."
            ) from None
        return False
    return True


def describe_fitted(encoder: Any) -> dict[str, Any]:
    """Describe a fitted encoder by a digest of its saved form."""
    content = io.BytesIO()
    with archive.Writer(content) as writer, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        document = encoders.describe(encoder, writer)
        # The device, and how the encoder was fitted, do not matter.
        writer.finish({name: document[name] for name in ("parameters", "model", "output")})
    return {"the fitted encoder": hashlib.sha256(content.getvalue()).hexdigest()}


def check_repeatable(parameters: Parameters, resume: bool) -> bool:
    """Say whether an interrupted run could go on with the same folds and orders.

    Raises
    ------
    TypeError, ValueError
        If it could not, and `resume` is True.

    Examples
    --------
    >>> check_repeatable(gpu_encode.TargetEncoder(random_state=None)._parameters(), resume=False)
    False
    """
    drawn_again = all(
        isinstance(getattr(scheme, "random_state", 0), Integral) and not isinstance(scheme, Splits)
        for scheme in parameters.every_scheme
    )
    repeatable = is_describable(parameters.every_statistic, resume) and drawn_again
    if resume and not repeatable:
        raise ValueError(
            "resume=True needs folds and orders that can be drawn again, but cv is a splitter, or random_state is "
            "not an integer."
        )
    return repeatable


def write_sums(path: Path, sums: PartialSums) -> None:
    """Write sums to a file.

    Examples
    --------
    >>> import tempfile
    >>> from gpu_encode import TargetEncoder
    >>> from gpu_encode.parts import Part, plan, measure, profile
    >>> encoder, part = TargetEncoder(cv=2), Part([["a"], ["b"], ["a"], ["b"]], [1, 0, 1, 0])
    >>> sums = measure(plan(encoder, profile(encoder, part)), part)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sums(Path(folder, "sums"), sums)
    ...     read_sums(Path(folder, "sums")).n_categories
    [2]
    """
    with path.open("wb") as file, archive.Writer(file) as writer:
        document = {
            "rows": sums.n_rows,
            "model": None if sums.model is None else models.describe(sums.model, writer),
            "reach": [
                {"windows": models.describe_layout(span.layout), "bounds": [str(bound) for bound in span.bounds]}
                for span in sums.reach
            ],
            "stretches": [[describe_segment(sums, writer) for sums in segments.sums] for segments in sums.segments],
        }
        writer.finish(document)


def read_sums(path: Path) -> PartialSums:
    """Read sums that `write_sums` wrote.

    Raises
    ------
    ValueError
        If the file is damaged.
    """
    try:
        with path.open("rb") as file:
            reader = archive.Reader(file)
            document = reader.document
            model = read_field(document, "model", dict, None)
            reach = [
                DigitSpan(models.read_layout(span), tuple(int(bound) for bound in read_list(span, "bounds", str)))
                for span in read_list(document, "reach", dict)
            ]
            segments = [
                SegmentSums([read_segment(segment, reader) for segment in segments])
                for segments in read_list(document, "stretches", list)
            ]
            n_rows = read_count(document, "rows", 0, 1 << 62)
            return PartialSums(n_rows, None if model is None else models.rebuild(model, reader), reach, segments)
    except OSError:
        raise
    except Exception as reason:  # a damaged file raises errors of many types in its readers
        raise _unreadable_sums(str(path), one_line(reason).rstrip(".")) from reason


def describe_segment(sums: CategorySums, writer: archive.Writer) -> dict[str, Any]:
    """Describe sums that belong to no key as JSON."""
    return {**models.describe_sums(sums, writer), "classification": sums.spec.classification}


def read_segment(document: dict[str, Any], reader: archive.Reader) -> CategorySums:
    """Read sums that belong to no key."""
    layout = models.read_layout(document)
    accumulators = np.array(decode_array(read_field(document, "cells", dict), reader))
    spec = SumSpec(layout, read_field(document, "classification", bool), read_count(document, "first_output", 0, 1))
    if accumulators.dtype != np.int64 or accumulators.ndim != 4 or accumulators.shape[3] != layout.width:
        raise _unreadable_sums("", f"sums of shape {accumulators.shape}")
    return CategorySums(accumulators, spec, read_count(document, "added", 0, 1 << 31))


def _unreadable_sums(path: str, reason: str) -> RefusedResumeError:
    """Error for saved sums that are damaged."""
    return RefusedResumeError(
        f"cannot continue an interrupted run: {path!r} is damaged: {reason}. Run without resume to start afresh."
    )
