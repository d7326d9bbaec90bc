"""Every row of a sample of categories, its codes compared with the definition bit for bit, and what passes through."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from benchmarks.billion import definition
from benchmarks.billion.drawn import CATEGORIES, KEYS, SINGLE_CUSTOMERS, TARGET, Rows, Whole, scattered
from benchmarks.billion.encoding import N_FOLDS, SMOOTHING

SEED = definition.seed_of(0)
N_RANDOM_ROWS = 200


@dataclass
class Sample:
    """Chosen categories of a key, and what is counted of them: rows and returns by category and fold."""

    name: str
    values: Any
    counts: Whole

    @classmethod
    def of(cls, name: str, values: Any) -> "Sample":
        """Nothing counted yet."""
        return cls(name, values, np.zeros((len(values), N_FOLDS, 2), np.int64))

    def places(self, column: Any) -> Whole:
        """Place of each row's category among those chosen; -1 of others."""
        found = pc.fill_null(pc.index_in(column, value_set=self.values), -1)
        return np.asarray(found.to_numpy(zero_copy_only=False))


def chosen(rows: Rows, source: list[Path]) -> list[Sample]:
    """Choose categories: frequent, rare, seen once, and those of rows drawn at random."""
    random = np.random.default_rng([rows.seed, 4])
    drawn = random_rows(rows, source, np.unique(random.integers(0, rows.n_rows, N_RANDOM_ROWS)))
    groups = np.unique([0, rows.n_groups // 2, rows.n_groups - 1])
    found = []
    for name in KEYS:
        most = CATEGORIES[name]
        ranks = np.unique([1, 2, 3, 10, most // 1000 + 1, most // 10, most // 2, most - 1, most])
        if name == "customer":
            values = pa.concat_arrays([pa.array(scattered(ranks)), pa.array(SINGLE_CUSTOMERS + groups)])
        elif name == "product":
            values = pa.concat_arrays([rows.products.take(pa.array(ranks)), pa.array(map(rows.single_product, groups))])
        else:
            values = pa.array(ranks.astype(np.int16))
        found.append(Sample.of(name, pc.unique(pa.concat_arrays([values, drawn[name]]))))
    return found


def random_rows(rows: Rows, source: list[Path], numbers: Whole) -> dict[str, Any]:
    """Keys of the rows with these numbers."""
    found = []
    for group in np.unique(numbers // rows.group_rows).tolist():
        file, place = divmod(group, rows.groups_per_file)
        table = pyarrow.parquet.ParquetFile(source[file]).read_row_group(place, columns=list(KEYS))
        own = numbers[numbers // rows.group_rows == group] - group * rows.group_rows
        found.append(table.take(pa.array(own)))
    whole = pa.concat_tables(found)
    return {name: whole[name].combine_chunks() for name in KEYS}


def row_groups(rows: Rows, paths: list[Path]) -> Iterator[tuple[int, Path, int]]:
    """First row, file and place in it of every row group of the source."""
    for number in range(rows.n_groups):
        yield number * rows.group_rows, paths[number // rows.groups_per_file], number % rows.groups_per_file


def in_threads(work: Callable[[Any], Any], items: Iterator[Any], threads: int) -> Iterator[Any]:
    """Give the results in order, with few of them waiting."""
    with ThreadPoolExecutor(threads) as pool:
        waiting: list[Any] = []
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.pop(0).result()
        for each in waiting:
            yield each.result()


def counted(rows: Rows, source: list[Path], samples: list[Sample], threads: int, tell: Callable[[str], None]) -> Whole:
    """Count all rows by fold and target, and those of the chosen categories; gives the former."""
    everything = np.zeros((N_FOLDS, 2), np.int64)

    def of_group(item: tuple[int, Path, int]) -> tuple[Whole, list[Whole]]:
        first, path, place = item
        table = pyarrow.parquet.ParquetFile(path).read_row_group(place)
        target = table[TARGET].to_numpy().astype(np.int64)
        cell = 2 * definition.folds_of(first, first + len(target), N_FOLDS, SEED).astype(np.int64) + target
        found = []
        for each in samples:
            at = each.places(table[each.name])
            own = at >= 0
            cells = at[own] * np.int64(2 * N_FOLDS) + cell[own]
            found.append(np.bincount(cells, minlength=each.counts.size).reshape(each.counts.shape))
        return np.bincount(cell, minlength=2 * N_FOLDS).reshape(N_FOLDS, 2), found

    for number, (all_rows, found) in enumerate(in_threads(of_group, row_groups(rows, source), threads), start=1):
        everything += all_rows
        for each, counts in zip(samples, found, strict=True):
            each.counts += counts
        if number % 50 == 0:
            tell(f"counted {number} of {rows.n_groups} row groups")
    return everything


def expected(sample: Sample, everything: Whole, dtype: str) -> tuple[Whole, Whole]:
    """Codes of the chosen categories by fold, and for new rows, from whole numbers of Python."""
    totals = everything.sum(axis=1).tolist(), everything[:, 1].tolist()
    training = np.empty((len(sample.values), N_FOLDS), dtype)
    new = np.empty(len(sample.values), dtype)
    for place, own in enumerate(sample.counts.tolist()):
        n, s = [zeros + ones for zeros, ones in own], [ones for _, ones in own]
        for fold in range(N_FOLDS):
            visible = [sum(each) - each[fold] for each in (n, s, *totals)]
            training[place, fold] = definition.code_of(*visible, SMOOTHING)  # type: ignore[arg-type]
        new[place] = definition.code_of(*map(sum, (n, s, *totals)), SMOOTHING)  # type: ignore[arg-type]
    return training, new


def compared(
    rows: Rows,
    source: list[Path],
    codes: list[Path],
    samples: list[Sample],
    tables: list[Whole],
    threads: int,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Compare every row of the chosen categories, and the target of all rows."""
    unsigned = np.dtype(f"u{tables[0].itemsize}")

    def of_group(item: tuple[int, Path, int]) -> tuple[int, list[str]]:
        first, path, place = item
        table = pyarrow.parquet.ParquetFile(path).read_row_group(place)
        found = rows_between(
            codes[first // (rows.group_rows * rows.groups_per_file)], place * rows.group_rows, len(table)
        )
        wrong, n_codes = [], 0
        if not found[TARGET].combine_chunks().equals(table[TARGET].combine_chunks()):
            wrong.append(f"rows {first} to {first + len(table) - 1}: {TARGET} is not that of the source")
        folds = definition.folds_of(first, first + len(table), N_FOLDS, SEED)
        for each, training in zip(samples, tables, strict=True):
            at = each.places(table[each.name])
            own = np.flatnonzero(at >= 0)
            wanted = training[at[own], folds[own]]
            given = found[each.name].to_numpy()[own]
            differ = own[given.view(unsigned) != wanted.view(unsigned)]
            n_codes += len(own)
            if len(differ):
                wrong.append(f"row {first + differ[0]}: the code of {each.name}, and of {len(differ) - 1} further rows")
        return n_codes, wrong

    n_codes, wrong = 0, []
    for number, (more, trouble) in enumerate(in_threads(of_group, row_groups(rows, source), threads), start=1):
        n_codes += more
        wrong += trouble
        if number % 50 == 0:
            tell(f"compared {number} of {rows.n_groups} row groups")
    return {"codes compared": n_codes, "wrong": wrong}


def rows_between(path: Path, start: int, count: int) -> Any:
    """Read some rows of a file, whatever its row groups are."""
    file = pyarrow.parquet.ParquetFile(path)
    before, wanted, first = 0, [], None
    for number in range(file.num_row_groups):
        size = file.metadata.row_group(number).num_rows
        if before < start + count and before + size > start:
            wanted.append(number)
            first = before if first is None else first
        before += size
    return file.read_row_groups(wanted).slice(start - (first or 0), count)


def verify(
    rows: Rows, source: Path, codes: Path, model: Path, dtype: str, threads: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Compare, and say what was compared and what was wrong."""
    begun = time.perf_counter()
    read, written = (sorted(folder.glob("*.parquet")) for folder in (source, codes))
    wrong = same_shape(read, written)
    if wrong:
        return {"seconds": time.perf_counter() - begun, "wrong": wrong}
    samples = chosen(rows, read)
    everything = counted(rows, read, samples, threads, tell)
    both = [expected(each, everything, dtype) for each in samples]
    found = compared(rows, read, written, samples, [training for training, _ in both], threads, tell)
    found["wrong"] += wrong_folds(rows) + wrong_new_codes(samples, [new for _, new in both], model)
    sizes = [each.counts.sum(axis=(1, 2)) for each in samples]
    return {
        "rows": int(everything.sum()),
        "categories": sum(map(len, sizes)),
        "seen once": sum(int((each == 1).sum()) for each in sizes),
        "most rows of one": int(max(each.max() for each in sizes)),
        "seconds": time.perf_counter() - begun,
        **found,
    }


def same_shape(read: list[Path], written: list[Path]) -> list[str]:
    """What is wrong with files, their rows and the target's type."""
    if [path.name for path in read] != [path.name for path in written]:
        return [f"{len(written)} files of codes, whose names are not those of the {len(read)} of the source"]
    wrong = []
    for path, other in zip(read, written, strict=True):
        ours, theirs = pyarrow.parquet.ParquetFile(path), pyarrow.parquet.ParquetFile(other)
        if theirs.schema_arrow.names != [*KEYS, TARGET]:
            wrong.append(f"{other.name} has the columns {theirs.schema_arrow.names}")
        elif ours.metadata.num_rows != theirs.metadata.num_rows:
            wrong.append(f"{other.name} has {theirs.metadata.num_rows} rows, {ours.metadata.num_rows} in the source")
        elif ours.schema_arrow.field(TARGET) != theirs.schema_arrow.field(TARGET):
            wrong.append(f"{other.name} has another type of {TARGET}")
    return wrong


def wrong_folds(rows: Rows) -> list[str]:
    """Rows whose fold, one by one in whole numbers of Python, is not that of their block."""
    numbers = np.random.default_rng([rows.seed, 5]).integers(0, rows.n_rows, N_RANDOM_ROWS).tolist()
    wrong = [
        row
        for row in [*range(min(64, rows.n_rows)), *numbers]
        if definition.fold_of(row, N_FOLDS, SEED) != definition.folds_of(row, row + 1, N_FOLDS, SEED)[0]
    ]
    return [f"the definition has two folds of row {row}" for row in wrong]


def wrong_new_codes(samples: list[Sample], wanted: list[Whole], model: Path) -> list[str]:
    """Keys whose codes of new rows, by the model that was saved, are not those of the definition."""
    from gpu_encode import load

    most = max(len(each.values) for each in samples)
    # The shorter samples are repeated.
    numbers = [np.arange(most) % len(each.values) for each in samples]
    new = pa.table({each.name: each.values.take(pa.array(at)) for each, at in zip(samples, numbers, strict=True)})
    found = load(model).transform(new)
    return [
        f"the codes of new rows of {each.name}"
        for each, codes, at in zip(samples, wanted, numbers, strict=True)
        if found[each.name].to_numpy().tobytes() != codes[at].tobytes()
    ]
