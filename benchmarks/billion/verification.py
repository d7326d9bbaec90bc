"""Every row of a sample of categories, its encoding compared with the definition bit for bit, and the target."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from benchmarks.billion import definition
from benchmarks.billion.drawn import CATEGORIES, KEYS, SINGLE_CUSTOMERS, TARGET, Rows, Whole, scatter
from benchmarks.billion.encoding import N_FOLDS, SMOOTHING

SEED = definition.seed_of(0)
N_RANDOM_ROWS = 200


@dataclass
class Sample:
    """Chosen categories of a key, and what is counted of them: rows of the target 0 and of 1, by category and fold."""

    name: str
    values: Any
    counts: Whole

    def places(self, table: Any) -> Whole:
        """Place of each row's category among those chosen; -1 of others."""
        found = pc.fill_null(pc.index_in(table[self.name], value_set=self.values), -1)
        return np.asarray(found.to_numpy(zero_copy_only=False))

    def expect(self, everything: Whole, dtype: str) -> tuple[Whole, Whole]:
        """Encodings by category and fold, and of new rows, from counts of all rows, in whole numbers of Python."""
        training, new = np.empty((len(self.values), N_FOLDS), dtype), np.empty(len(self.values), dtype)
        totals = everything.sum(axis=1), everything[:, 1]
        for place, own in enumerate(self.counts):
            sums = [each.tolist() for each in (own.sum(axis=1), own[:, 1], *totals)]
            for fold in range(N_FOLDS):
                visible = [sum(each) - each[fold] for each in sums]
                training[place, fold] = definition.encoding_of(*visible, SMOOTHING)
            new[place] = definition.encoding_of(*map(sum, sums), SMOOTHING)
        return training, new


class Group(NamedTuple):
    """A row group: its number, its first row, its table, and the folds of its rows."""

    number: int
    first: int
    table: Any
    folds: Whole


def read_groups(rows: Rows, source: list[Path], doing: str) -> Iterator[Group]:
    """Read the source, row group by row group."""
    for number in range(rows.n_groups):
        first, (file, place) = number * rows.group_rows, divmod(number, rows.groups_per_file)
        table = pyarrow.parquet.ParquetFile(source[file]).read_row_group(place)
        if (number + 1) % 50 == 0:
            print(f"verify: {doing} {number + 1} of {rows.n_groups} row groups", flush=True)
        yield Group(number, first, table, definition.folds_of(first, first + len(table), N_FOLDS, SEED))


def choose(rows: Rows, source: list[Path]) -> list[Sample]:
    """Choose categories: frequent, infrequent, seen once, and those of rows drawn at random."""
    random = np.random.default_rng([rows.seed, 4])
    groups, seen = np.unique([0, rows.n_groups // 2, rows.n_groups - 1]), []
    for file, place in (divmod(group, rows.groups_per_file) for group in groups.tolist()):
        table = pyarrow.parquet.ParquetFile(source[file]).read_row_group(place, columns=list(KEYS))
        seen.append(table.take(pa.array(random.integers(0, len(table), N_RANDOM_ROWS // len(groups)))))
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
    """Count all rows by fold and target, and those of the chosen categories; gives the former."""
    everything = np.zeros((N_FOLDS, 2), np.int64)
    for group in read_groups(rows, source, "counted"):
        cell = 2 * group.folds.astype(np.int64) + group.table[TARGET].to_numpy()
        everything += np.bincount(cell, minlength=2 * N_FOLDS).reshape(N_FOLDS, 2)
        for each in samples:
            places = each.places(group.table)
            cells = (places * np.int64(2 * N_FOLDS) + cell)[places >= 0]
            each.counts += np.bincount(cells, minlength=each.counts.size).reshape(each.counts.shape)
    return everything


def compare(group: Group, given: Any, samples: list[Sample], tables: tuple[Whole, ...]) -> tuple[int, list[str]]:
    """Compare every row of the chosen categories in a row group, and the target of all its rows."""
    wrong, n_compared = [], 0
    if not given[TARGET].combine_chunks().equals(group.table[TARGET].combine_chunks()):
        wrong.append(f"rows from {group.first} on: {TARGET} is not that of the source")
    for each, training in zip(samples, tables, strict=True):
        places = each.places(group.table)
        own = np.flatnonzero(places >= 0)
        found, wanted = given[each.name].to_numpy()[own], training[places[own], group.folds[own]]
        words = f"u{training.itemsize}"
        differ = own[found.view(words) != wanted.view(words)]
        n_compared += len(own)
        if len(differ):
            wrong.append(f"row {group.first + differ[0]}: {each.name}, and {len(differ) - 1} further rows")
    return n_compared, wrong


def rows_between(path: Path, start: int, n_rows: int) -> Any:
    """Read some rows of a file, whatever its row groups are."""
    file = pyarrow.parquet.ParquetFile(path)
    sizes = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
    stops = np.cumsum(sizes)
    wanted = np.flatnonzero((stops > start) & (stops - sizes < start + n_rows))
    return file.read_row_groups(wanted.tolist()).slice(start - int((stops - sizes)[wanted[0]]), n_rows)


def shape_of(paths: list[Path]) -> list[tuple[str, int, list[str], str]]:
    """Name, rows, columns and type of the target of files."""
    files = [(path.name, pyarrow.parquet.ParquetFile(path)) for path in paths]
    return [
        (name, each.metadata.num_rows, each.schema_arrow.names, str(each.schema_arrow.field(TARGET).type))
        for name, each in files
    ]


def check_new_rows(sample: Sample, expected: Whole, table: Any, model: Any) -> list[str]:
    """Compare encodings of new rows, by the model that was saved, with those of the definition."""
    rows = table.slice(0, 1).take(pa.array(np.zeros(len(sample.values), np.int64))).select(KEYS)
    new = rows.set_column(KEYS.index(sample.name), sample.name, sample.values)
    found = model.transform(new)[sample.name].to_numpy()
    return [] if found.tobytes() == expected.tobytes() else [f"the encodings of new rows of {sample.name}"]


def verify(rows: Rows, source: Path, encodings: Path, model: Path, dtype: str) -> dict[str, Any]:
    """Compare, and say what was compared and what was wrong."""
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
    training, new = zip(*(each.expect(everything, dtype) for each in samples), strict=True)
    for group in read_groups(rows, read, "compared"):
        file, place = divmod(group.number, rows.groups_per_file)
        given = rows_between(written[file], place * rows.group_rows, len(group.table))
        more, trouble = compare(group, given, samples, training)
        n_compared, wrong = n_compared + more, wrong + trouble
    for each, expected in zip(samples, new, strict=True):
        wrong += check_new_rows(each, expected, group.table, fitted)
    sizes = np.concatenate([each.counts.sum(axis=(1, 2)) for each in samples])
    return {
        "rows": int(everything.sum()),
        "categories": len(sizes),
        "seen once": int((sizes == 1).sum()),
        "most rows of one": int(sizes.max()),
        "encodings compared": n_compared,
        "seconds": time.perf_counter() - begun,
        "wrong": wrong,
    }
