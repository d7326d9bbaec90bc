"""Real tables through the command line and back: every cell that was not encoded is as it was.

``REAL_TABLES`` names a folder with the Parquet files that `tests/laws/real_tables.toml` describes.  ``REAL_ROWS`` is
the number of rows that are taken from each file (20,000), or "all".
"""

import csv
import gzip
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from gpu_encode.cli import main
from tests.laws.real_tables import SOURCES, take_rows

FOLDER = Path(os.environ.get("REAL_TABLES", "no folder"))
N_ROWS = os.environ.get("REAL_ROWS", "20000")
pytestmark = [
    pytest.mark.host,
    pytest.mark.long,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="REAL_TABLES names no folder of real tables"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
# How pandas writes text files: the suffix, and what it is told.
TEXTS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": (".csv", {}),
    "quoted": (".csv", {"quoting": csv.QUOTE_ALL}),
    "numbers bare": (".csv", {"quoting": csv.QUOTE_NONNUMERIC}),
    "Windows": (".csv", {"lineterminator": "\r\n"}),
    "tabs, packed": (".tsv.gz", {"sep": "\t"}),
}


def rows_of(name: str) -> pd.DataFrame:
    """Give rows of a file, with labels that are shuffled and a target of two classes."""
    path = FOLDER / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"REAL_TABLES has no {name}.parquet")
    frame = take_rows(pq.read_table(path), None if N_ROWS == "all" else int(N_ROWS), 0).to_pandas()
    return frame.assign(bit=[number % 7 % 2 for number in range(len(frame))]).sample(frac=1, random_state=0)


def encode(source: Path, name: str) -> list[Path]:
    """Encode two columns of training rows, and of the same rows as new ones; give both files."""
    suffix = "".join(source.suffixes)
    encoded, new, model = (source.with_name(f"{word}{suffix}") for word in ("encoded", "new", "model"))
    words = ["--target", "bit", "--cv", "3", "--columns", ",".join(SOURCES[name].keys[:2]), "--model", str(model)]
    assert main(["fit-transform", str(source), str(encoded), *words]) == 0
    assert main(["transform", str(source), str(new), "--model", str(model)]) == 0
    return [encoded, new]


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_values_and_labels_come_back(tmp_path: Path, name: str, suffix: str) -> None:
    rows, write = rows_of(name), {".parquet": pd.DataFrame.to_parquet, ".feather": pd.DataFrame.to_feather}[suffix]
    read = {".parquet": pd.read_parquet, ".feather": pd.read_feather}[suffix]
    if suffix == ".feather":
        rows = rows.reset_index(names="label")
    write(rows, tmp_path / f"rows{suffix}")
    rows = read(tmp_path / f"rows{suffix}").drop(columns=SOURCES[name].keys[:2])
    for path in encode(tmp_path / f"rows{suffix}", name):
        pd.testing.assert_frame_equal(read(path)[[*rows.columns]], rows, check_exact=True)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("way", TEXTS)
def test_cells_come_back(tmp_path: Path, name: str, way: str) -> None:
    suffix, options = TEXTS[way]
    rows_of(name).to_csv(source := tmp_path / f"rows{suffix}", index=False, **options)
    expected = columns_of(source)
    for path in encode(source, name):
        found = columns_of(path)
        assert found.keys() == expected.keys()
        assert [one for one in found if one not in SOURCES[name].keys[:2] and found[one] != expected[one]] == []


def columns_of(path: Path) -> dict[str, list[str]]:
    """Read the cells of a text file by column."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file, delimiter="\t" if ".tsv" in path.suffixes else ",")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
