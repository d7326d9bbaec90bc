"""Sums that a run had measured, as a file of Arrow arrays and JSON from which a later run goes on; never pickle."""

from pathlib import Path
from typing import Any

import numpy as np

from cpu_fallback.types import Layout
from gpu_encode.errors import datasets as errors
from gpu_encode.parts import PartialSums
from gpu_encode.parts.segments import SegmentSums
from gpu_encode.storage import archive, models
from gpu_encode.storage.fields import read_count, read_field, read_list
from gpu_encode.storage.models import read_window
from gpu_encode.storage.parameters import decode_array
from gpu_encode.sums.category_sums import CategorySums, SumSpec
from gpu_encode.sums.layouts import DigitSpan


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
                {"windows": described_windows(each.layout), "bounds": [str(bound) for bound in each.bounds]}
                for each in sums.reach
            ],
            "stretches": [[described_statistics(each, writer) for each in segments.sums] for segments in sums.segments],
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
                DigitSpan(read_layout(each), tuple(int(bound) for bound in read_list(each, "bounds", str)))
                for each in read_list(document, "reach", dict)
            ]
            segments = [
                SegmentSums([read_statistics(each, reader) for each in found])
                for found in read_list(document, "stretches", list)
            ]
            n_rows = read_count(document, "rows", 0, 1 << 62)
            return PartialSums(n_rows, None if model is None else models.rebuild(model, reader), reach, segments)
    except OSError:
        raise
    except Exception as reason:  # what a damaged file makes its many readers raise has no common type
        raise errors.unreadable_sums(str(path), archive.one_line(reason)) from reason


def described_windows(layout: Layout) -> list[Any]:
    """Give the columns of a cell as JSON."""
    windows = (layout.count, layout.total, layout.square)
    return [None if each is None else [each.low, each.width, each.whole] for each in windows]


def read_layout(document: dict[str, Any]) -> Layout:
    """Read the columns of a cell."""
    return Layout(*(read_window(each) for each in read_list(document, "windows", list, None)))  # type: ignore[arg-type]


def described_statistics(statistics: CategorySums, writer: archive.Writer) -> dict[str, Any]:
    """Give sums that belong to no entry as JSON."""
    described = models.describe_sums(statistics, writer)
    return {**described, "classification": statistics.measured.classification}


def read_statistics(document: dict[str, Any], reader: archive.Reader) -> CategorySums:
    """Read sums that belong to no entry."""
    layout = read_layout(document)
    cells = np.array(decode_array(read_field(document, "cells", dict), reader))
    measured = SumSpec(layout, read_field(document, "classification", bool), read_count(document, "first_output", 0, 1))
    if cells.dtype != np.int64 or cells.ndim != 4 or cells.shape[3] != layout.width:
        raise errors.unreadable_sums("", f"sums of shape {cells.shape}")
    return CategorySums(cells, measured, read_count(document, "added", 0, 1 << 31))
