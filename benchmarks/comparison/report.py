"""comparison.md: every score, and what of it is more than noise."""

from typing import Any

import numpy as np

from benchmarks.comparison.scores import MODELS, SCORES, Difference, compare, standard_error
from benchmarks.harness.results import Document
from benchmarks.harness.tables import preface, table
from benchmarks.harness.worker import Record

COUNTS = "better / noise / worse"
USUAL = {"scheme": "kfold-5", "smoothing": "auto"}
LEGEND = """A score is the mean over outer folds, on rows that neither encoder nor model has seen; the gap is the score
on training rows, by the encodings on which the model was trained, less that. Every contender has the same folds. Scores
of classes are areas under the ROC curve (of three classes: one against the rest, averaged), of numbers R2. `linear`
is LogisticRegression or Ridge on standardised columns, `tree` HistGradientBoosting with 60 trees of 15 leaves.

A difference is paired, fold by fold; after ± stands half of its 95 % interval, by Student's t with the correction of
Nadeau and Bengio for training rows that folds share. **Bold** is more than noise; with so many comparisons one in
twenty would be bold by chance alone."""


def names_in(document: Document, axis: str) -> list[str]:
    """Values of an axis of the cells, in the order in which they occur."""
    return list(dict.fromkeys(cell[axis] for cell in document["cells"] if axis in cell))


def find(document: Document, **axes: str) -> Record | None:
    """Give the cell of these axes, if it has scores."""
    alike = (cell for cell in document["cells"] if axes.items() <= cell.items() and cell["test"])
    return next(alike, None)


def score_text(cell: Record | None) -> str:
    """Mean score, and the gap to that of training rows."""
    if cell is None:
        return "-"
    return f"{np.mean(cell['test']):.4f} ({np.mean(cell['train']) - np.mean(cell['test']):+.3f})"


def list_schemes(document: Document, **where: str) -> list[Record]:
    """One row for each scheme: score and gap for each smoothing."""
    smoothings = names_in(document, "smoothing")
    found = {
        scheme: {name: find(document, **where, scheme=scheme, smoothing=name) for name in smoothings}
        for scheme in names_in(document, "scheme")
    }
    return [
        {"scheme": scheme, **{name: score_text(cell) for name, cell in cells.items()}}
        for scheme, cells in found.items()
        if any(cells.values())
    ]


def list_baselines(document: Document, **where: str) -> list[Record]:
    """What others do, beside ours as it comes."""
    rows, usual = [], find(document, **where, **USUAL)
    for name in names_in(document, "baseline"):
        if cell := find(document, **where, baseline=name):
            row = {"baseline": name, "score": score_text(cell), "standard error": f"{standard_error(cell['test']):.4f}"}
            if usual:
                row[f"{' '.join(USUAL.values())} less it"] = str(compare(usual["test"], cell["test"]))
            rows.append(row)
    return rows


def list_differences(document: Document, axis: str) -> list[Record]:
    """Every scheme (smoothing) less the usual one, at the usual smoothing (scheme), by data set and model."""
    rows = []
    for name in names_in(document, axis):
        found: dict[str, Difference] = {}
        for dataset in names_in(document, "dataset"):
            for model in MODELS:
                where = {"dataset": dataset, "model": model}
                usual, cell = find(document, **where, **USUAL), find(document, **where, **USUAL | {axis: name})
                if usual and cell and name != USUAL[axis]:
                    found[f"{dataset}, {model}"] = compare(cell["test"], usual["test"])
        clear = [each.mean > 0 for each in found.values() if not each.is_noise]
        counts = f"{sum(clear)} / {len(found) - len(clear)} / {len(clear) - sum(clear)}"
        if found:
            rows.append({axis: name, COUNTS: counts, **{place: str(each) for place, each in found.items()}})
    return rows


def markdown(document: Document) -> str:
    """Give the whole report."""
    lines = [*preface(document, "Schemes and smoothings on real data"), "", LEGEND, ""]
    for axis, other in (("scheme", "smoothing"), ("smoothing", "scheme")):
        lines += [f"## Each {axis} less {USUAL[axis]}, with {other} {USUAL[other]}", ""]
        lines += [*table(list_differences(document, axis)), ""]
    for described in document["datasets"]:
        lines += describe_dataset(document, described)
    refused = sorted(
        {f"{cell['scheme']}, {cell['smoothing']}: {cell['refused']}" for cell in document["cells"] if "refused" in cell}
    )
    return "\n".join([*lines, *(["## Refused", "", *(f"- {each}" for each in refused), ""] if refused else [])])


def describe_dataset(document: Document, described: dict[str, Any]) -> list[str]:
    """Lines of one data set."""
    name = described["dataset"]
    distinct = ", ".join(f"{key} {count:,}" for key, count in described["distinct values"].items())
    lines = [f"## {name}", "", f"{described['rows']:,} rows; {SCORES[described['target']]}. {described['said']}", ""]
    lines += [f"Encoded columns and their distinct values: {distinct}.", ""]
    for model in MODELS:
        where = {"dataset": name, "model": model}
        lines += [f"### {name}, {model}: score (gap)", "", *table(list_schemes(document, **where)), ""]
        lines += [*table(list_baselines(document, **where)), ""]
    return lines
