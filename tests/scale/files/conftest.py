import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

N_ROWS = 448


@pytest.fixture(scope="session")
def orders() -> pa.Table:
    """Rows with every kind of column; one category first appears at the very end."""
    random = np.random.default_rng(7)
    cities = random.choice(np.array(["Bonn", "Lima", "Oslo", "São Paulo", None], dtype=object), N_ROWS)
    cities[-1] = "Zug"
    day = datetime.date(2024, 1, 1)
    numbers = random.integers(1000, 1030, N_ROWS)
    return pa.table(
        {
            "city": pa.array(cities, pa.string()),
            "device": pa.array(random.choice(np.array(["phone", "desktop"]), N_ROWS)).dictionary_encode(),
            "zip": [f"{number:05d}" for number in numbers],
            "shop": pa.array(random.integers(0, 12, N_ROWS), pa.int32()),
            "day": [day + datetime.timedelta(int(shift)) for shift in random.integers(0, 9, N_ROWS)],
            "amount": pa.array(random.random(N_ROWS), mask=random.random(N_ROWS) < 0.1),
            "hour": np.sort(random.integers(0, 40, N_ROWS)),
            "fold": random.integers(0, 4, N_ROWS),
            "weight": random.integers(1, 4, N_ROWS).astype(np.float64),
            "price": random.random(N_ROWS).round(3) * 10.0 ** random.integers(-3, 4, N_ROWS),
            "kind": random.choice(np.array(["new", "old", "used"]), N_ROWS),
            "sold": random.integers(0, 2, N_ROWS),
        }
    )


@pytest.fixture
def rows(tmp_path: Path, orders: pa.Table) -> Path:
    """The rows as a Parquet file of seven row groups."""
    path = tmp_path / "orders.parquet"
    pyarrow.parquet.write_table(orders, path, row_group_size=64)
    return path


@pytest.fixture(scope="session")
def partitioned(tmp_path_factory: pytest.TempPathFactory, orders: pa.Table) -> Path:
    """The rows in a folder of partitions."""
    folder = tmp_path_factory.mktemp("partitioned")
    start = 0
    for number, rows in enumerate((0, 100, 0, 207, 141)):
        inner = folder / f"year={2020 + number % 2}" / f"land={'xyz'[number % 3]}"
        inner.mkdir(parents=True, exist_ok=True)
        piece = orders.slice(start, rows)
        pyarrow.parquet.write_table(piece, inner / f"part-{number}.parquet", row_group_size=32)
        start += rows
    return folder


def read_folder(folder: Path) -> Any:
    """Read a folder of Parquet files in the order of their relative paths, without columns from folder names."""
    paths = sorted(folder.rglob("*.parquet"), key=lambda path: path.relative_to(folder).as_posix())
    return pa.concat_tables([pyarrow.parquet.read_table(path, partitioning=None) for path in paths])
