"""Rows of a benchmark: drawn once, kept in files, and mapped into every process that uses them."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Array = NDArray[Any]
N_FOLDS = 5
N_CLASSES = 10
CHUNK = 1 << 20
SHARE_OF_ONES = 0.3


def draw(root: Path, cell: dict[str, Any]) -> Path:
    """Draw the rows of a cell into a folder, unless they are there already; give the folder."""
    rows, categories = cell["rows"], cell["categories"]
    folder = root / f"{rows}-{categories}"
    if not (folder / "continuous.npy").exists():
        folder.mkdir(parents=True, exist_ok=True)
        draw_numbers(folder, rows, categories)
    if cell["keys"] == "text" and not (folder / "text.arrow").exists():
        write_text(folder, categories)
    return folder


def open_rows(folder: Path, cell: dict[str, Any], first: int | None = None) -> "Rows":
    """Open the rows of a cell, or only the first of them; every page is read now, so that no run has to read it."""
    rows = Rows(folder, cell, first)
    rows.touch()
    return rows


def draw_numbers(folder: Path, rows: int, categories: int) -> None:
    """Draw codes from a bounded Zipf law (the k-th most frequent has a share of 1/k), and the targets."""
    random = np.random.default_rng([20, rows, categories])
    shares = np.cumsum(1.0 / np.arange(1, categories + 1))
    shares /= shares[-1]
    scattered = random.permutation(categories)
    effects = random.standard_normal(categories)
    parts: dict[str, list[Array]] = {"codes": [], "binary": [], "multiclass": [], "continuous": []}
    for start in range(0, rows, CHUNK):
        size = min(CHUNK, rows - start)
        ranks = np.minimum(np.searchsorted(shares, random.random(size), side="right"), categories - 1)
        codes = scattered[ranks]
        parts["codes"].append(codes)
        parts["binary"].append((random.random(size) < SHARE_OF_ONES).astype(np.int64))
        parts["multiclass"].append(random.integers(N_CLASSES, size=size))
        parts["continuous"].append(random.standard_normal(size) + effects[codes])
    for name, pieces in parts.items():
        np.save(folder / f"{name}.npy", np.concatenate(pieces))


def words_of(categories: int) -> pa.Array:
    """Give the text of every category, 11 bytes each."""
    return pa.array([f"cat_{number:07d}" for number in range(categories)], pa.utf8())


def write_text(folder: Path, categories: int) -> None:
    """Write the text of each row, in Arrow's own format, which can be mapped."""
    text = words_of(categories).take(pa.array(np.load(folder / "codes.npy")))
    table = pa.table({"key": text})
    with pa.OSFile(str(folder / "text.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


@dataclass(frozen=True)
class Rows:
    """The rows of one cell in the containers that contenders take, each made on first use.

    Parameters
    ----------
    folder : Path
    cell : dict
        `keys` ("int" or "text"), `categories`, and where there is one `work` and `target`
        ("binary", "continuous" or "multiclass").
    first : int, optional
        Only this number of rows.
    """

    folder: Path
    cell: dict[str, Any]
    first: int | None = None

    @property
    def keys(self) -> str:
        """The kind of the keys."""
        return str(self.cell["keys"])

    @property
    def work(self) -> str:
        """The work of the cell."""
        return str(self.cell.get("work", ""))

    @property
    def kind(self) -> str:
        """The kind of the target."""
        return str(self.cell.get("target", "binary"))

    @property
    def categories(self) -> int:
        """The number of categories from which rows are drawn."""
        return int(self.cell["categories"])

    def mapped(self, name: str) -> Array:
        """Map the array of a file: processes share its memory, and a process that writes changes only its own copy."""
        return np.asarray(np.load(self.folder / f"{name}.npy", mmap_mode="c"))[: self.first]

    @cached_property
    def codes(self) -> Array:
        """The category number of each row: the judge uses it, and it is the key if keys are integers."""
        return self.mapped("codes")

    @cached_property
    def target(self) -> Array:
        """Target of each row: int64 labels, or float64."""
        return self.mapped(self.kind)

    @cached_property
    def values(self) -> Array:
        """A column of reals in addition to the keys; every page of it is read."""
        values = self.mapped("continuous")
        values.sum()
        return values

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @cached_property
    def folds(self) -> Array:
        """The fold number of each row, for contenders that cannot draw folds themselves."""
        return np.arange(self.n_rows, dtype=np.int32) % np.int32(N_FOLDS)

    @cached_property
    def text(self) -> pa.Array:
        """Keys as Arrow's text, in one piece."""
        with pa.memory_map(str(self.folder / "text.arrow")) as source:
            column = pa.ipc.open_file(source).read_all()["key"]
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        return column if self.first is None else column.slice(0, self.first)

    @cached_property
    def objects(self) -> Array:
        """Keys as Python's text, one object for each category, as readers of files make them."""
        words = np.array(words_of(self.categories).to_pylist(), dtype=object)
        return words[self.codes]

    @property
    def host_keys(self) -> Array:
        """Keys in NumPy: numbers, or Python's text."""
        return self.objects if self.keys == "text" else self.codes

    @cached_property
    def series(self) -> Any:
        """Keys in a pandas series: numbers or objects."""
        import pandas as pd

        return pd.Series(self.host_keys, name="key", dtype=object if self.keys == "text" else None, copy=False)

    @cached_property
    def frame(self) -> Any:
        """Keys in a pandas frame of one column."""
        return self.series.to_frame()

    @cached_property
    def arrow(self) -> Any:
        """Keys in Arrow."""
        return self.text if self.keys == "text" else pa.array(self.codes)

    @property
    def matrix(self) -> Array:
        """Keys in a NumPy matrix, as scikit-learn takes them."""
        return self.host_keys.reshape(-1, 1)

    def touch(self) -> None:
        """Read every page of the mapped files."""
        for array in (self.codes, self.target):
            array.sum()
        if self.keys == "text":
            for buffer in self.text.buffers()[1:]:
                np.frombuffer(buffer, np.uint8).max()
