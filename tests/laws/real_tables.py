"""Real tables from a folder of Parquet files, as the encoders take them: keys, targets, weights, groups and times."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from gpu_encode import Parts, Prefixes

# Levels above a key.
HIERARCHIES: dict[str, dict[Any, Any]] = {
    "adult": {"native_country": Prefixes(3, 1)},
    "diabetes130": {"diag_1": Prefixes(2, 1)},
    "nycflights13": {"tailnum": ["carrier"]},
    "online_retail": {"StockCode": Prefixes(3, 2), "CustomerID": ["Country"]},
    "employee_salaries": {"division": ["department"]},
    "used_cars_uk": {"model": ["make"]},
    "taxis": {"pickup_zone": ["pickup_borough"], "dropoff_zone": Parts("/")},
}


@dataclass(frozen=True)
class Source:
    """The purposes of a file's columns, from `real_tables.toml`."""

    keys: list[str]
    joint: list[tuple[str, ...]]
    numbers: list[str]
    binary: str
    continuous: str
    multiclass: str
    group: str
    time: str
    hierarchy: dict[Any, Any]


def read_sources() -> dict[str, Source]:
    """Return the descriptions of the files by name."""
    entries = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    return {
        name: Source(**entry | {"joint": [*map(tuple, entry["joint"])]}, hierarchy=HIERARCHIES.get(name, {}))
        for name, entry in entries.items()
    }


SOURCES = read_sources()


@dataclass
class Rows:
    """Training rows and new rows of one file: `table` and `new` have the keys, "group", "time" and "fold"."""

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
        """Return the same rows with only the columns that are encoded, alone or jointly."""
        names = list(dict.fromkeys([*self.keys, *(name for joint in self.source.joint for name in joint)]))
        return replace(self, table=self.table.select(names), new=self.new.select(names))

    @property
    def counts(self) -> np.ndarray[Any, Any]:
        return np.arange(self.table.num_rows) % 4


def take_rows(table: pa.Table, n_rows: int | None, start: int) -> pa.Table:
    """Take rows at equal distances; None takes all."""
    step = 1 if n_rows is None else max(1, table.num_rows // n_rows)
    return table.take(np.arange(start, table.num_rows, step)[:n_rows])


def with_roles(table: pa.Table, source: Source) -> pa.Table:
    """Keep the columns in use, and add columns of groups, times and fold numbers."""
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
    """Return the three targets; a missing number is 0."""
    frame = table.to_pandas()
    binary, continuous, multiclass = (
        frame.eval(expression, engine="python") for expression in (source.binary, source.continuous, source.multiclass)
    )
    return {
        "binary": np.asarray(binary).astype(np.int64),
        "continuous": np.nan_to_num(np.asarray(continuous, dtype=np.float64)),
        "multiclass": np.asarray(multiclass.astype(str)).astype(object),
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
    """Return the names of the known files in the folder."""
    return (name for name in SOURCES if (folder / f"{name}.parquet").exists())
