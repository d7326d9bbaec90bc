"""comparison.md: every score, and what of it is more than noise."""

from typing import Any

import numpy as np

from benchmarks.comparison.models import MODELS, SCORES
from benchmarks.comparison.noise import Difference, difference, standard_error
from benchmarks.gpu.tables import table

Document = dict[str, Any]
Record = dict[str, Any]
COUNTS = "better / noise / worse"
USUAL = ("kfold-5", "auto")
LEGEND = """A score is the mean over outer folds, on rows that neither encoder nor model has seen; the gap is the score
on training rows, by the codes on which the model was trained, less that. Every contender has the same folds. Scores
of classes are areas under the ROC curve (of three classes: one against the rest, averaged), of numbers R2. `linear`
is LogisticRegression or Ridge on standardised columns, `tree` HistGradientBoosting with 60 trees of 15 leaves.

A difference is paired, fold by fold; after ± stands half of its 95 % interval, by Student's t with the correction of
Nadeau and Bengio for training rows that folds share. **Bold** is more than noise; with so many comparisons one in
twenty would be bold by chance alone."""


def names_in(document: Document, what: str) -> list[str]:
    """Values of a key of the cells, in the order in which they occur."""
    return list(dict.fromkeys(cell[what] for cell in document["cells"] if what in cell))


def cell_of(document: Document, **named: str) -> Record | None:
    """Give the cell of that name, if it has scores."""
    alike = (each for each in document["cells"] if all(each.get(key) == value for key, value in named.items()))
    found = next(alike, None)
    return found if found and found["test"] else None


def of_scheme(document: Document, dataset: str, model: str, scheme: str, smoothing: str) -> Record | None:
    """Give the cell of a scheme and a smoothing."""
    return cell_of(document, dataset=dataset, model=model, scheme=scheme, smoothing=smoothing)


def gap(cell: Record) -> float:
    """Score on training rows less that on new ones."""
    return float(np.mean(cell["train"]) - np.mean(cell["test"]))


def grid(document: Document, dataset: str, model: str) -> list[Record]:
    """One row for each scheme: score and gap for each smoothing."""
    rows = []
    for scheme in names_in(document, "scheme"):
        cells = {name: of_scheme(document, dataset, model, scheme, name) for name in names_in(document, "smoothing")}
        if any(cells.values()):
            texts = {
                name: f"{np.mean(cell['test']):.4f} ({gap(cell):+.3f})" if cell else "-" for name, cell in cells.items()
            }
            rows.append({"scheme": scheme, **texts})
    return rows


def baselines(document: Document, dataset: str, model: str) -> list[Record]:
    """What others do, beside ours as it comes."""
    rows = []
    usual = of_scheme(document, dataset, model, *USUAL)
    for name in names_in(document, "baseline"):
        cell = cell_of(document, dataset=dataset, model=model, baseline=name)
        if cell:
            row = {"baseline": name, "score": f"{np.mean(cell['test']):.4f} ({gap(cell):+.3f})"}
            row["standard error"] = f"{standard_error(cell['test']):.4f}"
            if usual:
                row[f"{' '.join(USUAL)} less it"] = str(difference(usual["test"], cell["test"]))
            rows.append(row)
    return rows


def differences(document: Document, what: str) -> dict[tuple[str, str, str], Difference]:
    """Every scheme (smoothing) less the usual one, at the usual smoothing (scheme), by its name, data set and model."""
    found = {}
    for dataset in names_in(document, "dataset"):
        for model in MODELS:
            usual = of_scheme(document, dataset, model, *USUAL)
            for name in names_in(document, what):
                asked = (name, USUAL[1]) if what == "scheme" else (USUAL[0], name)
                cell = of_scheme(document, dataset, model, *asked)
                if usual and cell and asked != USUAL:
                    found[name, dataset, model] = difference(cell["test"], usual["test"])
    return found


def across(document: Document, what: str) -> list[Record]:
    """Differences, a row for each scheme (smoothing), a column for each data set and model."""
    found = differences(document, what)
    rows: dict[str, Record] = {}
    for (name, dataset, model), each in found.items():
        rows.setdefault(name, {what: name})[f"{dataset}, {model}"] = str(each)
    for name, row in rows.items():
        all_of_it = [each for key, each in found.items() if key[0] == name]
        clear = [each.mean > 0 for each in all_of_it if not each.is_noise]
        row[COUNTS] = f"{sum(clear)} / {len(all_of_it) - len(clear)} / {len(clear) - sum(clear)}"
    columns = list(dict.fromkeys(key for row in rows.values() for key in row if key != COUNTS))
    return [{key: row.get(key) for key in [*columns, COUNTS]} for row in rows.values()]


def markdown(document: Document) -> str:
    """Give the whole report."""
    lines = ["# Schemes and smoothings on real data", ""]
    lines += [f"- {key}: {document[key]}" for key in ("cpu", "commit", "begun", "seconds", "folds", "most rows")]
    lines += [f"- versions: {', '.join(f'{name} {found}' for name, found in document['versions'].items())}"]
    lines += ["", LEGEND, ""]
    for what, other in (("scheme", f"smoothing {USUAL[1]}"), ("smoothing", f"scheme {USUAL[0]}")):
        lines += [
            f"## Each {what} less {USUAL[what == 'smoothing']}, with {other}",
            "",
            *table(across(document, what)),
            "",
        ]
    for described in document["datasets"]:
        name = described["dataset"]
        distinct = ", ".join(f"{key} {count:,}" for key, count in described["distinct values"].items())
        lines += [
            f"## {name}",
            "",
            f"{described['rows']:,} rows; {SCORES[described['target']]}. {described['said']}",
            "",
        ]
        lines += [f"Encoded columns and their distinct values: {distinct}.", ""]
        for model in MODELS:
            lines += [f"### {name}, {model}: score (gap)", "", *table(grid(document, name, model)), ""]
            lines += [*table(baselines(document, name, model)), ""]
    refused = sorted(
        {f"{cell['scheme']}, {cell['smoothing']}: {cell['refused']}" for cell in document["cells"] if "refused" in cell}
    )
    return "\n".join([*lines, *(["## Refused", "", *(f"- {each}" for each in refused), ""] if refused else [])])
