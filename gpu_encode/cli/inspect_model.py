"""``gpu-encode inspect``: show the content of a saved model."""

import argparse
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from sklearn.base import clone

from gpu_encode.cli.columns import find_column, key_name
from gpu_encode.cli.transform import load
from gpu_encode.encoders.base import names_at_fit
from gpu_encode.encoders.notebook import write_weight
from gpu_encode.encoders.one_hot.encoder import OneHotEncoder
from gpu_encode.fitting.model import counts_of, target_parts
from gpu_encode.methods.cluster.encoder import ClusterEncoder
from gpu_encode.schemes.ages import text_of_span
from gpu_encode.words.terminal import printable

# Number of classes, and of columns of encodings, that fit on a terminal.
MOST_SHOWN = 5


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    encoder = load(Path(options.model))
    spoken = ["+".join(key) if isinstance(key, tuple) else key for key in keys_of(encoder)]
    if options.column is not None:
        chosen = [spoken.index(find_column(spoken, options.column, "--column"))]
    else:
        chosen = list(range(len(spoken)))
    report = describe(encoder, chosen, options.top)
    if options.json:
        sys.stdout.write(json.dumps(report, indent=2, default=str, allow_nan=False) + "\n")
    else:
        show(report, {name: str(value) for name, value in parameters_of(encoder).items()})
    return 0


def describe(encoder: Any, chosen: list[int], top: int) -> dict[str, Any]:
    """Return the content of an encoder as plain values.

    Parameters
    ----------
    encoder : Encoder
        A fitted encoder.
    chosen : list of int
        Numbers of the columns to describe.
    top : int
        How many categories of each column to describe.
    """
    keys = keys_of(encoder)
    names = [encoding_names(encoder, number) for number in range(len(keys))]
    ends = np.cumsum([0, *map(len, names)])
    # An encoder that hashes values keeps neither categories nor encodings.
    encodings, categories = getattr(encoder, "encodings_", None), getattr(encoder, "categories_", None)
    return {
        "encoder": type(encoder).__name__,
        "target_type": plain(getattr(encoder, "target_type_", None)),
        "classes": plain(getattr(encoder, "classes_", None)),
        "target_mean": plain(getattr(encoder, "target_mean_", None)),
        "parameters": plain(parameters_of(encoder)),
        "origin": encoder.origin_,
        "columns": [
            {
                "name": key_name(keys[number]),
                "encodings": names[number],
                "categories": None if categories is None else len(categories[number]),
                "top": []
                if categories is None or encodings is None
                else weightiest(
                    categories[number], weights(encoder, number), encodings[ends[number] : ends[number + 1]], top
                ),
            }
            for number in chosen
        ],
    }


def parameters_of(encoder: Any) -> dict[str, Any]:
    """Return the parameters of an encoder without the columns, which are described elsewhere."""
    given = encoder.get_params(deep=False)
    return {name: with_spans_as_text(value) for name, value in given.items() if name != "columns"}


def with_spans_as_text(value: Any) -> Any:
    """Return a parameter with its timedeltas as text, which options of the command line accept."""
    if isinstance(value, Mapping):
        return {key: with_spans_as_text(one) for key, one in value.items()}
    if hasattr(value, "get_params") and not isinstance(value, type):
        parts = {name: with_spans_as_text(part) for name, part in value.get_params(deep=False).items()}
        return clone(value).set_params(**parts)
    return text_of_span(value)


def keys_of(encoder: Any) -> list[Any]:
    """Return the encoded columns and joint keys by name, also if the user has not listed them."""
    model = encoder._model
    names = names_at_fit(model)
    members = [tuple(names[position] for position in entry.members) for entry in model.selection.entries]
    return [key if len(key) > 1 else key[0] for key in members]


def encoding_names(encoder: Any, number: int) -> list[str]:
    """Describe each encoding of a category: its target, class, statistic and fold, if it has them."""
    model = encoder._model
    if isinstance(encoder, ClusterEncoder):
        width = encoder._model.learned.tables()[number].shape[1]
        return ["encoding"] if width == 1 else [f"encoding_cluster{cluster}" for cluster in range(width)]
    n_views = model.statistics[0][0].n_views
    folds = [f"_fold{fold}" for fold in range(n_views)] if n_views > 1 else [""]
    statistic = model.rules[number].statistic
    return [
        f"encoding{part}{suffix}{fold}"
        for target, info in enumerate(model.targets)
        for part in target_parts(model, target, info)
        for suffix in statistic.of_target(target).suffixes()
        for fold in folds
    ]


def weights(encoder: Any, number: int) -> Any:
    """Return the summed weight (without weights, the number of rows) of each category of one column."""
    key, weight = encoder._model.keys[number], counts_of(encoder._model.statistics[number][0])
    if isinstance(encoder, OneHotEncoder):
        # It lists the categories that have rows.
        return weight[encoder._columns.by_key[number].rows]
    return np.append(weight[: key.n_categories], weight[-1:] if key.has_missing else [])


def weightiest(categories: Any, weight: Any, encodings: list[Any], top: int) -> list[dict[str, Any]]:
    """Return the categories with the most weight.

    Examples
    --------
    >>> weightiest(["a", "b"], np.array([1.0, 2.0]), [np.array([0.25, 0.5])], 1)
    [{'category': 'b', 'weight': 2.0, 'encodings': [0.5]}]
    """
    order = np.argsort(-weight, kind="stable")[:top]
    return [
        {
            "category": plain(categories[one]),
            "weight": plain(weight[one]),
            "encodings": [plain(values[one]) for values in encodings],
        }
        for one in order
    ]


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it; infinite numbers, and values without a type in JSON, become text.

    Examples
    --------
    >>> plain([np.float64(0.5), float("nan"), None, float("inf"), {"shop": 20.0}])
    [0.5, None, None, 'inf', {'shop': 20.0}]
    >>> from gpu_encode import MEstimate
    >>> plain(MEstimate(10.0))
    {'class': 'MEstimate', 'parameters': {'m': 10.0}}
    """
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, Mapping):
        return {key_name(key) if isinstance(key, tuple) else str(key): plain(one) for key, one in value.items()}
    if hasattr(value, "get_params") and not isinstance(value, type):
        return {"class": type(value).__name__, "parameters": plain(value.get_params(deep=False))}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def text_of(value: Any) -> str:
    """Return a value as readable text.

    Examples
    --------
    >>> text_of(0.123456789), text_of(["Bonn", None]), text_of(3.0)
    ('0.123457', 'Bonn, missing', '3')
    """
    if isinstance(value, list):
        return ", ".join(map(text_of, value))
    return "missing" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def shorten(value: Any) -> str:
    """Return a value as readable text; a long list is shortened.

    Examples
    --------
    >>> shorten(list(range(20)))
    '0, 1, 2, 3, 4, ... (20 in all)'
    """
    if isinstance(value, list) and len(value) > 2 * MOST_SHOWN:
        return f"{text_of(value[:MOST_SHOWN])}, ... ({len(value)} in all)"
    return text_of(value)


def facts_of(report: dict[str, Any], parameters: dict[str, str]) -> Table:
    """Give the facts of an encoder, its parameters and its origin as a table."""
    facts = Table(show_header=False)
    for name in ("encoder", "target_type", "classes", "target_mean"):
        if report[name] is not None:
            facts.add_row(name.replace("_", " "), escape(printable(shorten(report[name]))))
    facts.add_section()
    for name, value in parameters.items():
        facts.add_row(name, escape(printable(value)))
    facts.add_section()
    named = {"library": "fitted by version", "day": "fitted on (UTC)", "learned": "what was learned"}
    for name, fact in report["origin"].items():
        # A model of an earlier release does not tell its version and day.
        shown = "not recorded" if fact is None else f"{fact:,.15g}" if name == "rows" else fact
        facts.add_row(named.get(name, name), shown)
    return facts


def show(report: dict[str, Any], parameters: dict[str, str]) -> None:
    """Print the report as text, with the parameters as they are written in Python."""
    console = Console(highlight=False)
    console.print(facts_of(report, parameters))
    for one in report["columns"]:
        if one["categories"] is None:
            console.print(f"\n{escape(printable(one['name']))}: its values are hashed, and no categories are kept")
            continue
        title = f"{one['name']}: {one['categories']:,} categories"
        if len(one["top"]) < one["categories"]:
            title += f", the {len(one['top'])} of greatest weight"
        shown = one["encodings"][:MOST_SHOWN]
        if len(shown) < len(one["encodings"]):
            title += f"; {len(shown)} of {len(one['encodings'])} columns of encodings (--json has all)"
        console.print(f"\n{escape(printable(title))}")
        table = Table()
        table.add_column("category", overflow="fold")
        table.add_column("weight", justify="right")
        for name in shown:
            table.add_column(escape(printable(name)), justify="right")
        for row in one["top"]:
            numbers = (escape(printable(text_of(one))) for one in row["encodings"][: len(shown)])
            table.add_row(escape(printable(text_of(row["category"]))), write_weight(row["weight"]), *numbers)
        console.print(table)
