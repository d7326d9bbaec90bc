"""A fitted encoder in a notebook: its scheme, its keys, and how far smoothing moved their encodings."""

from typing import Any

import numpy as np

from gpu_encode.encoders.key_summary import KeySummary
from gpu_encode.fitting.model import Model
from gpu_encode.formulas.smoothing import Smoothing
from gpu_encode.words.terminal import in_html

# The most keys that are shown, and the most categories of each key.
MOST_KEYS, MOST_MOVES = 20, 20
HEADS = ["category", "rows", "mean", "encoding", "moved by"]
STYLE = """
.gpu-encode {font-size: 0.9em; margin-top: .5em}
.gpu-encode summary {cursor: pointer; padding: .2em 0}
.gpu-encode details > div {overflow-x: auto}
.gpu-encode table {border-collapse: collapse; margin: .3em 0 .6em .9em}
.gpu-encode caption {text-align: left; white-space: nowrap; opacity: .8}
.gpu-encode th, .gpu-encode td {text-align: right; padding: .1em .4em; white-space: nowrap;
  border-bottom: 1px solid rgba(128, 128, 128, .4)}
.gpu-encode th:first-child, .gpu-encode td:first-child {text-align: left}
""".strip()


def describe(model: Model, facts: dict[str, Any]) -> str:
    """Write HTML that describes a model, to stand below scikit-learn's diagram; `facts` come first."""
    shown = range(min(len(model.keys), MOST_KEYS))
    smooths = model.by_key and all(isinstance(rule.statistic, Smoothing) for rule in model.rules)
    tables = model.tables if smooths else []
    keys = [
        describe_means(KeySummary.of(model, number, tables[number][0]))
        if tables
        else count_categories(model.keys[number])
        for number in shown
    ]
    told = "; ".join(f"{name} {in_html(write(value))}" for name, value in facts.items() if value is not None)
    rest = len(model.keys) - len(keys)
    return "\n".join(
        [
            f'<style>\n{STYLE}\n</style>\n<div class="gpu-encode">',
            *([f"<div>{told}</div>"] if told else []),
            *keys,
            *([f"<div>and {rest:,} more keys</div>"] if rest else []),
            "</div>",
        ]
    )


def describe_means(summary: KeySummary) -> str:
    """Write a table of the categories of a key that smoothing has moved the most, all their rows together.

    The category that moved the most by itself nearly always has a single row.
    """
    moves = np.abs(summary.moves) * summary.weights
    order = np.argsort(-np.nan_to_num(moves, nan=-1.0), kind="stable")[:MOST_MOVES]
    rows = [write_weight(float(weight)) for weight in summary.weights[order]]
    columns = (rows, *(write_alike(each[order]) for each in (summary.means, summary.encodings, summary.moves)))
    lines = [
        cells("td", [shorten(category), *texts])
        for category, *texts in zip(summary.categories(order), *columns, strict=True)
    ]
    head = f"{in_html(summary.name)}: {len(summary.weights):,} categories, prior {write(summary.prior)}"
    order_told = "<caption>sorted by rows times move</caption>"
    table = f"<table>{order_told}{cells('th', HEADS)}{''.join(lines)}</table>"
    return f"<details><summary>{head}</summary><div>{table}</div></details>"


def count_categories(key: Any) -> str:
    """Write the name of a key and its number of categories."""
    number = key.n_categories + key.has_missing
    told = f"{number:,} categories" if number else "no categories are kept"
    return f"<div>{in_html(key.entry.name)}: {told}</div>"


def cells(kind: str, texts: list[str]) -> str:
    """Write a row of a table; `kind` is the HTML tag of its cells."""
    return f"<tr>{''.join(f'<{kind}>{in_html(text)}</{kind}>' for text in texts)}</tr>"


def shorten(category: Any) -> str:
    """Write a category; of a long one, only the beginning."""
    text = "missing" if category is None else str(category)
    return text if len(text) <= 60 else f"{text[:59]}…"


def write_alike(values: Any) -> list[str]:
    """Write numbers with equally many decimals, so that digits stand below one another; the largest has five digits.

    Examples
    --------
    >>> write_alike(np.array([0.5, -12.3456789]))
    ['0.500', '-12.346']
    """
    largest = np.max(np.abs(values), where=np.isfinite(values), initial=0.0)
    if not 1e-4 <= largest < 1e6:
        return [write(float(value)) for value in values]
    decimals = max(4 - int(np.floor(np.log10(largest))), 0)
    return [f"{value:.{decimals}f}" for value in values]


def write_weight(weight: float) -> str:
    """Write a number of rows with all of its digits, and a sum of weights with six.

    Examples
    --------
    >>> write_weight(1234567.0), write_weight(1234567.25), write_weight(0.123456789)
    ('1,234,567', '1,234,567', '0.123457')
    """
    return f"{weight:,.0f}" if weight.is_integer() or weight >= 1e6 else f"{weight:,.6g}"


def write(value: Any) -> str:
    """Write a value; a number gets six digits.

    Examples
    --------
    >>> write(0.123456789), write(1234.0), write("binary")
    ('0.123457', '1234', 'binary')
    """
    if isinstance(value, float):
        return f"{value:.6g}"
    return np.array2string(value, precision=6) if isinstance(value, np.ndarray) else str(value)
