"""``gpu-encode fit-transform``: learn codes from a file of rows, and write the rows encoded."""

import argparse
import contextlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import gpu_encode
from gpu_encode.cli.choices import made
from gpu_encode.cli.columns import Roles, key_name, roles, text_columns
from gpu_encode.cli.encoders import ENCODERS, check_parameters, encoder_choices
from gpu_encode.cli.messages import UsageError, say
from gpu_encode.cli.progress import Progress, on_terminal
from gpu_encode.cli.streams import is_folder, is_streamed, one_input, refuse_model_as_output, source_of, tell
from gpu_encode.cli.tables import PIECE_ROWS, Writer, distinct_files, opened, suffix_of
from gpu_encode.cli.whole_files import refuse_closed_places, whole_files
from gpu_encode.datasets.encoding import run_encoding
from gpu_encode.datasets.source import opened as opened_source


def run(options: argparse.Namespace) -> int:
    """Run the command; the output and the model appear both or not at all."""
    parameters = encoder_choices(options)
    reads_target = check_parameters(options, encoder_of(options, parameters))
    if options.target is not None and not reads_target:
        say(f"--encoder {options.encoder} learns from no target here: {options.target} only passes through")
    if is_streamed(options):
        return stream(options, parameters)
    source, destinations = one_input(options), {"OUTPUT": Path(options.output)}
    if options.model is not None:
        destinations["--model"] = Path(options.model)
    suffix_of(destinations["OUTPUT"])
    distinct_files(INPUT=source, **destinations)
    with opened(source, missing_text=options.missing_text, text=text_columns(options, parameters)) as rows:
        plan = roles(rows.schema, options, parameters)
        if plan.chosen:
            say(f"encoding {', '.join(map(key_name, plan.keys))}")
        with whole_files(*destinations.values()) as temporaries, Progress() as progress:
            progress.stage("reading", rows.n_rows)
            table = rows.all(progress.advance)
            if reads_target or options.drop_missing_target:
                table = with_targets(table, plan.targets, leave_out=options.drop_missing_target)
            progress.stage("encoding")
            encoder = encoder_of(options, parameters, plan)
            encoded = encode(encoder, table, plan, keep_target=options.keep_target)
            progress.advance(encoded.num_rows)
            write(encoded, temporaries[0], progress)
            if options.model is not None:
                encoder.save(temporaries[1])
    return 0


def stream(options: argparse.Namespace, parameters: dict[str, Any]) -> int:
    """Run the command in chunks, so that what is read may be larger than memory."""
    rows = opened_source(source_of(options), options.missing_text, text_columns(options, parameters))
    plan = roles(rows.schema, options, parameters)
    if plan.chosen:
        say(f"encoding {', '.join(map(key_name, plan.keys))}")
    encoder = encoder_of(options, parameters, plan)
    models = []
    if options.model is not None:
        refuse_model_as_output(options)
        models = [Path(options.model)]
    refuse_closed_places(*models)
    with contextlib.ExitStack() as unfinished:

        def save() -> None:
            for temporary in unfinished.enter_context(whole_files(*models)):
                encoder.save(temporary)

        summary = run_encoding(
            rows,
            options.output,
            encoder,
            plan.targets if len(plan.targets) > 1 else next(iter(plan.targets), None),
            plan.weight,
            None,
            keep_target=options.keep_target,
            drop_missing_target=options.drop_missing_target,
            memory_limit=options.memory_limit,
            compression=None,
            overwrite=not is_folder(options.output),
            resume=options.resume,
            progress=on_terminal(),
            before_publishing=save,
        )
    tell(summary)
    return 0


def encoder_of(options: argparse.Namespace, parameters: dict[str, Any], plan: Roles | None = None) -> Any:
    """Make the encoder that was asked for; of no columns, to look at its parameters, unless there is a plan of them."""
    given = {name: made(value, gpu_encode) for name, value in parameters.items()}
    if plan is not None:
        given |= {"columns": plan.keys} | ({"values": plan.values} if plan.values else {})
    return getattr(gpu_encode, ENCODERS[options.encoder])(**given)


def with_targets(table: pa.Table, targets: list[str], *, leave_out: bool) -> pa.Table:
    """Return the rows that have every target; refuse others unless they are to be left out.

    Examples
    --------
    >>> with_targets(pa.table({"y": [1.0, None, float("nan")]}), ["y"], leave_out=True)["y"].to_pylist()
    [1.0]
    """
    complete = table
    for name in targets:
        complete = complete.filter(pc.invert(pc.is_null(complete[name], nan_is_null=True)))
    if not leave_out and len(complete) < len(table):
        message = (
            f"{len(table) - len(complete):,} of {len(table):,} rows have no {' or '.join(targets)}: "
            "leave them out with --drop-missing-target"
        )
        raise UsageError(message)
    return complete


def encode(encoder: Any, table: pa.Table, plan: Roles, *, keep_target: bool) -> pa.Table:
    """Fit `encoder`, and return the training codes, with the target and weight columns last if they are kept."""
    target = None
    if plan.targets:
        target = table[plan.targets[0]] if len(plan.targets) == 1 else table.select(plan.targets)
    weight = None if plan.weight is None else table[plan.weight]
    encoded = encoder.fit_transform(table.drop_columns(plan.aside), target, sample_weight=weight)
    if not keep_target:
        return encoded
    # In the order of the input, as transform passes through the columns that the encoder never saw.
    return with_columns(encoded, table.select([name for name in table.column_names if name in plan.aside]))


def with_columns(encoded: pa.Table, others: pa.Table) -> pa.Table:
    """Return `encoded` with the columns of `others` after its own.

    Examples
    --------
    >>> with_columns(pa.table({"city": [0.5]}), pa.table({"y": [1]})).column_names
    ['city', 'y']
    """
    for name, column in zip(others.column_names, others.columns, strict=True):
        if name in encoded.column_names:
            message = f"the output would have two columns named {name!r}: rename it in the input"
            raise UsageError(message)
        encoded = encoded.append_column(name, column)
    return encoded


def write(table: pa.Table, path: Path, progress: Progress) -> None:
    """Write a table piece by piece."""
    progress.stage("writing", table.num_rows)
    with Writer(path) as writer:
        for start in range(0, max(table.num_rows, 1), PIECE_ROWS):
            piece = table.slice(start, PIECE_ROWS)
            writer.write(piece)
            progress.advance(piece.num_rows)
