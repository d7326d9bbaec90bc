"""Three ways in which training encodings tell the answer, how trees use them, and the schemes that cure the leaks.

python examples/leaks/show_leaks.py
python examples/leaks/show_leaks.py --rows 2000
python examples/leaks/show_leaks.py --write docs/leaks.md
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pages import arguments, score_both, shown, table
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier

from gpu_encode import Greedy, KFold, LeaveOneOut, Ordered, TargetEncoder

LEARNERS = {
    "tree": DecisionTreeClassifier(max_depth=3, min_samples_leaf=20, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=30, max_depth=2, min_samples_leaf=100, random_state=0),
}


@dataclass(frozen=True)
class Leak:
    """A column that says nothing about the target, and the schemes under which it seems to predict it."""

    title: str
    column: str
    leaking: dict[str, Any]
    sorted_rows: bool = False


CURES = {"KFold(5)": KFold(5), "Ordered()": Ordered()}
CONTIGUOUS = {'KFold(5, order="contiguous")': KFold(5, order="contiguous")}
LEAKS = [
    Leak("all values distinct", "ticket", {"Greedy()": Greedy()}),
    Leak("one value", "country", {"LeaveOneOut()": LeaveOneOut()}),
    Leak("rows sorted by target", "city", {"Ordered(shuffle=False)": Ordered(shuffle=False), **CONTIGUOUS}, True),
]


def rows(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Make visits: `age` predicts the target, and the three other columns have nothing to do with it."""
    random = np.random.default_rng(11)
    age = random.normal(size=n)
    y = (random.random(n) < 1 / (1 + np.exp(-age))).astype(np.int64)
    cities = np.array(["Lagos", "Lima", "Oslo", "Pune", "Quito"])[random.integers(5, size=n)]
    tickets = [f"ticket-{number:06d}" for number in random.permutation(n)]
    return pd.DataFrame({"ticket": tickets, "country": "Chile", "city": cities, "age": age}), y


def scores(column: str, scheme: Any, learner: Any, data: tuple[Any, ...]) -> tuple[float, float]:
    """Train on training encodings; give the score on them and on new rows."""
    X, y, X_new, y_new = data
    codes, new_codes = X[["age"]], X_new[["age"]]
    if column:
        encoder = TargetEncoder(columns=[column], cv=scheme)
        with warnings.catch_warnings():
            # These warnings are expected: greedy encodings leak, and the first row of an order sees no other row.
            warnings.filterwarnings("ignore", "Greedy training encodings contain")
            warnings.filterwarnings("ignore", ".*see no rows")
            codes = encoder.fit_transform(X[[column, "age"]], y)
        new_codes = encoder.transform(X_new[[column, "age"]])
    return score_both(learner, (codes, y), (new_codes, y_new))


def line(column: str, title: str, what: str, scheme: tuple[str, Any], data: tuple[Any, ...]) -> dict[str, str]:
    """Give a row of the table: both scores of both learners."""
    name, policy = scheme
    cells = {"column": column or "-", "values": title, "scheme": f"`{name}`" if name else "-", "effect": what}
    for learner, model in LEARNERS.items():
        train, test = scores(column, policy, model, data)
        cells |= {f"{learner}, training": f"{train:.3f}", f"{learner}, new rows": f"{test:.3f}"}
    return cells


def lines(n: int) -> list[dict[str, str]]:
    """Give a row of the table without any of the columns, then a row for every leak and scheme."""
    X, y = rows(2 * n)
    as_they_come = (X[:n], y[:n], X[n:], y[n:])
    # New rows are not sorted, even if the training rows are.
    order = np.argsort(y[:n], kind="stable")
    by_target = (X[:n].iloc[order].reset_index(drop=True), y[:n][order], X[n:], y[n:])
    table_rows = [line("", "-", "", ("", None), as_they_come)]
    for leak in LEAKS:
        for what, schemes in {"leaks": leak.leaking, "cures": CURES}.items():
            data = by_target if leak.sorted_rows else as_they_come
            table_rows += [line(leak.column, leak.title, what, scheme, data) for scheme in schemes.items()]
    return table_rows


def main() -> None:
    """Print the table, or write it into a page."""
    options = arguments(__doc__.splitlines()[0]).parse_args()
    shown(table(lines(options.rows)), "scores", options.write)


if __name__ == "__main__":
    main()
