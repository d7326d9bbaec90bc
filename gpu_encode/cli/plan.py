"""``gpu-encode plan``: tell how much memory an encoder takes on rows of files, before anything is encoded."""

import argparse
import json
import sys
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gpu_encode.cli.columns import roles, text_rules
from gpu_encode.cli.encoders import check_parameters, encoder_parameters
from gpu_encode.cli.fit_transform import encoder_of, source_of
from gpu_encode.cli.messages import refuse
from gpu_encode.scale.files.source import Size, Source, open_source

# Number of rows that are read at a time.
CHUNK_ROWS = 1 << 18


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    parameters = encoder_parameters(options)
    blank = encoder_of(options, parameters)
    if not hasattr(blank, "plan"):
        refuse(f"--encoder {options.encoder} has no plan: it learns several columns together, or keeps no sums")
    reads_target = check_parameters(options, blank)
    rows = open_source(source_of(options), text_rules(options, parameters))
    plan = roles(rows.schema, options, parameters)
    encoder = encoder_of(options, parameters, plan)
    targets = plan.targets if reads_target else []
    if len(targets) > 1:
        refuse(f"--target: the plan is of one column, not {len(targets)}")
    named = [name for key in plan.keys for name in ([key] if isinstance(key, str) else key)]
    read = [*named, *scheme_columns(encoder), *targets]
    values = distinct_values(rows, list(dict.fromkeys(read)))
    told = encoder.plan(
        rows=rows.n_rows if options.rows is None else options.rows,
        categories={name: max(len(found), 1) for name, found in values.items() if name not in targets},
        classes=n_classes(encoder, values[targets[0]]) if targets else None,
        device_memory=options.device_memory,
    )
    sys.stdout.write((json.dumps(told.to_dict(), indent=2) if options.json else repr(told)) + "\n")
    return 0


def scheme_columns(encoder: Any) -> list[str]:
    """Return the columns that schemes read, and those of hierarchies."""
    asked = encoder._parameters()
    levels = [above for above in (asked.hierarchy or {}).values() if isinstance(above, list)]
    names = [name for above in levels for name in above]
    for scheme in asked.every_scheme:
        for column in scheme.used_columns():
            names += [column] if isinstance(column, str) else column.columns
    return names


def distinct_values(rows: Source, names: list[str]) -> dict[str, pa.Array]:
    """Find the distinct values of columns of files; at most one chunk of rows is in memory."""
    found = {name: rows.schema.field(name).type for name in names}
    values: dict[str, pa.Array] = {name: pa.array([], plain(kind)) for name, kind in found.items()}
    for chunk in rows.chunks(names, Size(CHUNK_ROWS)):
        for name in names:
            column = chunk.table[name].combine_chunks().cast(values[name].type)
            values[name] = pc.unique(pa.chunked_array([values[name], pc.unique(column.drop_null())]))
    return values


def plain(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of a dictionary; any other type as it is."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def n_classes(encoder: Any, labels: pa.Array) -> int:
    """Return the number of classes of a target; 1 for numbers."""
    kind = encoder._parameters().target_type
    if kind == "auto":
        numbers = pa.types.is_floating(labels.type) and not pc.all(pc.equal(labels, pc.floor(labels))).as_py()
        kind = "continuous" if numbers else "classes"
    return 1 if kind == "continuous" else max(len(labels), 2)
