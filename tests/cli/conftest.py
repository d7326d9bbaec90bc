import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from gpu_encode.cli import main
from tests.scale.files.encoded import write_pieces


@pytest.fixture
def orders() -> pa.Table:
    random = np.random.default_rng(3)
    n_rows = 200
    return pa.table(
        {
            "city": random.choice(np.array(["Bonn", "Lima", "Oslo", None], dtype=object), n_rows),
            "device": random.choice(np.array(["phone", "desktop"], dtype=object), n_rows),
            "zip": [f"{number:05d}" for number in random.integers(1000, 1040, n_rows)],
            "member": random.random(n_rows) < 0.5,
            "amount": random.random(n_rows).round(3),
            "day": np.sort(random.integers(0, 50, n_rows)),
            "shop": random.integers(0, 12, n_rows),
            "fold": random.integers(0, 4, n_rows),
            "weight": random.integers(1, 4, n_rows),
            "price": random.random(n_rows).round(3),
            "kind": random.choice(np.array(["new", "old", "used"], dtype=object), n_rows),
            "sold": random.integers(0, 2, n_rows),
        }
    )


@pytest.fixture
def folder(tmp_path: Path, orders: pa.Table, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the orders in it as a file."""
    monkeypatch.chdir(tmp_path)
    pyarrow.parquet.write_table(orders, "orders.parquet")
    return tmp_path


@pytest.fixture
def pieces(folder: Path, orders: pa.Table) -> Path:
    """The orders in three files as well."""
    write_pieces(folder / "in", orders, 70, row_group_size=20)
    return folder


@pytest.fixture
def run(folder: Path) -> Callable[[str], None]:
    def succeed(line: str) -> None:
        # A test that runs a command twice is seldom about what is overwritten.
        again = ["--overwrite"] if line.split(maxsplit=1)[0] in ("fit-transform", "transform") else []
        assert main([*shlex.split(line), *again]) == 0, line

    return succeed


@pytest.fixture
def refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """Run a command that must fail as a mistake, and return its one line."""

    def fail(line: str) -> str:
        before = sorted(folder.iterdir())
        assert main(shlex.split(line)) == 2, line
        said = capsys.readouterr()
        assert said.out == ""
        last = said.err.splitlines()[-1]
        assert last.startswith("gpu-encode: error: ")
        assert "Traceback" not in said.err
        assert sorted(folder.iterdir()) == before
        return last

    return fail
