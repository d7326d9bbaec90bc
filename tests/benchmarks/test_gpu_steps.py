"""The steps of `python -m benchmarks.gpu` in the simulator, each from end to end at tiny size."""

import time
from importlib import import_module

import numpy as np
import pytest

from benchmarks.gpu.report import SIMULATOR, Report
from benchmarks.gpu.run import Run

pytestmark = pytest.mark.cuda

program = import_module("benchmarks.gpu.__main__")
NAN = np.array([0x7FF8000000000000, 0xFFF8000000000001], np.uint64).view(np.float64)


def of(name):
    """Give a module that needs the CUDA backend to be loaded."""
    return import_module(f"benchmarks.gpu.{name}")


@pytest.fixture
def step(tmp_path):
    """Give a step of its own."""
    report = Report.open(tmp_path, SIMULATOR)
    report.begin("bits", "abc")
    return Run("bits", report, True, time.monotonic() + 1e6)


@pytest.mark.parametrize("name", program.STEPS)
def test_a_step_from_end_to_end(name, tmp_path):
    assert program.main(["--tiny", "--only", name, "--out", str(tmp_path)]) == 0
    found = Report.open(tmp_path, program.device_name()).step(name)
    assert (found["status"], found["failures"]) == ("done", [])
    assert found["tables"] or found["notes"]


def test_nothing_of_the_simulator_looks_like_a_measurement(tmp_path):
    assert program.main(["--tiny", "--only", "machine,memory", "--out", str(tmp_path)]) == 0
    written = (tmp_path / "report.md").read_text()
    assert written.startswith(f"# {SIMULATOR}\n\nNo GPU")
    assert not any(unit in written for unit in ("GB/s", "rows/s", " ms ", "goal", "share"))


def test_differences_are_found_and_named():
    difference = of("comparison").difference
    assert difference(NAN, NAN.copy()) == ""
    assert "NaN all, only their bits differ" in difference(NAN, NAN[::-1])
    assert difference(np.array([1, 2]), np.array([1, 3])) == "1 of 2 differ, first at (1,): 2, not 3"
    assert difference(np.array([0.0]), np.array([-0.0])) != ""
    assert difference(np.zeros(2), np.zeros(2, np.float32)) == "(2,) float64, not (2,) float32"
    assert difference([np.zeros(1), (1, 2)], [np.zeros(1), (1, 3)]) == "[1] [1] 2, not 3"


def test_other_bits_than_the_cpu_s_are_a_failure(step):
    of("bits").compare(step, {"kind": "made up"}, iter([("sum", np.array([1]))]), iter([("sum", np.array([2]))]))
    assert step.report.failed() == ["bits"]
    assert step.report.rows("bits", "operations") == [{"kind": "made up", "compared": 1, "same": False}]


def work_that_gives(*found):
    """Give an operation that gives one thing after the other."""
    given = iter(found)
    return lambda data: of("operations").Work(lambda: next(given), 1, {"codes": 4})


@pytest.mark.parametrize(
    ("second", "kernels", "said"), [(8, set(), "repetition 2"), (7, {"gather_one"}, "did not run")]
)
def test_bits_that_move_are_a_failure(step, second, kernels, said):
    races, xp = of("races"), import_module("gpu_encode.cuda.runtime").xp
    way = of("paths").Path("made up", work_that_gives(xp.full(3, 7), xp.full(3, second)), 1, {}, kernels)
    races.repeat(step, way, None, 2)
    assert said in step.report.step("bits")["failures"][0]


def test_thresholds_are_set_for_a_while():
    paths, buckets = of("paths"), import_module("gpu_encode.cuda.buckets")
    before = buckets.FEWEST_ROWS
    with paths.forced({"buckets.FEWEST_ROWS": 5}):
        assert buckets.FEWEST_ROWS == 5
    assert before == buckets.FEWEST_ROWS
    with pytest.raises(AttributeError), paths.forced({"buckets.NO_SUCH_THRESHOLD": 5}):
        pass


def test_every_way_is_one_of_its_own():
    names = [way.name for way in of("races").everything()]
    assert len(set(names)) == len(names)


def test_rows_are_functions_of_their_number():
    drawn = of("drawn")
    words = import_module("gpu_encode.cuda.memory").to_host(drawn.words(0, 10, 3))
    later = import_module("gpu_encode.cuda.memory").to_host(drawn.words(4, 10, 3))
    assert np.array_equal(words[4:], later)
    assert len(set(words.tolist())) == 10


@pytest.mark.parametrize("n_categories", [1, 2, 128, 10**6])
def test_codes_have_the_shares_that_they_should(n_categories):
    drawn, to_host = of("drawn"), import_module("gpu_encode.cuda.memory").to_host
    for how in drawn.DRAWN:
        codes = to_host(drawn.codes(50_000, n_categories, how))
        assert codes.dtype == np.int32
        assert codes.min() >= 0
        assert codes.max() < n_categories
    shares = np.sort(np.bincount(codes) / len(codes))[::-1]
    law = np.arange(1.0, n_categories + 1) ** -1.5
    assert np.allclose(shares[:3], (law / law.sum())[:3], atol=0.02)
    hot = to_host(drawn.codes(50_000, n_categories, "uniform", hot=0.9))
    assert (hot == n_categories // 2).mean() > 0.89
    missing = to_host(drawn.codes(50_000, n_categories, "uniform", nulls=True))
    assert 0.01 < (missing == -1).mean() < 0.03
    assert 0.01 < (missing == -2).mean() < 0.03


def test_the_peak_is_the_most_bytes_in_use():
    timing = of("timing")
    counted = timing.Bytes()
    hook = timing.counting_hook(object, counted)
    hook.malloc_postprocess(mem_size=100, mem_ptr=1)
    hook.malloc_postprocess(mem_size=50, mem_ptr=2)
    hook.free_postprocess(mem_size=100)
    hook.malloc_postprocess(mem_size=30, mem_ptr=3)
    hook.malloc_postprocess(mem_size=10**9, mem_ptr=0)
    assert (counted.used, counted.peak) == (80, 150)
