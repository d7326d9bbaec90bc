"""``gpu-encode drift``: compare new rows with the training rows of a saved encoder."""

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

import gpu_encode
from gpu_encode.cli.columns import reading_options
from gpu_encode.cli.fit_transform import source_of
from gpu_encode.cli.transform import load
from gpu_encode.words.terminal import printable


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    rows = gpu_encode.drift_dataset(
        source_of(options),
        load(Path(options.model)),
        **reading_options(options),
        memory_limit=options.memory_limit,
    )
    if options.json:
        sys.stdout.write(json.dumps(rows, indent=2, allow_nan=False) + "\n")
        return 0
    table = Table()
    for name in rows[0]:
        table.add_column(name.replace("_", " "), justify="left" if name == "key" else "right")
    for row in rows:
        shares = (f"{row[name]:.2%}" for name in ("unknown", "missing"))
        indices = (f"{row[name]:.4f}" for name in ("psi", "psi_by_chance"))
        table.add_row(escape(printable(row["key"])), f"{row['rows']:,}", *shares, *indices)
    Console(highlight=False).print(table)
    return 0
