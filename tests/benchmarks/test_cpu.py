"""`python -m benchmarks.cpu` from end to end on a few rows: what it judges, times, writes and skips."""

import json
from functools import partial
from importlib import import_module
from itertools import product

import numpy as np
import pytest

from benchmarks.cpu import grid, judge, memory
from benchmarks.cpu.contenders import CONTENDERS, contenders_for
from benchmarks.cpu.judge import Expected, verdict
from benchmarks.cpu.memory import copy_rate
from benchmarks.cpu.process import Process
from benchmarks.cpu.rows import Rows, draw
from gpu_encode import devices
from tests.benchmarks.liar import SCRATCH

pytestmark = pytest.mark.skipif(devices.simulated(), reason="the benchmarks of the CPU do not ask a simulator")
program = import_module("benchmarks.cpu.__main__")
FEW = ["--only", "table", "--quick", "--works", "mean", "--keys", "int"]
CELLS = [grid.Cell(work, keys, 40, 3_000) for work in grid.WORKS for keys in grid.KEYS]


@pytest.fixture(autouse=True)
def _without_a_picture(request, monkeypatch):
    if "every_line" not in request.node.name:
        monkeypatch.setattr(program.plot, "can_plot", lambda: False)


@pytest.fixture
def rows(tmp_path):
    def given(work="mean", keys="int", target="binary"):
        return Rows(draw(tmp_path, 500, 20, keys == "text"), keys, work, target, 20)

    return given


def run(folder, *arguments):
    status = program.main([*arguments, "--out", str(folder)])
    return status, json.loads((folder / "cpu.json").read_text())


@pytest.mark.slow
def test_every_line_runs_and_every_contender_is_right(tmp_path, capsys):
    status, found = run(tmp_path, "--quick")
    assert status == 0, capsys.readouterr().out
    assert found["status"] == "done"
    statuses = {(name, record["status"]) for cell in found["cells"] for name, record in cell["contenders"].items()}
    installed = {name for name, each in CONTENDERS.items() if not each.missing}
    assert statuses == {(name, "timed") for name in installed}
    assert set(found["left out"]) == set(CONTENDERS) - installed
    assert {row["axis"] for row in found["scaling"]} == {"rows", "categories", "folds", "columns", "threads"}
    assert all(found["small"].values())
    assert "nothing here is a measurement" in (tmp_path / "cpu.md").read_text()
    if program.plot.can_plot():
        assert {path.stem for path in tmp_path.glob("*.svg")} == {"rates-3000", "limit-3000", "scaling"}


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell.work}-{cell.keys}")
def test_every_line_has_ours_and_a_limit(cell):
    families = [CONTENDERS[name].family for name in contenders_for(cell, list(CONTENDERS))]
    assert {"ours", "limit", "hand-written"} <= set(families)


def test_a_contender_that_lies_gets_no_time(tmp_path, capsys):
    liar = "tests.benchmarks.liar:LIAR"
    status, found = run(tmp_path, *FEW, "--contenders", "ours,numpy", "--also", liar)
    records = found["cells"][0]["contenders"]
    assert status == 1
    assert records["numpy"]["status"] == "timed"
    assert records[liar]["status"] == "wrong"
    assert "seconds" not in records[liar]
    assert "row" in records[liar]["said"]
    assert f"{liar} (mean, int, 40 categories): wrong" in capsys.readouterr().out


def test_a_process_that_dies_is_part_of_the_answer(tmp_path):
    process = Process(60.0)
    try:
        answer = process.ask("no such module:NAME", "close")
    finally:
        process.end()
    assert answer["status"] == "failed"


@pytest.mark.skipif(memory.forget_peak() is None, reason="only Linux counts the peak anew")
def test_memory_is_counted_that_an_earlier_call_had_taken(tmp_path):
    process = Process(60.0)
    try:
        cell = grid.Cell("mean", "int", 20, 5_000)
        folder = str(draw(tmp_path, 5_000, 20, False))
        answer = process.ask("tests.benchmarks.liar:HUNGRY", "open", cell=cell.described, folder=folder)
    finally:
        process.end()
    assert answer["status"] == "right", answer
    assert 0.95 * SCRATCH < answer["peak bytes"] < 1.2 * SCRATCH


def test_a_peak_below_what_was_taken_is_not_measurable(monkeypatch):
    monkeypatch.setattr(memory, "resident", lambda _="": 1_000)
    assert memory.peak_over(400, 600) == 600
    assert memory.peak_over(400, 601) is None
    assert memory.peak_over(1_001) is None


@pytest.mark.parametrize("work", ["mean", "mean-real", "folds", "ordered", "leave-one-out", "classes", "codes"])
@pytest.mark.parametrize(("by", "keys"), [("range", "int"), ("hashed", "sparse"), ("range", "category")])
def test_every_arrangement_of_the_limit_is_right(work, by, keys, tmp_path):
    limit = pytest.importorskip("benchmarks.cpu.contenders.limit")
    pytest.importorskip("numba")
    cell = grid.Cell(work, keys, 40, 3_000)
    given = Rows(draw(tmp_path, 3_000, 40, False), keys, work, cell.target, 40)
    expected = limit.prepared(given, by).expected
    again = work in limit.MEANS and by == "hashed"
    for way, twice in product(limit.ways(by, work), (False, True) if again else (False,)):
        assert verdict(given, expected, limit.Loops(given, by, way, twice).call())[0] == "", (way, twice)


@pytest.mark.parametrize("by", ["hashed", "text"])
def test_tables_of_the_limit_that_grow_when_joined_know_all_keys(by, tmp_path):
    limit, n_rows, n_keys = pytest.importorskip("benchmarks.cpu.contenders.limit"), 120_000, 100_000
    keys = "text" if by == "text" else "sparse"
    given = Rows(draw(tmp_path, n_rows, n_keys, keys == "text"), keys, "mean", "binary", n_keys)
    expected = limit.prepared(given, by).expected
    for threads, twice in product((1, 2, 3), (False, True)):
        loops = limit.Loops(given, by, limit.Way(False, threads), twice)
        assert verdict(given, expected, loops.call())[0] == "", (threads, twice)


def test_resume_runs_what_was_wrong_again(tmp_path):
    found = run(tmp_path, *FEW, "--contenders", "numpy")[1]
    found["cells"][0]["contenders"]["numpy"] = {"family": "hand-written", "status": "failed", "said": "once"}
    (tmp_path / "cpu.json").write_text(json.dumps(found))
    status, found = run(tmp_path, *FEW, "--contenders", "numpy", "--resume")
    assert status == 0
    assert found["cells"][0]["contenders"]["numpy"]["status"] == "timed"


def test_resume_keeps_finished_cells_and_goes_on(tmp_path, monkeypatch):
    first = run(tmp_path, *FEW, "--contenders", "numpy")[1]["cells"]
    more = ["--only", "table", "--quick", "--works", "mean,count", "--keys", "int", "--contenders", "numpy"]
    status, found = run(tmp_path, *more, "--resume")
    assert status == 0
    assert found["cells"][:1] == first
    assert [cell["work"] for cell in found["cells"]] == ["mean", "count"]
    head = program.machine.head(True) | {"commit": "another"}
    monkeypatch.setattr(program.machine, "head", lambda _: head)
    assert program.main([*more, "--resume", "--out", str(tmp_path)]) == 2


@pytest.mark.parametrize("held", [{"cells": [{}]}, {"small": {"Imports": []}}, {"scaling": [{}]}])
def test_finished_results_are_not_overwritten(held, tmp_path, capsys):
    head = program.machine.head(True)
    (tmp_path / "cpu.json").write_text(json.dumps({**head, "quick": False, "cells": [], **held}))
    assert program.main([*FEW, "--out", str(tmp_path)]) == 2
    assert "--resume goes on with them" in capsys.readouterr().err


def test_slow_contenders_are_not_run(tmp_path):
    arguments = ["--rows", "3000,6000", "--contender-limit", "1e-9", "--contenders", "numpy"]
    cells = run(tmp_path, *FEW, *arguments)[1]["cells"]
    assert [cell["contenders"]["numpy"]["status"] for cell in cells] == ["timed", "not run"]
    assert cells[1]["contenders"]["numpy"]["said"].startswith("about ")


@pytest.mark.parametrize("scheme", ["all", "folds", "ordered", "leave-one-out", "count"])
def test_one_code_that_is_off_is_wrong(scheme, rows):
    given = rows()
    expected = Expected(scheme, folds=given.folds)
    codes = next(expected.columns(given)).copy()
    assert verdict(given, expected, codes) == ("", 0.0)
    codes[17] += 1e-6
    assert verdict(given, expected, codes)[0].startswith("row 17 ")
    codes[17] = np.nan
    assert verdict(given, expected, codes)[0].startswith("row 17 ")
    assert "shape" in verdict(given, expected, codes[:-1])[0]


def visible(scheme, codes, folds, row):
    alike = codes == codes[row]
    if scheme == "folds":
        alike &= folds != folds[row]
    elif scheme == "ordered":
        alike[row:] = False
    elif scheme == "leave-one-out":
        alike[row] = False
    return alike


@pytest.mark.parametrize("scheme", ["all", "folds", "ordered", "leave-one-out"])
def test_the_judge_agrees_with_rows_counted_one_by_one(scheme, rows):
    given = rows(target="real")
    found = next(Expected(scheme, folds=given.folds).columns(given))
    for row in (0, 3, 250, 499):
        seen = given.target[visible(scheme, given.codes, given.folds, row)]
        expected = (seen.sum() + 10.0 * given.target.mean()) / (len(seen) + 10.0)
        assert found[row] == pytest.approx(expected, rel=1e-12)


def test_codes_are_judged_up_to_their_numbers(rows):
    given, expected = rows("codes"), Expected("codes")
    renumbered = (given.codes * 7 + 3) % 20
    assert verdict(given, expected, renumbered)[0] == ""
    assert verdict(given, expected, renumbered // 2)[0] == "two values have one code"
    split = np.where(np.arange(500) == np.flatnonzero(given.codes == given.codes[0])[-1], 25, renumbered)
    assert verdict(given, expected, split)[0] == "one value has two codes"
    assert "type float64" in verdict(given, expected, renumbered + 0.5)[0]


@pytest.mark.parametrize("keys", list(grid.KEYS))
def test_all_containers_hold_the_same_rows(keys, rows):
    given = rows(keys=keys)
    values = given.series.astype(object).tolist()
    assert given.arrow.to_pylist() == values
    assert len(set(zip(values, given.codes.tolist(), strict=True))) == len(np.unique(given.codes))


def test_the_blends_are_those_of_their_papers():
    counts, sums = np.array([0.0, 4.0]), np.array([0.0, 3.0])
    assert judge.m_estimate(counts, sums, 0.5).tolist() == [0.5, 8 / 14]
    assert judge.m_estimate(counts, sums, 0.5, smooth=0.0).tolist() == [0.5, 0.75]
    share = 1 / (1 + np.exp(1.6))
    assert judge.sigmoid(counts, sums, 0.5)[1] == pytest.approx(0.5 * (1 - share) + 0.75 * share)


def test_the_default_grid_has_few_lines_of_the_second_keys():
    cells = list(grid.cells(grid.ROWS, grid.CATEGORIES, list(grid.WORKS), list(grid.KEYS)))
    assert len(cells) == 2 * (len(grid.WORKS) * 2 * 3 + 2 * 3)
    assert len(set(cells)) == len(cells)
    assert [cell.rows for cell in cells] == sorted(cell.rows for cell in cells)


def test_a_copy_has_a_rate():
    assert all(rate > 1e6 for rate in map(partial(copy_rate, size=1 << 16), (1, 2)))
