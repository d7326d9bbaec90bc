"""A fitted encoder as Arrow tables, with the rules for encoding rows in their metadata."""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import gpu_encode
from cpu_fallback.exact import Floats
from gpu_encode.encoders.base import Encoder, check_unique, names_at_fit
from gpu_encode.encoders.row_encoder import kept_positions
from gpu_encode.fitting.model import Model, target_parts
from gpu_encode.seam.ops import host
from gpu_encode.serve.export.tables import (
    Answer,
    EncoderTables,
    KeyTable,
    LevelTable,
    facts_to_leave,
    tables_to_leave,
)
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.sums.moments import Moments
from gpu_encode.sums.targets import KINDS
from gpu_encode.tables.frames.labels import in_arrow

# The name under which a table's schema stores the rules, as JSON.
RULES = b"gpu_encode"
VERSION = 1


class Output(NamedTuple):
    """An output column: its name, its name in tables, its type, and its number among the outputs of its key."""

    name: str
    column: str
    type: Any
    number: int


def to_arrow(encoder: Encoder, *, min_count: float = 0, hash_key: bytes | None = None) -> dict[str, Any]:
    """Give a fitted encoder as Arrow tables, one for each key and level, for use in joins.

    Parameters
    ----------
    encoder : Encoder
        A fitted encoder, whose encodings depend on single keys.
    min_count : float, default=0
        Categories, levels above and missing values with less weight are left out, and treated as unknown.
    hash_key : bytes, optional
        The tables hold `hash_values` with this key instead of values, so that only those who have the key can look
        values up. The rows to encode must hold these hashes, too.  At least 16 bytes.

    Returns
    -------
    dict of str to pyarrow.Table
        By the name of the key; tables of the levels above have ``.level1``, ``.level2`` and so on after it, the nearest
        level first.  There is a row for each category.  The columns, for a key called ``key``:

        - the columns of X that the key reads, under their names, in the type of the categories; null is a missing
          value.  Tables of a level above have the columns of the level, or its labels if a rule makes the level.
        - ``key_level``: 0 for categories, then 1 for the nearest level.
        - ``key_count``: summed weight of the training rows; without weights, their number.
        - ``key_mean``: exact mean of the target, rounded once, if the target has a mean; with several targets or
          classes, one column for each.
        - ``output_encoding``, for each output of the key: what `transform` gives.
        - its indicators, under the names of their outputs.

        The schema's metadata hold JSON under ``gpu_encode``: ``version``, ``encoder``, its ``origin`` (`origin_`) and
        ``parameters``, ``names`` of all outputs in order, ``keys`` with the columns that each key reads and the
        encodings of a row that is ``unknown`` or ``missing`` (null if it is refused), and ``key`` and ``level`` of this
        table.

    Raises
    ------
    TypeError
        If encodings do not depend on single keys, or Arrow has no type for the categories.
    ValueError
        If two columns of a table would have the same name, if `hash_key` is too short, or if the levels of a hierarchy
        are computed from the values that it would hide.

    Notes
    -----
    The encoding of a row is looked up in this order.  A row that lacks the value of a single column, or any value of a
    joint key with ``missing_is_category`` false, gets ``missing``.  Other rows are looked up among the categories, then
    in the nearest level, then in the levels above it.  All remaining rows get ``unknown``.  The indicator of missing
    values in the tables is for rows that have all values of a level; it is 1 for each row that lacks a value of the key
    itself.

    The tables hold encodings, but not the digits of the sums.  So they cannot learn from more rows, and they reveal
    less about the training rows.  `Encoder.save` keeps the sums.

    See Also
    --------
    from_arrow : Encodes rows with these tables, with the same bits.

    Examples
    --------
    >>> from gpu_encode import TargetEncoder
    >>> from gpu_encode.export import to_arrow
    >>> encoder = TargetEncoder(smooth=1.0).fit([["oak"], ["oak"], ["elm"]], [0, 1, 1])
    >>> to_arrow(encoder)["x0"].to_pylist()[0]
    {'x0': 'elm', 'x0_level': 0, 'x0_count': 1.0, 'x0_mean': 1.0, 'x0_encoding': 0.8333333333333334}
    """
    tables = tables_to_leave(encoder, min_count, hash_key)
    if any(key.width is not None for key in tables.keys):
        raise TypeError(
            f"{type(encoder).__name__} cannot be exported to tables of encodings: its categories are columns. to_sql, "
            "to_onnx and to_polars write these; save() keeps the encoder."
        )
    told = describe(encoder, tables) | facts_to_leave(encoder, min_count, hash_key)
    exported = {}
    for number, (key, described) in enumerate(zip(tables.keys, told["keys"], strict=True)):
        outputs, sums = outputs_of(encoder, tables, number), level_sums(encoder._model, number)
        for depth, level in enumerate(key.levels):
            columns = dict(zip(level.values.column_names, level.values.columns, strict=True))
            measured = {
                "level": pa.array(np.full(len(level.numbers), depth, np.int8)),
                "count": pa.array(level.weights),
                **{
                    name: pa.array(means[level.numbers])
                    for name, means in means_of(encoder._model, sums[depth]).items()
                },
            }
            named = [(f"{described['name']}_{name}", values) for name, values in measured.items()]
            named += encoded_columns(key, level, depth, outputs)
            check_unique([*columns, *(name for name, _ in named)])
            metadata = {RULES: json.dumps(told | {"key": number, "level": depth}, allow_nan=False).encode()}
            table = pa.table(columns | dict(named)).replace_schema_metadata(metadata)
            exported[described["name"] + (f".level{depth}" if depth else "")] = table
    return exported


def describe(encoder: Encoder, tables: EncoderTables) -> dict[str, Any]:
    """Give the rules of an encoder as JSON."""
    model = encoder._model
    selection = model.selection
    return {
        "version": VERSION,
        "library": gpu_encode.__version__,
        "encoder": type(encoder).__name__,
        "names": tables.names,
        "dtype": encoder._output_type.name,
        "indicators": list(model.indicators),
        **({} if (positions := model.positions()) is None else {"positions": positions}),
        "columns": names_at_fit(model),
        "columns_have_names": model.feature_names is not None,
        "passed": selection.passed,
        "training_only": selection.training_only,
        "everything": selection.everything,
        "keys": [describe_key(encoder, tables, number) for number in range(len(tables.keys))],
    }


def describe_key(encoder: Encoder, tables: EncoderTables, number: int) -> dict[str, Any]:
    """Give the rules of one key as JSON."""
    model, key = encoder._model, tables.keys[number]
    entry, outputs = model.keys[number].entry, outputs_of(encoder, tables, number)
    return {
        "name": model.selection.names(names_at_fit(model))[number],
        "columns": list(entry.members),
        "above": list(entry.above),
        "rule": None
        if key.rule is None
        else {"class": type(key.rule).__name__, "parameters": key.rule.get_params(deep=False)},
        "levels": len(key.levels),
        "missing_is_category": key.missing_is_category,
        "encodings": [output.name for output in outputs if output.column != output.name],
        "unknown": describe_answer(key.unknown[0], outputs),
        "missing": describe_answer(key.missing, outputs),
    }


def outputs_of(encoder: Encoder, tables: EncoderTables, number: int) -> list[Output]:
    """Give the outputs of a key: its encodings, then its indicators."""
    model = encoder._model
    widths = [len(kept_positions(model, key)) + len(model.indicators) for key in range(len(model.keys))]
    start = sum(widths[:number])
    name_of = dict(zip(tables.order, tables.names, strict=False))
    number_type, labels = pa.from_numpy_dtype(encoder._output_type), dict(enumerate(model.values_of(number)))
    known = [labels.get(position) for position in kept_positions(model, number)]
    types = [number_type if label is None else in_arrow(*label).type for label in known]
    encoded = [(f"{name_of[start + output]}_encoding", type_) for output, type_ in enumerate(types)]
    flags = [(name_of[start + len(types) + flag], number_type) for flag in range(len(model.indicators))]
    return [
        Output(name_of[start + output], column, type_, output)
        for output, (column, type_) in enumerate([*encoded, *flags])
    ]


def describe_answer(answer: Answer, outputs: Sequence[Output]) -> dict[str, Any] | None:
    """Give encodings as JSON: dates as ticks, numbers that JSON lacks as text; None if the row is refused."""
    if answer is None:
        return None
    return {output.name: as_json(answer[output.number]) for output in outputs}


def as_json(value: Any) -> Any:
    """Give a value in a type that JSON has."""
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else int(value.astype(np.int64))
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def as_array(values: Sequence[Any], type_: Any) -> Any:
    """Give values of JSON as an Arrow array of a type; None is null."""
    if pa.types.is_temporal(type_):
        return pa.array(values, pa.int32() if pa.types.is_date32(type_) else pa.int64()).cast(type_)
    if pa.types.is_floating(type_):
        numbers = np.array([np.nan if value is None else float(value) for value in values], type_.to_pandas_dtype())
        return pa.array(numbers, mask=np.array([value is None for value in values], bool))
    return pa.array(values, type_)


def encoded_columns(
    key: KeyTable, level: LevelTable, depth: int, outputs: Sequence[Output]
) -> Iterator[tuple[str, Any]]:
    """Yield the name and the values of each output, for the rows of a level."""
    lacks = [False] * len(level.values)
    if not depth and len(key.columns) > 1:
        own = [column.is_null().to_pylist() for column in level.values.columns[key.n_above :]]
        lacks = [any(row) for row in zip(*own, strict=True)]
    answers = [
        lacking if row else present for row, present, lacking in zip(lacks, level.present, level.lacking, strict=True)
    ]
    for output in outputs:
        values = [None if answer is None else as_json(answer[output.number]) for answer in answers]
        yield output.column, as_array(values, output.type)


def level_sums(model: Model, number: int) -> list[list[CategorySums]]:
    """Give for each target the sums of a key's categories, then those of its levels above, the nearest first."""
    per_target, above, ops = model.statistics[number], reversed(model.keys[number].levels), host(0)
    return [
        per_target,
        *([sums.sum_by_parent(ops, level.of_leaf, level.n) for sums in per_target] for level in above),
    ]


def means_of(model: Model, per_target: Sequence[CategorySums]) -> dict[str, Floats]:
    """Give the mean by category, for each target that has one."""
    found: dict[str, Floats] = {}
    for number, (info, sums) in enumerate(zip(model.targets, per_target, strict=True)):
        means = Moments.of(host(0), sums.accumulators, sums.spec).mean
        parts = target_parts(model, number, info) if info.kind in KINDS else []
        if means.shape[1:] == (1, len(parts)):
            found |= {f"mean{part}": means[:-2, 0, output] for output, part in enumerate(parts)}
    return found
