"""What do pairs and triples of columns add, measured on rows that had no part in choosing, encoding or training?

    python -m studies.pairs adult.parquet income workclass,education,occupation,... [--order 3] [--top 20] [--folds 5]

Three choices of keys are compared: the columns alone, all their conjunctions, and the conjunctions that
`choose_interactions` keeps in the training rows of each outer fold. `cross_val_transform` encodes each choice; boosted
trees and a linear model are fitted to the training encodings, and scored by the area under the ROC curve of the outer
fold. The gain over single columns is computed on the same folds, with its standard error over folds.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpu_encode import TargetEncoder, choose_interactions, cross_val_transform, interactions, roc_auc_score

MODELS: dict[str, Callable[[], Any]] = {
    "boosted trees": lambda: HistGradientBoostingClassifier(max_iter=150, learning_rate=0.08, random_state=0),
    "linear": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
}


def compare(X: pd.DataFrame, y: Any, columns: Sequence[str], order: int, top: int, folds: int) -> list[dict[str, Any]]:
    """Score every choice of keys under every model, fold by fold.

    Returns
    -------
    list of dict
        One for each choice of keys and model: number of keys, area, gain over single columns and its standard error.
    """
    outer = list(StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y))
    single = TargetEncoder(columns=list(columns))

    def choose(encoder: TargetEncoder, rows: Any, target: Any) -> TargetEncoder:
        return choose_interactions(encoder, rows, target, order=order, forward="once", top=top).encoder

    ways: dict[str, tuple[TargetEncoder, Any]] = {
        "single columns": (single, None),
        f"all of up to {order}": (TargetEncoder(columns=interactions(columns, order=order)), None),
        f"the best {top}": (single, choose),
    }
    areas: dict[tuple[str, str], list[float]] = {}
    keys: dict[str, list[int]] = {name: [] for name in ways}
    for name, (encoder, choice) in ways.items():
        for fold in cross_val_transform(encoder, X[list(columns)], y, cv=outer, choose=choice):
            keys[name].append(fold.encoded_train.shape[1])
            for kind, make in MODELS.items():
                model = make().fit(fold.encoded_train, y[fold.train])
                scores = model.predict_proba(fold.encoded_test)[:, 1]
                areas.setdefault((name, kind), []).append(float(roc_auc_score(y[fold.test], scores)))
    lines = []
    for (name, kind), found in areas.items():
        gains = np.subtract(found, areas["single columns", kind])
        error = float(gains.std(ddof=1) / np.sqrt(folds))
        line = {"keys": name, "number": float(np.mean(keys[name])), "model": kind, "area": float(np.mean(found))}
        lines.append({**line, "gain": float(gains.mean()), "standard error": error})
    return lines


def main() -> None:
    """Read a table, and print the comparison in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("target")
    parser.add_argument("columns", help="names with commas between them")
    parser.add_argument("--order", type=int, default=3)
    parser.add_argument("--top", type=int, default=20)
    parser.add_argument("--folds", type=int, default=5)
    given = parser.parse_args()
    frame = pd.read_parquet(given.table)
    y = pd.factorize(frame[given.target], sort=True)[0]
    print("| keys | number | model | area under the curve | gain | standard error |")
    print("|---|---|---|---|---|---|")
    for line in compare(frame, y, given.columns.split(","), given.order, given.top, given.folds):
        gain = f"{line['gain']:+.4f} | {line['standard error']:.4f}"
        print(f"| {line['keys']} | {line['number']:g} | {line['model']} | {line['area']:.4f} | {gain} |")


if __name__ == "__main__":
    main()
