"""methods.md: the AUC of every method with its standard error, the choice, and differences beyond noise."""

import json
from collections import Counter

import numpy as np
from scipy.stats import rankdata, studentized_range

from benchmarks.harness.results import Document
from benchmarks.harness.tables import counts_text, preface, table
from benchmarks.harness.worker import Record
from studies.comparison.scores import compare, standard_error

USUAL = "m-estimates: boosted trees"
LEGEND = f"""A score is the mean ROC AUC over outer folds, on rows that neither encoder nor model has seen.
Parameters are chosen on the training rows of each outer fold, by three inner folds. `best on test` is the score of the
choice that is best on the test rows, which nobody can know beforehand. The standard error is that of Nadeau and Bengio,
for training rows that folds share. Differences to "{USUAL}" are paired, fold by fold; the number after ± is half of an
interval, and the intervals of all lines of a table hold together with a probability of 95 % (Bonferroni). **Bold**
differences are more than noise. The choice is the one of most folds. Seconds are those of one outer fold, with all
choices and inner folds, on one thread of a machine that other work shared."""

ONE_SPLIT = """Trained once on the first rows, and scored on all others: the table has no standard error and no
interval, and says nothing of noise."""

TABLES = """The mean AUC of each method on each table, the mean over the tables, and the mean rank (1 is the best of a
table). Differences to "{usual}" are paired, table by table; the number after ± is half of an interval, and the
intervals of all lines hold together with a probability of 95 % (Student's t over {n_tables} tables, Bonferroni).
**Bold** differences are more than noise. Two mean ranks differ by more than noise if they are {distance:.1f} apart
(Nemenyi's test at 5 %; Demšar, 2006, "Statistical comparisons of classifiers over multiple data sets")."""

BLENDS = """Ranks of two methods are mixed; the share, one of eleven, is chosen on the rows of the other outer folds,
whose models have seen the rows of this fold. Of all pairs the list has those with the best scores on the test rows, so
these scores are too good; the intervals hold for all pairs together. The correlations and the cosine compare the scores
of the two methods, and are means over folds."""


def list_blends(document: Document, name: str) -> list[Record]:
    """Give a row for each blend on one table, the best first."""
    numbers = ("Pearson", "Spearman", "cosine")
    return [
        blend | {"AUC": f"{blend['AUC']:.4f}"} | {key: f"{blend[key]:.3f}" for key in numbers}
        for blend in document["blends"][name]
    ]


def choice_text(choices: list[Record]) -> str:
    """Write the choice that most folds made."""
    counts = Counter(json.dumps(choice) for choice in choices)
    usual, _ = counts.most_common(1)[0]
    return ", ".join(f"{name} {value}" for name, value in json.loads(usual).items())


def list_methods(cells: list[Record]) -> list[Record]:
    """Give a row for each method on one table, the best first."""
    usual = next((cell for cell in cells if cell["method"] == USUAL), None)
    rows = []
    for cell in sorted(cells, key=lambda cell: -np.mean(cell["auc"])):
        row = {"method": cell["method"], "family": cell["family"], "AUC": f"{np.mean(cell['auc']):.4f}"}
        if len(cell["auc"]) > 1:
            row["standard error"] = f"{standard_error(cell['auc']):.4f}"
            if usual is not None:
                difference = compare(cell["auc"], usual["auc"], len(cells) - 1 or 1)
                row[f"less {USUAL}"] = "" if cell is usual else str(difference)
        row |= {"best on test": f"{np.mean(cell['best on test']):.4f}", "choice": choice_text(cell["choice"])}
        rows.append(row | {"seconds": f"{np.mean(cell['seconds']):.1f}"})
    return rows


def areas_of(document: Document) -> dict[str, list[float]]:
    """Give the mean AUC of each method on each table, in their order."""
    areas: dict[str, list[float]] = {}
    for cell in document["cells"]:
        areas.setdefault(cell["method"], []).append(float(np.mean(cell["auc"])))
    return areas


def list_tables(document: Document) -> list[Record]:
    """Give a row for each method over all tables, the best mean first."""
    areas = areas_of(document)
    ranks = np.mean([rankdata(-column) for column in np.array(list(areas.values())).T], axis=0)
    rows = []
    for (method, of_tables), rank in sorted(zip(areas.items(), ranks, strict=True), key=lambda each: -sum(each[0][1])):
        row: Record = {"method": method, "mean": f"{np.mean(of_tables):.4f}", "mean rank": f"{rank:.1f}"}
        if USUAL in areas:
            difference = compare(of_tables, areas[USUAL], len(areas) - 1 or 1, apart=True)
            row[f"less {USUAL}"] = "" if method == USUAL else str(difference)
        names = [described["dataset"] for described in document["datasets"]]
        rows.append(row | {name: f"{area:.4f}" for name, area in zip(names, of_tables, strict=True)})
    return rows


def over_tables(document: Document) -> list[str]:
    """Write the lines that compare methods over all tables; none of a single table, or while tables are unfinished."""
    areas, n_tables = areas_of(document), len(document["datasets"])
    if n_tables < 2 or {len(of_tables) for of_tables in areas.values()} != {n_tables}:
        return []
    k = len(areas)
    # The quantile of Nemenyi's test is that of the range of k normal numbers, divided by the root of two.
    distance = studentized_range.ppf(0.95, k, np.inf) * np.sqrt(k * (k + 1) / (12 * n_tables)) if k > 1 else 0.0
    text = TABLES.format(usual=USUAL, n_tables=n_tables, distance=distance)
    return ["## All tables", "", text, "", *table(list_tables(document)), ""]


def markdown(document: Document) -> str:
    """Write the whole report."""
    lines = [*preface(document, "Every method on tables of categorical columns"), "", LEGEND, ""]
    if document.get("split"):
        lines += [ONE_SPLIT, ""]
    lines += over_tables(document)
    for described in document["datasets"]:
        name = described["dataset"]
        distinct = counts_text(described["distinct values"])
        lines += [
            f"## {name}",
            "",
            f"{described['rows']:,} rows; class 1: {described['target']} ({described['share']:.1%}).",
        ]
        lines += ["", f"Columns and their distinct values: {distinct}.", ""]
        lines += [*table(list_methods([cell for cell in document["cells"] if cell["dataset"] == name])), ""]
        if document["blends"].get(name):
            lines += [f"### {name}: the best blends of two", "", BLENDS, "", *table(list_blends(document, name)), ""]
    return "\n".join(lines)
