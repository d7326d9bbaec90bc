"""A process never takes more than its memory limit, whatever the rows and categories: it is seen from outside."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from gpu_encode.scale.files.memory import limit_of
from tests.scale.files.memory_shapes import LIMITS, SHAPES, run_shape, write_rows

STATUS = Path("/proc/self/status")
# Only the tests before a release run the largest tables.
BEFORE_A_RELEASE = bool(os.environ.get("MANY_CATEGORIES"))

PROGRAM = """
import json, sys, warnings
from gpu_encode import *
asked = json.loads(sys.argv[1])
warnings.simplefilter("ignore")
encoder = eval(asked.pop("encoder"))
try:
    encode_dataset(encoder=encoder, **asked)
except ValueError as error:
    print(error)
"""
SCHEMES = {
    "folds": ("TargetEncoder(columns=['key'], cv=KFold(5))", "amount"),
    "leave-one-out": ("TargetEncoder(columns=['key'], cv=LeaveOneOut())", "sold"),
    "orders": ("TargetEncoder(columns=['key'], cv=Ordered())", "amount"),
    "time": ("TargetEncoder(columns=['key'], cv=TimeFolds(4, time='day'))", "sold"),
    "joint": ("TargetEncoder(columns=[('key', 'day')], cv=KFold(3))", "sold"),
}
# Shapes whose rows are written and encoded in a few seconds, and the part of their rows.
QUICK = {"later": 0.67, "columns": 0.34, "lists": 0.34, "batch": 0.34, "targets": 0.25}

pytestmark = [
    pytest.mark.skipif(not STATUS.exists(), reason="the most that a process had is read from Linux"),
    pytest.mark.host,
    pytest.mark.slow,
]


class Ended(NamedTuple):
    """Output of a child process, and its peak memory in MiB, as the system reports it."""

    words: str
    most: float


def watch(source: Path, destination: Path, scheme: str, limit: str, tables: str = "memory") -> Ended:
    encoder, target = SCHEMES[scheme]
    asked = {"source": str(source), "destination": str(destination), "encoder": encoder, "target": target}
    asked |= {"memory_limit": limit, "tables": tables, "overwrite": True}
    most = 0
    command = [sys.executable, "-c", PROGRAM, json.dumps(asked)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        while child.poll() is None:
            found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{child.pid}/status").read_text())
            most = max(most, int(found[1])) if found else most
            time.sleep(0.01)
        assert child.stdout is not None
        words = child.stdout.read()
    assert child.returncode == 0, words
    return Ended(words, most / 1024)


def write_keys(path: Path, n_categories: int, n_rows: int, text: bool) -> None:
    """Write rows in which every category comes once before any comes again."""
    generator = np.random.default_rng(n_categories)
    writer: Any = None
    for start in range(0, n_rows, 1 << 20):
        row = np.arange(start, min(start + (1 << 20), n_rows))
        number = row * 7919 % n_categories
        key = pa.array([f"key{value:09d}" for value in number.tolist()]) if text else pa.array(number)
        amount = pa.array(generator.normal(size=len(row)).round(6))
        table = pa.table({"key": key, "day": number % 29, "sold": generator.integers(0, 2, len(row)), "amount": amount})
        writer = pyarrow.parquet.ParquetWriter(path, table.schema) if writer is None else writer
        writer.write_table(table, row_group_size=1 << 18)
    writer.close()


def hold_limits(folder: Path, n_categories: int, scheme: str, small: int) -> None:
    source, output = folder / "rows.parquet", folder / "codes.parquet"
    write_keys(source, n_categories, 3 * n_categories, text=True)
    # A limit with enough memory also covers compiling the kernels, which happens once after an installation.
    assert watch(source, folder / "whole.parquet", scheme, "8GiB").words == ""
    refused = watch(source, output, scheme, f"{small}MiB")
    assert "the sums and encodings of the categories do not fit: 'key" in refused.words
    assert refused.most <= small
    assert sorted(path.name for path in folder.iterdir()) == ["rows.parquet", "whole.parquet"]
    enough = re.search(r"has about ([\d,]+) of them\. Give at least ([\d,]+) MiB", refused.words)
    assert enough is not None
    counted, limit = (int(number.replace(",", "")) for number in enough.groups())
    assert abs(counted / n_categories - 1) < 0.03
    encoded = watch(source, output, scheme, f"{limit}MiB")
    assert encoded.words == ""
    assert encoded.most <= limit
    assert output.read_bytes() == (folder / "whole.parquet").read_bytes()
    if scheme != "orders":
        on_disk = watch(source, output, scheme, f"{small}MiB", "auto")
        assert on_disk.words == ""
        assert on_disk.most <= small
        assert output.read_bytes() == (folder / "whole.parquet").read_bytes()


def hold_shape(folder: Path, name: str, limits: tuple[str, ...], scale: float) -> None:
    """Encode rows of a shape within each limit, or see them refused; either takes no more than the limit."""
    source = write_rows(folder, SHAPES[name], scale)
    for limit in limits:
        ran = run_shape(source, folder / "encoded.parquet", SHAPES[name], limit)
        assert ran.most <= limit_of(limit), (limit, ran)
        assert re.fullmatch(r"|.* Give at least [\d,]+ MiB.*", ran.words), (limit, ran)


@pytest.mark.parametrize("name", QUICK)
def test_shapes_of_rows(tmp_path: Path, name: str) -> None:
    source = write_rows(tmp_path, SHAPES[name], QUICK[name])
    ran = run_shape(source, tmp_path / "encoded.parquet", SHAPES[name], "700MiB")
    assert ran.words == ""
    assert ran.most <= limit_of("700MiB")


@pytest.mark.long
@pytest.mark.skipif(not BEFORE_A_RELEASE, reason="half a minute each: MANY_CATEGORIES=1 runs them")
@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_of_rows(tmp_path: Path, name: str) -> None:
    hold_shape(tmp_path, name, LIMITS, 1.0)


@pytest.mark.nightly
@pytest.mark.long
@pytest.mark.parametrize("scheme", ["folds"])
def test_a_limit_holds_or_is_refused_with_one_that_does(tmp_path: Path, scheme: str) -> None:
    hold_limits(tmp_path, 150_000, scheme, 480)


@pytest.mark.long
@pytest.mark.skipif(not BEFORE_A_RELEASE, reason="a minute each: MANY_CATEGORIES=1 runs them")
@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_a_million_categories(tmp_path: Path, scheme: str) -> None:
    hold_limits(tmp_path, 1_000_000, scheme, 512)


@pytest.mark.long
@pytest.mark.skipif(not BEFORE_A_RELEASE, reason="a minute: MANY_CATEGORIES=1 runs it")
def test_twenty_million_categories_are_refused_below_the_limit(tmp_path: Path) -> None:
    write_keys(tmp_path / "rows.parquet", 20_000_000, 20_000_001, text=False)
    refused = watch(tmp_path / "rows.parquet", tmp_path / "codes.parquet", "folds", "512MiB")
    assert re.search(r"'key' has about (19|20),\d{3},\d{3} of them\. Give at least [\d,]+ MiB", refused.words)
    assert refused.most <= 512
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]
