"""New rows of files encoded with a fitted encoder, in one pass."""

import time
from collections.abc import Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from gpu_encode import devices
from gpu_encode.datasets import destinations, memory
from gpu_encode.datasets.described import as_json, described_fitted, described_run, is_describable
from gpu_encode.datasets.encoding import with_plain_output
from gpu_encode.datasets.progress import Progress, Teller
from gpu_encode.datasets.roles import with_columns
from gpu_encode.datasets.run import Run
from gpu_encode.datasets.source import Source, opened
from gpu_encode.datasets.staging import Staging, failures_explained
from gpu_encode.datasets.summary import Summary
from gpu_encode.errors import datasets as errors


def transform_dataset(
    source: Any,
    destination: Any,
    encoder: Any,
    *,
    missing_text: Sequence[str] = (),
    memory_limit: int | str | None = None,
    compression: str | None = None,
    overwrite: bool = False,
    resume: bool = False,
    progress: bool | Teller | None = None,
) -> Summary:
    r"""Encode new rows of files of any size with a fitted encoder, in one pass.

    Parameters
    ----------
    source, destination
        As in `encode_dataset`.
    encoder : TargetEncoder
        Fitted; columns that it never saw pass through, last.
    missing_text, memory_limit, compression, overwrite, resume, progress
        As in `encode_dataset`.

    Returns
    -------
    Summary

    Raises
    ------
    ValueError, TypeError, OSError
        As in `encode_dataset`, and if a fitted column is missing.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyarrow
    >>> from gpu_encode import TargetEncoder, transform_dataset
    >>> encoder = TargetEncoder(smooth=0.0).fit(pyarrow.table({"city": ["Bonn", "Lima"]}), [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "new.csv").write_text("city\nLima\nOslo\n")
    ...     summary = transform_dataset(f"{folder}/new.csv", f"{folder}/codes.csv", encoder)
    ...     Path(folder, "codes.csv").read_text().split()
    ['"city"', '1', '0.5']
    """
    memory.limit_of(memory_limit)
    rows = opened(source, missing_text, fitted_text(encoder))
    return run_transforming(rows, destination, encoder, memory_limit, compression, overwrite, resume, progress)


@devices.memory_explained()
def run_transforming(
    rows: Source,
    destination: Any,
    encoder: Any,
    memory_limit: Any,
    compression: Any,
    overwrite: bool,
    resume: bool,
    progress: Any,
    chunk_rows: int | None = None,
) -> Summary:
    """Do what `transform_dataset` does; chunks may be forced."""
    begun = time.perf_counter()
    limit = memory.limit_of(memory_limit)
    place = destinations.chosen(rows, destination, compression, overwrite)
    fitted = set(encoder.feature_names_in_)
    seen = [name for name in rows.schema.names if name in fitted]
    others = [name for name in rows.schema.names if name not in fitted]
    require_columns(encoder, rows.schema.names)
    plain = with_plain_output(encoder)

    def encoded(table: Any) -> Any:
        return with_columns(plain.transform(table.select(seen)), table.select(others))

    empty = encoded(rows.schema.empty_table())
    known = is_describable([each.statistic for each in encoder._model.rules], resume)
    described = as_json(described_run(rows, place, described_fitted(encoder) if known else {}))
    with failures_explained(place), Staging(place, known) as staging, Progress(progress) as shown:
        run = Run(rows, place, shown, limit, chunk_rows)
        run.seconds["opening"] = time.perf_counter() - begun
        work = staging.begin(described, resume)
        size = run.size(rows.schema.names, len(encoder._model.keys), empty.num_columns)
        work = {"part_rows": size.rows} | work
        staging.note(described, work)
        outputs = place.outputs(rows, work["part_rows"])
        needed = {encoder._model.feature_names[position] for position in encoder._model.selection.needed}
        left_out = [name for name in place.left_out(rows) if name not in needed]
        run.write(staging, outputs, empty, lambda chunk: encoded(chunk.table), size, left_out)
        staging.publish()
    return run.summary()


def require_columns(encoder: Any, names: Sequence[str]) -> None:
    """Refuse rows that lack a column that the encoder reads or passes through."""
    model = encoder._model
    selection = model.selection
    for position in sorted({*selection.needed, *selection.passed} - {*selection.training_only}):
        if model.feature_names[position] not in names:
            raise errors.no_such_column("the encoder", model.feature_names[position], names)


def fitted_text(encoder: Any) -> list[str]:
    """Return the columns that were text in training: a CSV file does not tell 02138 from 2138."""
    check_is_fitted(encoder, "_model")
    model = encoder._model
    if model.feature_names is None:
        raise errors.fitted_without_names()
    return [
        model.feature_names[position]
        for key in model.keys
        for position, vocabulary in zip(key.entry.columns, key.vocabularies, strict=True)
        if vocabulary.kind == "text"
    ]
