"""Tables of categorical columns and a target of two classes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

# A number with more than MOST_LEVELS distinct values is cut into QUANTILES parts.
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
    "used_cars_uk": (["make", "model", "year", "transmission", "fuel_type"], "price", None),
    "diabetes130": (
        ["age", "admission_type_id", "discharge_disposition_id", "admission_source_id", "medical_specialty", "diag_1"],
        "readmitted",
        "NO",
    ),
    "titanic": (["pclass", "sex", "sibsp", "parch", "embarked", "deck"], "survived", 1),
}


def read(path: Path, target: str | None, columns: list[str] | None, positive: str | None, n_rows: int) -> Table:
    """Read a table; for a known data set, columns and target need not be given.

    Raises
    ------
    ValueError
        If no target is given for an unknown table, or if a column is missing.
    """
    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    frame = frame.replace("?", None)
    if target is None and path.stem not in KNOWN:
        message = f"{path.name} is none of {', '.join(KNOWN)}: give --target, and --columns unless all others are used"
        raise ValueError(message)
    known_columns, known_target, known_positive = KNOWN.get(path.stem, ([], "", None))
    named = target or known_target
    used = columns or ([name for name in frame.columns if name != named] if target else known_columns)
    if absent := [name for name in [named, *used] if name not in frame.columns]:
        message = f"{path.name} has no columns {', '.join(absent)}; it has {', '.join(map(str, frame.columns))}"
        raise ValueError(message)
    frame = frame[frame[named].notna()]
    rows = np.sort(np.random.default_rng(0).permutation(len(frame))[:n_rows])
    frame = frame.iloc[rows].reset_index(drop=True)
    y, said = read_target(frame[named], positive if target else known_positive)
    return Table(path.stem, pd.DataFrame({name: as_text(frame[name]) for name in used}), y, said)


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


def as_text(values: pd.Series) -> pd.Series:
    """Give a column as text, with None for missing values; a number with many values is cut at quantiles."""
    if pd.api.types.is_numeric_dtype(values) and values.nunique() > MOST_LEVELS:
        values = pd.qcut(values, QUANTILES, duplicates="drop")
    return values.astype(object).map(str, na_action="ignore").where(values.notna(), None)


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
