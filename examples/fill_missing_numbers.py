"""Missing numbers are replaced by the mean of their group, computed from the rows that a row may see.

    python examples/fill_missing_numbers.py
    python examples/fill_missing_numbers.py --rows 2000

A training row is filled from rows of other folds; so, as for a new row, its own value is never in the mean.  If no
visible row of the group has a number, the mean of all visible rows is taken.  In contrast,
`groupby(...).transform("mean")` of pandas on all rows at once, test rows included, leaks.
"""

import argparse

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

from gpu_encode import NumberFiller


def made(n_rows: int) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Make people of many towns, some without an income; also give the true incomes, and what each person spends."""
    random = np.random.default_rng(3)
    n_towns = max(n_rows // 10, 2)
    town = random.integers(n_towns, size=n_rows)
    income = random.gamma(9.0, 3.0, n_towns)[town] + random.normal(0, 3, n_rows)
    spent = income / 2 + random.normal(0, 2, n_rows)
    people = pd.DataFrame({"town": [f"town {number}" for number in town], "income": income})
    # High incomes are missing more often.
    silent = random.random(n_rows) < np.where(income > np.median(income), 0.5, 0.2)
    people.loc[silent, "income"] = None
    return people, pd.Series(income), pd.Series(spent)


def main() -> None:
    """Print the error of each way to fill, and the score of a linear model on the filled column."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000, help="rows to train on; as many are made to test on")
    n_rows = parser.parse_args().rows
    people, income, spent = made(2 * n_rows)
    old, new = people[:n_rows], people[n_rows:]
    for name, filler in {"mean": NumberFiller(["income"]), "group mean": NumberFiller(["income"], by="town")}.items():
        filled, filled_new = filler.fit_transform(old)["income"], filler.transform(new)["income"]
        errors = (
            np.sqrt(((rows - income)[holes].dropna() ** 2).mean())
            for rows, holes in (
                (filled, old.index[old["income"].isna()]),
                (filled_new, new.index[new["income"].isna()]),
            )
        )
        model = LinearRegression().fit(filled.to_frame(), spent[:n_rows])
        score = model.score(filled_new.to_frame(), spent[n_rows:])
        shown = ", ".join(
            f"{where} {error:.2f}" for where, error in zip(("training rows", "new rows"), errors, strict=True)
        )
        print(f"{name}: off by {shown}; model on new rows R2 {score:.3f}")


if __name__ == "__main__":
    main()
