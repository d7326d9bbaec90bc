"""``gpu-encode transform``: encode new rows with a saved model, piece by piece."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import gpu_encode
from gpu_encode.cli.columns import known
from gpu_encode.cli.fit_transform import with_columns
from gpu_encode.cli.messages import UsageError
from gpu_encode.cli.progress import Progress, on_terminal
from gpu_encode.cli.streams import is_folder, is_streamed, one_input, refuse_model_as_output, source_of, tell
from gpu_encode.cli.tables import Rows, Writer, distinct_files, opened, suffix_of
from gpu_encode.cli.whole_files import whole_files
from gpu_encode.datasets.encoding import with_plain_output
from gpu_encode.datasets.transforming import fitted_text


def run(options: argparse.Namespace) -> int:
    """Run the command; no more rows are in memory than those of one piece, from Parquet to Parquet or CSV."""
    if is_streamed(options):
        return stream(options)
    source, output, model = one_input(options), Path(options.output), Path(options.model)
    suffix_of(output)
    distinct_files(INPUT=source, OUTPUT=output, **{"--model": model})
    encoder = with_plain_output(load(model))
    with (
        opened(source, missing_text=options.missing_text, text=fitted_text(encoder)) as rows,
        whole_files(output) as [temporary],
        Progress() as progress,
    ):
        require_columns(encoder, rows.schema.names)
        progress.stage("encoding", rows.n_rows)
        with Writer(temporary) as writer:
            for piece in encoded_pieces(encoder, rows):
                writer.write(piece)
                progress.advance(piece.num_rows)
    return 0


def stream(options: argparse.Namespace) -> int:
    """Run the command in chunks, over any number of files."""
    refuse_model_as_output(options)
    encoder = load(Path(options.model))
    summary = gpu_encode.transform_dataset(
        source_of(options),
        options.output,
        encoder,
        missing_text=options.missing_text,
        memory_limit=options.memory_limit,
        overwrite=not is_folder(options.output),
        resume=options.resume,
        progress=on_terminal(),
    )
    tell(summary)
    return 0


def load(path: Path) -> Any:
    """Load a saved encoder."""
    if not path.exists():
        message = f"there is no model {str(path)!r}: gpu-encode fit-transform --model {path} makes one"
        raise UsageError(message)
    return gpu_encode.load(path)


def require_columns(encoder: Any, names: list[str]) -> None:
    """Refuse rows that lack a column that the model reads or passes through."""
    fitted = encoder._model
    if fitted.feature_names is None:
        message = "the model was fitted on an array without column names: encode with gpu_encode.load(...).transform"
        raise UsageError(message)
    for position in sorted({*fitted.selection.needed, *fitted.selection.passed} - {*fitted.selection.training_only}):
        known(names, fitted.feature_names[position], "INPUT")


def encoded_pieces(encoder: Any, rows: Rows) -> Iterator[pa.Table]:
    """Encode each piece; columns that the encoder never saw, such as the target, come last as in training."""
    fitted = set(encoder.feature_names_in_)
    seen = [name for name in rows.schema.names if name in fitted]
    others = [name for name in rows.schema.names if name not in fitted]
    empty = True
    for piece in rows.pieces:
        empty = False
        yield with_columns(encoder.transform(piece.select(seen)), piece.select(others))
    if empty:
        nothing = rows.schema.empty_table()
        yield with_columns(encoder.transform(nothing.select(seen)), nothing.select(others))
