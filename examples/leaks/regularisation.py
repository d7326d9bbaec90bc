"""How the number of folds K and the weight m of the prior change the scores of a linear model and of boosted trees.

python examples/leaks/regularisation.py
python examples/leaks/regularisation.py --data FOLDER/adult.parquet --plot docs/regularisation.svg
python examples/leaks/regularisation.py --write docs/regularisation.md
"""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pages import arguments, score_both, shown, table
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from gpu_encode import KFold, TargetEncoder

FOLDS = (2, 4, 8, 16, 32, 64)
WEIGHTS = (0, 1, 3, 10, 30, 100)
REPEATS = 5
Scores = dict[tuple[int, int], np.ndarray]
Rows = tuple[pd.DataFrame, np.ndarray]
LEARNERS = {
    "linear": lambda: LogisticRegression(max_iter=1000),
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=50, max_leaf_nodes=15, random_state=0),
}


def generated(n: int) -> tuple[Rows, list[Any]]:
    """Make orders: shops (eight orders on average, a few have many) differ in returns, customers (two each) do not."""
    random = np.random.default_rng(5)
    n_shops, n_customers = max(n // 8, 1), max(n // 2, 1)
    shop = (random.random(n) ** 2 * n_shops).astype(np.int64)
    customer, price = random.integers(n_customers, size=n), random.normal(size=n)
    odds = random.normal(0, 1.2, n_shops)[shop] + price / 2
    y = (random.random(n) < 1 / (1 + np.exp(-odds))).astype(np.int64)
    return (pd.DataFrame({"shop": shop, "customer": customer, "price": price}), y), ["shop", "customer"]


def adult(path: Path) -> tuple[Rows, list[Any]]:
    """Read the census rows: columns with few values, and joint keys with so many that most values have few rows."""
    table = pd.read_parquet(path).replace("?", None)
    small = ["native_country", "occupation"]
    keys = [*small, ("native_country", "occupation"), ("native_country", "occupation", "education", "age")]
    return (table[[*small, "education", "age"]], (table["income"] == ">50K").to_numpy(np.int64)), keys


def split(data: Rows, n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """Draw n training rows, and at most n of the other rows as new rows."""
    X, y = data
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:n], order[n : 2 * n]
    return X.iloc[train], y[train], X.iloc[test], y[test]


def score(parts: tuple[Any, ...], keys: list[Any], k: int, m: float, learner: str) -> tuple[float, float]:
    """Train on training encodings by K folds and weight m; give the score on them and on new rows."""
    X, y, X_new, y_new = parts
    encoder = TargetEncoder(columns=keys, cv=KFold(k), smooth=float(m))
    codes, new_codes = encoder.fit_transform(X, y), encoder.transform(X_new)
    return score_both(LEARNERS[learner](), (codes, y), (new_codes, y_new))


def grid(data: Rows, keys: list[Any], n: int, learner: str, repeats: int = REPEATS) -> Scores:
    """Give for each K and m the scores on training rows and on new rows, for several draws of rows: (repeats, 2)."""
    draws = [split(data, n, seed) for seed in range(repeats)]
    return {(k, m): np.array([score(draw, keys, k, m, learner) for draw in draws]) for k, m in product(FOLDS, WEIGHTS)}


def lines(scores: Scores) -> list[dict[str, str]]:
    """Give the table: a row for each K, a column for each m, and in each cell both scores."""
    return [
        {"K": str(k), **{f"m = {m}": " / ".join(f"{x:.3f}" for x in scores[k, m].mean(axis=0)) for m in WEIGHTS}}
        for k in FOLDS
    ]


def noise(scores: Scores) -> str:
    """Say how large a difference between two cells is by chance; the draws of rows are the same for all cells."""
    tests = np.array([scores[cell][:, 1] for cell in sorted(scores)])
    paired = (tests - tests.mean(axis=0)).std(axis=1, ddof=1) / np.sqrt(tests.shape[1])
    return f"standard error of a score on new rows against the mean of the table: {paired.mean():.4f}"


def draw(all_scores: dict[str, Scores], path: Path) -> None:
    """Draw scores against m, with a line for each K; lines for training rows are dashed."""
    from matplotlib import colormaps, rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5 * len(all_scores), 4), layout="constrained", facecolor="white")
    for axes, (title, scores) in zip(
        figure.subplots(1, len(all_scores), squeeze=False)[0], all_scores.items(), strict=True
    ):
        for number, k in enumerate(FOLDS):
            means = np.array([scores[k, m].mean(axis=0) for m in WEIGHTS])
            colour = colormaps["viridis"](number / len(FOLDS))
            axes.plot(WEIGHTS, means[:, 1], color=colour, marker="o", markersize=3, label=f"K = {k}, new rows")
            axes.plot(WEIGHTS, means[:, 0], "--", color=colour, linewidth=0.8, label=f"K = {k}, training")
        axes.set_xscale("symlog", linthresh=1)
        axes.set_xlabel("m, the weight of the prior in rows")
        axes.set_ylabel("ROC AUC")
        axes.set_title(title, fontsize=10)
        axes.grid(color="#d9d9d9", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False, fontsize=7
    )
    # The same scores give the same file.
    with rc_context({"svg.hashsalt": "regularisation"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=130)


def main() -> None:
    """Print a table for each learner, or write it into a page; draw it if the user asks for that."""
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="adult.parquet (UCI Adult); by default, rows are made")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="draws of rows, over which scores are averaged")
    parser.add_argument("--plot", type=Path, help="picture to draw")
    options = parser.parse_args()
    name, (data, keys) = ("adult", adult(options.data)) if options.data else ("made", generated(2 * options.rows))
    all_scores = {learner: grid(data, keys, options.rows, learner, options.repeats) for learner in LEARNERS}
    for learner, scores in all_scores.items():
        shown(table(lines(scores)) + f"\n\n{noise(scores)}", f"{name}, {learner}", options.write)
    if options.plot:
        draw({f"{name}, {learner}": scores for learner, scores in all_scores.items()}, options.plot)


if __name__ == "__main__":
    main()
