"""What does it cost to encode one row, and a few, as a web service does?

    python -m studies.one_row [--rows 1,10,100,1000] [--seconds 0.5] [--out FILE]

There are five columns of text with 200 categories each, and one encoding for each column.  Contenders take turns.  A
time is the least processor time of all turns.  Each contender gives the answers of `transform`.
"""

import argparse
import gc
import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import category_encoders
import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
from sklearn.preprocessing import TargetEncoder as SklearnEncoder

from benchmarks.harness.machine import cores, installed, processor
from gpu_encode import TargetEncoder
from gpu_encode.serve.export import to_onnx

N_COLUMNS, N_VALUES, N_TRAINING, TURNS = 5, 200, 20_000, 7
NAMES = [f"column{number}" for number in range(N_COLUMNS)]
Calls = dict[str, Callable[[], Any]]


def draw() -> tuple[pd.DataFrame, np.ndarray]:
    """Draw the training rows."""
    random = np.random.default_rng(0)
    texts = np.array([f"value {number}" for number in range(N_VALUES)], object)
    X = pd.DataFrame({name: texts[random.integers(0, N_VALUES, N_TRAINING)] for name in NAMES}, dtype=object)
    return X, random.integers(0, 2, N_TRAINING)


def contenders(X: pd.DataFrame, y: np.ndarray) -> Callable[[int], Calls]:
    """Fit all contenders; give a function that makes their calls on the first rows."""
    ours, bare = TargetEncoder().fit(X, y), TargetEncoder().fit(X.to_numpy(), y)
    encode = ours.row_encoder()
    theirs = SklearnEncoder(target_type="binary").fit(X, y)
    others = category_encoders.TargetEncoder().fit(X, y)
    more = of_feature_engine(X, y)
    graphs = [session_of(to_onnx(encoder, matrix=matrix)) for encoder, matrix in ((ours, False), (bare, True))]
    learned = zip(NAMES, ours.categories_, ours.encodings_, strict=True)
    tables = [(name, dict(zip(values, codes.tolist(), strict=True))) for name, values, codes in learned]

    def by_hand(row: dict[str, Any]) -> list[float]:
        return [table.get(row[name], 0.5) for name, table in tables]

    def calls(n_rows: int) -> Calls:
        frame = X[:n_rows].copy()
        text, array, in_polars = frame.astype("str"), frame.to_numpy(), pl.from_pandas(frame)
        records = frame.to_dict("records")
        in_tuples, by_name = [*map(tuple, array)], {name: array[:, [number]] for number, name in enumerate(NAMES)}
        given = records if n_rows > 1 else records[0]
        return {
            "a dict by hand": lambda: [by_hand(row) for row in records],
            "`row_encoder`, dicts": lambda: encode(given),
            "`row_encoder`, tuples": lambda: encode(in_tuples),
            "`transform`, NumPy": lambda: bare.transform(array),
            "`transform`, polars": lambda: ours.transform(in_polars),
            "`transform`, pandas, objects": lambda: ours.transform(frame),
            "`transform`, pandas, text": lambda: ours.transform(text),
            "`to_onnx` in ONNX runtime, a matrix": lambda: graphs[1].run(None, {"X": array})[0],
            "`to_onnx` in ONNX runtime, columns": lambda: graphs[0].run(None, by_name)[0],
            "scikit-learn, pandas, objects": lambda: theirs.transform(frame),
            "category_encoders, pandas, objects": lambda: others.transform(frame),
            **{name: partial(transform, frame) for name, transform in more.items()},
        }

    return calls


def of_feature_engine(X: pd.DataFrame, y: np.ndarray) -> dict[str, Callable[[pd.DataFrame], Any]]:
    """Fit feature-engine's encoder, if it is installed."""
    if find_spec("feature_engine") is None:
        return {}
    from feature_engine.encoding import MeanEncoder

    return {
        "feature-engine, pandas, objects": MeanEncoder(variables=NAMES, smoothing="auto").fit(X, pd.Series(y)).transform
    }


def session_of(model: Any) -> Any:
    """Make a session that runs a graph on one thread, as the others do."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def check(calls: Calls) -> None:
    """Raise an error unless all our contenders give the same answer."""
    answers = {name: np.atleast_2d(np.asarray(call())) for name, call in calls.items() if "`" in name}
    if wrong := [name for name, answer in answers.items() if not np.array_equal(answer, answers["`transform`, NumPy"])]:
        raise SystemExit(f"wrong: {wrong}")


def time_all(calls: Calls, seconds: float) -> dict[str, float]:
    """Give the microseconds of the fastest turn of each contender."""
    times, repeats = {}, {}
    for name, call in calls.items():
        begun = process_time()
        call()
        call()
        repeats[name] = max(int(seconds / TURNS / max((process_time() - begun) / 2, 1e-6)), 1)
    for _ in range(TURNS):
        for name, call in calls.items():
            begun = process_time()
            for _ in range(repeats[name]):
                call()
            spent = (process_time() - begun) / repeats[name] * 1e6
            times[name] = min(times.get(name, spent), spent)
    return times


def weigh() -> list[str]:
    """Write how many bytes a row encoder takes in addition to its encoder, for each category."""
    lines, number = [], 100_000
    whole = np.arange(number)
    for named, X in {
        "whole numbers": whole[:, None],
        "text of ten characters": np.array([f"value {number:04x}" for number in whole])[:, None],
        "pairs of whole numbers, as a joint key": np.column_stack([whole // 300, whole % 300]),
    }.items():
        columns = [(0, 1)] if X.shape[1] == 2 else None
        encoder = TargetEncoder(columns=columns, target_type="continuous").fit(X, whole % 7)
        encoder.transform(X[:1])
        gc.collect()
        tracemalloc.start()
        encode = encoder.row_encoder()
        lines.append(f"| {named} | {tracemalloc.get_traced_memory()[0] / number:.0f} |")
        tracemalloc.stop()
        del encode
    return lines


def main() -> None:
    """Print tables of times and bytes, and write them to a file if the user names one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="1,10,100,1000", help="numbers of rows")
    parser.add_argument("--seconds", type=float, default=0.5, help="time of each contender")
    parser.add_argument("--out", type=Path, help="a Markdown file")
    options = parser.parse_args()
    numbers = [int(float(number)) for number in options.rows.split(",")]
    calls = contenders(*draw())
    for n_rows in numbers:
        check(calls(n_rows))
    times = [time_all(calls(n_rows), options.seconds) for n_rows in numbers]
    versions = ", ".join(
        f"{name} {installed(name)}"
        for name in ("scikit-learn", "category_encoders", "feature-engine", "pandas", "polars", "onnxruntime")
    )
    lines = [
        f"`python -m studies.one_row`: {processor()}, {cores()} cores; Python {sys.version.split()[0]}, {versions}.",
        "",
        "Five columns of text with 200 categories each, one encoding a column; microseconds of the processor a call,",
        "the least of seven turns. NumPy's rows are Python's objects.",
        "",
        "| | " + " | ".join(f"{n_rows:,} row{'s' * (n_rows > 1)}" for n_rows in numbers) + " |",
        "|---|" + "---:|" * len(numbers),
        *(f"| {name} | " + " | ".join(f"{of_rows[name]:,.1f}" for of_rows in times) + " |" for name in times[0]),
        "",
        "Bytes that a row encoder holds beside its encoder, one encoding a category:",
        "",
        "| categories | bytes each |",
        "|---|---:|",
        *weigh(),
    ]
    report = "\n".join(lines) + "\n"
    sys.stdout.write(report)
    if options.out is not None:
        options.out.write_text(report)


if __name__ == "__main__":
    main()
