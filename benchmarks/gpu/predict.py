"""Predictions of the milliseconds of calls on a GPU, from counts on a machine without one.

    python -m benchmarks.gpu.predict [CASE ...] [--categories 4096,1e6] [--parts]
    python -m benchmarks.gpu.predict --table
    python -m benchmarks.gpu.predict --refit benchmarks/results/nvidia-h200-2026-11-26

All printed milliseconds are predictions, except those under "measured".  `tests.cuda.instructions` counts the input of
the model for today's kernels: launches, functions of CuPy, waits of the host, bytes, instructions, atomics, random
sectors and bytes to the host.  Then

    ms = host x (launches + functions of CuPy + waits)
       + streamed x GB of kernels of numba and of CuPy + numba x (their instructions at the peak rate of issue)
       + the sum over kernels of CUDA C++ of the longest of
            their bytes at 85 % of the copy, their instructions at 56 % of peak issue, shared atomics at 500 G/s
       + atomics x G of global memory + copied x MB to the host
       + cached x G random sectors of tables in L2 + far x G of larger tables + scattered x G of arrays of rows

A coefficient (`model.json`) is the number of milliseconds for one unit of its kind.  Coefficients are fitted to
measured cases by least squares of relative errors, within the bounds of hardware.  The fit uses counts of the kernels
*as they were when they were measured*, which `counts.json` beside the results has.  `--refit` reads this file; if it
does not exist, it counts today's kernels and writes the file.  `--save` saves predictions for `benchmarks.gpu --queue`.
A kernel in CUDA C++ does several kinds of work at once, so the longest of three times is taken; kernels in numba wait
for one kind of work after the other, so times are summed.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpu.encoders import CASES, CATEGORIES
from benchmarks.gpu.predicted import PREDICTIONS
from benchmarks.harness.arguments import whole_numbers
from benchmarks.harness.machine import ROOT
from tests.cuda.instructions import GPU_TILE, Counts, Kernel, count

MODEL = Path(__file__).with_name("model.json")
MEASURED = ROOT / "benchmarks/results/nvidia-h200-2026-11-26"
ROWS = (10**8, 10**9)
# An H200: warp instructions a millisecond; a copy's bytes a millisecond (measured); the share that streams reach.
ISSUE = 132 * 4 * 1.98e9 / 1e3
COPY = 4.244e9
STREAMED_SHARE, SHARED_ATOMICS = 0.85, 500e6
# The share of peak issue: counting and looking up in folds-int, timed alone there, took 0.67 and 0.69 ms for 1e8 rows.
SHARE_OF_ISSUE = 0.56
# The unit of each coefficient, and bounds of its milliseconds: no hardware is faster, and none is slower.
COEFFICIENTS = {
    "host": ("launch, function of CuPy or wait", 0.02, 0.25),
    "streamed": ("GB", 0.236, 0.7),
    "numba": ("instructions of numba at peak", 1.2, 4.0),
    "atomics": ("G global atomics", 5.0, 30.0),
    "cached": ("G random sectors of L2", 1.0, 14.0),
    "far": ("G random sectors of memory", 10.0, 65.0),
    "scattered": ("G sectors that rows touch out of turn", 0.0, 65.0),
    "copied": ("MB to the host", 0.05, 0.7),
}
ROUNDS = 1000


class Given(NamedTuple):
    """Milliseconds that are stated by hand, because no count here covers them, and the reason."""

    ms: float
    reason: str


@dataclass(frozen=True)
class Model:
    """Coefficients, and the cases to which they were fitted."""

    coefficients: dict[str, float]
    fitted_to: str = ""
    errors: str = ""

    @classmethod
    def load(cls) -> "Model":
        """Read the fitted model."""
        return cls(**json.loads(MODEL.read_text()))

    def parts(self, counts: Counts, rows: int) -> dict[str, float]:
        """Give the milliseconds of a call by their causes."""
        amounts = amounts_of(counts, rows)
        fitted = {name: self.coefficients[name] * amounts[name] for name in COEFFICIENTS}
        return fitted | {"CUDA C++": cuda_ms(counts, rows)}

    def ms(self, counts: Counts, rows: int) -> float:
        """Give the milliseconds of a call."""
        return sum(self.parts(counts, rows).values())


def is_cuda(kernel: str) -> bool:
    """Whether a kernel is in CUDA C++: `name.cu`, or `name.cu, int` for a variant."""
    return kernel.partition(",")[0].endswith(".cu")


def total(kernel: Kernel, what: str, rows: int) -> float:
    """Give an amount of a kernel's work for a number of rows, without the work that does not depend on the rows."""
    a_row, a_call = getattr(kernel.row, what), getattr(kernel.call, what)
    if what == "instructions":
        a_row /= 32
    return float(rows * max(a_row, 0.0) if kernel.row != type(kernel.row)() else a_call)


def amounts_of(counts: Counts, rows: int) -> dict[str, float]:
    """Give for each coefficient the amount of work of a call on this number of rows."""
    tiles = math.ceil(rows / GPU_TILE)
    calls = (counts.launches, counts.library, counts.waits)
    numba = [kernel for name, kernel in counts.kernels.items() if not is_cuda(name)]

    def summed(what: str, kernels: list[Kernel] | None = None) -> float:
        return sum(total(kernel, what, rows) for kernel in kernels or counts.kernels.values())

    return {
        "host": sum(fixed + tiles * a_tile for fixed, a_tile in calls),
        "streamed": (summed("moved", numba) + counts.library_bytes * rows) / 1e9,
        "numba": summed("instructions", numba) / ISSUE,
        "atomics": summed("global_atomics") / 1e9,
        "cached": summed("cached") / 1e9,
        "far": summed("far") / 1e9,
        "scattered": summed("scattered") / 1e9,
        "copied": (counts.to_host[0] + rows * counts.to_host[1]) / 1e6,
    }


def cuda_ms(counts: Counts, rows: int) -> float:
    """Give the milliseconds of all CUDA C++ kernels: for each, the longest of its three bounds."""
    return sum(max(bounds_of(kernel, rows)) for name, kernel in counts.kernels.items() if is_cuda(name))


def bounds_of(kernel: Kernel, rows: int) -> tuple[float, float, float]:
    """Give the milliseconds of a kernel for its bytes, its instructions and its shared atomics, each alone."""
    return (
        total(kernel, "moved", rows) / (STREAMED_SHARE * COPY),
        total(kernel, "instructions", rows) / (SHARE_OF_ISSUE * ISSUE),
        total(kernel, "shared_atomics", rows) / SHARED_ATOMICS,
    )


def least_squares(A: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Solve least squares within the bounds of the coefficients, by coordinate descent."""
    lower, upper = np.array([bounds[1:] for bounds in COEFFICIENTS.values()]).T
    x = np.clip(np.ones(A.shape[1]), lower, upper)
    G, g = A.T @ A, A.T @ b
    for _ in range(ROUNDS):
        for k in range(len(x)):
            x[k] = np.clip(x[k] + (g[k] - G[k] @ x) / G[k, k], lower[k], upper[k]) if G[k, k] else lower[k]
    return x


def fit(cases: list[tuple[Counts, int, float]]) -> Model:
    """Fit a model to cases, given as (counts, rows, milliseconds), by their relative errors."""
    measured = np.array([ms for *_, ms in cases])
    A = np.array([list(amounts_of(counts, rows).values()) for counts, rows, _ in cases]) / measured[:, None]
    b = 1 - np.array([cuda_ms(counts, rows) for counts, rows, _ in cases]) / measured
    named = zip(COEFFICIENTS, least_squares(A, b), strict=True)
    return Model({name: round(float(value), 4) for name, value in named})


def describe_errors(model: Model, cases: list[tuple[Counts, int, float]]) -> str:
    """Describe the errors of a model, and of models that are fitted without the case that they predict."""
    measured = np.log([ms for *_, ms in cases])
    own = np.log([model.ms(counts, rows) for counts, rows, _ in cases])
    others = np.log([fit(cases[:k] + cases[k + 1 :]).ms(*case[:2]) for k, case in enumerate(cases)])
    explained = 1 - ((measured - own) ** 2).sum() / ((measured - measured.mean()) ** 2).sum()
    shares = [100 * (np.exp(np.quantile(abs(found - measured), [0.5, 0.9])) - 1) for found in (own, others)]
    return (
        f"{len(cases)} cases, R2 of logarithms {explained:.3f}; median error {shares[0][0]:.0f} %, nine of ten within "
        f"{shares[0][1]:.0f} %; each predicted by the others: {shares[1][0]:.0f} %, {shares[1][1]:.0f} %"
    )


def measured_in(folder: Path) -> dict[tuple[str, int], tuple[int, float]]:
    """Read rows and milliseconds of the cases of a report, by name and number of categories."""
    rows = json.loads((folder / "report.json").read_text())["steps"]["encoders"]["tables"]["encoders"]
    drawn = [row for row in rows if row["drawn"] == "uniform" and "ms" in row and row["case"] in CASES]
    return {(row["case"], row["categories"]): (row["rows"], row["ms"]) for row in drawn}


def counts_in(folder: Path) -> dict[tuple[str, int], Counts]:
    """Give counts of the measured kernels; if there are none, of today's kernels."""
    path = folder / "counts.json"
    if not path.exists():
        found = count(list(measured_in(folder)))
        document = [[*key, asdict(counts)] for key, counts in found.items()]
        path.write_text("[\n" + ",\n".join(map(json.dumps, document)) + "\n]\n")
    return {(name, many): Counts.of(counts) for name, many, counts in json.loads(path.read_text())}


def refit(folder: Path) -> Model:
    """Fit the model to results, and save it."""
    counts = counts_in(folder)
    cases = [(counts[key], rows, ms) for key, (rows, ms) in measured_in(folder).items() if key in counts]
    model = fit(cases)
    where = folder.resolve().relative_to(ROOT).as_posix() if folder.resolve().is_relative_to(ROOT) else folder.name
    model = Model(model.coefficients, where, describe_errors(model, cases))
    MODEL.write_text(json.dumps(asdict(model), indent=1) + "\n")
    return model


# Steps of the work on kernels, and for each step the cases that show its effect.
STEPS = {
    "ties in place": [("folds-int-prior", 100_000), ("loo-int-prior", 100_000), ("ordered-int-prior", 100_000)],
    "joint keys": [("pairs", 100_000)],
    "keys together": [("wide", 50), ("wide-transform", 50)],
    "folds by tiles": [("folds-int", 4096), ("folds-int64", 4096), ("folds-ten", 4096)],
    "leave-one-out by closed forms": [("loo-f32", 4096), ("loo-f64-auto", 4096)],
    "sums by windows": [(name, 4096) for name in ("folds-f32", "folds-f32-auto", "folds-f64-auto", "mean-f64")],
    "ordered": [(name, 4096) for name in ("ordered-rows-int", "ordered-int", "ordered-f32", "ordered-f64-auto")],
    "many categories": [
        (name, 10**6)
        for name in ("folds-int", "mean-int", "loo-int", "folds-f64-auto", "ordered-rows-int", "ordered-int")
    ],
    "all": [("mean-int", 4096), ("loo-int", 4096), ("transform", 4096)],
}
# Milliseconds of the host that no count here covers.
BY_HAND = {
    # NumPy divides, takes remainders and stacks the distinct pairs: 169 ms for a tenth of 6.3e7 pairs, run on a CPU.
    "pairs": Given(1700.0, "members of joint keys on the host, while more than a byte a row goes there"),
}
# Measured outside of the step `encoders`: benchmarks/results/rapids-2026-11-26, with the same card.
ELSEWHERE = {
    ("folds-int-prior", 100_000): 14.6,
    ("loo-int-prior", 100_000): 13.5,
    ("ordered-int-prior", 100_000): 1201.0,
    ("pairs", 100_000): 2263.0,
}
WIDE_KEYS, WIDE_ROWS = 298, 10**6


def predicted(model: Model, name: str, counts: Counts, rows: int) -> float:
    """Predict the milliseconds of a case, including those that are stated by hand."""
    by_hand = BY_HAND[name].ms * rows / 1e8 if name in BY_HAND and counts.to_host[1] > 1 else 0.0
    return model.ms(counts, rows) + by_hand


def table(model: Model, today: dict[tuple[str, int], Counts]) -> Iterator[str]:
    """Write the predictions before and after each step, as Markdown."""
    before = counts_in(MEASURED)
    measured = {key: ms for key, (_, ms) in measured_in(MEASURED).items()} | ELSEWHERE
    heads = ["step", "case", "categories", "measured before, ms", "predicted before, ms", "predicted now, ms"]
    yield "| " + " | ".join([*heads, "predicted now at 1e9 rows, ms", "G rows/s there"]) + " |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    for step, cases in STEPS.items():
        for key in cases:
            name, many = key
            then = f"{predicted(model, name, before[key], ROWS[0]):.1f}" if key in before else ""
            now, large = (predicted(model, name, today[key], rows) for rows in ROWS)
            known = f"{measured[key]:.1f}" if key in measured else ""
            yield f"| {step} | {name} | {many:,} | {known} | {then} | {now:.1f} | {large:.1f} | {1e3 / large:.0f} |"


def wide_ms(model: Model, two: Counts, four: Counts) -> float:
    """Predict the milliseconds of many keys: those of two keys, and for each other key half of what two more add."""
    least, more = (model.ms(counts, WIDE_ROWS) for counts in (two, four))
    return least + (more - least) / 2 * (WIDE_KEYS - 2)


def lines_of(model: Model, name: str, many: int, counts: Counts, in_parts: bool) -> Iterator[str]:
    """Write the predictions of a case, and their parts."""
    ms = ", ".join(f"{predicted(model, name, counts, rows):.2f} ms at {rows:.0e} rows" for rows in ROWS)
    yield f"{name}, {many:,} categories: predicted {ms}"
    if not in_parts:
        return
    for rows in ROWS:
        parts = sorted(model.parts(counts, rows).items(), key=lambda part: -part[1])
        yield f"    {rows:.0e} rows: " + ", ".join(f"{part} {each:.2f}" for part, each in parts if each >= 0.005)
    for kernel, each in counts.kernels.items():
        if is_cuda(kernel):
            bounds = zip(("bytes", "instructions", "shared atomics"), bounds_of(each, ROWS[0]), strict=True)
            said = ", ".join(f"{what} {bound:.2f}" for what, bound in bounds)
            yield f"    {kernel}: {each.row.instructions:.0f} instructions a row; at 1e8 rows the longest of {said} ms"


def save(model: Model) -> None:
    """Save predictions of all cases, and of their kernels in CUDA C++, for a machine with a GPU."""
    of_steps = [key for keys in STEPS.values() for key in keys]
    asked = list(dict.fromkeys([*((name, many) for many in CATEGORIES for name in CASES), *of_steps]))
    cases = []
    for (name, many), counts in count(asked).items():
        ms = {rows: round(predicted(model, name, counts, rows), 3) for rows in ROWS}
        kernels = {
            kernel: round(max(bounds_of(each, ROWS[0])) + random_ms(model, each), 4)
            for kernel, each in counts.kernels.items()
            if is_cuda(kernel)
        }
        cases.append({"case": name, "categories": many, "ms": ms, "kernels": kernels})
    lines = ",\n".join(f"  {json.dumps(case)}" for case in cases)
    PREDICTIONS.write_text(f'{{"model": {json.dumps(model.errors)}, "cases": [\n{lines}\n]}}\n')


def random_ms(model: Model, kernel: Kernel) -> float:
    """Predict the milliseconds of a kernel's global atomics and random sectors at 1e8 rows."""
    amounts = {"atomics": "global_atomics", "cached": "cached", "far": "far", "scattered": "scattered"}
    return sum(model.coefficients[name] * total(kernel, what, ROWS[0]) / 1e9 for name, what in amounts.items())


def main(arguments: list[str] | None = None) -> int:
    """Predict, fit, save predictions, or write the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu.predict",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cases", nargs="*", help="of benchmarks/gpu/encoders.py; all unless given")
    parser.add_argument("--categories", type=whole_numbers, default=CATEGORIES)
    parser.add_argument("--parts", action="store_true", help="say of what the milliseconds consist")
    parser.add_argument("--table", action="store_true", help="before and after each step, for benchmarks/NOTES.md")
    parser.add_argument("--refit", type=Path, metavar="RESULTS", help="fit the model to the results in a folder")
    parser.add_argument("--save", action="store_true", help="keep predictions for benchmarks.gpu --queue")
    given = parser.parse_args(arguments)
    model = refit(given.refit) if given.refit else Model.load()
    if given.save:
        save(model)
    elif given.table:
        found = count(list(dict.fromkeys(key for keys in STEPS.values() for key in keys)))
        print("\n".join(table(model, found)))
    elif not given.refit:
        print("\n".join(predictions_of(model, given.cases, given.categories, given.parts)))
    print(f"The model: {model.errors}; fitted to {model.fitted_to}.")
    return 0


def predictions_of(model: Model, cases: list[str], categories: list[int], in_parts: bool) -> Iterator[str]:
    """Write the predictions of some cases, or of all cases and of many keys."""
    asked = [(name, many) for many in categories for name in cases or CASES]
    found = count(asked)
    for key in asked:
        yield from lines_of(model, *key, found[key], in_parts)
    if not cases:
        two, four = count([("keys-2", 4096), ("keys-4", 4096)]).values()
        ms = wide_ms(model, two, four)
        yield f"{WIDE_KEYS} keys, {WIDE_ROWS:.0e} rows: predicted {ms:.0f} ms, as of keys of one column each"


if __name__ == "__main__":
    sys.exit(main())
