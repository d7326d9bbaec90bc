"""`python -m benchmarks.rapids` from end to end, pandas in cuDF's place: what it judges, times, writes and skips."""

import json
from importlib import import_module

import numpy as np
import pytest

from benchmarks.rapids import contenders, formulation, grid, judge, library, measurement
from benchmarks.rapids.job import Job
from benchmarks.rapids.measurement import Settings, measure
from gpu_encode import devices

program = import_module("benchmarks.rapids.__main__")
CELL = grid.Cell("mean", 40, 5, "int", "uniform")
# The simulator takes its time.
DISTRIBUTIONS = ["uniform"] if devices.simulated() else list(grid.DISTRIBUTIONS)
TRIAL = ["--tiny", "--frames", "pandas", "--repeats", "1"]
ONE = [*TRIAL, "--keys", "int", "--distributions", "uniform"]


@pytest.fixture(autouse=True)
def _without_a_picture(request, monkeypatch):
    """Draw nothing, which takes longer than the rest."""
    if "picture" not in request.node.name:
        monkeypatch.setattr(program.plot, "can_plot", lambda: False)


def run(folder, *arguments):
    """Run the program; give its status and what it wrote."""
    status = program.main([*arguments, "--out", str(folder)])
    return status, json.loads((folder / "rapids.json").read_text())


def job_of(work="mean", dtype="float64", rows=40, categories=5, keys="int"):
    """Give a job on pandas."""
    return Job(library.Pandas(), grid.Cell(work, rows, categories, keys, "uniform"), dtype)


def statuses(records):
    return {name: record["status"] for name, record in records.items()}


@pytest.mark.parametrize("work", grid.WORKS)
def test_every_cell_of_the_grid_is_judged_and_timed(work, tmp_path):
    asked = ["--work", work, "--distributions", ",".join(DISTRIBUTIONS)]
    status, found = run(tmp_path, *TRIAL, *asked)
    assert (status, found["status"], found["now"]) == (0, "done", None)
    cells = found["cells"]
    drawn = [grid.DISTRIBUTIONS[name] for name in DISTRIBUTIONS]
    assert {(cell["keys"], cell["distribution"]) for cell in cells} == {(k, d) for k in grid.KEYS for d in drawn}
    assert len(cells) == len(grid.KEYS) * len(drawn)
    for cell in cells:
        records = cell["contenders"]
        assert statuses(records) == {"ours": "timed", "cudf": "timed", "cuml": "not offered", "cpu": "timed"}, records
        assert records["ours"]["compared with"] == "the definition for 26 rows"
        assert records["cudf"]["compared with"] == "the definition for 26 rows, ours for 40"
        assert records["ours"]["times faster than"] == {
            name: records[name]["seconds"] / records["ours"]["seconds"] for name in ("cudf", "cpu")
        }


def test_the_output_says_what_it_is_worth(tmp_path, capsys):
    run(tmp_path, *ONE, "--work", "mean", "--contenders", "ours,cudf")
    note = "pandas stands in for cuDF: times mean nothing"
    assert note in (tmp_path / "rapids.md").read_text()
    said = capsys.readouterr().out
    assert note in said
    assert " ms" not in said


def test_a_run_ends_with_a_picture(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    run(tmp_path, *ONE, "--work", "mean", "--contenders", "cudf")
    assert {path.name for path in tmp_path.iterdir()} == {f"rapids.{kind}" for kind in ("json", "md", "png", "svg")}


def test_a_run_without_times_has_no_picture(tmp_path, capsys):
    run(tmp_path, *ONE, "--time-limit", "0")
    assert "there is nothing to draw" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"rapids.json", "rapids.md"}


def test_nothing_of_a_trial_goes_to_the_results(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "ROOT", tmp_path)
    assert program.main([*ONE, "--work", "mean", "--contenders", "cudf"]) == 0
    assert (tmp_path / "build/rapids-stand-in/rapids.json").exists()
    assert not (tmp_path / "benchmarks").exists()


def leaking(job, frame, key, targets):
    """Codes of new rows where training codes were asked for."""
    return formulation.mean(job, frame, key, targets)


def slightly_off(job, frame, key, targets):
    """One code of all is wrong, in a row that is not looked at by itself."""
    codes = formulation.mean(job, frame, key, targets)
    codes.iloc[-2] *= 1 + 1e-8
    return codes


@pytest.mark.parametrize("work", ["folds", "leave-one-out", "ordered"])
@pytest.mark.parametrize("ours", [True, False])
def test_a_leak_is_wrong_and_is_not_timed(work, ours, tmp_path, monkeypatch):
    monkeypatch.setitem(formulation.FORMS, work, leaking)
    status, found = run(tmp_path, *ONE, "--work", work, "--contenders", "ours,cudf" if ours else "cudf")
    record = found["cells"][0]["contenders"]["cudf"]
    assert (status, record["status"]) == (1, "wrong")
    assert not {"seconds", "times", "rows a second"} & set(record)
    assert record["said"].startswith("row ")
    written = (tmp_path / "rapids.md").read_text()
    assert f"**cuDF: wrong** ({work}, 40 rows, 5 categories, int, uniform)" in written
    assert record["said"] in written


def test_one_code_that_is_off_is_noticed(monkeypatch):
    monkeypatch.setitem(formulation.FORMS, "mean", slightly_off)
    monkeypatch.setattr(judge, "BY_DEFINITION", 0)
    records = measure(job_of(), Settings(("ours", "cudf"), 1))
    assert statuses(records) == {"ours": "timed", "cudf": "wrong"}
    assert records["cudf"]["said"].startswith("1 codes are not ours, first in row 38: ")
    assert records["ours"]["times faster than"] == {}


def test_ours_is_not_believed_either(monkeypatch):
    right = contenders.encoding

    def encoding(job, X, y, device):
        return lambda: right(job, X, y, device)() + 1e-6

    monkeypatch.setattr(contenders, "encoding", encoding)
    records = measure(job_of(), Settings(("cpu", "cudf", "ours"), 1))
    assert list(records) == ["ours", "cudf", "cpu"]
    assert statuses(records) == {"ours": "wrong", "cudf": "timed", "cpu": "wrong"}
    assert records["cudf"]["compared with"] == "the definition for 26 rows"


def test_the_cpu_must_have_our_bits(monkeypatch):
    right = contenders.on_host
    monkeypatch.setattr(contenders, "on_host", lambda found: np.nextafter(right(found), 1.0))
    records = measure(job_of(), Settings(("ours", "cpu"), 1))
    assert statuses(records) == {"ours": "timed", "cpu": "wrong"}


def test_codes_of_another_shape_are_wrong(monkeypatch):
    monkeypatch.setitem(formulation.FORMS, "mean", lambda *given: formulation.mean(*given).iloc[1:])
    record = measure(job_of(), Settings(("cudf",), 1))["cudf"]
    assert (record["status"], record["said"]) == ("wrong", "its codes are of shape (39, 1), not (40, 1)")


def test_codes_in_float32_are_compared_as_such():
    records = measure(job_of(dtype="float32"), Settings(("ours", "cudf", "cpu"), 1))
    assert set(statuses(records).values()) == {"timed"}
    assert records["ours"]["bytes at least"] == 40 * (8 + 4 + 4)


def breaks_with(error):
    def form(*given):
        raise error

    return form


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (MemoryError("std::bad_alloc: out_of_memory\nmore"), "out of memory", "std::bad_alloc: out_of_memory"),
        (KeyError("no such column"), "failed", "KeyError: 'no such column'"),
    ],
)
def test_a_contender_that_breaks_is_part_of_the_answer(error, status, said, tmp_path, monkeypatch):
    monkeypatch.setitem(formulation.FORMS, "mean", breaks_with(error))
    ended, found = run(tmp_path, *ONE, "--work", "mean", "--contenders", "ours,cudf")
    records = found["cells"][0]["contenders"]
    assert (ended, statuses(records)) == (0, {"ours": "timed", "cudf": status})
    assert said in records["cudf"]["said"]
    assert f"**cuDF: {status}**" in (tmp_path / "rapids.md").read_text()


def test_ours_may_not_break(tmp_path, monkeypatch):
    monkeypatch.setattr(contenders, "encoding", lambda *given: breaks_with(ValueError("broken")))
    assert run(tmp_path, *ONE, "--work", "mean", "--contenders", "ours,cudf")[0] == 1


def test_contenders_take_turns(monkeypatch):
    called = []

    def made(name, seconds):
        def call():
            called.append(name)
            return formulation.encoded(job)

        return lambda job: contenders.Contender(call, contenders.cudf(job).matrix)

    job = job_of()
    monkeypatch.setattr(measurement, "CONTENDERS", {"ours": made("ours", 1), "cudf": made("cudf", 2)})
    clock = iter([5.0, 50.0, 1.0, 10.0, 2.0, 20.0])
    monkeypatch.setattr(job.library, "seconds", lambda call, on_host: call() and next(clock))
    records = measure(job, Settings(("ours", "cudf"), 3, copy_rate=1e6))
    # Judged, watched, then in turns.
    assert called == ["ours", "cudf"] * 5
    assert records["ours"]["times"] == [5.0, 1.0, 2.0]
    assert (records["ours"]["seconds"], records["cudf"]["seconds"]) == (2.0, 20.0)
    assert records["ours"]["times faster than"] == {"cudf": 10.0}
    assert records["ours"]["bytes at least"] == 40 * (8 + 4 + 8)
    assert records["ours"]["share of copy"] == 40 * 20 / 2.0 / 1e6
    assert records["ours"]["rows a second"] == 20.0


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        (0, {"status": "not judged: time was up"}),
        (1, {"status": "not timed: time was up"}),
        (4, {"status": "timed", "fewer": "2 of 5 calls: time was up"}),
        (99, {"status": "timed"}),
    ],
)
def test_fewer_calls_are_said_to_be_fewer(looks, expected, monkeypatch):
    turns = iter(range(10**6))
    monkeypatch.setattr(Settings, "late", lambda self: next(turns) >= looks)
    record = measure(job_of(), Settings(("cudf",), 5))["cudf"]
    assert {key: record[key] for key in ("status", "fewer") if key in record} == expected


def test_the_cpu_is_not_asked_of_many_rows():
    record = measure(job_of(), Settings(("cpu",), 1, cpu_rows=39))["cpu"]
    assert record == {"status": "not offered", "said": "asked up to 39 rows"}


def test_the_middle_of_the_grid_comes_first():
    drawn = list(grid.DISTRIBUTIONS.values())
    found = grid.cells(grid.ROWS, grid.CATEGORIES, grid.KEYS, drawn, list(grid.WORKS))
    assert found[0] == grid.Cell("folds", 10**8, 10**5, "int", "uniform")
    assert len(set(found)) == len(found) == 4 * 4 * 3 * 2 * 6
    assert {cell.rows for cell in found[:30]} == {10**8}
    assert {cell.work for cell in found[:30]} == set(grid.WORKS)
    first = {rows: next(place for place, cell in enumerate(found) if cell.rows == rows) for rows in grid.ROWS}
    assert sorted(first, key=first.get) == [10**8, 10**7, 10**9, 10**6]
    assert 10**8 not in {cell.rows for cell in found[-30:]}


def test_cells_that_do_not_fit_are_listed(tmp_path, monkeypatch):
    needed = grid.bytes_needed(CELL, 8)
    monkeypatch.setattr(library.Pandas, "free", lambda self: needed)
    asked = [*ONE, "--work", "mean,leave-one-out,pairs", "--contenders", "cudf"]
    status, found = run(tmp_path, *asked)
    skipped = {cell["work"]: cell["skipped"] for cell in found["cells"] if "skipped" in cell}
    assert status == 0
    assert set(skipped) == {"pairs"}
    assert skipped["pairs"].startswith("needs ")
    assert "- pairs, 40 rows, 5 categories, int, uniform: needs" in (tmp_path / "rapids.md").read_text()
    assert grid.unfit(grid.Cell("mean", 2**31, 5, "int", "uniform"), 8, 1 << 62) == (
        "a frame holds at most 2,147,483,647 rows"
    )


def test_rows_that_cannot_be_made_are_skipped_and_a_lost_device_ends_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(library.Pandas, "key", breaks_with(RuntimeError("illegal address")))
    _, found = run(tmp_path, *TRIAL, "--work", "mean,folds", "--contenders", "cudf")
    assert found["status"] == "broken: no rows could be made 3 times"
    assert ["illegal address" in cell["skipped"] for cell in found["cells"]] == [True] * 3


def test_a_killed_run_keeps_what_it_has_and_is_gone_on_with(tmp_path, monkeypatch):
    asked = [*ONE, "--work", "folds,mean,leave-one-out", "--contenders", "cudf"]
    turns = iter([measure, breaks_with(KeyboardInterrupt)])

    def killed(job, settings):
        return next(turns)(job, settings)

    monkeypatch.setattr(program, "measure", killed)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, *asked)
    left = json.loads((tmp_path / "rapids.json").read_text())
    assert [cell["work"] for cell in left["cells"]] == ["folds"]
    assert left["now"]["work"] == "mean"
    monkeypatch.setattr(program, "measure", measure)
    _, found = run(tmp_path, *asked, "--resume")
    assert found["cells"][0] == left["cells"][0]
    assert [(cell["work"], cell.get("skipped")) for cell in found["cells"]] == [
        ("folds", None),
        ("mean", "the run was killed in it"),
        ("leave-one-out", None),
    ]
    assert (found["status"], found["now"]) == ("done", None)


def test_cells_without_all_their_times_are_measured_again(tmp_path, monkeypatch):
    asked = [*ONE, "--work", "mean", "--resume"]
    monkeypatch.setattr(Settings, "late", lambda self: False)
    first = run(tmp_path, *asked, "--contenders", "cudf")[1]["cells"]
    assert run(tmp_path, *asked, "--contenders", "cudf")[1]["cells"] == first
    (cell,) = run(tmp_path, *asked, "--contenders", "cudf,cpu")[1]["cells"]
    assert set(cell["contenders"]) == {"cudf", "cpu"}
    cell["contenders"]["cpu"] = {"status": "not timed: time was up"}
    written = json.loads((tmp_path / "rapids.json").read_text())
    (tmp_path / "rapids.json").write_text(json.dumps({**written, "cells": [cell]}))
    (cell,) = run(tmp_path, *asked, "--contenders", "cudf,cpu")[1]["cells"]
    assert cell["contenders"]["cpu"]["status"] == "timed"


def test_other_settings_begin_anew(tmp_path):
    asked = [*ONE, "--work", "mean", "--contenders", "cudf"]
    run(tmp_path, *asked)
    _, found = run(tmp_path, *asked, "--resume", "--dtype", "float32", "--rows", "30")
    assert [cell["rows"] for cell in found["cells"]] == [30]


def test_no_cell_begins_when_time_is_up(tmp_path):
    status, found = run(tmp_path, *ONE, "--time-limit", "0")
    assert (status, found["status"], found["cells"]) == (0, "cut short: time was up", [])


def test_without_a_gpu_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(devices, "has_gpu", lambda: False)
    assert program.main([]) == 2
    assert "--tiny --frames pandas" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--work", "fold"], "fold is none of folds, mean, "),
        (["--rows", "1e6,0.5"], "0.5 is no positive whole number"),
        (["--keys", ""], "nothing is none of int, string, category"),
    ],
)
def test_mistakes_are_named(arguments, said, capsys):
    with pytest.raises(SystemExit):
        program.main(arguments)
    assert said in capsys.readouterr().err
