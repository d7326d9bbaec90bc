"""The command ``gpu-encode``.

This module, and the modules that it imports, are light.  The module of a command, which imports large libraries, is
imported only when the command runs.
"""

import argparse
import contextlib
import importlib
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence

from gpu_encode.cli.arguments import parse
from gpu_encode.cli.messages import UsageError, say
from gpu_encode.words.errors.resources import FULL, DiskFullError
from gpu_encode.words.terminal import one_line, printable_lines

__all__ = ["main"]

SUCCESS, FAILURE, MISTAKE, INTERRUPTED = 0, 1, 2, 130
# Exit status after a signal; the number of the signal is added.
TERMINATED = 128

# Errors that the library and the system raise for wrong input.
MISTAKES = (
    *(UsageError, ValueError, TypeError, KeyError, ImportError),
    *(FileNotFoundError, IsADirectoryError, FileExistsError, PermissionError),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The words after ``gpu-encode``; by default those of this process.

    Returns
    -------
    int
        0 if done, 2 for a mistake in the command, 1 for any other failure, 130 if interrupted.

    Examples
    --------
    >>> main(["transform"])
    2
    """
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    try:
        options = parse(words)
        with warnings_as_lines(everything=debug), termination_as_error():
            status = run(options)
            sys.stdout.flush()
            return status
    except SystemExit as stop:
        if isinstance(stop.code, int) and stop.code > TERMINATED:
            say("terminated")
            say_notes(stop)
        return stop.code if isinstance(stop.code, int) else SUCCESS
    except KeyboardInterrupt as stop:
        say("interrupted")
        say_notes(stop)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has closed it (`| head`): stop, as rich does. Python flushes stdout again at exit.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except Exception as error:  # for every error the user gets one line, unless --debug asks for more
        if debug:
            sys.stderr.write(printable_lines(traceback.format_exc()))
        say(f"error: {explain(error, debug=debug)}")
        say_notes(error)
        return MISTAKE if isinstance(error, MISTAKES) else FAILURE


def run(options: argparse.Namespace) -> int:
    """Import the module of the command, and run it."""
    command = importlib.import_module(f"gpu_encode.cli.{options.module}")
    status: int = command.run(options)
    return status


def say_notes(error: BaseException) -> None:
    """Write the notes of an error."""
    for note in getattr(error, "__notes__", []):
        say(note)


def explain(error: Exception, *, debug: bool) -> str:
    """Return one line that says what went wrong and what to do."""
    if isinstance(error, DiskFullError):
        return str(error.strerror)
    if isinstance(error, OSError) and error.errno in FULL:
        where = "" if error.filename is None else f", at {error.filename!r}"
        return f"the disk is full (no space left on device{where}): free some space or write elsewhere"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MISTAKES):
        return one_line(error)
    hint = "" if debug else " (add --debug for the traceback)"
    return f"{type(error).__name__}: {one_line(error)}{hint}"


@contextlib.contextmanager
def warnings_as_lines(*, everything: bool) -> Iterator[None]:
    """Show the library's own warnings as lines of the command, and warnings of others only when debugging."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        say(f"warning: {one_line(message)}")

    with warnings.catch_warnings():
        warnings.simplefilter("default" if everything else "ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def termination_as_error() -> Iterator[None]:
    """Let SIGTERM unwind the stack like Ctrl-C, so that temporary files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return

    def stop(number: int, _: object) -> None:
        raise SystemExit(TERMINATED + number)

    former = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)
