"""Table and picture of given results, and what is asked of libraries that need a GPU, on stand-ins for them."""

import ctypes
import json
import sys
from contextlib import contextmanager
from importlib import import_module
from types import SimpleNamespace

import pytest

from benchmarks.rapids import energy, grid, library, plot, tables
from benchmarks.rapids.grid import OWN_PRIOR
from benchmarks.rapids.job import Job
from benchmarks.rapids.measurement import Settings, measure
from tests.guides import cuml_formula

program = import_module("benchmarks.rapids.__main__")


def cell(categories, keys="int", distribution="uniform", work="folds", rows=10**8, **seconds):
    """Give a cell in which contenders took some seconds."""
    records = {
        name: {"status": "timed", "seconds": taken, "rows a second": rows / taken, "clock": "CUDA events"}
        for name, taken in seconds.items()
    }
    if "ours" in records:
        records["ours"]["times faster than"] = {
            name: taken / seconds["ours"] for name, taken in seconds.items() if name != "ours"
        }
    described = {"work": work, "rows": rows, "categories": categories, "keys": keys, "distribution": distribution}
    return described | {"contenders": records}


@pytest.fixture
def document():
    """Give results of a made-up device."""
    cells = [
        cell(n, keys, distribution, ours=0.002 * n**0.1, cudf=0.05)
        for n in (10**6, 100)
        for keys in ("int", "string")
        for distribution in ("uniform", "Zipf 1.5")
    ]
    cells.append(cell(100, work="mean", ours=0.001, cudf=0.03))
    cells.append(cell(100, rows=10**6, ours=0.001))
    cells.append({**cell(10**8, rows=10**9), "skipped": "needs 200.0 GiB, 120.0 are free"})
    return {
        "device": "Made-up GPU",
        "frames": "cudf",
        "stand in": "",
        "memory resource": "PoolMemoryResource on CudaMemoryResource",
        "copy bytes a second": 3e12,
        "dtype": "float64",
        "repeats": 5,
        "versions": {"cudf": "26.10.2"},
        "works": {name: work.title for name, work in grid.WORKS.items()},
        "status": "done",
        "cells": cells,
    }


def test_a_table_for_each_work(document):
    written = tables.markdown(document)
    assert written.startswith("# Target encoding of cudf frames: Made-up GPU\n\n- device: Made-up GPU\n")
    assert "stands in" not in written
    assert "- copy on the device: 3,000 GB/s read and written" in written
    assert written.index("## 5 folds") < written.index("## mean, fit and transform") < written.index("## Skipped")
    head = "| rows | categories | keys | distribution | ours, ms | G rows/s | share of copy | B/row |"
    assert f"{head} cuDF, ms | x cuDF | cuDF, B/row | remarks |" in written
    assert "| 100,000,000 | 100 | int | uniform | 1 | 100 |  |  | 30 | 30 |  |  |" in written
    assert "- folds, 1,000,000,000 rows, 100,000,000 categories, int, uniform: needs 200.0 GiB" in written


def test_figures_beside_times(document):
    document["cells"] = document["cells"][-2:-1]
    record = document["cells"][0]["contenders"]["ours"]
    record |= {"share of copy": 0.5, "peak bytes a row": 12.25, "joules": 3.5, "fewer": "2 of 5 calls: time was up"}
    document["cells"][0]["contenders"]["cuml"] = {"status": "not offered", "said": "cuML is not installed"}
    written = tables.markdown(document)
    assert "| 1 | 1 | 0.5 | 12.2 | 3.5 | not offered |  |  |  | ours: 2 of 5 calls: time was up |" in written


def test_ratios_are_those_of_ours_with_its_own_prior(document):
    timed = {"ours": 0.004, OWN_PRIOR: 0.002, "cudf": 0.05, "cudf-scatter": 0.03, "cuml": 0.1}
    found = cell(100, **timed)
    found["contenders"][OWN_PRIOR]["times faster than"] = {"cudf": 25.0, "cudf-scatter": 15.0, "cuml": 50.0}
    document["cells"] = [found]
    written = tables.markdown(document)
    ours = "ours, own prior, ms | ours, ms | G rows/s | share of copy | B/row"
    scatter = "cuDF, scatter, ms | x cuDF, scatter | cuDF, scatter, B/row"
    others = f"cuDF, ms | x cuDF | cuDF, B/row | {scatter} | cuML, ms | x cuML | cuML, B/row"
    assert f"| distribution | {ours} | {others} | remarks |" in written
    assert "| uniform | 2 | 4 | 50 |  |  | 50 | 25 |  | 30 | 15 |  | 100 | 50 |  |" in written
    # Where it was wrong, the other one of ours is no stand-in; of new rows the two are one.
    found["contenders"][OWN_PRIOR] = {"status": "wrong", "said": "row 0"}
    assert "| uniform | wrong | 4 |  |  |  | 50 |  |  |" in tables.markdown(document)
    found["contenders"][OWN_PRIOR] = {"status": "not offered", "said": "the same"}
    assert "| uniform | not offered | 4 | 25 |  |  | 50 | 12.5 |" in tables.markdown(document)


def test_the_report_says_what_the_others_do_beside(document):
    written = " ".join(tables.markdown(document).split())
    assert "cuDF's form sorts the merged rows back into their order, as cuML's encoder does" in written
    assert "sorts the categories of each column and copies them to the host" in written


def test_the_picture_shows_cuml_and_ours_as_users_run_it(document):
    pytest.importorskip("matplotlib")
    document["cells"] = [cell(n, **{"ours": 0.004, OWN_PRIOR: 0.002, "cuml": 0.1}) for n in (100, 1000)]
    lines = {line.get_label(): line.get_ydata().tolist() for line in plot.draw(document).axes[0].lines}
    assert lines == {
        "gpu-encode, uniform": [1e8 / 0.002] * 2,
        "cuML TargetEncoder, uniform": [1e8 / 0.1] * 2,
    }


def test_the_picture_shows_the_first_work_at_the_rows_of_most_cells(document):
    pytest.importorskip("matplotlib")
    figure = plot.draw(document)
    assert figure.get_suptitle() == "5 folds, 100,000,000 rows, Made-up GPU"
    assert [axes.get_title() for axes in figure.axes] == ["64-bit integers", "strings"]
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert list(lines) == [f"{who}, {how}" for who in ("gpu-encode", "cuDF groupby and merge") for how in plot.STYLES]
    ours = lines["gpu-encode, uniform"]
    assert ours.get_xdata().tolist() == [100, 10**6]
    assert ours.get_ydata().tolist() == [1e8 / (0.002 * n**0.1) for n in (100, 10**6)]


def test_a_picture_can_be_made_later_and_is_the_same_every_time(document, tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "rapids.json").write_text(json.dumps(document))
    asked = ["--plot-only", str(tmp_path / "rapids.json")]
    assert program.main(asked) == 0
    assert program.main([*asked, "--out", str(tmp_path / "again")]) == 0
    pictures = {name: (tmp_path / name).read_bytes() for name in ("rapids.png", "rapids.svg")}
    assert pictures["rapids.png"].startswith(b"\x89PNG")
    assert b"<svg" in pictures["rapids.svg"]
    assert {name: (tmp_path / "again" / name).read_bytes() for name in pictures} == pictures


def test_half_a_picture_is_none(document, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    drawn = plot.draw(document)
    save = drawn.savefig

    def broken(path, **options):
        if options["format"] == "svg":
            raise OSError("disk full")
        save(path, **options)

    monkeypatch.setattr(drawn, "savefig", broken)
    monkeypatch.setattr(plot, "draw", lambda document: drawn)
    with pytest.raises(OSError, match="disk full"):
        plot.plot(document, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_picture_is_left_for_later(document, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(plot, "can_plot", lambda: False)
    assert program.main(["--plot-only", str(tmp_path / "rapids.json")]) == 2
    assert "pip install" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("work", "status"),
    [("mean", "ran"), ("folds", "ran"), ("pairs", "ran"), ("ordered", "not offered"), ("classes", "not offered")],
)
def test_cuml_is_asked_for_what_it_has(work, status, monkeypatch):
    made = SimpleNamespace(TargetEncoder=cuml_formula.TargetEncoder, __spec__=SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cuml", SimpleNamespace(preprocessing=made, __spec__=SimpleNamespace()))
    monkeypatch.setitem(sys.modules, "cuml.preprocessing", made)
    job = Job(library.Pandas(), grid.Cell(work, 40, 5, "string", "uniform"), "float64")
    record = measure(job, Settings(("cuml",), 1))["cuml"]
    assert record["status"] == status, record


class Driver:
    """NVML that counts 2 joules with every question."""

    def __init__(self, name=None, *, status=0):
        self.status, self.millijoules, self.bus = status, 0, None

    def nvmlInit_v2(self):  # NVML's name
        return 0

    def nvmlDeviceGetHandleByPciBusId_v2(self, bus, handle):
        self.bus = bus
        return 0

    def nvmlDeviceGetTotalEnergyConsumption(self, handle, taken):
        self.millijoules += 2000
        taken._obj.value = self.millijoules
        return self.status


def test_energy_is_that_of_one_call(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", Driver)
    meter, called = energy.meter_of("0000:3B:00.0"), []
    assert meter.library.bus == b"0000:3B:00.0"
    # The counter moves by 2 J between begin and end, whatever the calls.
    assert meter.joules_of(lambda: called.append(1), energy.SHORTEST / 8) == 2.0 / 8
    assert len(called) == 8
    assert meter.joules_of(lambda: called.append(1), 100.0) == 2.0
    assert len(called) == 9


def test_a_driver_that_says_nothing_is_no_meter(monkeypatch):
    assert energy.meter_of(None) is None
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver(status=3))
    assert energy.meter_of("0000:3B:00.0") is None
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace())
    assert energy.meter_of("0000:3B:00.0") is None


def test_energy_is_written_beside_times(monkeypatch):
    monkeypatch.setattr(library.Pandas, "stand_in", False)
    meter = SimpleNamespace(joules_of=lambda call, seconds: call() and 4.5)
    job = Job(library.Pandas(), grid.Cell("mean", 40, 5, "int", "uniform"), "float64")
    records = measure(job, Settings(("cudf", "cpu"), 1, meter=meter))
    assert records["cudf"]["joules"] == 4.5
    assert "joules" not in records["cpu"]


def on_a_stand_in_for_rmm(current, counted):
    """Give cuDF's library without cuDF; `counted` says what RMM counts while it is asked to."""
    found = object.__new__(library.Cudf)
    watching = []

    @contextmanager
    def statistics():
        watching.append(True)
        yield
        watching.pop()

    def get_statistics():
        return SimpleNamespace(peak_bytes=counted) if watching else None

    found.statistics = SimpleNamespace(statistics=statistics, get_statistics=get_statistics)
    found.timing = SimpleNamespace(wait=lambda: None, seconds_of=lambda call: call() and 7.0)
    found.usable, found.counted = 1000, current
    found.cupy = SimpleNamespace(cuda=SimpleNamespace(Device=lambda: SimpleNamespace(pci_bus_id="0000:3B:00.0")))
    found.card, found.copy = {"device": "Made-up GPU"}, (8, 2.0)
    return found


def test_the_peak_is_what_rmm_counts_during_the_call():
    called = []
    assert on_a_stand_in_for_rmm(None, 1234).peak(lambda: called.append(1)) == 1234
    assert called == [1]


def test_what_is_in_use_is_not_free():
    counted = SimpleNamespace(allocation_counts=SimpleNamespace(current_bytes=300))
    assert on_a_stand_in_for_rmm(counted, 0).free() == 700


class Resource:
    """A memory resource of RMM's that knows what it was made with."""

    def __init__(self, *given, **named):
        self.given, self.named = given, named


@pytest.mark.parametrize(
    ("kind", "name", "size"),
    [("pool", "Pool", {"initial_pool_size": 768}), ("async", "CudaAsync", {}), ("cuda", "Cuda", {})],
)
def test_the_memory_resource_is_counted(kind, name, size, monkeypatch):
    resources, current = ("Cuda", "CudaAsync", "Pool"), []
    memory = {f"{each}MemoryResource": type(each, (Resource,), {}) for each in resources}
    memory |= {"StatisticsResourceAdaptor": type("Statistics", (Resource,), {})}
    rmm = SimpleNamespace(mr=SimpleNamespace(**memory, set_current_device_resource=current.append))
    known = {"rmm": rmm, "benchmarks.gpu.timing": SimpleNamespace(free_memory=lambda: 1000)}
    monkeypatch.setattr(library, "import_module", known.get)
    monkeypatch.setattr(library, "card", dict)
    monkeypatch.setattr(library, "copied", lambda size: (8, 2.0))
    counted = library.Cudf(kind).counted
    assert current == [counted]
    assert type(counted).__name__ == "Statistics"
    (resource,) = counted.given
    assert (type(resource).__name__, resource.named) == (name, size)


def test_the_cpu_is_not_timed_by_events():
    found = on_a_stand_in_for_rmm(None, 0)
    assert found.seconds(lambda: True) == 7.0
    assert 0 <= found.seconds(lambda: True, on_host=True) < 7.0


def test_the_machine_names_the_memory_resource():
    upstream = type("CudaMemoryResource", (), {})()
    pool = type("PoolMemoryResource", (), {"upstream_mr": upstream})()
    counted = type("StatisticsResourceAdaptor", (), {"upstream_mr": pool})()
    assert on_a_stand_in_for_rmm(counted, 0).machine() == {
        "device": "Made-up GPU",
        "bus": "0000:3B:00.0",
        "memory resource": "PoolMemoryResource on CudaMemoryResource",
        "copy bytes a second": 4.0,
    }
