"""When a command reads and writes in chunks, and what it says then."""

import argparse
from pathlib import Path

from gpu_encode.cli.messages import UsageError, say
from gpu_encode.datasets.formats import suffix_of
from gpu_encode.datasets.summary import Summary


def is_streamed(options: argparse.Namespace) -> bool:
    """Tell whether a command asks for chunks: several files or folders, a limit of memory, an interrupted run.

    Examples
    --------
    >>> from gpu_encode.cli.arguments import parse
    >>> is_streamed(parse(["transform", "rows.csv", "codes/", "--model", "fraud.model"]))
    True
    """
    return (
        options.resume
        or options.memory_limit is not None
        or len(options.input) > 1
        or Path(options.input[0]).is_dir()
        or (not Path(options.input[0]).exists() and any(letter in options.input[0] for letter in "*?["))
        or is_folder(options.output)
    )


def is_folder(output: str) -> bool:
    """Tell whether an output is meant to be a folder of files.

    Examples
    --------
    >>> is_folder("codes"), is_folder("codes.parquet")
    (True, False)
    """
    path = Path(output)
    return output.endswith("/") or path.is_dir() or (suffix_of(path.name) is None and not path.suffix)


def source_of(options: argparse.Namespace) -> str | list[str]:
    """Return the file, folder or glob that a command reads, or the list of files."""
    words: list[str] = options.input
    return words[0] if len(words) == 1 else words


def one_input(options: argparse.Namespace) -> Path:
    """Return the only file that a command reads."""
    [word] = options.input
    return Path(word)


def refuse_model_as_output(options: argparse.Namespace) -> None:
    """Refuse a model in place of what is read or written."""
    model = Path(options.model).resolve()
    for role, word in (*(("INPUT", word) for word in options.input), ("OUTPUT", options.output)):
        if Path(word).resolve() == model:
            message = f"{role} and --model are the same file {word!r}: give each its own"
            raise UsageError(message)


def tell(summary: Summary) -> None:
    """Say what was done."""
    for line in repr(summary).splitlines():
        say(line)
