"""``gpu-encode inspect``: what a saved model holds."""

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gpu_encode.cli.columns import key_name, known
from gpu_encode.cli.transform import load
from gpu_encode.encoders.target import target_parts
from gpu_encode.moments import Moments
from gpu_encode.ops import resolve


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    encoder = load(Path(options.model))
    keys = list(encoder.columns)
    if options.column is not None:
        spoken = ["+".join(key) if isinstance(key, tuple) else key for key in keys]
        chosen = [spoken.index(known(spoken, options.column, "--column"))]
    else:
        chosen = list(range(len(keys)))
    report = describe(encoder, chosen, options.top)
    if options.json:
        sys.stdout.write(json.dumps(report, indent=2, default=str) + "\n")
    else:
        show(report)
    return 0


def describe(encoder: Any, chosen: list[int], top: int) -> dict[str, Any]:
    """Return what an encoder holds, in plain values.

    Parameters
    ----------
    encoder : TargetEncoder
        A fitted encoder.
    chosen : list of int
        The places of the columns to describe.
    top : int
        How many categories of each.
    """
    parameters = {name: value for name, value in encoder.get_params(deep=False).items() if name != "columns"}
    names = code_names(encoder)
    codes, categories = encoder.encodings_, encoder.categories_
    return {
        "target_type": plain(encoder.target_type_),
        "classes": plain(encoder.classes_),
        "target_mean": plain(encoder.target_mean_),
        "parameters": {name: str(value) for name, value in parameters.items()},
        "codes": names,
        "columns": [
            {
                "name": key_name(encoder.columns[place]),
                "categories": len(categories[place]),
                "top": weightiest(
                    categories[place],
                    weights(encoder, place),
                    codes[place * len(names) : (place + 1) * len(names)],
                    top,
                ),
            }
            for place in chosen
        ],
    }


def code_names(encoder: Any) -> list[str]:
    """Return what each code of a category is for: its target, class and fold, as they apply."""
    model = encoder._model
    n_views = model.statistics[0][0].n_views
    parts = [part for number, info in enumerate(model.targets) for part in target_parts(model, number, info)]
    folds = [f"_fold{fold}" for fold in range(n_views)] if n_views > 1 else [""]
    return [f"code{part}{fold}" for part in parts for fold in folds]


def weights(encoder: Any, place: int) -> Any:
    """Return the summed weight (the number of rows, unless weighted) behind each category of one column."""
    key, statistics = encoder._model.keys[place], encoder._model.statistics[place][0]
    # A blow-up column shows each row to all folds' encoders but one.
    n_views = max(statistics.n_views - 1, 1)
    weight = Moments.of(resolve(0), statistics.cells, statistics.measured, variances=False).n.sum(axis=(1, 2)) / n_views
    return np.append(weight[: key.n_categories], weight[-1:] if key.has_missing else [])


def weightiest(categories: Any, weight: Any, codes: list[Any], top: int) -> list[dict[str, Any]]:
    """Return the categories with the greatest weight.

    Examples
    --------
    >>> weightiest(["a", "b"], np.array([1.0, 2.0]), [np.array([0.25, 0.5])], 1)
    [{'category': 'b', 'weight': 2.0, 'codes': [0.5]}]
    """
    order = np.argsort(-weight, kind="stable")[:top]
    return [
        {
            "category": plain(categories[one]),
            "weight": plain(weight[one]),
            "codes": [plain(code[one]) for code in codes],
        }
        for one in order
    ]


def plain(value: Any) -> Any:
    """Return a value as JSON knows it.

    Examples
    --------
    >>> plain([np.float64(0.5), float("nan"), None])
    [0.5, None, None]
    """
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and math.isnan(value) else value


def shown(value: Any) -> str:
    """Return a value as people read it.

    Examples
    --------
    >>> shown(0.123456789), shown(["Bonn", None]), shown(3.0)
    ('0.123457', 'Bonn, missing', '3')
    """
    if isinstance(value, list):
        return ", ".join(map(shown, value))
    return "missing" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def show(report: dict[str, Any]) -> None:
    """Write the report for people."""
    console = Console(highlight=False)
    facts = Table(show_header=False)
    for name in ("target_type", "classes", "target_mean"):
        if report[name] is not None:
            facts.add_row(name.replace("_", " "), shown(report[name]))
    facts.add_section()
    for name, value in report["parameters"].items():
        facts.add_row(name, escape(value))
    console.print(facts)
    for one in report["columns"]:
        title = f"{one['name']}: {one['categories']:,} categories"
        if len(one["top"]) < one["categories"]:
            title += f", the {len(one['top'])} of greatest weight"
        console.print(f"\n{escape(title)}")
        table = Table()
        table.add_column("category", overflow="fold")
        table.add_column("weight", justify="right")
        for name in report["codes"]:
            table.add_column(name, justify="right")
        for row in one["top"]:
            table.add_row(escape(shown(row["category"])), f"{row['weight']:,.6g}", *map(shown, row["codes"]))
        console.print(table)
