"""``gpu-encode transform``: encode new rows with a saved model."""

import argparse
from pathlib import Path
from typing import Any

import gpu_encode
from gpu_encode.cli.columns import reading_options
from gpu_encode.cli.fit_transform import nothing_to_do, refuse_model_as_rows, source_of
from gpu_encode.cli.messages import on_terminal, refuse, say
from gpu_encode.scale.files.new_rows import is_table
from gpu_encode.scale.files.staging import end_publication


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    refuse_model_as_rows(options)
    end_publication(options.output)
    if nothing_to_do(options):
        return 0
    summary = gpu_encode.transform_dataset(
        source_of(options),
        options.output,
        load(Path(options.model)),
        **reading_options(options),
        memory_limit=options.memory_limit,
        overwrite=bool(options.overwrite),
        resume=options.resume,
        progress=on_terminal(),
    )
    for line in repr(summary).splitlines():
        say(line)
    return 0


def load(path: Path) -> Any:
    """Load a saved encoder; a folder of encodings is read later, while rows are encoded."""
    if not path.exists():
        refuse(f"there is no model {str(path)!r}: gpu-encode fit-transform --model {path} makes one")
    return path if is_table(path) else gpu_encode.load(path)
