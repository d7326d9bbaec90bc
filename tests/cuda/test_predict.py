"""Predictions: a fit to measured times, sums of counts, and for CUDA C++ the largest of three times."""

import json

import numpy as np
import pytest

pytest.importorskip("cupy")

from benchmarks.gpu import predict, predicted
from tests.cuda.instructions import Cost, Counts, Kernel

# No kernel runs.
pytestmark = pytest.mark.host

# Results are not part of a package.
WITH_RESULTS = pytest.mark.skipif(not (predict.MEASURED / "report.json").exists(), reason="the results are not here")
MODEL = predict.Model(dict.fromkeys(predict.COEFFICIENTS, 0.0))


def of(**coefficients):
    """Return a model with these coefficients; the others are zero."""
    return predict.Model(MODEL.coefficients | coefficients)


def counts_of(random):
    """Make the counts of a case with a numba kernel, a CUDA C++ kernel, and a table's kernel."""
    row = Cost(random.uniform(10, 3000), 0, *random.uniform(0, 5, 5))
    cuda = Cost(random.uniform(5, 200), random.uniform(0, 1), *random.uniform(0, 2, 5))
    kernels = {"a.rows": Kernel(1, row, Cost()), "b.cu, int": Kernel(1, cuda, Cost(instructions=1e5))}
    kernels["a.table"] = Kernel(2, Cost(), Cost(instructions=random.uniform(0, 1e8), cached=random.uniform(0, 1e7)))
    calls = [(float(random.integers(3, 20)), float(random.integers(0, 4))) for _ in range(3)]
    return Counts(kernels, *calls, library_bytes=random.uniform(0, 90), to_host=(random.uniform(0, 4e7), 0.0))


def test_a_fit_finds_the_coefficients_that_made_the_measurements():
    random = np.random.default_rng(3)
    true = {name: round(float(random.uniform(low, high)), 3) for name, (_, low, high) in predict.COEFFICIENTS.items()}
    counts = [counts_of(random) for _ in range(40)]
    made = predict.fit([(each, 10**8, of(**true).ms(each, 10**8)) for each in counts])
    assert made.coefficients == pytest.approx(true, rel=0.02)


def test_coefficients_stay_where_hardware_can_be():
    counts = counts_of(np.random.default_rng(4))
    for ms in (1e-3, 1e6):
        found = predict.fit([(counts, 10**8, ms)]).coefficients
        assert all(low <= found[name] <= high for name, (_, low, high) in predict.COEFFICIENTS.items())


def test_calls_outside_of_tiles_are_made_once_and_others_each_tile():
    counts = Counts(launches=(3.0, 2.0), library=(5.0, 1.0), waits=(7.0, 0.0))
    assert of(host=1.0).ms(counts, 1) == 15 + 3
    assert of(host=1.0).ms(counts, 10**8) == 15 + 3 * 12


@pytest.mark.parametrize(
    ("cost", "ms"),
    [
        (Cost(moved=8.0), 8e8 / 0.85 / 4.244e9),
        (Cost(instructions=32.0), 1e8 / (0.56 * 132 * 4 * 1.98e6)),
        (Cost(shared_atomics=1.0), 1e8 / 500e6),
        (Cost(instructions=32.0, moved=1.0, shared_atomics=2.0), 2e8 / 500e6),
    ],
)
def test_a_kernel_in_cuda_takes_the_longest_of_what_it_does(cost, ms):
    name = "look_up.cu, float"
    assert MODEL.ms(Counts({name: Kernel(1, cost, Cost())}), 10**8) == pytest.approx(ms)
    # Those of numba take one after the other, and whatever of a launch on rows does not grow with them takes nothing.
    numba = Counts({"gather.look_up": Kernel(1, cost, Cost(instructions=1e9))})
    sums = of(streamed=1.0, numba=1.0).ms(numba, 10**8)
    assert sums == pytest.approx(cost.moved / 10 + 1e8 * cost.instructions / 32 / predict.ISSUE)


def test_tables_take_what_they_take_whatever_the_rows():
    counts = Counts({"a.table": Kernel(1, Cost(), Cost(instructions=predict.ISSUE))})
    assert of(numba=1.0).ms(counts, 1) == of(numba=1.0).ms(counts, 10**9) == 1


@WITH_RESULTS
def test_the_model_is_that_of_the_results():
    model, counts = predict.Model.load(), predict.counts_in(predict.MEASURED)
    measured = predict.measured_in(predict.MEASURED)
    assert len(measured) == 34
    assert measured.keys() <= counts.keys()
    cases = [(counts[key], rows, ms) for key, (rows, ms) in measured.items()]
    assert predict.fit(cases).coefficients == pytest.approx(model.coefficients, rel=0.01)
    errors = np.abs(np.log([model.ms(*case[:2]) / case[2] for case in cases]))
    assert np.exp(np.median(errors)) < 1.2
    assert f"median error {100 * (np.exp(np.median(errors)) - 1):.0f} %" in model.errors


@WITH_RESULTS
def test_a_table_for_the_notes_has_every_case():
    today = {key: Counts(launches=(1.0, 0.0)) for keys in predict.STEPS.values() for key in keys}
    head, line, *rows = predict.table(predict.Model.load(), today)
    assert {len(each.split("|")) for each in (head, line, *rows)} == {10}
    assert [row.split(" | ")[1] for row in rows] == [name for name, _ in today]


def test_predictions_are_found_by_those_who_have_a_gpu(monkeypatch, tmp_path):
    kernels = {"add.cu, int": Kernel(1, Cost(moved=8.0), Cost()), "add.cu, float": Kernel(1, Cost(moved=4.0), Cost())}
    counts = Counts(kernels, launches=(2.0, 0.0), to_host=(1e6, 0.0))
    monkeypatch.setattr(predict, "count", lambda cases: dict.fromkeys(cases, counts))
    for module in (predict, predicted):
        monkeypatch.setattr(module, "PREDICTIONS", tmp_path / "predictions.json")
    predicted.predictions.cache_clear()
    model = of(host=0.5)
    try:
        predict.save(model)
        ms = model.ms(counts, 10**8)
        assert predicted.predicted_ms("folds-int", 4096, 10**8) == pytest.approx(ms, abs=1e-3)
        assert predicted.predicted_ms("folds-int", 5, 10**8) is None
        assert predicted.kernel_ms("add", "folds-int", 4096, 2 * 10**8) == pytest.approx(2 * (ms - 1), abs=1e-3)
        assert predicted.kernel_ms("subtract", "folds-int", 4096, 10**8) is None
    finally:
        predicted.predictions.cache_clear()
    assert json.loads((tmp_path / "predictions.json").read_text())["cases"][0]["ms"].keys() == {
        "100000000",
        "1000000000",
    }


def test_off_is_how_many_times_as_long_or_as_short():
    assert (predicted.off(3.0, 1.5), predicted.off(1.5, 3.0), predicted.off(1.0, None)) == (2, 2, None)
