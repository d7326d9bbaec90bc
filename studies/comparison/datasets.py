"""The data sets: encoded columns, numeric columns, and columns that are left out since they tell the answer."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

MONTHS = {pd.Timestamp(2000, number, 1).month_name(): number for number in range(1, 13)}


@dataclass(frozen=True)
class Dataset:
    """Rows of one data set.

    Parameters
    ----------
    name : str
    X : DataFrame of shape (n_rows, n_columns)
        `keys`, `numbers`, and the columns named by `groups` and `time`.
    y : ndarray of shape (n_rows,)
    kind : {"binary", "multiclass", "continuous"}
    keys : list of str
        Columns that are encoded.
    numbers : list of str
        Columns that a model gets unchanged.
    groups, time : str, optional
        Columns with the group and the time of each row; neither is a feature.
    said : str
        Notes on the choices, for readers of the report.
    """

    name: str
    X: pd.DataFrame
    y: np.ndarray
    kind: str
    keys: list[str]
    numbers: list[str]
    groups: str | None = None
    time: str | None = None
    said: str = ""

    def rows(self, numbers: np.ndarray) -> tuple[pd.DataFrame, np.ndarray]:
        """Give some rows and their targets."""
        return self.X.iloc[numbers].reset_index(drop=True), self.y[numbers]


def adult(table: pd.DataFrame) -> Dataset:
    """Whether an income is above 50,000; a joint key of three columns is as fine as the rows allow."""
    table = table.replace("?", None)
    parts = ["education", "occupation", "native_country"]
    joint = "+".join(parts)
    # The joint key is text, so that encoders without joint keys get the same column.
    table[joint] = table[parts].astype(object).fillna("missing").agg("+".join, axis=1)
    keys = ["workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "native_country"]
    numbers = ["age", "capital_gain", "capital_loss", "hours_per_week"]
    y = (table["income"] == ">50K").to_numpy(np.int64)
    said = f"`{joint}` is one more key. `fnlwgt` and `education_num` are left out."
    return Dataset("adult", table, y, "binary", [*keys, joint], numbers, said=said)


def diabetes130(table: pd.DataFrame) -> Dataset:
    """Readmission, in three classes; a patient may have several rows, so patients are groups."""
    keys = ["race", "age", "admission_type_id", "discharge_disposition_id", "admission_source_id", "payer_code"]
    keys += ["medical_specialty", "diag_1", "diag_2", "diag_3", "insulin", "A1Cresult"]
    numbers = ["time_in_hospital", "num_lab_procedures", "num_procedures", "num_medications", "number_diagnoses"]
    numbers += ["number_outpatient", "number_emergency", "number_inpatient"]
    said = "Outer folds never split a patient. Twelve of its categorical columns are used."
    y = table["readmitted"].to_numpy(object)
    return Dataset("diabetes130", table, y, "multiclass", keys, numbers, groups="patient_nbr", said=said)


def employee_salaries(table: pd.DataFrame) -> Dataset:
    """Salaries of a county."""
    keys = ["gender", "department", "division", "assignment_category", "employee_position_title"]
    y = table["current_annual_salary"].to_numpy(np.float64)
    return Dataset("employee_salaries", table, y, "continuous", keys, ["year_first_hired"], said="All rows.")


def hotel_bookings(table: pd.DataFrame) -> Dataset:
    """Whether a booking was cancelled, from facts that were known when it was made."""
    month = table["arrival_date_month"].map(MONTHS)
    table["arrival"] = table["arrival_date_year"] * 10_000 + month * 100 + table["arrival_date_day_of_month"]
    keys = ["hotel", "arrival_date_month", "meal", "country", "market_segment", "distribution_channel"]
    keys += ["reserved_room_type", "agent", "company", "customer_type"]
    numbers = ["lead_time", "stays_in_weekend_nights", "stays_in_week_nights", "adults", "adr"]
    numbers += ["is_repeated_guest", "previous_cancellations", "previous_bookings_not_canceled"]
    numbers += ["total_of_special_requests"]
    y = table["is_canceled"].to_numpy(np.int64)
    said = (
        "What is known only later is left out: reservation_status and its date, assigned_room_type, booking_changes, "
        "days_in_waiting_list, required_car_parking_spaces; deposit_type too, which nearly tells the answer. "
        "Many bookings are the same in all columns, and folds split them. Time is the day of arrival."
    )
    return Dataset("hotel_bookings", table, y, "binary", keys, numbers, time="arrival", said=said)


def nycflights13(table: pd.DataFrame) -> Dataset:
    """Delay at arrival, from facts that were known before departure."""
    table = table[table["arr_delay"].notna()].copy()
    table["day_of_year"] = table["month"] * 100 + table["day"]
    keys = ["carrier", "tailnum", "flight", "origin", "dest"]
    y = table["arr_delay"].to_numpy(np.float64)
    said = (
        "Flights without arr_delay are dropped. What is known only later is left out: dep_time (and hour and minute, "
        "which are parts of it), dep_delay, arr_time, air_time. Time is the day."
    )
    return Dataset(
        "nycflights13", table, y, "continuous", keys, ["month", "day", "distance"], time="day_of_year", said=said
    )


def used_cars_uk(table: pd.DataFrame) -> Dataset:
    """Prices of used cars."""
    keys, numbers = ["make", "model", "transmission", "fuelType"], ["year", "mileage", "tax", "mpg", "engineSize"]
    y = table["price"].to_numpy(np.float64)
    said = "`file` is left out, which is the make once more."
    return Dataset("used_cars_uk", table, y, "continuous", keys, numbers, said=said)


def taxis(table: pd.DataFrame) -> Dataset:
    """Fares of rides, from the places where rides begin and end."""
    keys = ["color", "payment", "pickup_zone", "dropoff_zone", "pickup_borough", "dropoff_borough"]
    y = table["fare"].to_numpy(np.float64)
    said = "All rows. `distance`, which nearly tells the fare, `tip`, `tolls`, `total` and times are left out."
    return Dataset("taxis", table, y, "continuous", keys, ["passengers"], said=said)


READERS = {
    read.__name__: read
    for read in (adult, diabetes130, employee_salaries, hotel_bookings, nycflights13, used_cars_uk, taxis)
}


def generate(kind: str, n_rows: int) -> Dataset:
    """Make rows with a key of many values, a key of few values, a number, groups and a time."""
    random = np.random.default_rng(7)
    shop, city = random.integers(max(n_rows // 8, 2), size=n_rows), random.integers(6, size=n_rows)
    price = random.normal(size=n_rows)
    level = random.normal(size=n_rows)[shop] + np.linspace(-1, 1, 6)[city] + price / 2 + random.normal(size=n_rows)
    borders = {"binary": [0.0], "multiclass": [-0.8, 0.8]}
    y = level if kind == "continuous" else np.digitize(level, borders[kind])
    columns = {"shop": shop, "city": np.array(list("abcdef"))[city], "price": price, "day": np.arange(n_rows) // 9}
    table = pd.DataFrame({**columns, "owner": shop // 3})
    groups, time = ("owner", None) if kind == "multiclass" else (None, "day")
    return Dataset(f"generated-{kind}", table, y, kind, ["shop", "city"], ["price"], groups, time, "Made up.")


@cache
def load(name: str, folder: Path | None, n_rows: int) -> Dataset:
    """Read a data set, or make one, with at most `n_rows` rows, in their order."""
    if folder is None:
        return generate(name.removeprefix("generated-"), n_rows)
    whole = READERS[name](pd.read_parquet(folder / f"{name}.parquet"))
    X, y = whole.rows(np.sort(np.random.default_rng(0).permutation(len(whole.y))[:n_rows]))
    used = [*whole.keys, *whole.numbers, *(name for name in (whole.groups, whole.time) if name)]
    return replace(whole, X=X[used], y=y)


def describe(dataset: Dataset) -> dict[str, Any]:
    """Describe the rows for the report."""
    distinct = {key: int(dataset.X[key].nunique(dropna=False)) for key in dataset.keys}
    description = {"dataset": dataset.name, "target": dataset.kind, "rows": len(dataset.y), "distinct values": distinct}
    return description | {"said": dataset.said}
