"""comparison.md: every score, and the differences that are more than noise."""

import numpy as np

from benchmarks.harness.results import Document
from benchmarks.harness.tables import counts_text, preface, table
from benchmarks.harness.worker import Record
from studies.comparison.scores import MODELS, SCORES, Difference, compare, standard_error

COUNTS = "better / noise / worse"
USUAL = {"scheme": "kfold-5", "smoothing": "auto"}
LEGEND = """A score is the mean over outer folds, on rows that neither encoder nor model has seen. The gap is the score
on training rows, with the encodings on which the model was trained, minus that score. Every contender has the same
folds. Scores are areas under the ROC curve for classes (for three classes: one against the rest, averaged), and R2 for
numbers. `linear` is LogisticRegression or Ridge on standardised columns, `tree` HistGradientBoosting with 60 trees of
15 leaves.

Differences are paired, fold by fold; the number after ± is half of the 95 % interval, by Student's t with the
correction of Nadeau and Bengio for training rows that folds share. **Bold** differences are more than noise; with so
many comparisons, one in twenty would be bold by chance alone."""


def score_text(cell: Record) -> str:
    """Write the mean score, and its gap to the score on training rows."""
    return f"{np.mean(cell['test']):.4f} ({np.mean(cell['train']) - np.mean(cell['test']):+.3f})"


def is_usual(cell: Record) -> bool:
    """Whether a cell is ours with default parameters."""
    return USUAL.items() <= cell.items()


def list_schemes(cells: list[Record]) -> list[Record]:
    """Give a row for each scheme, with score and gap for each smoothing."""
    rows: dict[str, Record] = {}
    for cell in cells:
        if "scheme" in cell:
            rows.setdefault(cell["scheme"], {"scheme": cell["scheme"]})[cell["smoothing"]] = score_text(cell)
    return list(rows.values())


def list_baselines(cells: list[Record]) -> list[Record]:
    """Give a row for each other encoder, and one for ours with default parameters."""
    usual, rows = next(filter(is_usual, cells), None), []
    for cell in cells:
        if "baseline" in cell:
            error = f"{standard_error(cell['test']):.4f}"
            rows.append({"baseline": cell["baseline"], "score": score_text(cell), "standard error": error})
            if usual:
                rows[-1][f"{' '.join(USUAL.values())} less it"] = str(compare(usual["test"], cell["test"]))
    return rows


def list_differences(cells: list[Record], axis: str) -> list[Record]:
    """Give the difference of every scheme (smoothing) from the default, with the default smoothing (scheme)."""
    usual = {f"{cell['dataset']}, {cell['model']}": cell["test"] for cell in cells if is_usual(cell)}
    differences: dict[str, dict[str, Difference]] = {}
    for cell in cells:
        column = f"{cell['dataset']}, {cell['model']}"
        if column in usual and axis in cell and not is_usual(cell) and is_usual(cell | {axis: USUAL[axis]}):
            differences.setdefault(cell[axis], {})[column] = compare(cell["test"], usual[column])
    rows = []
    for name, columns in differences.items():
        better = [difference.mean > 0 for difference in columns.values() if not difference.is_noise]
        counts = f"{sum(better)} / {len(columns) - len(better)} / {len(better) - sum(better)}"
        rows.append({axis: name, COUNTS: counts, **{column: str(difference) for column, difference in columns.items()}})
    return rows


def markdown(document: Document) -> str:
    """Write the whole report."""
    cells = [cell for cell in document["cells"] if cell["test"]]
    lines = [*preface(document, "Schemes and smoothings on real data"), "", LEGEND, ""]
    for axis, other in (("scheme", "smoothing"), ("smoothing", "scheme")):
        lines += [f"## Each {axis} less {USUAL[axis]}, with {other} {USUAL[other]}", ""]
        lines += [*table(list_differences(cells, axis)), ""]
    for described in document["datasets"]:
        name = described["dataset"]
        distinct = counts_text(described["distinct values"])
        lines += [f"## {name}", "", f"{described['rows']:,} rows; {SCORES[described['target']]}. {described['said']}"]
        lines += ["", f"Encoded columns and their distinct values: {distinct}.", ""]
        for model in MODELS:
            part = [cell for cell in cells if (cell["dataset"], cell["model"]) == (name, model)]
            lines += [f"### {name}, {model}: score (gap)", "", *table(list_schemes(part)), ""]
            lines += [*table(list_baselines(part)), ""]
    refused = [cell for cell in document["cells"] if "refused" in cell]
    texts = sorted({f"- {cell['scheme']}, {cell['smoothing']}: {cell['refused']}" for cell in refused})
    return "\n".join([*lines, *(["## Refused", "", *texts, ""] if texts else [])])
