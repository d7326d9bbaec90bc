"""How long does a random-intercept model take beside other libraries, on rows as they are?

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/glmm.py DATA_FOLDER [--write TABLE.md]

DATA_FOLDER holds employee_salaries.parquet and adult.parquet.  Wants category_encoders, statsmodels, pandas and
pyarrow.  Times are processor seconds (others may use the machine), the median of several calls after one that is not
counted; calls of more than ten seconds are made once.  Ours is `TargetEncoder(smooth=GLMM())`, from a frame to the
codes of all categories, and to out-of-fold codes of five folds; and the model alone, from sums per category.
"""

import argparse
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import category_encoders
import numpy as np
import pandas as pd
from statsmodels.regression.mixed_linear_model import MixedLM

from cpu_fallback.exact import Scaled
from gpu_encode import GLMM, TargetEncoder
from gpu_encode.formulas.mixed_models import binomial, gaussian

LONG = 10.0
WORK = [
    ("employee_salaries", "department", "current_annual_salary"),
    ("employee_salaries", "employee_position_title", "current_annual_salary"),
    ("adult", "occupation", "income"),
    ("adult", "native_country", "income"),
]


def timed(call: Callable[[], object]) -> float:
    """Median processor seconds of a call."""
    found: list[float] = []
    for repeat in range(8):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
        if found[0] > LONG:
            return found[0]
        if repeat and sum(found) > LONG:
            break
    return statistics.median(found[1:])


def model_alone(rows: pd.DataFrame, continuous: bool) -> Callable[[], object]:
    """Give the call that fits the model to sums."""
    sums = rows.groupby("key")["y"].agg(["size", "mean", lambda own: ((own - own.mean()) ** 2).sum()]).to_numpy(float)
    n, mean, within = (column.reshape(-1, 1, 1) for column in sums.T)
    if continuous:
        deviation = Scaled(n * within, np.zeros(n.shape, np.int64))
        return lambda: gaussian(n, mean, deviation, n > 0)
    return lambda: binomial(n, mean, n > 0)


def contenders(rows: pd.DataFrame, continuous: bool) -> dict[str, Callable[[], object]]:
    """Give all calls."""
    X, y = rows[["key"]], rows["y"]
    kind = "continuous" if continuous else "binary"
    found: dict[str, Callable[[], object]] = {
        "ours, the model alone": model_alone(rows, continuous),
        "ours, fit and codes": lambda: TargetEncoder(smooth=GLMM(), target_type=kind).fit(X, y).encodings_,
        "ours, fit_transform, 5 folds": lambda: TargetEncoder(smooth=GLMM(), target_type=kind, cv=5).fit_transform(
            X, y
        ),
        "category_encoders GLMMEncoder, fit": lambda: category_encoders.GLMMEncoder(binomial_target=not continuous).fit(
            X, y
        ),
    }
    if continuous:
        found["statsmodels MixedLM (REML), fit"] = lambda: MixedLM(y, np.ones(len(y)), groups=rows["key"]).fit(
            reml=True
        )
    return found


def main() -> None:
    """Measure, and write a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    libraries = ["numpy", "pandas", "category_encoders", "statsmodels"]
    lines = [
        f"Python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in libraries) + ".",
        "",
        "| rows | categories | what | CPU seconds | beside our fit |",
        "|---|---|---|---|---|",
    ]
    for file, key, target in WORK:
        frame = pd.read_parquet(given.data / f"{file}.parquet", columns=[key, target]).dropna()
        continuous = pd.api.types.is_numeric_dtype(frame[target])
        y = frame[target].astype(float) if continuous else frame[target].str.startswith(">50K").astype(int)
        rows = pd.DataFrame({"key": frame[key].astype(object).to_numpy(), "y": y.to_numpy()})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            times = {name: timed(call) for name, call in contenders(rows, continuous).items()}
        for name, seconds in times.items():
            ratio = seconds / times["ours, fit and codes"]
            place = f"{file}.{key}: {len(rows):,} | {rows['key'].nunique()}"
            lines.append(f"| {place} | {name} | {seconds:.4f} | {ratio:.2f} |")
            print(lines[-1], flush=True)
    if given.write:
        given.write.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
