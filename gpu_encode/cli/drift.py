"""``gpu-encode drift``: compare new rows with the training rows of a saved encoder."""

import argparse
import json
import math
import operator
import re
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table

import gpu_encode
from gpu_encode.cli.columns import find_column, key_name, reading_options
from gpu_encode.cli.fit_transform import source_of
from gpu_encode.cli.inspect_model import keys_of
from gpu_encode.cli.messages import close_match, refuse, say
from gpu_encode.cli.transform import load
from gpu_encode.words.terminal import printable

MEASURES = ("rows", "unknown", "missing", "psi", "psi_by_chance")
SHARES = ("unknown", "missing")
RELATIONS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*%?", re.ASCII | re.IGNORECASE)


class Condition(NamedTuple):
    """A condition that new rows must not meet: a measure of the report, a relation, and the factors of a limit."""

    text: str
    column: str
    measure: str
    relation: str
    factors: list[str]

    @classmethod
    def read(cls, text: str) -> "Condition":
        """Read a condition.

        Examples
        --------
        >>> Condition.read("shop+city: psi > 2 * psi_by_chance").factors
        ['2', 'psi_by_chance']
        """
        column, _, compared = text.rpartition(":")
        found = re.fullmatch(r"\s*([^\s<>]+)\s*([<>]=?)\s*([^<>=]+)", compared)
        if found is None:
            refuse(
                f"--fail-if: {text!r} is no condition: write unknown>0.05, missing>1%, shop+city:psi>2*psi_by_chance"
            )
        factors = [factor.strip() for factor in found[3].split("*")]
        for word in (found[1], *(factor for factor in factors if not NUMBER.fullmatch(factor))):
            if word not in MEASURES:
                measures = ", ".join(MEASURES)
                refuse(f"--fail-if: {text!r}: {word!r} is no measure ({measures}){close_match(word, MEASURES)}")
        condition = cls(text, column.strip(), found[1], found[2], factors)
        condition.refuse_if_never_met()
        return condition

    def refuse_if_never_met(self) -> None:
        """Refuse a limit that no report can pass: an alarm that never rings would be taken for good news."""
        if any(factor in MEASURES for factor in self.factors):
            return
        limit, most = self.limit({}), 1.0 if self.measure in SHARES else math.inf
        if not any(RELATIONS[self.relation](value, limit) for value in (0.0, most)):
            least, percent = ("0 to 1", f", and {limit:g}% is {limit / 100:g}") if most == 1 else ("0 up", "")
            refuse(f"--fail-if: {self.text!r} is never met: {self.measure} is a number from {least}{percent}")

    def limit(self, row: dict[str, Any]) -> float:
        """Give the product of the factors for a row of the report."""
        return math.prod(
            row[factor] if factor in MEASURES else float(factor.rstrip("% ")) / (100 if "%" in factor else 1)
            for factor in self.factors
        )

    def failure(self, row: dict[str, Any]) -> str | None:
        """Say how a column's row of the report meets the condition; None if it does not."""
        limit = self.limit(row)
        if not RELATIONS[self.relation](row[self.measure], limit):
            return None
        return f"{self.measure} {row[self.measure]:.6g} {self.relation} {limit:.6g}"


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    conditions = [Condition.read(text) for text in options.fail_if]
    encoder = load(Path(options.model))
    numbers = [numbers_of(encoder, condition) for condition in conditions if not isinstance(encoder, Path)]
    rows = gpu_encode.drift_dataset(
        source_of(options),
        encoder,
        **reading_options(options),
        memory_limit=options.memory_limit,
    )
    if options.json:
        sys.stdout.write(json.dumps(rows, indent=2, allow_nan=False) + "\n")
    else:
        show(rows)
    status = 0
    for number, row in enumerate(rows):
        met = [one.failure(row) for one, chosen in zip(conditions, numbers, strict=True) if number in chosen]
        if failures := [failure for failure in met if failure is not None]:
            say(f"{row['key']}: {', '.join(failures)}")
            status = 1
    return status


def numbers_of(encoder: Any, condition: Condition) -> Collection[int]:
    """Give the numbers of the columns and joint keys to which a condition applies."""
    keys = keys_of(encoder)[: encoder._model.selection.n_encoded]
    if not condition.column:
        return range(len(keys))
    # A joint key has one name on the command line, and another one in the report.
    names = ["+".join(key) if isinstance(key, tuple) else key for key in keys]
    named = [*names, *map(key_name, keys)]
    return [named.index(find_column(named, condition.column, "--fail-if")) % len(keys)]


def show(rows: list[dict[str, Any]]) -> None:
    """Print the report as a table."""
    table = Table()
    for name in rows[0]:
        table.add_column(name.replace("_", " "), justify="left" if name == "key" else "right")
    for row in rows:
        shares = (f"{row[name]:.2%}" for name in ("unknown", "missing"))
        indices = (f"{row[name]:.4f}" for name in ("psi", "psi_by_chance"))
        table.add_row(escape(printable(row["key"])), f"{row['rows']:,}", *shares, *indices)
    Console(highlight=False).print(table)
