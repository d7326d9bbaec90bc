"""The report of `benchmarks.cpu`: ratios, goals, exponents, and how often a contender is called."""

import pytest

from benchmarks.cpu import report
from benchmarks.cpu.contenders.base import Prepared
from benchmarks.cpu.grid import Cell
from benchmarks.cpu.judge import Expected
from benchmarks.cpu.results import Results
from benchmarks.cpu.scaling import slope
from benchmarks.cpu.turns import figures, n_runs
from benchmarks.cpu.worker import LONGEST_COLD, Worker

SECONDS = {
    "ours": ("ours", 0.010),
    "ours-float32": ("ours", 0.008),
    "sklearn": ("scikit-learn", 0.200),
    "ce-target": ("library", 0.300),
    "fe-mean": ("library", 0.015),
    "polars-join": ("engine", 0.040),
    "numpy": ("hand-written", 0.014),
    "limit-range": ("limit", 0.004),
    "limit-hashed": ("limit", 0.0075),
}


def cell(work="mean", categories=100, **changed):
    records = {
        name: {"family": family, "status": "timed", "seconds": seconds, "rows a second": 1e6 / seconds, "spread": 0.1}
        for name, (family, seconds) in SECONDS.items()
    }
    records["ours"] |= {"peak bytes": 20_000_000, "bytes out": 8_000_000}
    records.update(changed)
    return {"work": work, "keys": "int", "categories": categories, "rows": 1_000_000, "contenders": records}


def document(*cells):
    head = {"cpu": "a CPU", "quick": False, "versions": {"numpy": "2"}, "left out": {"duckdb-join": ["duckdb"]}}
    return {**head, "cells": list(cells), "small": {}, "scaling": []}


def test_ratios_are_to_the_best_of_each_family():
    line = report.line(cell())
    assert line["ours, ms"] == 10
    assert line["M rows/s"] == 100
    assert line["x scikit-learn"] == "20"
    assert line["x best library"] == "1.5 (!) fe-mean"
    assert line["x best engine"] == "4 polars-join"
    assert line["x best hand-written"] == "1.4 numpy"
    assert line["share of limit"] == "0.40 (!) limit-range"
    assert line["B/row"] == 12.0


def test_goals_of_the_limit_are_lower_for_real_targets():
    limit = {"limit-range": {"family": "limit", "status": "timed", "seconds": 0.006}}
    assert report.shown_ratio(cell(**limit), "limit", named=False) == "0.60 (!)"
    assert report.shown_ratio(cell("mean-real", **limit), "limit", named=False) == "0.60"


@pytest.mark.parametrize(
    ("work", "seconds", "shown"),
    # The limit takes 4 ms: a goal of 8 ms is half of its speed, one of 5.7 ms is 0.7 of it.
    [("mean", 0.0160, "1.6 (!)"), ("mean", 0.0114, "1.14 (limit)"), ("mean-real", 0.0160, "1.6 (limit)")],
)
def test_goals_beyond_the_share_of_the_limit_are_out_of_reach(work, seconds, shown):
    peer = {"polars-join": {"family": "engine", "status": "timed", "seconds": seconds - 1e-6}}
    assert report.shown_ratio(cell(work, **peer), "engine", named=False) == shown


def test_the_limit_that_looks_values_up_twice_has_a_share_of_its_own():
    twice = {"limit-text-twice": {"family": "limit, twice", "status": "timed", "seconds": 0.008}}
    line = report.line(cell(**twice))
    assert line["share of limit, values twice"] == "0.80 limit-text-twice"
    assert line["share of limit"] == "0.40 (!) limit-range"
    assert report.summary([cell()])[0]["share of limit, values twice"] is None


def test_what_was_not_run_is_said():
    slow = {"family": "scikit-learn", "status": "not run", "said": "about 99 s"}
    assert report.line(cell(sklearn=slow))["x scikit-learn"] == "not run, about 99 s"


def test_text_in_objects_is_compared_with_text_in_objects():
    objects = {"ours-objects": {"family": "ours", "status": "timed", "seconds": 0.020}}
    assert report.line(cell(**objects))["x scikit-learn, objects"] == "10 sklearn; 0.75 fe-mean"
    assert report.line(cell())["x scikit-learn, objects"] is None


def test_a_peak_that_nobody_could_measure_is_not_zero():
    ours = {
        "family": "ours",
        "status": "timed",
        "seconds": 1.0,
        "rows a second": 1e6,
        "bytes out": 8,
        "peak bytes": None,
    }
    assert report.line(cell(ours=ours))["B/row"] is None


def test_goals_of_small_data_are_marked():
    assert report.judged({"what": "import gpu_encode", "ms": 501.0})["ms"] == "501 (!)"
    assert report.judged({"what": "import gpu_encode", "ms": 499.0})["ms"] == 499.0
    assert report.judged({"x scikit-learn": 0.9})["x scikit-learn"] == "0.9 (!)"
    assert report.judged({"x scikit-learn": 1.0})["x scikit-learn"] == 1.0


def test_rows_in_pieces_are_no_part_of_an_exponent():
    rows = [{"work": "mean", "value": value, "ms": value} for value in (10, 100, 1_000)]
    streamed = {"work": "mean", "value": 10_000, "ms": 1.0, "how": "pieces"}
    assert report.exponents([*rows, streamed])["mean"] == pytest.approx(1.0)


def test_what_got_no_answer_on_fewer_rows_is_not_asked_on_more(tmp_path):
    silent = {"family": "scikit-learn", "status": "not run", "said": "no answer in 99 s", "about": 99.0}
    assert Results(tmp_path, document(cell(sklearn=silent))).guess(report_cell(rows=2_000_000), "sklearn") == 198.0


def test_the_summary_has_a_line_for_each_work_and_keys():
    [line] = report.summary([cell(categories=100_000), cell(categories=100)])
    assert line["categories"] == "100 / 1e+05"
    assert line["x scikit-learn"] == "20 / 20"


def test_one_call_is_set_beside_others_that_look_once():
    twice = {"family": "limit, twice", "status": "timed", "seconds": 0.008, "rows a second": 1.25e8, "spread": 0.1}
    one_call = {"family": "ours", "status": "timed", "seconds": 0.005, "rows a second": 2e8, "spread": 0.1}
    two, one, folds = report.summary([cell(**{"ours-one-call": one_call, "limit-text-twice": twice}), cell("folds")])
    assert [row["work"] for row in (two, one, folds)] == ["mean", "mean, one call", "folds"]
    assert (two["x engine"], one["x engine"]) == ("4", "8")
    assert one["share of limit"] == "0.80"
    assert [one[name] for name in ("x scikit-learn", "x library", "share of limit, values twice")] == [None] * 3


def test_the_report_names_what_is_wrong_and_what_is_left_out():
    wrong = {"family": "library", "status": "wrong", "said": "row 3 has 1.0 and not 2.0"}
    text = report.markdown(document(cell(**{"fe-mean": wrong})))
    assert "**fe-mean: wrong** (mean, int, 100 categories, 1,000,000 rows)" in text
    assert "left out: duckdb-join (duckdb not installed)" in text


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5])
def test_the_slope_of_a_power_law_is_its_exponent(power):
    assert slope([(x, 7.0 * x**power) for x in (10, 100, 1_000, 50_000)]) == pytest.approx(power)


@pytest.mark.parametrize(("first", "expected"), [(0.001, 15), (0.2, 8), (1.0, 5), (3.0, 3), (11.0, 0)])
def test_fast_contenders_are_called_more_often(first, expected):
    assert n_runs(first, None) == expected


def test_what_more_rows_take_follows_from_fewer(tmp_path):
    results = Results(tmp_path, document(cell()))
    more = report_cell(rows=10_000_000)
    assert results.guess(more, "sklearn") == pytest.approx(2.0)
    assert results.guess(more, "unknown") is None
    assert results.guess(report_cell(rows=1_000), "sklearn") is None


def report_cell(rows):
    return Cell("mean", "int", 100, rows)


def test_the_second_call_of_a_turn_counts():
    turns = [{"cold": 5.0, "seconds": 1.0}, {"cold": 9.0, "seconds": 2.0}, {"cold": 7.0, "seconds": 4.0}]
    found = figures(Cell("mean", "int", 100, 1_000), turns)
    assert (found["seconds"], found["fastest"], found["cold"], found["rows a second"]) == (2.0, 1.0, 7.0, 500.0)


@pytest.mark.parametrize(("longest", "calls"), [(LONGEST_COLD, 2), (0.0, 1)])
def test_a_slow_call_is_not_repeated_in_its_turn(longest, calls, monkeypatch):
    monkeypatch.setattr("benchmarks.cpu.worker.LONGEST_COLD", longest)
    made, worker = [], Worker("numpy")
    worker.prepared = Prepared(lambda: made.append(0), Expected("all"))
    answer = worker.run()
    assert len(made) == calls
    assert (answer["cold"] == answer["seconds"]) == (calls == 1)
