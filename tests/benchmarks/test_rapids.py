"""`python -m benchmarks.rapids` from end to end, pandas in cuDF's place: what it judges, times, writes and skips."""

import json
import re
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks.rapids import contenders, formulation, grid, judge, library, measurement
from benchmarks.rapids.contenders import CONTENDERS
from benchmarks.rapids.grid import OWN_PRIOR
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


@pytest.fixture
def measured(monkeypatch):
    """Take times, and believe them, although pandas stands in for cuDF."""
    monkeypatch.setattr(library.Pandas, "stand_in", False)


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
        missing = {"cuml"} | {"mean": {OWN_PRIOR}, "ordered": {"cudf-scatter"}}.get(work, set())
        assert statuses(records) == {name: "not offered" if name in missing else "ran" for name in CONTENDERS}, records
        assert records["ours"]["compared with"] == "the definition for 26 rows"
        for name in {"cudf", "cudf-scatter", "cpu"} - missing:
            assert records[name]["compared with"] == "the definition for 26 rows, ours for 40"
        if OWN_PRIOR not in missing:
            assert records[OWN_PRIOR]["compared with"] == "the definition for 26 rows"


@pytest.mark.parametrize("work", ["folds", "mean", "leave-one-out", "classes", "pairs"])
def test_rows_come_back_into_order_after_a_merge_that_keeps_none(work, monkeypatch):
    keeping = pd.DataFrame.merge

    def merge(left, right, **options):
        return keeping(left, right, **options).sample(frac=1, random_state=1, ignore_index=True)

    monkeypatch.setattr(pd.DataFrame, "merge", merge)
    records = measure(job_of(work), Settings(("cudf", "cudf-scatter"), 1))
    assert statuses(records) == {"cudf": "ran", "cudf-scatter": "ran"}, records


@pytest.mark.parametrize("work", ["folds", "mean"])
def test_ratios_are_to_both_of_ours(work, measured, tmp_path):
    _, found = run(tmp_path, *ONE, "--work", work)
    records = found["cells"][0]["contenders"]
    others = ("cudf", "cudf-scatter", "cpu")
    for name in ("ours",) if work == "mean" else ("ours", OWN_PRIOR):
        assert records[name]["times faster than"] == {
            other: records[other]["seconds"] / records[name]["seconds"] for other in others
        }


def test_the_output_says_what_it_is_worth(tmp_path, capsys):
    run(tmp_path, *ONE, "--work", "mean", "--contenders", "ours,cudf")
    note = "pandas stands in for cuDF: nothing was measured"
    table, data = ((tmp_path / f"rapids.{kind}").read_text() for kind in ("md", "json"))
    said = capsys.readouterr().out
    assert all(note in text for text in (table, data, said))
    for text in (table, data, said):
        assert not re.search(r"\d ms|, ms|times|seconds|\bx cuDF", text), text
    assert "| ran | ran |" in table


def test_a_run_ends_with_a_picture(measured, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    run(tmp_path, *ONE, "--work", "mean", "--contenders", "cudf")
    assert {path.name for path in tmp_path.iterdir()} == {f"rapids.{kind}" for kind in ("json", "md", "png", "svg")}


def test_a_run_without_times_has_no_picture(tmp_path, capsys):
    run(tmp_path, *ONE, "--work", "mean", "--contenders", "cudf")
    assert "there is nothing to draw" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"rapids.json", "rapids.md"}


def test_nothing_of_a_trial_goes_to_the_results(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "ROOT", tmp_path)
    assert program.main([*ONE, "--work", "mean", "--contenders", "cudf"]) == 0
    assert (tmp_path / "build/rapids-stand-in/rapids.json").exists()
    assert not (tmp_path / "benchmarks").exists()


def leaking(*given):
    """Codes of new rows where training codes were asked for."""
    return formulation.mean(*given)


def slightly_off(*given):
    """One code of all is wrong, in a row that is not looked at by itself."""
    codes = formulation.mean(*given)
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
    assert statuses(records) == {"ours": "ran", "cudf": "wrong"}
    assert records["cudf"]["said"].startswith("1 codes are not ours, first in row 38: ")


def test_ours_is_not_believed_either(monkeypatch):
    right = contenders.encoding

    monkeypatch.setattr(contenders, "encoding", lambda *given: lambda: right(*given)() + 1e-6)
    records = measure(job_of(), Settings(("cpu", "cudf", "ours"), 1))
    assert list(records) == ["ours", "cudf", "cpu"]
    assert statuses(records) == {"ours": "wrong", "cudf": "ran", "cpu": "wrong"}
    assert records["cudf"]["compared with"] == "the definition for 26 rows"


def test_the_cpu_must_have_our_bits(monkeypatch):
    right = contenders.on_host
    monkeypatch.setattr(contenders, "on_host", lambda found: np.nextafter(right(found), 1.0))
    records = measure(job_of(), Settings(("ours", "cpu"), 1))
    assert statuses(records) == {"ours": "ran", "cpu": "wrong"}


def test_codes_of_another_shape_are_wrong(monkeypatch):
    monkeypatch.setitem(formulation.FORMS, "mean", lambda *given: formulation.mean(*given).iloc[1:])
    record = measure(job_of(), Settings(("cudf",), 1))["cudf"]
    assert (record["status"], record["said"]) == ("wrong", "its codes are of shape (39, 1), not (40, 1)")


@pytest.mark.parametrize("work", [name for name in grid.WORKS if name != "mean"])
def test_the_own_prior_is_that_of_the_visible_rows(work, monkeypatch):
    given = contenders.encoding

    def without_it(*each, own_prior):
        return given(*each)

    # So few rows of a category that the prior weighs more.
    sizes = {"rows": 600 if work == "ordered" and not devices.simulated() else 40, "categories": 30}
    assert statuses(measure(job_of(work, **sizes), Settings((OWN_PRIOR,), 1))) == {OWN_PRIOR: "ran"}
    # The prior of all rows is refused as ours.
    monkeypatch.setattr(contenders, "encoding", without_it)
    assert statuses(measure(job_of(work, **sizes), Settings((OWN_PRIOR,), 1))) == {OWN_PRIOR: "wrong"}


def test_an_order_takes_its_prior_at_places_of_nine_digits(monkeypatch):
    job = job_of("ordered", rows=1100, categories=30)
    prior = judge.Judge(job).own_priors
    walked = job.target[job.order]
    for place, end in ((1, 1), (511, 511), (513, 512), (514, 514), (1023, 1022), (1027, 1024)):
        assert prior(place)[1] == walked[:end].mean()
    assert prior(0)[1] == walked[1:].mean()


def test_codes_in_float32_are_compared_as_such(measured):
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
    assert (ended, statuses(records)) == (0, {"ours": "ran", "cudf": status})
    assert said in records["cudf"]["said"]
    assert f"**cuDF: {status}**" in (tmp_path / "rapids.md").read_text()


def test_ours_may_not_break(tmp_path, monkeypatch):
    monkeypatch.setattr(contenders, "encoding", lambda *given: breaks_with(ValueError("broken")))
    assert run(tmp_path, *ONE, "--work", "mean", "--contenders", "ours,cudf")[0] == 1


def test_contenders_take_turns(measured, monkeypatch):
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
def test_fewer_calls_are_said_to_be_fewer(looks, expected, measured, monkeypatch):
    turns = iter(range(10**6))
    monkeypatch.setattr(Settings, "late", lambda self, *given: "time was up" if next(turns) >= looks else "")
    record = measure(job_of(), Settings(("cudf",), 5))["cudf"]
    assert {key: record[key] for key in ("status", "fewer") if key in record} == expected


@pytest.mark.parametrize(
    ("takes", "limit", "expected"),
    [
        (10.0, 29.0, {"ours": "timed", "cudf": "not timed: a cell may take 29 s"}),
        # Judged, memory watched (which is not its due after the first), and as many calls as end in time.
        (10.0, 47.0, {"ours": "timed", "cudf": "2 of 5 calls: a cell may take 47 s"}),
        (1.0, 100.0, {"ours": "timed", "cudf": "timed"}),
        (90.0, 80.0, {"ours": "timed", "cudf": "not timed: a cell may take 80 s"}),
    ],
)
def test_a_slow_contender_is_called_less_often_in_a_cell(takes, limit, expected, measured, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(measurement, "time", SimpleNamespace(monotonic=lambda: now[0]))
    job = job_of()

    def made(seconds):
        def call():
            now[0] += seconds
            return formulation.encoded(job)

        return lambda job: contenders.Contender(call, contenders.cudf(job).matrix)

    monkeypatch.setattr(measurement, "CONTENDERS", {"ours": made(0.125), "cudf": made(takes)})

    def seconds(call, on_host):
        begun = now[0]
        call()
        return now[0] - begun

    monkeypatch.setattr(job.library, "seconds", seconds)
    settings = Settings(("ours", "cudf"), 5, cell_limit=limit).for_cell([])
    records = measure(job, settings)
    assert {name: record.get("fewer", record["status"]) for name, record in records.items()} == expected
    assert now[0] <= max(limit, takes + 7 * 0.125)


def test_the_cpu_is_not_asked_of_many_rows():
    record = measure(job_of(), Settings(("cpu",), 1, cpu_rows=39))["cpu"]
    assert record == {"status": "not offered", "said": "asked up to 39 rows"}


def test_the_grid_begins_with_what_breaks_and_goes_on_with_all_kinds_at_its_middle():
    distributions = list(grid.DISTRIBUTIONS.values())
    found = grid.cells(grid.ROWS, grid.CATEGORIES, grid.KEYS, distributions, list(grid.WORKS))
    assert len(set(found)) == len(found) == 4 * 4 * 3 * 2 * 6
    n_works = len(grid.WORKS)
    first, then = found[:n_works], found[n_works : n_works + 100]
    assert {cell.rows for cell in first} == {10**6}
    assert {cell.rows for cell in then} == {10**8}
    assert then[0] == grid.Cell("folds", 10**8, 10**5, "int", "uniform")
    for cells in (first, then[:n_works], then):
        assert {cell.work for cell in cells} == set(grid.WORKS)
        assert {cell.keys for cell in cells} == set(grid.KEYS)
        assert {cell.distribution for cell in cells} == set(distributions)
    for work in grid.WORKS:
        assert {cell.keys for cell in then if cell.work == work} == set(grid.KEYS)
        assert {cell.distribution for cell in then if cell.work == work} == set(distributions)
        assert {cell.categories for cell in then if cell.work == work} == set(grid.CATEGORIES)
    rest = list(dict.fromkeys(cell.rows for cell in found[n_works:]))
    assert rest == [10**8, 10**9, 10**7, 10**6]


def test_a_grid_of_one_cell_has_it_once():
    assert grid.cells([40], [5], ["int"], ["uniform"], ["mean"]) == [CELL]


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


def never_late(self, *given):
    return ""


def test_cells_without_all_their_times_are_measured_again(tmp_path, monkeypatch):
    asked = [*ONE, "--work", "mean", "--resume"]
    monkeypatch.setattr(Settings, "late", never_late)
    first = run(tmp_path, *asked, "--contenders", "cudf")[1]["cells"]
    assert run(tmp_path, *asked, "--contenders", "cudf")[1]["cells"] == first
    (cell,) = run(tmp_path, *asked, "--contenders", "cpu")[1]["cells"]
    # Both again, in turns.
    assert set(cell["contenders"]) == {"cudf", "cpu"}
    cell["contenders"]["cpu"] = {"status": "not timed: time was up"}
    written = json.loads((tmp_path / "rapids.json").read_text())
    (tmp_path / "rapids.json").write_text(json.dumps({**written, "cells": [cell]}))
    (cell,) = run(tmp_path, *asked, "--contenders", "cudf,cpu")[1]["cells"]
    assert cell["contenders"]["cpu"]["status"] == "ran"


def test_what_was_found_stays_where_a_second_run_finds_less(tmp_path, monkeypatch):
    asked = [*ONE, "--work", "folds,mean", "--resume"]
    first = run(tmp_path, *asked, "--contenders", "cudf,cudf-scatter")[1]["cells"]
    # No time at all, for all that is asked beside.
    _, found = run(tmp_path, *asked, "--contenders", "cpu", "--time-limit", "0")
    assert (found["cells"], found["status"]) == (first, "cut short: time was up")
    looks = iter(range(100))
    monkeypatch.setattr(Settings, "late", lambda self, *given: "time was up" if next(looks) > 1 else "")
    assert run(tmp_path, *asked, "--contenders", "cpu")[1]["cells"] == first
    # A cell that could not be made again, and one in which the run is killed.
    monkeypatch.setattr(Settings, "late", never_late)
    monkeypatch.setattr(grid, "unfit", lambda cell, *given: "no room" if cell.work == "folds" else "")
    monkeypatch.setattr(program, "measure", breaks_with(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, *asked, "--contenders", "cpu")
    _, found = run(tmp_path, *asked, "--contenders", "cpu")
    assert [cell["skipped"] for cell in found["cells"]] == ["no room", "the run was killed in it"]
    assert [cell["contenders"] for cell in found["cells"]] == [cell["contenders"] for cell in first]
    written = (tmp_path / "rapids.md").read_text()
    assert written.count("| ran | ran |") == 2
    assert "- folds, 40 rows, 5 categories, int, uniform: no room" in written


def kept(folder):
    return (folder / "rapids.json").read_bytes()


def test_results_of_other_settings_are_not_gone_on_with(tmp_path, monkeypatch, capsys):
    asked = [*ONE, "--work", "mean", "--contenders", "cudf"]
    run(tmp_path, *asked)
    before = kept(tmp_path)
    monkeypatch.setattr(library.Pandas, "versions", lambda self: {"pandas": "0.1", "commit": "new"})
    assert program.main([*asked, "--resume", "--dtype", "float32", "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    for part in ("dtype float64, now float32", "pandas ", ", now 0.1", "commit ", "--out names another folder"):
        assert part in said
    assert "repeats" not in said
    assert kept(tmp_path) == before


def test_finished_cells_are_not_overwritten(measured, tmp_path, monkeypatch, capsys):
    asked = ["--frames", "pandas", "--rows", "30", "--categories", "5", "--keys", "int", "--repeats", "1"]
    asked += ["--work", "mean", "--distributions", "uniform", "--contenders", "cudf", "--out", str(tmp_path)]
    assert program.main(asked) == 0
    before = kept(tmp_path)
    for trial in ([], ["--tiny"]):
        assert program.main([*asked, *trial]) == 2
        assert "holds 1 cells: --resume goes on with them, --out names another folder" in capsys.readouterr().err
        assert kept(tmp_path) == before
    assert program.main([*asked, "--resume"]) == 0
    assert json.loads(kept(tmp_path))["cells"] == json.loads(before)["cells"]


def test_a_trial_is_overwritten(tmp_path):
    asked = [*ONE, "--work", "mean", "--contenders", "cudf"]
    run(tmp_path, *asked)
    assert len(run(tmp_path, *asked, "--rows", "30,50")[1]["cells"]) == 2


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": [{}]}', '{"cells": 3}'])
@pytest.mark.parametrize("more", [[], ["--resume"]])
def test_files_of_others_are_not_overwritten(text, more, tmp_path, capsys):
    (tmp_path / "rapids.json").write_text(text)
    assert program.main([*ONE, *more, "--out", str(tmp_path)]) == 2
    assert "holds no results of this program" in capsys.readouterr().err
    assert (tmp_path / "rapids.json").read_text() == text


def test_results_have_a_folder_for_each_device_and_day():
    place = program.folder_of({"device": "NVIDIA Made-up 9", "stand in": "", "tiny": False})
    assert re.fullmatch(r"nvidia-made-up-9-\d{4}-\d\d-\d\d-rapids", place.name)
    assert place.parent == program.ROOT / "benchmarks/results"


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
        (["--work", "fold"], "no kind of work fold; there are folds, mean, "),
        (["--rows", "1e6,0.5"], "0.5 is no positive whole number"),
        (["--keys", ""], "name a kind of keys: int, string, category"),
    ],
)
def test_mistakes_are_named(arguments, said, capsys):
    with pytest.raises(SystemExit):
        program.main(arguments)
    assert said in capsys.readouterr().err
