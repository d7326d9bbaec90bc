"""What the best methods of D'yakonov's paper need: unlabelled rows, other pairs, more terms, all rows, equal ranks.

    python -m studies.recipes [--draws 10] [--rows 4000] [--only PART ...] [--out FOLDER]
    python -m studies.recipes TABLE --target COLUMN --positive VALUE --columns a,b,c --resource a --split N
    python -m studies.recipes --quick                       # every line once, on few rows; measures nothing

Without a table, rows are made here: employees ask for access to resources, and most requests are granted, as in the
table of the paper, which is not in this repository.  Each draw has other employees, resources and rows, so the draws
are independent.  With a table, the first N rows train and the others are scored, once.

The table is that of D'yakonov, "Solution methods for classification problems with categorical attributes",
Computational Mathematics and Modeling 26(3), 2015, sections 7, 9 and 10.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

import gpu_encode as ge
from benchmarks.harness import machine
from benchmarks.harness.arguments import folder_of, names_of, whole_number
from benchmarks.harness.results import Document, save
from benchmarks.harness.tables import preface, table
from benchmarks.harness.worker import Record
from studies.comparison.scores import compare, standard_error
from studies.methods.classifiers import RandomCodesForest, forest, scores_of
from studies.methods.methods import Task, logit_linear
from studies.methods.tables import Table, add_options, read

PACKAGES = ("gpu-encode", "numpy", "pandas", "scikit-learn", "scipy")
RESOURCE, USER = ["resource", "system"], ["manager", "department", "title", "family"]
LEGEND = """Mean ROC AUC of new rows over draws, and its standard error. Differences to the first line of a part are
paired, draw by draw; the number after ± is half of an interval by Student's t, and the intervals of one part hold
together with a probability of 95 % (Bonferroni). **Bold** differences are more than noise."""


@dataclass(frozen=True)
class Draw:
    """Rows to train on, new rows, and more rows without a target.

    Parameters
    ----------
    X, X_new, unlabelled : DataFrame
        The new rows are part of the unlabelled ones.
    y, y_new : int64 ndarray
    resource, user : list of str
        Columns that describe what is asked for, and who asks.
    """

    X: pd.DataFrame
    y: np.ndarray
    X_new: pd.DataFrame
    y_new: np.ndarray
    unlabelled: pd.DataFrame
    resource: list[str]
    user: list[str]

    def apart(self) -> "Draw":
        """Give a fifth of the training rows as new rows of the others, to choose shares of blends."""
        kept, held = train_test_split(np.arange(len(self.y)), test_size=0.2, stratify=self.y, random_state=0)
        X, X_held = (self.X.iloc[rows].reset_index(drop=True) for rows in (kept, held))
        both = pd.concat([X_held, self.unlabelled], ignore_index=True)
        return Draw(X, self.y[kept], X_held, self.y[held], both, self.resource, self.user)


def generate(n_rows: int, seed: int) -> Draw:
    """Make requests of employees for resources; there are as many new rows, and twice as many without a target.

    An employee asks for resources that suit the department, so that pairs tell what a resource is for.  A request is
    granted if the resource suits the title, if the manager is generous, and if the system is open.
    """
    random = np.random.default_rng(seed)
    n_departments, n_titles, n_resources, n_employees = 60, 150, 800, n_rows
    of_department = random.normal(size=(n_departments, 3))
    title_of, department_of = random.integers(n_departments, size=n_titles), random.integers(n_departments, size=500)
    of_title = of_department[title_of] + 0.7 * random.normal(size=(n_titles, 3))
    system = random.integers(40, size=n_resources)
    of_resource = random.normal(size=(40, 3))[system] + 0.7 * random.normal(size=(n_resources, 3))
    popularity = random.lognormal(sigma=1.0, size=n_resources)
    manager = random.integers(500, size=n_employees)
    by_department = [np.flatnonzero(title_of == department) for department in range(n_departments)]
    titles = np.array([random.choice(by_department[d]) if len(by_department[d]) else 0 for d in department_of[manager]])
    who = random.integers(n_employees, size=4 * n_rows)
    department = department_of[manager[who]]
    odds = np.exp(of_department @ of_resource.T) * popularity
    bounds = np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)
    what = np.array([np.searchsorted(bounds[d], u) for d, u in zip(department, random.random(len(who)), strict=True)])
    what = np.minimum(what, n_resources - 1)
    suits = (of_title[titles[who]] * of_resource[what]).sum(axis=1) / np.sqrt(3)
    generous, is_open = random.normal(size=500)[manager[who]], random.normal(size=n_resources)[what]
    y = (2.0 + 0.8 * suits + 0.8 * generous + 0.8 * is_open + random.logistic(size=len(who)) > 0).astype(np.int64)
    codes = {"resource": what, "system": system[what], "manager": manager[who], "department": department}
    codes |= {"title": titles[who], "family": titles[who] // 8}
    X = pd.DataFrame({name: [f"{name}-{code}" for code in values] for name, values in codes.items()}).astype(object)
    parts = [X.iloc[low : low + n_rows].reset_index(drop=True) for low in (0, n_rows)]
    rest = X.iloc[n_rows:].reset_index(drop=True)
    return Draw(parts[0], y[:n_rows], parts[1], y[n_rows : 2 * n_rows], rest, RESOURCE, USER)


def split(data: Table, n_first: int, resource: list[str]) -> Draw:
    """Train on the first rows of a table, and score all others, which are counted without their targets, too."""
    X, X_new = data.X.iloc[:n_first], data.X.iloc[n_first:].reset_index(drop=True)
    user = [name for name in data.X.columns if name not in resource]
    return Draw(X, data.y[:n_first], X_new, data.y[n_first:], X_new, resource, user)


def cooccurring(
    draw: Draw, pairs: str = "all", k: int = 5, unlabelled: bool = False, trees: int = 100, against: str | None = None
) -> np.ndarray:
    """Score new rows by a forest on co-occurrence codes."""
    both = [*product(draw.user, draw.resource), *product(draw.resource, draw.user)]
    chosen: Any = {"all": "all", "users by resources": (draw.user, draw.resource), "both sides": both}[pairs]
    encoder = ge.CooccurrenceEncoder(k, pairs=chosen, against=against)
    encoder.fit(draw.X, unlabelled=draw.unlabelled if unlabelled else None)
    model = forest(n_estimators=trees).fit(encoder.transform(draw.X), draw.y)
    return scores_of(model, encoder.transform(draw.X_new))


def proximity(draw: Draw, order: int = 2, **given: Any) -> np.ndarray:
    """Score new rows by the votes of training rows."""
    return scores_of(ge.ProximityClassifier(order, **given).fit(draw.X, draw.y), draw.X_new)


def logits(draw: Draw) -> np.ndarray:
    """Score new rows by a linear model on the logits of columns and pairs."""
    task = Task(list(draw.X.columns), 2, draw.unlabelled)
    return scores_of(logit_linear(task, C=0.01).fit(draw.X, draw.y), draw.X_new)


def random_codes(draw: Draw) -> np.ndarray:
    """Score new rows by forests on random codes."""
    return scores_of(RandomCodesForest(list(draw.X.columns)).fit(draw.X, draw.y), draw.X_new)


Scorer = Callable[[Draw], np.ndarray]
MODELS: dict[str, Scorer] = {
    "logits of pairs": logits,
    "forest on co-occurrence": partial(cooccurring, pairs="both sides", k=20, unlabelled=True),
    "proximity": partial(proximity, tuning_rows=None),
    "random codes": random_codes,
}


def blends(draw: Draw) -> dict[str, np.ndarray]:
    """Score new rows by each of several models, by equal ranks, and by shares that were chosen on a fifth of the rows.

    All models learn from all training rows at last, whatever chose the shares.
    """
    scores = {name: model(draw) for name, model in MODELS.items()}
    ranks = {name: rankdata(of_model) for name, of_model in scores.items()}
    lines = dict(scores)
    for size in (2, 3, 4):
        names = list(MODELS)[:size]
        lines[f"equal ranks of the first {size}"] = np.mean([ranks[name] for name in names], axis=0)
    held, part = draw.apart(), np.column_stack(list(scores.values()))
    P = np.column_stack([model(held) for model in MODELS.values()])
    for is_ranked in (False, True):
        blend = ge.ConvexBlend(ranks=is_ranked, grid=101).fit(P, held.y_new)
        lines[f"chosen shares of all 4{', of ranks' if is_ranked else ''}"] = blend.predict(part)
    return lines


def each(lines: dict[str, Scorer], draw: Draw) -> dict[str, np.ndarray]:
    """Score new rows by each line."""
    return {name: line(draw) for name, line in lines.items()}


FORESTS: dict[str, Scorer] = {
    "all pairs, 5 components, 100 trees": cooccurring,
    "and unlabelled rows": partial(cooccurring, unlabelled=True),
    "against the rest": partial(cooccurring, against="rest"),
    "users by resources": partial(cooccurring, pairs="users by resources"),
    "users by resources, and back": partial(cooccurring, pairs="both sides"),
    "2 components": partial(cooccurring, k=2),
    "20 components": partial(cooccurring, k=20),
    "500 trees": partial(cooccurring, trees=500),
    "users by resources, and back; 20 components": partial(cooccurring, pairs="both sides", k=20),
    "and 500 trees": partial(cooccurring, pairs="both sides", k=20, trees=500),
    "and unlabelled rows, 500 trees": partial(cooccurring, pairs="both sides", k=20, unlabelled=True, trees=500),
}
VOTES: dict[str, Scorer] = {
    "pairs, tuned on 1,000 rows": partial(proximity, tuning_rows=1_000),
    "pairs, tuned on all rows": partial(proximity, tuning_rows=None),
    "columns alone, tuned on all rows": partial(proximity, order=1, tuning_rows=None),
    "triples, tuned on all rows": partial(proximity, order=3, tuning_rows=None),
    "triples, tuned on 1,000 rows": partial(proximity, order=3, tuning_rows=1_000),
    "pairs, on all rows, finer steps (tol 0.03)": partial(proximity, tuning_rows=None, tol=0.03),
    "pairs, on all rows, as a difference": partial(proximity, tuning_rows=None, form="difference"),
}
PARTS: dict[str, Callable[[Draw], dict[str, np.ndarray]]] = {
    "co-occurrence": partial(each, FORESTS),
    "proximity": partial(each, VOTES),
    "blends": blends,
}


def measure(draw: Draw, parts: list[str]) -> dict[str, dict[str, float]]:
    """Give the area of each line of each part."""
    with threadpool_limits(1), warnings.catch_warnings():
        # Most values of conjunctions in new rows may be new.
        warnings.simplefilter("ignore", ge.UnseenWarning)
        answers = {part: PARTS[part](draw) for part in parts}
    return {
        part: {name: float(roc_auc_score(draw.y_new, scores)) for name, scores in lines.items()}
        for part, lines in answers.items()
    }


def list_lines(cells: list[Record]) -> list[Record]:
    """Give a row for each line of a part."""
    rows = []
    for cell in cells:
        row: Record = {"line": cell["line"], "AUC": f"{np.mean(cell['auc']):.4f}"}
        if len(cell["auc"]) > 1:
            row["standard error"] = f"{standard_error(cell['auc'], apart=True):.4f}"
            difference = compare(cell["auc"], cells[0]["auc"], len(cells) - 1 or 1, apart=True)
            row["less the first line"] = "" if cell is cells[0] else str(difference)
        rows.append(row)
    return rows


def markdown(document: Document) -> str:
    """Write the whole report."""
    lines = [*preface(document, "Recipes for categorical columns"), "", LEGEND, "", document["said"], ""]
    for part in dict.fromkeys(cell["part"] for cell in document["cells"]):
        lines += [f"## {part}", "", *table(list_lines([c for c in document["cells"] if c["part"] == part])), ""]
    return "\n".join(lines)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.recipes", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser)
    add = parser.add_argument
    add("--resource", type=lambda text: text.split(","), default=[], help="columns of what is asked for")
    add("--split", type=whole_number, metavar="N", help="of a table: train on the first N rows, score the others")
    add("--draws", type=whole_number, default=10, help="independent tables that are made")
    add("--rows", type=whole_number, default=4_000, help="training rows of each draw")
    add("--only", type=names_of(PARTS, "part"), default=list(PARTS), help="separated by commas")
    add("--out", "--output", type=Path, help="folder of the results")
    options = parser.parse_args(arguments)
    if options.tables and (options.split is None or not options.resource or len(options.tables) > 1):
        parser.error("of one table, --split N and --resource COLUMNS are needed")
    return options


def make_draws(options: argparse.Namespace) -> Iterator[Draw]:
    """Read the table, or make tables."""
    if not options.tables:
        n_draws, n_rows = (2, min(options.rows, 200)) if options.quick else (options.draws, options.rows)
        yield from (generate(n_rows, seed) for seed in range(n_draws))
        return
    data = read(options.tables[0], options.target, options.columns, options.positive, None, options.numbers)
    yield split(data, options.split, options.resource)


def main(arguments: list[str] | None = None) -> int:
    """Run it; return 2 if a table cannot be used."""
    options = parse(arguments)
    path = folder_of(options, "recipes") / "recipes.json"
    document = machine.describe(PACKAGES, True) | {"quick": options.quick, "rows": options.rows, "cells": []}
    cells: dict[tuple[str, str], list[float]] = {}
    try:
        for number, draw in enumerate(make_draws(options), 1):
            for part, areas in measure(draw, options.only).items():
                for line, area in areas.items():
                    cells.setdefault((part, line), []).append(area)
            document["cells"] = [{"part": part, "line": line, "auc": auc} for (part, line), auc in cells.items()]
            document["said"] = f"{number} draws of {len(draw.y):,} training and {len(draw.y_new):,} new rows."
            save(document, path, markdown(document))
            print(number, flush=True)
    except (ValueError, OSError) as reason:
        print(reason, file=sys.stderr)
        return 2
    print(path.with_suffix(".md"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
