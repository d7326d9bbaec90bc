"""``gpu-encode leak-report``: try an encoder out on rows of files, and tell whether it leaks."""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from gpu_encode.cli.columns import roles, text_columns
from gpu_encode.cli.encoders import check_parameters, encoder_choices
from gpu_encode.cli.fit_transform import encoder_of, source_of
from gpu_encode.cli.messages import refuse, say
from gpu_encode.datasets.source import Source, open_source
from gpu_encode.datasets.writing import refuse_overlap
from gpu_encode.leaks import leak_report
from gpu_encode.storage.archive import whole_file


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    place = None if options.html is None else Path(options.html)
    if place is not None and place.exists() and not options.overwrite:
        refuse(f"{options.html!r} is there already: give --overwrite to replace it")
    parameters = encoder_choices(options)
    check_parameters(options, encoder_of(options, parameters))
    rows = open_source(source_of(options), options.missing_text, text_columns(options, parameters))
    if place is not None:
        refuse_overlap(rows, place.resolve(), options.html)
    plan = roles(rows.schema, options, parameters)
    if len(plan.targets) != 1:
        refuse(f"--target: the report looks at one column, not {len(plan.targets)}")
    if options.drop_missing_target:
        rows = rows.without_incomplete(plan.targets)
    table = sample(rows, options.rows, options.seed or 0)
    beside = [*plan.targets, *([] if plan.weight is None else [plan.weight])]
    report = leak_report(
        encoder_of(options, parameters, plan),
        table.drop_columns(beside),
        table[plan.targets[0]],
        sample_weight=None if plan.weight is None else table[plan.weight],
        n_shuffles=options.shuffles,
        n_flips=options.flips,
        random_state=options.seed or 0,
    )
    if place is not None:
        with whole_file(place) as file:
            file.write(report.to_html().encode())
        say(f"{options.html}: the report as a page")
    told = json.dumps(report.to_dict(), indent=2, allow_nan=False) if options.json else repr(report)
    sys.stdout.write(told + "\n")
    return 0


def sample(rows: Source, number: int, seed: int) -> pa.Table:
    """Read some rows of files, drawn and left in their order."""
    table = rows.load().loaded
    if table.num_rows <= number:
        return table
    return table.take(np.sort(np.random.default_rng(seed).permutation(table.num_rows)[:number]))
