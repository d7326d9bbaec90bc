"""Encodings of one table in memory, which files in chunks must have as well, bit for bit."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sklearn.base import clone

from gpu_encode.scale.files import memory
from gpu_encode.scale.files.encoding import Choices, run_encoding
from gpu_encode.scale.files.run import Options, Summary
from gpu_encode.scale.files.source import open_source
from gpu_encode.scale.files.text import TextRules


def in_memory(
    encoder: Any, table: pa.Table, target: Any, weight: str | None = None, groups: str | None = None
) -> tuple[Any, pa.Table]:
    """Return the fitted encoder and the table that files must hold."""
    targets = [target] if isinstance(target, str) else list(target)
    aside = [name for name in table.column_names if name in {*targets, weight, groups}]
    fitted = clone(encoder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        encodings = fitted.fit_transform(
            table.drop_columns(aside),
            table[target] if isinstance(target, str) else table.select(targets),
            sample_weight=None if weight is None else table[weight],
            groups=None if groups is None else table[groups],
        )
    for name in aside:
        encodings = encodings.append_column(table.schema.field(name), table[name])
    return fitted, encodings


def encode(source: Any, destination: Any, encoder: Any, target: Any, **choices: Any) -> Summary:
    """Encode files, in chunks of a forced size if `chunk_rows` is among the choices."""
    given = Choices(target, **{name: choices.pop(name) for name in {*Choices._fields} & choices.keys()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        rules = {name: choices.pop(name) for name in {*TextRules.__dataclass_fields__} & choices.keys()}
        rows = open_source(source, TextRules(**rules))
        options = Options(memory.limit_of(choices.pop("memory_limit", None)), **choices)
        return run_encoding(rows, destination, encoder, given, options)


def assert_same_table(table: pa.Table, expected: pa.Table) -> None:
    """Demand equal columns, types and bits; any two NaN count as equal."""
    assert table.column_names == expected.column_names
    for name in expected.column_names:
        mine, theirs = table[name], expected[name]
        if pa.types.is_dictionary(theirs.type):
            mine, theirs = (column.cast(theirs.type.value_type) for column in (mine, theirs))
        assert mine.type == theirs.type, name
        if pa.types.is_floating(theirs.type):
            assert pc.is_null(mine).equals(pc.is_null(theirs)), name
            bits = [column.combine_chunks().fill_null(0).to_numpy(zero_copy_only=False) for column in (mine, theirs)]
            whole = [np.where(np.isnan(part), np.nan, part).view(f"i{part.dtype.itemsize}") for part in bits]
            assert np.array_equal(*whole), name
        else:
            assert mine.combine_chunks().equals(theirs.combine_chunks()), name


def read_rows(source: Any, **choices: Any) -> pa.Table:
    """Read all rows of a file, a folder or another source."""
    return open_source(source, TextRules(**choices)).load().loaded


def write_pieces(folder: Path, table: pa.Table, n_rows: int, **choices: Any) -> Path:
    """Write `n_rows` rows to each file of a new folder."""
    folder.mkdir()
    for number, start in enumerate(range(0, len(table), n_rows)):
        pq.write_table(table.slice(start, n_rows), folder / f"{number}.parquet", **choices)
    return folder


def names_in(folder: Path) -> list[str]:
    """Return everything in a folder, hidden or not."""
    return sorted(path.name for path in folder.iterdir())
