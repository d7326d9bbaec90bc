"""The grid of `benchmarks.rapids`: kinds of work, sizes, keys and distributions."""

import sys
import warnings
from typing import Any

import benchmarks.rapids
from benchmarks.harness.grid import Grid, Topic
from benchmarks.harness.program import main as measure
from benchmarks.rapids.contenders import CONTENDERS
from benchmarks.rapids.job import WORKS, open_job
from benchmarks.rapids.library import library

# The most important sizes come first, and works take turns, so that a run that is cut short has some of each.
AXES = {
    "rows": (100_000_000, 1_000_000_000, 10_000_000, 1_000_000),
    "categories": (100_000, 1_000_000, 100_000_000, 100),
    "distribution": ("uniform", "zipf"),
    "keys": ("int", "string", "category"),
    "work": tuple(WORKS),
}
QUICK = {"rows": (40,), "categories": (5,)}
NOTES = """
The prior of every contender is the mean of all targets (0.1 for each of 10 classes), and its encodings must equal those
of `ours`. Users run `ours-own-prior`: its prior is the mean of the targets that the row may see. For new rows (`mean`)
the two are the same. cuDF's form writes each encoding to its row after the merge. cuML's encoder sorts the merged rows
back into their order, sorts the categories of each column, and copies them to the host. Folds are the row number modulo
5. cuDF's ordered form gets its rows in our order; this sorting is not measured. B/row is the peak of device memory
without the frame, encodings included.
""".strip()


def describe() -> dict[str, Any]:
    """Describe the GPU, and the library of the frames."""
    return {**library().machine(), "frames": library().name}


def clock(call: Any) -> tuple[float, Any]:
    """Give the seconds and the answer of a call."""
    answer: list[Any] = []
    return library().seconds(lambda: answer.append(call())), answer.pop()


GRID = Grid(
    "encoding",
    AXES,
    CONTENDERS,
    QUICK,
    draw=lambda root, _cell: root,
    open=open_job,
    # All contenders share one process, since a process holds the GPU's memory.
    isolated=False,
    clock=clock,
    views={"ours-own-prior": None, "ours": None},
)
PACKAGES = tuple(f"{name}-cu{version}" for name in ("cudf", "cuml", "rmm") for version in (12, 13))
TOPIC = Topic(
    "benchmarks.rapids.__main__",
    "Target encoding of frames",
    (GRID,),
    NOTES,
    (*PACKAGES, "pandas", "pyarrow"),
    describe,
)


def main(arguments: list[str] | None = None) -> int:
    """Run it; return 1 if encodings were wrong or ours broke, 2 if it cannot run here."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    asks_for_help = not {"-h", "--help"}.isdisjoint(given)
    if library().stand_in and "--quick" not in given and not asks_for_help:
        print("No NVIDIA GPU with cuDF found; --quick runs this without.", file=sys.stderr)
        return 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measure(TOPIC, benchmarks.rapids.__doc__, given)


if __name__ == "__main__":
    sys.exit(main())
