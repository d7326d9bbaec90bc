"""Fitted encoders of every kind, with new rows to encode, for the tests of files."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from gpu_encode import GLMM, Bits, Parts, Prefixes, Sigmoid, TargetEncoder, interactions
from tests.cases import SMOOTHINGS, STRATIFIED, schemes

N_ROWS = 60


@dataclass
class Case:
    """An encoder, its training rows, and new rows."""

    parameters: dict[str, Any]
    X: Any
    y: Any
    new: Any
    fit: dict[str, Any] = field(default_factory=dict)

    def unfitted(self) -> TargetEncoder:
        return TargetEncoder(**self.parameters)

    def encoder(self) -> TargetEncoder:
        return self.unfitted().fit(self.X, self.y, **self.fit)


def table(rows: np.random.Generator, strangers: bool = False) -> pa.Table:
    words = ["Bonn", "Lima", "Oslo", "Köln", None] + ["Rom"] * strangers
    return pa.table(
        {
            "city": rows.choice(np.array(words, dtype=object), N_ROWS),
            "device": rows.choice(np.array(["phone", "desktop"], dtype=object), N_ROWS),
            "zip": [f"{number:05d}" for number in rows.integers(1000, 1030 + 5 * strangers, N_ROWS)],
            "host": rows.choice(np.array(["a.b.com", "c.b.com", "d.org", "org"], dtype=object), N_ROWS),
            "address": rows.integers(0, 1 << 12, N_ROWS) << 20,
            "day": np.arange(N_ROWS) // 7,
            "fold": rows.integers(0, 3, N_ROWS),
        }
    )


ROWS = np.random.default_rng(5)
TABLE = table(ROWS)
NEW = table(ROWS, strangers=True)
TARGETS = {
    "continuous": ROWS.normal(size=N_ROWS) * 10.0 ** ROWS.integers(-200, 140, N_ROWS),
    "whole": ROWS.integers(-9, 9, N_ROWS),
    "binary": ROWS.choice(np.array(["no", "yes"]), N_ROWS),
    "multiclass": ROWS.integers(0, 4, N_ROWS),
}
WEIGHT = ROWS.random(N_ROWS).round(2) + 0.01


def of_table(y: Any = "binary", fit: dict[str, Any] | None = None, **parameters: Any) -> Callable[[], Case]:
    target = {"continuous": "continuous", "whole": "continuous"}.get(y, "auto") if isinstance(y, str) else "auto"
    given = {"columns": ["city", "zip"], "target_type": target, **parameters}
    return lambda: Case(given, TABLE, TARGETS[y] if isinstance(y, str) else y, NEW, fit or {})


def of_values(values: list[Any], kind: Callable[[list[Any]], Any], **parameters: Any) -> Callable[[], Case]:
    """Fit on one column of all values but the last, which is new at transform."""

    def make() -> Case:
        rows = values[:-1] * 4
        return Case(parameters, kind(rows), TARGETS["binary"][: len(rows)], kind(values))

    return make


def objects(values: list[Any]) -> np.ndarray[Any, Any]:
    column = np.empty((len(values), 1), dtype=object)
    column[:, 0] = values
    return column


SMOOTHED = [*SMOOTHINGS.values(), np.float32(0.5), 3, GLMM()]
SCHEMES = [None, np.int64(4), *STRATIFIED.values(), *schemes(groups="day").values()]

MOMENT = datetime.datetime(2024, 2, 29, 12, 30, 15, 123456)
DAY = datetime.timedelta(days=1)
VALUES: dict[str, Callable[[], Case]] = {
    "bool": of_values([True, False, True], lambda values: np.array(values).reshape(-1, 1)),
    "int8": of_values([1, -3, 7], lambda values: np.array(values, np.int8).reshape(-1, 1)),
    "uint64": of_values([2**64 - 1, 2**63, 5], lambda values: np.array(values, np.uint64).reshape(-1, 1)),
    "float32": of_values([0.1, np.nan, -0.0, 5.5], lambda values: np.array(values, np.float32).reshape(-1, 1)),
    "huge integers": of_values([2**70, 1, -(2**80)], objects),
    "decimal": of_values([Decimal("1.10"), Decimal("-3"), None, Decimal("9.99")], objects),
    "text": of_values(["a", "", "naïve", "日本", None, "z"], objects),
    "bytes": of_values([b"a", b"\x00\xff", None, b"z"], objects),
    "fixed text": of_values(["a", "bcd", "z"], lambda values: np.array(values).reshape(-1, 1)),
    "dates": of_values([MOMENT.date(), MOMENT.date() + DAY, MOMENT.date() - DAY], objects),
    "times": of_values([MOMENT.time(), datetime.time(1), None, datetime.time(2)], objects),
    "durations": of_values([DAY, DAY / 3, DAY * 2], objects),
    "datetimes": of_values([MOMENT, MOMENT + DAY, None, MOMENT - DAY], lambda values: pd.DataFrame({"x": values})),
    "datetime64": of_values([1, 2, 3], lambda values: np.array(values, "datetime64[ms]").reshape(-1, 1)),
    "days": of_values([1, 2, 3], lambda values: np.array(values, "datetime64[D]").reshape(-1, 1)),
    "time zone": of_values(
        [MOMENT.replace(tzinfo=datetime.UTC), MOMENT.replace(tzinfo=datetime.UTC) + DAY] * 2,
        lambda values: pa.table({"x": pa.array(values, pa.timestamp("us", "Europe/Berlin"))}),
    ),
    "nanoseconds": of_values([1, 2, 3], lambda values: pl.DataFrame({"x": pl.Series(values).cast(pl.Datetime("ns"))})),
    "all missing": of_values([None, None, "a"], objects),
    "categorical": of_values(["b", "a", "c"], lambda values: pd.DataFrame({"x": pd.Categorical(values)})),
}
OPTIONS: dict[str, Callable[[], Case]] = {
    "all columns": lambda: Case({}, TABLE.select(["city", "zip"]), TARGETS["binary"], NEW.select(["city", "zip"])),
    "positions": of_table(columns=[0, np.int64(2)]),
    "pandas": lambda: Case({"columns": ["city"]}, TABLE.to_pandas(), TARGETS["binary"], NEW.to_pandas()),
    "polars": lambda: Case({"columns": ["city"]}, pl.from_arrow(TABLE), TARGETS["binary"], pl.from_arrow(NEW)),
    "joint": of_table(columns=[("city", "zip"), "city", ("zip", "device", "city")], indicators=True),
    "joint, no missing": of_table(columns=[("city", "device")], handle_missing="prior"),
    "interactions": of_table(columns=interactions(["city", "zip", "device"], 3)),
    "tree of columns": of_table("continuous", columns=["zip"], hierarchy={"zip": ["device", "city"]}),
    "tree of a joint key": of_table(columns=[("zip", "device")], hierarchy={("zip", "device"): "city"}, smooth=4.0),
    "prefixes": of_table("continuous", columns=["zip"], hierarchy={"zip": Prefixes(4, 3)}, smooth=Sigmoid()),
    "parts": of_table(columns=["host"], hierarchy={"host": Parts(".", from_end=True)}),
    "bits": of_table(columns=["address"], hierarchy={"address": Bits(8, 4)}),
    "priors": of_table("continuous", prior={"city": 0.25, "zip": -1}, handle_unknown=-7, min_count=2),
    "category mean": of_table("continuous", prior="category_mean", handle_missing="nan", handle_unknown="nan"),
    "refusing": lambda: Case({"columns": ["city"], "handle_unknown": "error"}, TABLE, TARGETS["binary"], TABLE),
    "float32": of_table(dtype="float32"),
    "float32 type": of_table(dtype=np.float32),
    "given categories": of_table(categories=[["Oslo", "Bonn", None], "auto"], handle_missing="category"),
    "given array": of_table(columns=["day"], categories=[np.array([3, 1, 2], np.int16)]),
    "weights": of_table("continuous", {"sample_weight": WEIGHT}),
    "whole weights": of_table("whole", {"sample_weight": np.arange(N_ROWS)}),
    "weighted classes": of_table("multiclass", {"sample_weight": WEIGHT}, drop="first"),
    "several targets": of_table(
        pa.table({"a": TARGETS["whole"], "b": TARGETS["continuous"]}), target_type="continuous"
    ),
    "several kinds": of_table(
        pd.DataFrame({"a": TARGETS["whole"], "b": TARGETS["binary"], "c": TARGETS["multiclass"]}),
        target_type=["continuous", "binary", "multiclass"],
        indicators=True,
    ),
}
LABELS: dict[str, Any] = {
    "bool": TARGETS["multiclass"] > 1,
    "int8": TARGETS["multiclass"].astype(np.int8),
    "big endian": TARGETS["multiclass"].astype(">i4"),
    "uint64": TARGETS["multiclass"].astype(np.uint64) + np.uint64(2**62),
    "float": TARGETS["multiclass"].astype(float),
    "fixed text": TARGETS["multiclass"].astype(str),
    "objects": np.array(["a", "bb", "ccc"], dtype=object)[TARGETS["multiclass"] % 3],
    "one class": np.zeros(N_ROWS, int),
}
CASES: dict[str, Callable[[], Case]] = {
    **{f"smoothing {smooth!r}, {y}": of_table(y, smooth=smooth) for smooth in SMOOTHED for y in TARGETS},
    **{f"scheme {cv!r}": of_table("binary" if "stratify" in repr(cv) else "continuous", cv=cv) for cv in SCHEMES},
    **{f"values {name}": case for name, case in VALUES.items()},
    **{f"option {name}": case for name, case in OPTIONS.items()},
    **{f"labels {name}": of_table(y, columns=["city"]) for name, y in LABELS.items()},
}
