"""The rows and their files: each row group is a function of the seed and its number, in whole numbers only."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

Whole = NDArray[Any]
KEYS = ("customer", "product", "channel")
TARGET = "returned"
CATEGORIES = {"customer": 1_000_000, "product": 100_000, "channel": 100}
SCHEMA = pa.schema(
    [
        ("customer", pa.int64()),
        ("product", pa.dictionary(pa.int32(), pa.string())),
        ("channel", pa.int16()),
        (TARGET, pa.int8()),
    ]
)
COMPRESSION = "snappy"
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)
SPREAD = 0x9E3779B97F4A7C15
# Numbers of customers that occur once begin here; other customers have numbers below 2^40.
SINGLE_CUSTOMERS = 1 << 41


def zipf(random: np.random.Generator, most: int, size: int) -> Whole:
    """Draw ranks 1 to `most` with shares of exactly 1/rank: draw an octave and a number in it, and reject some.

    No logarithm is used, since processors may round it differently.
    """
    batches = [np.zeros(0, np.uint64)]
    octaves = np.uint64(most.bit_length())
    while sum(map(len, batches)) < size:
        word, chance = random.integers(0, 1 << 64, (2, 2 * size + 64), np.uint64)
        first = np.uint64(1) << ((word >> np.uint64(32)) * octaves >> np.uint64(32))
        rank = first | (word & (first - np.uint64(1)))
        kept = ((chance >> np.uint64(32)) * rank >> np.uint64(32)) < first
        batches.append(rank[kept & (rank <= np.uint64(most))])
    return np.concatenate(batches)[:size].astype(np.int64)


def scatter(ranks: Whole) -> Whole:
    """Give numbers below 2^40 for the ranks of customers, a different one for each rank, in no order."""
    return (ranks.astype(np.uint64) * np.uint64(SPREAD) >> np.uint64(24)).astype(np.int64)


@dataclass(frozen=True)
class Rows:
    """All rows.

    Parameters
    ----------
    n_rows : int
    group_rows : int
        Rows of a row group.
    groups_per_file : int
    seed : int
    """

    n_rows: int
    group_rows: int = 1_000_000
    groups_per_file: int = 10
    seed: int = 0

    @property
    def n_groups(self) -> int:
        """Number of row groups."""
        return -(-self.n_rows // self.group_rows)

    @property
    def n_files(self) -> int:
        """Number of files."""
        return -(-self.n_groups // self.groups_per_file)

    def groups_of(self, file: int) -> range:
        """Give the numbers of the row groups of a file."""
        return range(file * self.groups_per_file, min((file + 1) * self.groups_per_file, self.n_groups))

    @cached_property
    def products(self) -> Any:
        """Names of products by rank, with 8 to 16 characters: random letters, then the rank in five digits."""
        random = np.random.default_rng([self.seed, 1])
        count = CATEGORIES["product"] + 1
        letters = LETTERS[random.integers(0, len(LETTERS), (count, 11))]
        lengths = random.integers(3, 11, count).tolist()
        words = (word[:length].tobytes().decode() for word, length in zip(letters, lengths, strict=True))
        return pa.array([f"{word}{rank:05d}" for rank, word in enumerate(words)])

    @cached_property
    def leanings(self) -> dict[str, Whole]:
        """The amount that each category adds to the chance of a return, in parts of 65,536; together less than all."""
        random = np.random.default_rng([self.seed, 2])
        most = {"customer": 25_000, "product": 20_000, "channel": 15_000}
        return {name: random.integers(0, most[name], CATEGORIES[name] + 1, np.uint32) for name in KEYS}

    def group(self, number: int) -> Any:
        """Draw a row group; it has one customer and one product that occur in no other row."""
        random = np.random.default_rng([self.seed, 3, number])
        size = min(self.group_rows, self.n_rows - number * self.group_rows)
        ranks = {name: zipf(random, CATEGORIES[name], size) for name in KEYS}
        odds = sum(self.leanings[name][ranks[name]] for name in KEYS)
        target = (random.integers(0, 1 << 16, size, np.uint32) < odds).astype(np.int8)
        customers = scatter(ranks["customer"])
        row = int(random.integers(size))
        customers[row] = SINGLE_CUSTOMERS + number
        ranks["product"][row] = 0
        names = self.products.slice(0)
        single = pa.concat_arrays([pa.array([self.single_product(number)]), names.slice(1)])
        products = pa.DictionaryArray.from_arrays(pa.array(ranks["product"].astype(np.int32)), single)
        columns = [pa.array(customers), products, pa.array(ranks["channel"].astype(np.int16)), pa.array(target)]
        return pa.table(columns, schema=SCHEMA)

    def single_product(self, number: int) -> str:
        """Give the name of the product that occurs once, in this row group."""
        return f"once-{number:08d}"


def generate(rows: Rows, folder: Path, threads: int) -> int:
    """Write all files that do not exist yet, and give their number."""
    folder.mkdir(parents=True, exist_ok=True)
    note, described = folder.parent / "rows.json", asdict(rows)
    if not note.exists() or json.loads(note.read_text()) != described:
        for path in folder.glob("*.parquet"):
            path.unlink()
        note.write_text(json.dumps(described))
    paths = [folder / f"rows-{file:05d}.parquet" for file in range(rows.n_files)]
    wanted = [file for file, path in enumerate(paths) if not path.exists()]
    _ = rows.products, rows.leanings
    with ThreadPoolExecutor(threads) as pool:
        for path in pool.map(lambda file: write_file(rows, file, paths[file]), wanted):
            print(f"generate: {path.name}", flush=True)
    return len(wanted)


def write_file(rows: Rows, file: int, path: Path) -> Path:
    """Write a file, which gets its name only when it is complete."""
    partial = path.with_suffix(".partial")
    # Without Arrow's own schema, text that was written as a dictionary is read as text.
    with pyarrow.parquet.ParquetWriter(partial, SCHEMA, compression=COMPRESSION, store_schema=False) as writer:
        for number in rows.groups_of(file):
            writer.write_table(rows.group(number), row_group_size=rows.group_rows)
    return partial.rename(path)
