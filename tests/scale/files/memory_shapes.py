"""How much of its memory limit a run over files takes, by the shape of its rows.

`python -m tests.scale.files.memory_shapes --limits 700MiB` runs all of them; names of shapes choose some.  Each
run is a process of its own, and the system counts the most memory that it had (VmHWM).  The command prints the table of
docs/files.md.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from gpu_encode.scale.files.memory import limit_of

PROGRAM = """
import json, re, sys, warnings
from gpu_encode import *
asked = json.loads(sys.argv[1])
warnings.simplefilter("ignore")
try:
    encode_dataset(encoder=eval(asked.pop("encoder")), **asked)
    words = ""
except (ValueError, MemoryError) as error:
    words = " ".join(str(error).split())
with open("/proc/self/status") as status:
    print(json.dumps([int(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1]) << 10, words]))
"""
LIMITS = ("512MiB", "700MiB", "1GiB")
Columns = dict[str, Any]
draw = np.random.default_rng(0)


class Shape(NamedTuple):
    """Rows, and how they are encoded.

    Parameters
    ----------
    what : str
        What the rows are, for people.
    make : callable
        Gives the columns of a piece of rows from its number.
    pieces : int
    encoder : str
        As code.
    asked : dict
        Other parameters of `encode_dataset`.
    suffix : str
        The format; a slash makes a folder with a file for each piece.
    together : bool
        Whether all pieces are one row group or batch.
    """

    what: str
    make: Callable[[int], Columns]
    pieces: int
    encoder: str
    asked: Mapping[str, Any] = MappingProxyType({})
    suffix: str = ".parquet"
    together: bool = False


def text(n_rows: int, n_values: int, length: int = 20) -> pa.Array:
    """Draw texts of a length."""
    return pa.array([f"{value:0{length}d}" for value in draw.integers(0, n_values, n_rows)])


def bits(n_rows: int) -> Any:
    """Draw a target of two classes."""
    return draw.integers(0, 2, n_rows)


def numbers(n_rows: int, n_columns: int, n_values: int = 1000) -> Columns:
    """Draw columns of integers."""
    return {f"c{number}": draw.integers(0, n_values, n_rows) for number in range(n_columns)}


def notes(n_rows: int, length: int) -> pa.Array:
    """Draw long texts that all differ."""
    return pa.array([f"{value:030d}" * (length // 30) for value in draw.integers(0, 1 << 62, n_rows)])


SHAPES = {
    "keys": Shape(
        "4,000,000 text keys",
        lambda _: {"k": text(500_000, 4_000_000), "x": draw.random(500_000), "y": bits(500_000)},
        6,
        "TargetEncoder(columns=['k'])",
    ),
    "reals": Shape(
        "1,000,000 text keys, a real target",
        lambda _: {"k": text(400_000, 1_000_000), "y": draw.normal(size=400_000)},
        6,
        "TargetEncoder(columns=['k'])",
    ),
    "columns": Shape(
        "300 columns of integers, 100 encoded",
        lambda _: numbers(40_000, 300) | {"y": bits(40_000)},
        6,
        "TargetEncoder(columns=[f'c{number}' for number in range(100)])",
    ),
    "wide": Shape(
        "40 columns of long texts",
        lambda _: {f"t{number}": text(30_000, 300, 100) for number in range(40)} | {"y": bits(30_000)},
        6,
        "TargetEncoder(columns=['t0', 't1', 't2'])",
    ),
    "long": Shape(
        "texts of 20,000 bytes",
        lambda _: {"k": text(4_000, 400, 20_000), "s": draw.integers(0, 50, 4_000), "y": bits(4_000)},
        8,
        "TargetEncoder(columns=['s', 'k'])",
    ),
    "later": Shape(
        "texts that only later rows have",
        lambda piece: {
            "k": draw.integers(0, 400, 40_000),
            "note": pa.nulls(40_000, pa.string()) if piece < 3 else notes(40_000, 1_500),
            "other": pa.nulls(40_000, pa.string()) if piece < 3 else notes(40_000, 1_500),
            "y": bits(40_000),
        },
        6,
        "TargetEncoder(columns=['k'])",
    ),
    "grows": Shape(
        "texts that grow inside of a row group",
        lambda piece: {
            "k": draw.integers(0, 400, 100_000),
            "note": notes(100_000, 3_000) if piece == 3 else text(100_000, 90, 3),
            "y": bits(100_000),
        },
        4,
        "TargetEncoder(columns=['k'])",
        together=True,
    ),
    "repeated": Shape(
        "texts of 20,000 bytes, of few values, that begin late",
        lambda piece: {
            "k": draw.integers(0, 400, 100_000),
            "note": text(100_000, 40, 20_000 if piece == 3 else 3),
            "y": bits(100_000),
        },
        4,
        "TargetEncoder(columns=['k', 'note'])",
        together=True,
    ),
    "group": Shape(
        "a row group of 3,000,000 rows",
        lambda _: {"k": draw.integers(0, 9_000, 500_000), "t": text(500_000, 10_000), "y": bits(500_000)},
        6,
        "TargetEncoder(columns=['k', 't'])",
        together=True,
    ),
    "batch": Shape(
        "a batch of Arrow of 1,500,000 rows",
        lambda _: {"k": draw.integers(0, 9_000, 500_000), "t": text(500_000, 10_000), "y": bits(500_000)},
        3,
        "TargetEncoder(columns=['k', 't'])",
        suffix=".arrow",
        together=True,
    ),
    "dictionary": Shape(
        "dictionaries of 100,000 texts",
        lambda _: {"k": text(400_000, 100_000, 60).dictionary_encode(), "y": bits(400_000)},
        6,
        "TargetEncoder(columns=['k'])",
    ),
    "joint": Shape(
        "joint keys, a real target",
        lambda _: numbers(300_000, 4, 200) | {"y": draw.random(300_000)},
        6,
        "TargetEncoder(columns=[('c0', 'c1'), ('c1', 'c2', 'c3'), ('c0', 'c2', 'c3')])",
    ),
    "classes": Shape(
        "40 classes, 60,000 categories",
        lambda _: {
            "k": draw.integers(0, 60_000, 200_000),
            "m": draw.integers(0, 500, 200_000),
            "y": draw.integers(0, 40, 200_000).astype(str),
        },
        6,
        "TargetEncoder(columns=['k', 'm'])",
    ),
    "outputs": Shape(
        "20 classes of 20 columns: 400 columns of output",
        lambda _: numbers(100_000, 20, 300) | {"y": draw.integers(0, 20, 100_000).astype(str)},
        4,
        "TargetEncoder()",
    ),
    "stratified": Shape(
        "12 classes of 10 columns, folds within classes",
        lambda _: numbers(200_000, 10, 300) | {"y": draw.integers(0, 12, 200_000).astype(str)},
        4,
        "TargetEncoder(cv=KFold(5, stratify=True))",
    ),
    "targets": Shape(
        "six targets of 100,000 categories",
        lambda _: (
            {"k": draw.integers(0, 100_000, 300_000)} | {f"y{number}": draw.normal(size=300_000) for number in range(6)}
        ),
        4,
        "TargetEncoder(columns=['k'], target_type='continuous')",
        {"target": [f"y{number}" for number in range(6)]},
    ),
    "ordered": Shape(
        "300,000 categories in an order",
        lambda _: {"k": draw.integers(0, 300_000, 400_000), "x": draw.random(400_000), "y": bits(400_000)},
        6,
        "TargetEncoder(columns=['k'], cv=Ordered(4))",
    ),
    "time": Shape(
        "an order in time, a real target",
        lambda _: {
            "k": draw.integers(0, 100_000, 400_000),
            "t": draw.integers(0, 1000, 400_000),
            "y": draw.random(400_000),
        },
        6,
        "TargetEncoder(columns=['k'], cv=Ordered(time='t'))",
    ),
    "left out": Shape(
        "leave-one-out of a real target",
        lambda _: {"k": text(400_000, 200_000), "y": draw.normal(size=400_000)},
        6,
        "TargetEncoder(columns=['k'], cv=LeaveOneOut())",
    ),
    "median": Shape(
        "medians of real numbers",
        lambda _: {"k": draw.integers(0, 2_000, 300_000), "y": draw.random(300_000)},
        6,
        "StatisticEncoder(['median', 'mean'], columns=['k'])",
    ),
    "groups": Shape(
        "weights, and groups of text",
        lambda _: {
            "k": text(300_000, 50_000),
            "w": draw.random(300_000),
            "g": text(300_000, 40_000),
            "y": bits(300_000),
        },
        6,
        "TargetEncoder(columns=['k'], cv=GroupKFold(5))",
        {"weight": "w", "groups": "g"},
    ),
    "lists": Shape(
        "lists of long texts, passed through",
        lambda _: {
            "k": draw.integers(0, 900, 20_000),
            "tags": pa.ListArray.from_arrays(pa.array(np.arange(0, 60_001, 3), pa.int32()), notes(60_000, 600)),
            "y": bits(20_000),
        },
        6,
        "TargetEncoder(columns=['k'])",
    ),
    "csv": Shape(
        "compressed CSV",
        lambda _: {"k": text(300_000, 50_000), "x": draw.random(300_000), "z": text(300_000, 900), "y": bits(300_000)},
        6,
        "TargetEncoder(columns=['k', 'z'])",
        suffix=".csv.gz",
    ),
    "folder": Shape(
        "a folder of 300 files",
        lambda _: {"k": text(5_000, 50_000), "x": draw.random(5_000), "y": bits(5_000)},
        300,
        "TargetEncoder(columns=['k'])",
        suffix="/",
    ),
}


def write_rows(folder: Path, shape: Shape, scale: float) -> Path:
    """Write the rows of a shape, or a part of its pieces, and give their path."""
    pieces = (pa.table(shape.make(piece)) for piece in range(max(1, round(shape.pieces * scale))))
    path = folder / f"rows{shape.suffix}"
    if shape.suffix == "/":
        path.mkdir()
        for number, piece in enumerate(pieces):
            pyarrow.parquet.write_table(piece, path / f"{number:03d}.parquet")
        return path
    if shape.together:
        pieces = iter([pa.concat_tables([*pieces]).combine_chunks()])
    first = next(pieces)
    with contextlib.ExitStack() as files:
        stream = files.enter_context(pa.output_stream(str(path)))
        if shape.suffix == ".arrow":
            writer = pa.ipc.new_file(stream, first.schema)
        elif shape.suffix == ".csv.gz":
            writer = pyarrow.csv.CSVWriter(stream, first.schema)
        else:
            writer = pyarrow.parquet.ParquetWriter(stream, first.schema)
        files.enter_context(writer)
        for piece in chain([first], pieces):
            writer.write_table(piece, *([len(piece)] if shape.suffix == ".parquet" else []))
    return path


class Ran(NamedTuple):
    """What a run said if it was refused, the most bytes that its process ever had, and its seconds."""

    words: str
    most: int
    seconds: float


def run_shape(source: Path, destination: Path, shape: Shape, limit: str) -> Ran:
    """Encode the rows in a process of its own."""
    asked = {"source": str(source), "destination": str(destination), "encoder": shape.encoder, "target": "y"}
    asked |= {"memory_limit": limit, "model": f"{destination}.model", "overwrite": True, **shape.asked}
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(asked)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    most, words = json.loads(done.stdout.splitlines()[-1])
    return Ran(words, most, time.perf_counter() - begun)


def main() -> None:
    """Run shapes at limits, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shapes", nargs="*", metavar="shape", help=f"default: all of {', '.join(SHAPES)}")
    parser.add_argument("--limits", default=",".join(LIMITS))
    parser.add_argument("--scale", type=float, default=1.0, help="part of the rows that are written")
    given = parser.parse_args()
    sys.stdout.write("| rows | limit | most / limit | seconds | |\n|---|---|---|---|---|\n")
    for name in given.shapes or SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            source = write_rows(Path(folder), SHAPES[name], given.scale)
            for limit in given.limits.split(","):
                ran = run_shape(source, Path(folder, "encoded.parquet"), SHAPES[name], limit)
                cells = (
                    SHAPES[name].what,
                    limit,
                    f"{ran.most / limit_of(limit):.2f}",
                    f"{ran.seconds:.0f}",
                    ran.words[:150],
                )
                sys.stdout.write(f"| {' | '.join(cells)} |\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
