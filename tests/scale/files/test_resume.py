"""A killed run continues from its finished parts, with the same bits; no incomplete file has its final name."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from gpu_encode import (
    KFold,
    MergeableStatistic,
    StatisticEncoder,
    TargetEncoder,
    encode_dataset,
    load,
    transform_dataset,
)
from gpu_encode.scale.files import encoding
from tests.architecture.imports import ROOT
from tests.bits import assert_same_encoder
from tests.scale.files.conftest import read_folder
from tests.scale.files.encoded import assert_same_table, encode, in_memory, names_in, read_rows, write_pieces

KILLS = 5


def ratio(count: Any, mean: Any, variance: Any) -> Any:
    return variance / (mean * count)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
def test_twenty_kills(tmp_path: Path, orders: pa.Table) -> None:
    source = write_pieces(tmp_path / "in", orders, 112, row_group_size=25)
    program = [sys.executable, "-m", "tests.scale.files.killed", str(source), str(tmp_path / "out"), str(KILLS)]
    subprocess.run(program, cwd=ROOT, check=True, timeout=300)
    story = json.loads((tmp_path / "out" / "story.json").read_text())
    assert len(story) == 4 * KILLS
    shorter = 0
    for name, number, last, events, ended, there, left, again, used in story:
        folder = tmp_path / "out" / name
        place = "codes.parquet" if name.endswith("file") else "codes"
        expected = read_rows(folder / "whole" / place)
        where = f"{name}: killed at {last} of {events}"
        # The order of threads varies, so that a run may have a few events less than the counted run.
        assert ended == -9 or (ended == 0 and last > events - 5), where
        if not there:
            assert left == [f".{place}.gpu-encode"] or last < 3, where
            assert again == 0, where
            shorter += used < events
            # A file that existed before the end stays as hidden as it was.
            assert names_in(folder / str(number)) == sorted([place, "events", "model"]), where
            assert_same_encoder(load(folder / str(number) / "model"), load(folder / "whole" / "model"))
        assert_same_table(read_rows(folder / str(number) / place), expected)
    assert shorter >= 2 * KILLS


class Stopped(Exception):
    pass


def stop_after(count: int, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Make a step of the work fail after `count` calls."""
    owner = encoding if hasattr(encoding, name) else encoding.Encoding
    original, calls = getattr(owner, name), []

    def failing(*given: Any) -> Any:
        calls.append(name)
        if len(calls) > count:
            raise Stopped(name)
        return original(*given)

    monkeypatch.setattr(owner, name, failing)


@pytest.fixture
def interrupted(tmp_path: Path, rows: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which a run has stopped after two of seven parts."""
    with monkeypatch.context() as patched:
        patched.setattr(encoding, "SAVE_AFTER", 0)
        # The first call encodes the table without rows.
        stop_after(3, patched, "encode")
        with pytest.raises(Stopped) as caught:
            encode(rows, tmp_path / "codes", TargetEncoder(columns=["city"]), "sold", chunk_rows=64)
    [note] = caught.value.__notes__
    assert "resume=True (--resume) continues from there" in note
    return tmp_path


def test_an_error_keeps_what_is_finished(
    interrupted: Path, rows: Path, orders: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert names_in(interrupted) == [".codes.gpu-encode", "orders.parquet"]
    assert names_in(interrupted / ".codes.gpu-encode") == ["finished", "lock", "manifest.json", "sums"]
    finished = names_in(interrupted / ".codes.gpu-encode" / "finished")
    assert finished in (["part-00000.parquet"], ["part-00000.parquet", "part-00001.parquet"])
    # Rows are not measured again, and finished files are not encoded again.
    stop_after(0, monkeypatch, "measure")
    stop_after(8 - len(finished), monkeypatch, "encode")
    encoder = TargetEncoder(columns=["city"])
    summary = encode(rows, interrupted / "codes", encoder, "sold", chunk_rows=64, resume=True)
    assert summary.files == 7 - len(finished)
    told = repr(summary).splitlines()[-1]
    assert 0 < summary.encoded < len(orders)
    assert told.startswith(f"{summary.encoded} of {len(orders)} rows of ")
    fitted, expected = in_memory(encoder, orders, "sold")
    assert_same_table(read_folder(interrupted / "codes"), expected)
    assert_same_encoder(encoder, fitted)
    assert names_in(interrupted) == ["codes", "orders.parquet"]


def test_measuring_goes_on_where_it_was_saved(
    tmp_path: Path, rows: Path, orders: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "SAVE_AFTER", 0)
    encoder = TargetEncoder(columns=["city"], cv=KFold(3, stratify=True))
    for _ in range(2):
        with monkeypatch.context() as patched:
            stop_after(3, patched, "_add")
            with pytest.raises(Stopped):
                encode(rows, tmp_path / "codes.parquet", encoder, "kind", chunk_rows=64, resume=True)
    # Every run saved its first chunk at least.
    stop_after(5, monkeypatch, "_add")
    encode(rows, tmp_path / "codes.parquet", encoder, "kind", chunk_rows=64, resume=True)
    assert_same_table(read_rows(tmp_path / "codes.parquet"), in_memory(encoder, orders, "kind")[1])


def test_without_resume_work_starts_afresh(interrupted: Path, rows: Path, orders: pa.Table) -> None:
    encoder = TargetEncoder(columns=["zip"])
    summary = encode(rows, interrupted / "codes", encoder, "price", chunk_rows=64)
    assert summary.files == 7
    assert_same_table(read_folder(interrupted / "codes"), in_memory(encoder, orders, "price")[1])


def test_parts_are_as_they_were_whatever_the_chunks_are_now(interrupted: Path, rows: Path, orders: pa.Table) -> None:
    encoder = TargetEncoder(columns=["city"])
    encode(rows, interrupted / "codes", encoder, "sold", chunk_rows=23, resume=True)
    assert len(names_in(interrupted / "codes")) == 7
    assert_same_table(read_folder(interrupted / "codes"), in_memory(encoder, orders, "sold")[1])


@pytest.mark.parametrize(
    ("parameters", "choices", "message"),
    [
        ({"smooth": 3.0}, {}, "parameter smooth was 'auto' there and is 3.0 now"),
        ({"cv": KFold(2)}, {}, "parameter cv was 5 there and is {'class': 'KFold'"),
        ({}, {"target": "price"}, "target was 'sold' there and is 'price' now"),
        ({}, {"weight": "weight"}, "weight was None there and is 'weight' now"),
        ({}, {"compression": "gzip"}, "the compression was 'snappy' there and is 'gzip' now"),
        ({}, {"keep_target": False}, "keep_target was True there"),
    ],
)
def test_other_work_is_not_gone_on_with(
    interrupted: Path, rows: Path, parameters: dict[str, Any], choices: dict[str, Any], message: str
) -> None:
    encoder = TargetEncoder(**({"columns": ["city"]} | parameters))
    with pytest.raises(ValueError, match=message):
        encode_dataset(rows, interrupted / "codes", encoder, **({"target": "sold", "resume": True} | choices))
    # The finished files are still there for the right call.
    assert (interrupted / ".codes.gpu-encode" / "finished" / "part-00000.parquet").exists()


def test_a_source_that_has_changed_is_not_gone_on_with(interrupted: Path, rows: Path) -> None:
    os.utime(rows, (1, 1))
    with pytest.raises(ValueError, match=r"size and time of the last change of .*orders\.parquet was \[") as caught:
        encode(rows, interrupted / "codes", TargetEncoder(columns=["city"]), "sold", resume=True)
    # The same call would be refused again, so that the message does not suggest it.
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize(("name", "content"), [("manifest.json", "{"), ("manifest.json", "{}"), ("sums", "PK")])
def test_damaged_notes(interrupted: Path, rows: Path, name: str, content: str) -> None:
    (interrupted / ".codes.gpu-encode" / name).write_text(content)
    with pytest.raises(ValueError, match=f"{name}' is damaged.* Run without resume to start afresh"):
        encode(rows, interrupted / "codes", TargetEncoder(columns=["city"]), "sold", resume=True)
    encode(rows, interrupted / "codes", TargetEncoder(columns=["city"]), "sold")


def test_two_runs_do_not_write_to_one_destination(tmp_path: Path, rows: Path) -> None:
    def second(stage: str, *_: object) -> None:
        if stage == "encoding":
            with pytest.raises(FileExistsError, match="another run is writing to this destination"):
                encode(rows, tmp_path / "codes", TargetEncoder(columns=["zip"]), "sold", resume=False)

    encode(rows, tmp_path / "codes", TargetEncoder(columns=["city"]), "sold", progress=second)
    assert names_in(tmp_path) == ["codes", "orders.parquet"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
def test_runs_that_begin_while_others_end_take_turns(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "tests.scale.files.turns", str(tmp_path / "codes.parquet"), "4", "2"]
    done = subprocess.run(program, cwd=ROOT, check=True, timeout=60, capture_output=True, text=True)
    ends = json.loads(done.stdout)
    assert ends.pop("published") > 20
    # The only other possible end: a message that another run is there.
    assert set(ends) <= {"refused"}
    assert names_in(tmp_path) == ["codes.parquet"]


def test_folds_that_cannot_be_drawn_again_leave_nothing(
    tmp_path: Path, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_after(3, monkeypatch, "encode")
    with pytest.raises(Stopped) as caught:
        encode(rows, tmp_path / "codes", TargetEncoder(columns=["city"], random_state=None), "sold", chunk_rows=64)
    assert not hasattr(caught.value, "__notes__")
    assert names_in(tmp_path) == ["orders.parquet"]


@pytest.mark.parametrize("statistic", [ratio, MergeableStatistic("squares", [np.square], lambda count, total: total)])
def test_what_no_file_holds_is_encoded_and_not_gone_on_with(
    tmp_path: Path, rows: Path, orders: pa.Table, statistic: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = StatisticEncoder(["mean", statistic], columns=["city", "zip"])
    monkeypatch.setattr(encoding, "SAVE_AFTER", 0)
    with monkeypatch.context() as patched:
        stop_after(3, patched, "encode")
        with pytest.raises(Stopped) as caught:
            encode(rows, tmp_path / "codes", encoder, "price", chunk_rows=64)
    assert not hasattr(caught.value, "__notes__")
    assert names_in(tmp_path) == ["orders.parquet"]
    with pytest.raises(TypeError, match=r"resume=True needs .* it has .*(function ratio|MergeableStatistic).* afresh"):
        encode_dataset(rows, tmp_path / "codes", encoder, target="price", resume=True)
    encode(rows, tmp_path / "codes", encoder, "price", chunk_rows=64)
    fitted, expected = in_memory(encoder, orders, "price")
    assert_same_table(read_folder(tmp_path / "codes"), expected)
    new = orders.select([name for name in orders.column_names if name != "price"])
    pyarrow.parquet.write_table(new, tmp_path / "new.parquet")
    with pytest.raises(TypeError, match=r"resume=True needs .* Run without resume"):
        transform_dataset(tmp_path / "new.parquet", tmp_path / "again.parquet", encoder, resume=True)
    transform_dataset(tmp_path / "new.parquet", tmp_path / "again.parquet", encoder)
    assert_same_table(read_rows(tmp_path / "again.parquet"), fitted.transform(new))
    assert names_in(tmp_path) == ["again.parquet", "codes", "new.parquet", "orders.parquet"]


def test_an_early_error_leaves_nothing(tmp_path: Path, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop_after(1, monkeypatch, "_add")
    with pytest.raises(Stopped):
        encode(rows, tmp_path / "codes", TargetEncoder(columns=["city"]), "sold", chunk_rows=64)
    assert names_in(tmp_path) == ["orders.parquet"]
