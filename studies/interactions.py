"""What does a conjunction cost in `choose_interactions`, and is the choice by a sample that of all rows?

    python -m studies.interactions cost [--rows 1e5,1e6]
    python -m studies.interactions choice FILE.parquet:TARGET:COLUMN,COLUMN,... [...] [--sample 20000]

Times are the least of nine, by the wall clock and by the processor (all threads).  They are those of a conjunction that
is joined, summed and scored by all rows, of a conjunction that is tested in a sample, and of one fused
`TargetEncoder.fit_transform` of the same key.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpu_encode import TargetEncoder, choose_interactions
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.seam.ops import use_backend
from gpu_encode.study.tuning.interactions import by_sums, checked_plan, choose_scheme, read_columns
from gpu_encode.study.tuning.search import Search

SIZES = (25, 300, 1000)


def least(call: Callable[[], Any], calls: int = 9) -> tuple[float, float]:
    """Give the milliseconds of the fastest call, in wall-clock time and in processor time."""
    call()
    times = []
    for _ in range(calls):
        wall, own = time.perf_counter(), time.process_time()
        call()
        times.append((time.perf_counter() - wall, time.process_time() - own))
    return min(wall for wall, _ in times) * 1e3, min(own for _, own in times) * 1e3


def cost(n_rows: int, size: int, kind: str) -> str:
    """Time a conjunction of two columns with this number of values each."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, size, (n_rows, 2))
    signal = rng.normal(size=(size, size))[X[:, 0], X[:, 1]]
    y = (
        (signal + rng.normal(size=n_rows) > 0).astype(np.int64)
        if kind == "binary"
        else signal + rng.normal(size=n_rows)
    )
    encoder = TargetEncoder(device="cpu")
    _, context = read_columns(
        encoder._parameters(), scheme := choose_scheme(encoder, encoder._parameters(), 5, 0), Inputs(X, y)
    )
    scorer = by_sums(encoder, context, checked_plan(scheme, context), n_rows // 10, 0)
    state = scorer.start([(0,), (1,)])

    search = Search(scorer, 0.0, True, None, 3.0)

    def score() -> None:
        scorer.keys.forget()
        # A copy of the state, for which no sums are cached.
        assert search.measure(replace(state), (0, 1)) is not None

    def look() -> None:
        scorer.sample_keys.forget()
        scorer.most(state, (0, 1))

    fused = TargetEncoder(columns=[(0, 1)], device="cpu")
    times = [least(call) for call in (lambda: fused.fit_transform(X, y), score, look)]
    (wall, own), *others = times
    cells = [f"{w:.1f} / {o:.1f}" for w, o in times]
    cells += [f"{w / wall:.2f} / {o / own:.2f}" for w, o in others]
    return f"| {n_rows:,} | {kind} | {size * size:,} | " + " | ".join(cells) + " |"


def choose(given: str, sample: int) -> str:
    """Choose by a sample and by all rows, with both kinds of search, and give the lines with the results."""
    path, target, columns = given.split(":")
    frame = pd.read_parquet(path).dropna(subset=[target])
    X, y = frame[columns.split(",")].astype(str), frame[target]
    encoder = TargetEncoder(target_type="continuous" if y.dtype.kind == "f" or y.nunique() > 20 else "auto")
    cells = []
    for forward in ("first", "best"):
        found = []
        for rows in (None, sample):
            start = time.perf_counter()
            chosen = choose_interactions(encoder, X, y, forward=forward, sample=rows)
            found.append((chosen, time.perf_counter() - start))
        (all_rows, slow), (sampled, quick) = found
        same = set(all_rows.interactions) == set(sampled.interactions)
        cells += [
            "the same" if same else f"{len(set(all_rows.interactions) ^ set(sampled.interactions))} differ",
            f"{len(sampled.interactions)} of {sampled.tried}",
            " / ".join(
                str(number)
                for number in (
                    sampled.ruled_out_by_counts,
                    sampled.ruled_out_by_sample,
                    sampled.ruled_out_by_chance,
                    sampled.scored,
                )
            ),
            f"{all_rows.path[0].score:.4f} to {all_rows.score:.4f}",
            f"{sampled.score:.4f}",
            f"{slow:.1f} / {quick:.1f}",
        ]
        for chosen in (all_rows, sampled):
            print(Path(path).stem, forward, chosen.report(), sep="\n", file=sys.stderr)
    return "\n".join(
        f"| {Path(path).stem} | {len(frame):,} x {X.shape[1]} | {forward} | " + " | ".join(cells[i : i + 6]) + " |"
        for i, forward in ((0, "first"), (6, "best"))
    )


def main() -> None:
    """Read the arguments, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cost", "choice"))
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--rows", default="1e5,1e6")
    parser.add_argument("--sample", type=int, default=20_000)
    given = parser.parse_intermixed_args()
    with use_backend("compiled"):
        measure(given)


def measure(given: argparse.Namespace) -> None:
    """Print one table in Markdown, by the compiled backend alone."""
    if given.what == "cost":
        print("| rows | target | categories | fit_transform | all rows | a tenth | ratio, all rows | ratio, a tenth |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        for n_rows in (int(float(number)) for number in given.rows.split(",")):
            for kind in ("binary", "continuous"):
                for size in SIZES:
                    print(cost(n_rows, size, kind), flush=True)
        return
    print(
        "| table | size | forward | choice | chosen | counts / sample / chance / scored | score | by sample "
        "| seconds |",
        flush=True,
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for table in given.tables:
        print(choose(table, given.sample), flush=True)


if __name__ == "__main__":
    main()
