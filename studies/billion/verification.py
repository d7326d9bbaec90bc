"""Verification: the encoding of every row of some categories is compared bit for bit with the definition."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from studies.billion import definition
from studies.billion.drawn import CATEGORIES, KEYS, SINGLE_CUSTOMERS, TARGET, Rows, Whole, scatter
from studies.billion.encoding import N_FOLDS, SMOOTHING

SEED = definition.seed_of(0)
N_RANDOM_ROWS = 200


@dataclass
class Sample:
    """Chosen categories of a key, and their counts: rows with target 0 and with target 1, by category and fold."""

    name: str
    values: Any
    counts: Whole

    def indices(self, table: Any) -> Whole:
        """Give the index of each row's category among the chosen ones; -1 for other categories."""
        indices = pc.fill_null(pc.index_in(table[self.name], value_set=self.values), -1)
        return np.asarray(indices.to_numpy(zero_copy_only=False))

    def expect(self, everything: Whole, dtype: str) -> tuple[Whole, Whole]:
        """Compute encodings by category and fold, and of new rows, from counts of all rows, in Python's integers."""
        training, new = np.empty((len(self.values), N_FOLDS), dtype), np.empty(len(self.values), dtype)
        totals = everything.sum(axis=1), everything[:, 1]
        for number, own in enumerate(self.counts):
            sums = [total.tolist() for total in (own.sum(axis=1), own[:, 1], *totals)]
            for fold in range(N_FOLDS):
                visible = [sum(total) - total[fold] for total in sums]
                training[number, fold] = definition.encoding_of(*visible, SMOOTHING)
            new[number] = definition.encoding_of(*map(sum, sums), SMOOTHING)
        return training, new


class File(NamedTuple):
    """A file of the source: its first row, its table, and the folds of its rows."""

    first: int
    table: Any
    folds: Whole


def read_files(rows: Rows, source: list[Path], doing: str) -> Iterator[File]:
    """Read the files of the source one by one."""
    for number, path in enumerate(source):
        first, table = number * rows.group_rows * rows.groups_per_file, pyarrow.parquet.read_table(path)
        yield File(first, table, definition.folds_of(first, first + len(table), N_FOLDS, SEED))
        print(f"verify: {doing} {path.name}", flush=True)


def choose(rows: Rows, source: list[Path]) -> list[Sample]:
    """Choose categories: frequent ones, rare ones, some with one row, and those of random rows."""
    random = np.random.default_rng([rows.seed, 4])
    groups, seen = np.unique([0, rows.n_groups // 2, rows.n_groups - 1]), []
    for path in (source[0], source[len(source) // 2], source[-1]):
        table = pyarrow.parquet.read_table(path, columns=list(KEYS))
        seen.append(table.take(pa.array(random.integers(0, len(table), N_RANDOM_ROWS // 3))))
    samples = []
    for name, most in CATEGORIES.items():
        ranks = np.unique([1, 2, 3, 10, most // 1000 + 1, most // 10, most // 2, most - 1, most])
        values = {
            "customer": [*scatter(ranks).tolist(), *(SINGLE_CUSTOMERS + groups).tolist()],
            "product": [*rows.products.take(pa.array(ranks % len(rows.products))), *map(rows.single_product, groups)],
            "channel": ranks.tolist(),
        }[name]
        drawn = pa.concat_tables(seen)[name].combine_chunks()
        chosen = pc.unique(pa.concat_arrays([pa.array(values, drawn.type), drawn]))
        samples.append(Sample(name, chosen, np.zeros((len(chosen), N_FOLDS, 2), np.int64)))
    return samples


def count(rows: Rows, source: list[Path], samples: list[Sample]) -> Whole:
    """Count all rows by fold and target, and the rows of the chosen categories; give the counts of all rows."""
    everything = np.zeros((N_FOLDS, 2), np.int64)
    for file in read_files(rows, source, "counted"):
        cell = 2 * file.folds.astype(np.int64) + file.table[TARGET].to_numpy()
        everything += np.bincount(cell, minlength=2 * N_FOLDS).reshape(N_FOLDS, 2)
        for sample in samples:
            indices = sample.indices(file.table)
            cells = (indices * np.int64(2 * N_FOLDS) + cell)[indices >= 0]
            sample.counts += np.bincount(cells, minlength=sample.counts.size).reshape(sample.counts.shape)
    return everything


def compare(file: File, given: Any, samples: list[Sample], tables: tuple[Whole, ...]) -> tuple[int, list[str]]:
    """Compare every row of the chosen categories in a file, and the target of all rows."""
    wrong, n_compared = [], 0
    if not given[TARGET].combine_chunks().equals(file.table[TARGET].combine_chunks()):
        wrong.append(f"rows from {file.first} on: {TARGET} is not that of the source")
    for sample, training in zip(samples, tables, strict=True):
        indices = sample.indices(file.table)
        chosen = np.flatnonzero(indices >= 0)
        encodings, expected = given[sample.name].to_numpy()[chosen], training[indices[chosen], file.folds[chosen]]
        words = f"u{training.itemsize}"
        differ = chosen[encodings.view(words) != expected.view(words)]
        n_compared += len(chosen)
        if len(differ):
            wrong.append(f"row {file.first + differ[0]}: {sample.name}, and {len(differ) - 1} further rows")
    return n_compared, wrong


def shape_of(paths: list[Path]) -> list[tuple[str, int, list[str], str]]:
    """Give name, rows, columns and type of the target for each file."""
    files = [(path.name, pyarrow.parquet.ParquetFile(path)) for path in paths]
    return [
        (name, file.metadata.num_rows, file.schema_arrow.names, str(file.schema_arrow.field(TARGET).type))
        for name, file in files
    ]


def check_new_rows(sample: Sample, expected: Whole, table: Any, model: Any) -> list[str]:
    """Compare encodings of new rows by the saved model with those of the definition."""
    rows = table.slice(0, 1).take(pa.array(np.zeros(len(sample.values), np.int64))).select(KEYS)
    new = rows.set_column(KEYS.index(sample.name), sample.name, sample.values)
    encodings = model.transform(new)[sample.name].to_numpy()
    return [] if encodings.tobytes() == expected.tobytes() else [f"the encodings of new rows of {sample.name}"]


def verify(rows: Rows, source: Path, encodings: Path, model: Path, dtype: str) -> dict[str, Any]:
    """Compare everything, and report the comparisons and the faults."""
    from gpu_encode import load

    begun = time.perf_counter()
    read, written = (sorted(folder.glob("*.parquet")) for folder in (source, encodings))
    if len(read) != len(written):
        return {"wrong": [f"{len(written)} files of encodings, {len(read)} of the source"]}
    pairs = zip(shape_of(read), shape_of(written), strict=True)
    if wrong := [f"{theirs}, not {ours}" for ours, theirs in pairs if ours != theirs]:
        return {"wrong": wrong}
    samples, n_compared, fitted = choose(rows, read), 0, load(model)
    everything = count(rows, read, samples)
    training, new = zip(*(sample.expect(everything, dtype) for sample in samples), strict=True)
    for file, path in zip(read_files(rows, read, "compared"), written, strict=True):
        more, trouble = compare(file, pyarrow.parquet.read_table(path), samples, training)
        n_compared, wrong = n_compared + more, wrong + trouble
    for sample, expected in zip(samples, new, strict=True):
        wrong += check_new_rows(sample, expected, file.table, fitted)
    sizes = np.concatenate([sample.counts.sum(axis=(1, 2)) for sample in samples])
    return {
        "rows": int(everything.sum()),
        "categories": len(sizes),
        "seen once": int((sizes == 1).sum()),
        "most rows of one": int(sizes.max()),
        "encodings compared": n_compared,
        "seconds": time.perf_counter() - begun,
        "wrong": wrong,
    }
