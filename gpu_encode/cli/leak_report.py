"""``gpu-encode leak-report``: try an encoder on rows of files, and say whether it leaks."""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from gpu_encode.cli.columns import find_column, roles, text_rules
from gpu_encode.cli.encoders import check_parameters, encoder_parameters
from gpu_encode.cli.fit_transform import encoder_of, source_of
from gpu_encode.cli.messages import refuse, say
from gpu_encode.scale.files.source import Size, Source, find_roles, open_source
from gpu_encode.scale.files.writing import refuse_overlap
from gpu_encode.storage.archive import whole_file
from gpu_encode.study.leaks import leak_report

# Rows of files that are read at a time.
CHUNK_ROWS = 1 << 16


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    path = None if options.html is None else Path(options.html)
    if path is not None and path.exists() and not options.overwrite:
        refuse(f"{options.html!r} is there already: give --overwrite to replace it")
    groups = options.groups
    parameters = encoder_parameters(options)
    check_parameters(options, encoder_of(options, parameters))
    rows = open_source(source_of(options), text_rules(options, parameters))
    if path is not None:
        refuse_overlap(rows, path.resolve(), options.html)
    plan = roles(rows.schema, options, parameters)
    if len(plan.targets) != 1:
        refuse(f"--target: the report looks at one column, not {len(plan.targets)}")
    if groups is not None:
        find_column(rows.schema.names, groups, "--groups")
    if options.drop_missing_target:
        rows = rows.without_incomplete(plan.targets)
    table = sample(rows, options.rows, options.seed or 0)
    if table.num_rows < rows.n_rows:
        say(f"a sample of {table.num_rows:,} of {rows.n_rows:,} rows: --rows N takes more")
    encoder = encoder_of(options, parameters, plan)
    features = find_roles(table.schema, plan.targets, plan.weight, None, encoder._parameters()).features
    report = leak_report(
        encoder,
        table.select(features),
        table[plan.targets[0]],
        groups=None if groups is None else table[groups],
        sample_weight=None if plan.weight is None else table[plan.weight],
        n_shuffles=options.shuffles,
        n_flips=options.flips,
        random_state=options.seed or 0,
    )
    if path is not None:
        with whole_file(path) as file:
            file.write(report.to_html().encode())
        say(f"{options.html}: the report as a page")
    told = json.dumps(report.to_dict(), indent=2, allow_nan=False) if options.json else repr(report)
    sys.stdout.write(told + "\n")
    return 0


def sample(rows: Source, number: int, seed: int) -> pa.Table:
    """Draw some rows of files, and keep their order; besides these rows, only one chunk is in memory."""
    number = min(number, rows.n_rows)
    drawn = np.sort(np.random.default_rng(seed).choice(rows.n_rows, number, replace=False, shuffle=False))
    pieces = [rows.schema.empty_table()]
    for chunk in rows.chunks(rows.schema.names, Size(CHUNK_ROWS)):
        offsets = drawn - chunk.first_row
        pieces.append(chunk.table.take(offsets[(offsets >= 0) & (offsets < chunk.table.num_rows)]))
    return pa.concat_tables(pieces)
