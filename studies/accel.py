"""What does an unchanged script gain? Encoders of other libraries, before and after `install`.

    python -m studies.accel [--of scikit-learn|category_encoders] [--rows 1e4,1e5,1e6] [--out FILE]

Each time is the least of several calls in one process, before and after in turns; the numbers of both are compared.
`FEWEST_ROWS` in gpu_encode/serve/accel/settings.py is the number of rows below which scikit-learn is faster.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder

from benchmarks.harness.machine import cores, installed
from gpu_encode.serve import accel

N_COLUMNS, N_VALUES, SECONDS = 4, 1000, 1.0
HEADER = "| rows | table | call | {}, ms | served, ms | times |\n|---:|---|---|---:|---:|---:|"


def draw_tables(n_rows: int) -> dict[str, Any]:
    """Draw four columns of a thousand values in all kinds of tables, and one column of many whole numbers."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, min(N_VALUES, n_rows // 10), (n_rows, N_COLUMNS))
    text = np.array([f"value {number}" for number in range(N_VALUES)], dtype=object)[codes]
    frame = pd.DataFrame(text, columns=list("abcd"))
    return {
        "whole numbers": codes,
        "objects": text,
        "frame of text": frame.astype("str"),
        "frame of categories": frame.astype("category"),
        "frame of objects": frame.astype(object),
        "one column, a third as many values as rows": rng.integers(0, n_rows // 3, (n_rows, 1)),
    }


def works(X: Any, n_rows: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the timed calls, each with its name."""
    rng = np.random.default_rng(1)
    price = rng.normal(size=n_rows)
    folds, strata = KFold(5, shuffle=True, random_state=0), StratifiedKFold(5, shuffle=True, random_state=0)
    for encoder in (OrdinalEncoder(), OneHotEncoder()):
        yield f"{type(encoder).__name__}().fit_transform", lambda encoder=encoder: encoder.fit_transform(X)
        yield f"{type(encoder).__name__}().transform", lambda encoder=encoder: encoder.transform(X)
    encoder = TargetEncoder(cv=folds).fit(X, price)
    yield "TargetEncoder().fit_transform, real target", lambda: TargetEncoder(cv=folds).fit_transform(X, price)
    yield "TargetEncoder().fit_transform, two classes", lambda: TargetEncoder(cv=strata).fit_transform(X, price > 1)
    yield "TargetEncoder().transform", lambda: encoder.transform(X)


def works_of_category_encoders(X: Any, n_rows: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the timed calls of category_encoders, on frames of pandas."""
    import category_encoders

    if not isinstance(X, pd.DataFrame):
        return
    y = pd.Series(np.random.default_rng(1).random(n_rows) < 0.3, dtype=int)
    for name in ("Target", "MEstimate", "LeaveOneOut", "CatBoost", "JamesStein", "WOE", "Count", "Ordinal", "Binary"):
        make = getattr(category_encoders, f"{name}Encoder")
        fitted = make().fit(X, y)
        yield f"{name}Encoder().fit_transform", lambda make=make: make().fit_transform(X, y)
        yield f"{name}Encoder().transform", lambda fitted=fitted: fitted.transform(X)


def time_both(call: Callable[[], Any]) -> tuple[float, float]:
    """Give the milliseconds of a call by its own library and of a served call; their numbers must be equal."""
    times: tuple[list[float], list[float]] = ([], [])
    answers: list[Any] = [None, None]
    start = perf_counter()
    while len(times[0]) < 3 or perf_counter() - start < SECONDS:
        for served, kept in enumerate(times):
            if served:
                accel.install(fewest_rows=1)
            before = perf_counter()
            answers[served] = call()
            kept.append(perf_counter() - before)
            accel.uninstall()
    one, other = (getattr(answer, "data", answer) if hasattr(answer, "indptr") else answer for answer in answers)
    np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=0, atol=1e-12)
    return 1000 * min(times[0]), 1000 * min(times[1])


def main() -> None:
    """Print a table of times, and write it to a file if the user names one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--of", choices=("scikit-learn", "category_encoders"), default="scikit-learn")
    parser.add_argument("--rows", default="1e4,1e5,1e6", help="numbers of rows")
    parser.add_argument("--out", type=Path, help="a Markdown file")
    options = parser.parse_args()
    which = works if options.of == "scikit-learn" else works_of_category_encoders
    machine = f"{options.of} {installed(options.of)}, {cores()} cores, no GPU; {N_COLUMNS} columns."
    lines = [machine, "", HEADER.format(options.of)]
    for n_rows in (int(float(number)) for number in options.rows.split(",")):
        for table, X in draw_tables(n_rows).items():
            for work, call in which(X, n_rows):
                theirs, ours = time_both(call)
                lines.append(f"| {n_rows:,} | {table} | {work} | {theirs:.1f} | {ours:.1f} | {theirs / ours:.1f} |")
                sys.stderr.write(lines[-1] + "\n")
    text = "\n".join(lines) + "\n"
    if options.out:
        options.out.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
