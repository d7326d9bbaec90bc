"""What a cluster would take, computed from the constants that `benchmarks.billion` measured on one machine.

    python -m benchmarks.billion.scale benchmarks/results/billion-<date>/billion.json [--rows 1e11] [--workers 64]
                                       [--network 1.25] [--categories 1e8] [--write docs/scale.md]

Nothing here is a measurement.  A worker is taken for a machine like the one of the results, with as many processors as
that run had; `--network` is what it sends or receives in GB/s.  `docs/scale.md` says what is assumed and why.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from math import ceil, log2
from pathlib import Path
from typing import Any

from benchmarks.billion import report
from benchmarks.gpu.arguments import whole_number
from benchmarks.gpu.tables import table

BEGIN, END = "<!-- computed: begin -->", "<!-- computed: end -->"
CHUNK_ROWS = 1 << 23
GIGA = 1e9


@dataclass(frozen=True)
class Constants:
    """What one machine takes: seconds a row, a category, a byte.

    Parameters
    ----------
    read_target, read_all : float
        Seconds a row to read the target, and all columns, by pyarrow alone.
    survey, measure, encode, write : float
        Seconds a row; those of `measure` without adding sums to sums.
    add, fit : float
        Seconds a category.
    packing, unpacking : float
        Seconds a byte of a state.
    sums, tables : float
        Bytes a category.
    stored, held, codes : float
        Bytes a row of the source, on disk and in memory, and of the codes on disk.
    memory : int
        Most bytes that the run had.
    categories : int
        Of all keys together.
    """

    read_target: float
    read_all: float
    profile: float
    measure: float
    encode: float
    write: float
    add: float
    fit: float
    packing: float
    unpacking: float
    sums: float
    tables: float
    stored: float
    held: float
    codes: float
    memory: int
    categories: int

    @classmethod
    def of(cls, document: dict[str, Any]) -> "Constants":
        """Read them off the results of a run with the steps generate, encode, bare and states."""
        steps, rows = document["steps"], document["parameters"]["rows"]
        run, bare, states = steps["encode"], steps["bare"], steps["states"]
        seconds, own, size = run["summary"]["seconds"], states["seconds"], states["bytes"]
        everything = bare["read all columns"]
        categories = sum(run["categories"].values())
        add = own["add"] / sum(states["categories of parts"])
        return cls(
            read_target=bare["read the target"]["seconds"] / bare["read the target"]["rows"],
            read_all=everything["seconds"] / everything["rows"],
            profile=seconds["surveying"] / rows,
            measure=max(0.0, seconds["measuring"] - (run["summary"]["chunks"] - 1) * add * categories) / rows,
            encode=seconds["encoding"] / rows,
            write=seconds["writing"] / rows,
            add=add,
            fit=own["fit"] / states["categories"],
            packing=own["pickle sums"] / size["sums"],
            unpacking=own["unpickle sums"] / size["sums"],
            sums=size["sums"] / states["categories"],
            tables=size["tables"] / states["categories"],
            stored=steps["generate"]["bytes"] / rows,
            held=everything["bytes in memory"] / everything["rows"],
            codes=run["summary"]["bytes_written"] / rows,
            memory=run["peak"],
            categories=categories,
        )


@dataclass(frozen=True)
class Cluster:
    """Rows, and those who encode them.

    Parameters
    ----------
    rows, workers, categories : int
    network : float
        Bytes a second that a worker sends or receives.
    overhead : float
        Times that a pass takes over the largest of reading, computing and writing.
    """

    rows: int
    workers: int
    categories: int
    network: float
    overhead: float = 1.0

    @property
    def levels(self) -> int:
        """Levels of a binary tree over the workers."""
        return ceil(log2(self.workers)) if self.workers > 1 else 0

    def seconds(self, one: Constants) -> dict[str, float]:
        """Seconds of every step, in order."""
        rows, chunks = self.rows / self.workers, ceil(self.rows / self.workers / CHUNK_ROWS)
        sums, tables = self.categories * one.sums, self.categories * one.tables
        adding = self.categories * one.add
        sending = sums * (one.packing + 1 / self.network + one.unpacking)
        return {
            "survey": self.overhead * rows * max(one.read_target, one.profile),
            "measure": self.overhead * rows * max(one.read_all, one.measure) + (chunks - 1) * adding,
            "add the sums in a tree": self.levels * (sending + 2 * adding),
            "fit": self.categories * one.fit,
            "send the tables": tables * (one.packing + self.levels / self.network + one.unpacking) * bool(self.levels),
            "encode and write": self.overhead * rows * max(one.read_all, one.encode, one.write),
        }

    def sizes(self, one: Constants) -> dict[str, float]:
        """Bytes: of a worker's memory, and through the network."""
        sums, tables = self.categories * one.sums, self.categories * one.tables
        chunks = one.memory - one.categories * one.sums
        return {
            "memory of a worker while measuring": chunks + 3 * sums,
            "memory of a worker while encoding": chunks + 2 * tables,
            "sums through the network": (self.workers - 1) * sums,
            "tables through the network": self.workers * tables * bool(self.levels),
            "for comparison: all rows through the network once": self.rows * one.held,
            "read from disk": self.rows * 2 * one.stored,
            "written to disk": self.rows * one.codes,
        }


def overhead_of(document: dict[str, Any], one: Constants) -> float:
    """Times that the passes of the run itself took over the largest of reading, computing and writing."""
    seconds = document["steps"]["encode"]["summary"]["seconds"]
    passes = sum(seconds[name] for name in ("surveying", "measuring", "encoding", "waiting"))
    alone = Cluster(document["parameters"]["rows"], 1, one.categories, 1.0).seconds(one)
    return max(1.0, passes / sum(alone[name] for name in ("survey", "measure", "encode and write")))


def constants_table(one: Constants) -> list[str]:
    """Lines of the constants."""
    per_row = ("read_target", "read_all", "survey", "measure", "encode", "write")
    rows: list[dict[str, Any]] = [
        {"constant": name.replace("_", " "), "value": round(getattr(one, name) * GIGA, 3), "unit": "ns a row"}
        for name in per_row
    ]
    rows += [
        {"constant": name, "value": round(getattr(one, name) * GIGA, 1), "unit": "ns a category"}
        for name in ("add", "fit")
    ]
    rows += [
        {"constant": name, "value": round(getattr(one, name) * GIGA, 3), "unit": "ns a byte"}
        for name in ("packing", "unpacking")
    ]
    rows += [
        {"constant": name, "value": round(getattr(one, name), 1), "unit": "bytes a category"}
        for name in ("sums", "tables")
    ]
    rows += [
        {"constant": name, "value": round(getattr(one, name), 2), "unit": "bytes a row"}
        for name in ("stored", "held", "codes")
    ]
    rows.append({"constant": "memory", "value": round(one.memory / GIGA, 2), "unit": "GB"})
    return table(rows)


def time_of(seconds: float) -> str:
    """Write a time as people read it."""
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 90 else f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def computed(document: dict[str, Any], rows: int, workers: int, network: float, many: int) -> list[str]:
    """Give the tables, as Markdown."""
    one = Constants.of(document)
    overhead = overhead_of(document, one)
    counts = (one.categories, many)
    found = [Cluster(rows, workers, count, network, overhead) for count in counts]
    titles = [f"{count:,} categories" for count in counts]
    times = [{**each.seconds(one), "together": sum(each.seconds(one).values())} for each in found]
    sizes = [each.sizes(one) for each in found]
    run, parameters = document["steps"]["encode"], document["parameters"]
    measured = (
        f"Measured with {parameters['rows']:,} rows in {run['seconds']:.0f} s on {document['cpu']}, "
        f"{parameters['threads']} threads (commit {document['commit']}):"
    )
    taken = (
        f"The passes of that run took {overhead:.2f} times the largest of reading, computing and writing; so do those "
        f"below. {rows:,} rows, {workers} workers, {network / GIGA:.3g} GB/s each:"
    )
    return [
        measured,
        "",
        *constants_table(one),
        "",
        taken,
        "",
        *table([{"step": name} | dict(zip(titles, map(time_of, row), strict=True)) for name, *row in rows_of(times)]),
        "",
        *table([{"bytes": name} | dict(zip(titles, map(bytes_of, row), strict=True)) for name, *row in rows_of(sizes)]),
    ]


def rows_of(found: list[dict[str, float]]) -> list[tuple[Any, ...]]:
    """Give the name and the values of each line."""
    return [(name, *(each[name] for each in found)) for name in found[0]]


def bytes_of(count: float) -> str:
    """Write bytes as people read them."""
    return f"{count / 1e12:.3g} TB" if count >= 1e12 else report.gigabytes(count)


def filled(text: str, lines: list[str]) -> str:
    """Put lines between the marks of a document."""
    before, rest = text.split(BEGIN)
    return "\n".join([before + BEGIN, "", *lines, "", END + rest.split(END)[1]])


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.billion.scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("results", type=Path, help="billion.json")
    add("--rows", type=whole_number, default=100_000_000_000)
    add("--workers", type=whole_number, default=64)
    add("--network", type=float, default=1.25, help="GB/s of each worker")
    add("--categories", type=whole_number, default=100_000_000, help="beside those of the results")
    add("--write", type=Path, help="a document with marks, between which the tables are put")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Print the tables, or write them into a document."""
    options = parsed(arguments)
    document = json.loads(options.results.read_text())
    lines = computed(document, options.rows, options.workers, options.network * GIGA, options.categories)
    if options.write is None:
        print(*lines, sep="\n")
    else:
        options.write.write_text(filled(options.write.read_text(), lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
