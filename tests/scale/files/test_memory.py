"""Limits are read, chunks stay below them, and resident memory does not grow with the number of chunks."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from gpu_encode.scale.files import memory
from gpu_encode.scale.files.memory import KeyBytes, PassBytes
from gpu_encode.seam import devices

ROWS = 1 << 14

# Prints the most memory that Arrow held, and the resident memory after each pass, in MiB.
PROGRAM = """
import sys, warnings
import pyarrow
from gpu_encode import TargetEncoder
from gpu_encode.seam import ops
from gpu_encode.scale.files import memory
from tests.scale.files.encoded import encode
ops.host(1 << 20)  # loads the compiled backend, which takes memory once
resident = {}
def note(stage, done, _):
    resident[stage] = memory.resident_bytes() >> 20
encode(sys.argv[1], sys.argv[2], TargetEncoder(columns=["city"]), "y", chunk_rows=int(sys.argv[3]), progress=note)
print(pyarrow.default_memory_pool().max_memory() / (1 << 20), resident["encoding"])
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2GiB", 2 << 30),
        ("1.5 gib", 3 << 29),
        ("500MB", 500 * 10**6),
        ("7k", 7000),
        ("123", 123),
        (5 << 20, 5 << 20),
        (np.int64(7), 7),
    ],
)
def test_limits_are_read(given: object, expected: int) -> None:
    assert memory.limit_of(given) == expected


@pytest.mark.parametrize("given", ["", "GiB", "-1", -1, 0, True, 1.5, "2 GiB or so", [1]])
def test_what_is_no_limit(given: object) -> None:
    with pytest.raises(ValueError, match="memory_limit must be a whole number of bytes or a text such as '2GiB'"):
        memory.limit_of(given)


def test_a_limit_is_chosen_from_what_is_free() -> None:
    most = memory.peak_bytes() + max(512 << 20, memory.available_bytes())
    assert memory.resident_bytes() // 2 + (512 << 20) <= memory.limit_of(None) <= most
    # The system updates the two counts at different moments.
    assert 10 << 20 < memory.resident_bytes() <= memory.peak_bytes() + (16 << 20)


@pytest.mark.parametrize(
    ("limit", "held", "line"),
    [
        ("memory.max", "memory.current", "inactive_file"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
    ],
    ids=["version 2", "version 1"],
)
def test_a_container_may_have_less(
    tmp_path: Path, limit: str, held: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "GROUP", tmp_path)
    free = devices.available_bytes()
    (tmp_path / limit).parent.mkdir(exist_ok=True)
    (tmp_path / held).write_text("3000000\n")
    (tmp_path / limit).write_text("max\n")
    assert devices.available_bytes() > free // 2
    (tmp_path / limit).write_text("5000000\n")
    (tmp_path / held).with_name("memory.stat").write_text(f"anon 7\n{line} 500000\n")
    assert devices.available_bytes() == 2_500_000
    (tmp_path / held).write_text("9000000\n")
    assert devices.available_bytes() == 0


def test_a_process_that_holds_much_is_left_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "resident_bytes", lambda: 1 << 40)
    assert memory.chunk_size(memory.limit_of(None), PassBytes(8.0, 1, 8.0)).rows >= memory.FEWEST_ROWS


def test_chunks_fit_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "resident_bytes", lambda: 100 << 20)
    rows = {}
    for limit in (1 << 30, 2 << 30, 4 << 30):
        size = memory.chunk_size(limit, PassBytes(100.0, 3, 24.0))
        assert 3 * size.n_bytes < limit
        assert size.batch_rows <= size.rows
        rows[limit] = size.rows
    assert sorted(rows.values()) == list(rows.values())
    assert rows[4 << 30] > 3 * rows[1 << 30]
    assert memory.chunk_size(1 << 50, PassBytes(8.0, 1, 8.0)).rows == memory.MOST_ROWS
    assert memory.chunk_size(1 << 50, PassBytes(1e6, 1, 8.0)).rows <= memory.MOST_BYTES / 1e6 + memory.FEWEST_ROWS


def test_few_rows_need_little_however_many_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "resident_bytes", lambda: 100 << 20)
    with pytest.raises(ValueError, match="Give at least"):
        memory.chunk_size(1 << 30, PassBytes(24_000.0, 3000, 24_000.0))
    assert memory.chunk_size(1 << 30, PassBytes(24_000.0, 3000, 24_000.0, n_rows=100)).rows >= 100


def test_a_limit_that_is_too_small_says_what_is_enough() -> None:
    with pytest.raises(ValueError, match=r"Give at least [\d,]+ MiB") as caught:
        memory.chunk_size(100 << 20, PassBytes(100.0, 3, 24.0))
    with pytest.raises(ValueError, match=r"memory_limit is 2 bytes \('2GiB' has a unit\), of which"):
        memory.chunk_size(2, PassBytes(100.0, 3, 24.0))
    needed = int(str(caught.value).partition("at least ")[2].split()[0].replace(",", ""))
    assert memory.chunk_size((needed + 20) << 20, PassBytes(100.0, 3, 24.0)).rows >= memory.FEWEST_ROWS


def test_a_limit_that_sums_have_used_up_is_refused() -> None:
    with pytest.raises(ValueError, match=r"holds .* MiB, what was learned of the categories included, already"):
        memory.chunk_size(100 << 20, PassBytes(100.0, 3, 24.0), begun=True)


def test_memory_does_not_grow_with_the_number_of_chunks(tmp_path: Path) -> None:
    measured_mib = []
    # Each file has more rows than an output row group.
    for number, n_chunks in enumerate((24, 56)):
        n_rows = n_chunks * ROWS
        row = np.arange(n_rows)
        table = pa.table({"city": [f"{value % 97:040d}" for value in range(n_rows)], "x": row / 7, "y": row % 2})
        path = tmp_path / f"{number}.parquet"
        # A single row group: the library must not hold it whole, either.
        pyarrow.parquet.write_table(table, path, row_group_size=n_rows)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(path), str(tmp_path / f"codes-{number}.parquet"), str(ROWS)],
            capture_output=True,
            text=True,
            check=True,
        )
        measured_mib.append([float(word) for word in done.stdout.split()])
    (few, few_resident), (many, many_resident) = measured_mib
    chunk = ROWS * 60 / (1 << 20)
    assert many < few + 2 * chunk, "Arrow's pool"
    assert many_resident < few_resident + 16, "resident"


def test_values_that_are_counted_grow_with_the_rows() -> None:
    key = KeyBytes("k", 100, 800.0, 40_000.0, 40_000.0, 100.0, 50.0, n_pairs=1000, counts=30_000)
    assert key.sums_of_row == 10_000 / 102 + 30.0
    assert key.grown(100, 1000, 5000).sums == pytest.approx(200_000.0, rel=1e-4)
    assert key.grown(100, 1000, 5000).words == 800.0
    few = replace(key, n_pairs=200).grown(100, 10_000, 50_000)
    assert few.sums == pytest.approx(40_000.0, rel=1e-4)
    assert key.grown(200, 1000, 1000).sums == 80_000.0


@pytest.mark.parametrize("n_pairs", [10, 500, 900])
def test_pairs_grow_as_drawn_pairs_do(n_pairs: int) -> None:
    drawn = np.random.default_rng(0).integers(0, n_pairs, 5000)
    seen = len(np.unique(drawn[:1000]))
    assert memory.growth_of_pairs(seen, 1000, 5000) == pytest.approx(len(np.unique(drawn)) / seen, rel=0.05)


def test_freed_memory_stays_while_the_next_chunk_fits_twice(monkeypatch):
    monkeypatch.setattr(memory, "resident_bytes", lambda: 100)
    for needed, stays in ((50, True), (51, False)):
        memory.pool.free[-1] = np.zeros(1, np.uint8)
        memory.release(needed, 200)
        assert (memory.pool.free.pop(-1, None) is not None) == stays


def test_without_a_limit_freed_memory_is_always_returned():
    memory.pool.free[-1] = np.zeros(1, np.uint8)
    memory.release()
    assert -1 not in memory.pool.free
