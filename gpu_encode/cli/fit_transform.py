"""``gpu-encode fit-transform``: learn encodings from files of rows, and write the rows encoded."""

import argparse
from pathlib import Path
from typing import Any

import gpu_encode
from gpu_encode.cli.columns import Roles, key_name, roles, text_rules
from gpu_encode.cli.encoders import ENCODERS, check_parameters, encoder_parameters
from gpu_encode.cli.messages import on_terminal, refuse, say
from gpu_encode.scale.files import memory
from gpu_encode.scale.files.encoding import Choices, run_encoding
from gpu_encode.scale.files.run import Options, Summary
from gpu_encode.scale.files.source import find, open_source
from gpu_encode.scale.files.staging import end_publication, is_begun, path_of, path_of_model

# A column has nearly one row a category if the categories are at least this share of the rows, of which there are some.
UNIQUE_SHARE, FEWEST_ROWS = 0.9, 100


def run(options: argparse.Namespace) -> int:
    """Run the command; the output and the model appear together or not at all."""
    end_publication(options.output)
    if nothing_to_do(options):
        return 0
    parameters = encoder_parameters(options)
    reads_target = check_parameters(options, encoder_of(options, parameters))
    if options.target is not None and not reads_target:
        say(f"--encoder {options.encoder} learns from no target here: {options.target} only passes through")
    rows = open_source(source_of(options), text_rules(options, parameters))
    plan = roles(rows.schema, options, parameters)
    if plan.chosen:
        say(f"encoding {', '.join(map(key_name, plan.keys))}")
    encoder = encoder_of(options, parameters, plan)
    refuse_model_as_rows(options)
    model = None if options.model is None else model_path(options)
    target = plan.targets if len(plan.targets) > 1 else next(iter(plan.targets), None)
    choices = Choices(target, plan.weight, None, options.keep_target, options.drop_missing_target)
    chosen = Options(
        memory.limit_of(options.memory_limit),
        overwrite=bool(options.overwrite),
        resume=options.resume,
        progress=on_terminal(),
        tables=options.tables or "auto",
        model=model,
    )
    summary = run_encoding(rows, options.output, encoder, choices, chosen)
    for line in repr(summary).splitlines():
        say(line)
    if plan.chosen and (found := nearly_unique(summary)):
        say(
            f"warning: nearly every row has a category of its own in {found}. New rows have other values, so these "
            "encodings tell nothing: name the columns to encode with --columns, without such columns"
        )
    return 0


def nearly_unique(summary: Summary) -> str:
    """List the columns that have nearly as many categories as rows with a value."""
    found = []
    for name, n_categories in summary.categories.items():
        rows = summary.rows - summary.missing.get(name, 0)
        if rows >= FEWEST_ROWS and n_categories >= UNIQUE_SHARE * rows:
            found.append(f"{name!r} ({n_categories:,} categories, {rows:,} rows)")
    return ", ".join(found)


def encoder_of(options: argparse.Namespace, parameters: dict[str, Any], plan: Roles | None = None) -> Any:
    """Make the encoder; without a plan of columns it only serves to look at its parameters."""
    return getattr(gpu_encode, ENCODERS[options.encoder])(**parameters | ({} if plan is None else plan.parameters))


def source_of(options: argparse.Namespace) -> str | list[str]:
    """Return the file, folder or glob that a command reads, or a list of files."""
    words: list[str] = options.input
    return words[0] if len(words) == 1 else words


def model_path(options: argparse.Namespace) -> Path:
    """Return the path of the model; refuse a path that cannot be written."""
    try:
        return path_of_model(options.model, bool(options.overwrite), "give --overwrite to replace it at the end")
    except OSError as error:
        refuse(str(error))


def nothing_to_do(options: argparse.Namespace) -> bool:
    """Whether a run to resume has ended already: its output is newer than the rows, and no run was interrupted."""
    output = path_of(options.output)
    made = [output, *([] if options.model is None else [Path(options.model)])]
    if not options.resume or is_begun(output) or not all(path.exists() for path in made):
        return False
    written = min(path.stat().st_mtime_ns for path in made)
    if any(file.state()[1] > written for file in find(source_of(options)).files) or is_empty(output):
        return False
    say(
        f"nothing to do: {options.output} is there, newer than what it is made of, and no run was interrupted (its "
        "options are not compared with these: leave --resume out, and give --overwrite, to encode anew)"
    )
    return True


def is_empty(path: Path) -> bool:
    """Whether the path is an empty folder."""
    return path.is_dir() and not any(path.iterdir())


def refuse_model_as_rows(options: argparse.Namespace) -> None:
    """Refuse a model that is also read or written as rows."""
    if options.model is None:
        return
    model = Path(options.model)
    for role, word in (*(("INPUT", word) for word in options.input), ("OUTPUT", options.output)):
        path = Path(word)
        if path.resolve() == model.resolve() or (path.exists() and model.exists() and path.samefile(model)):
            refuse(f"{role} and --model are the same file {word!r}: give each its own")
