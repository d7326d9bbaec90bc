"""`benchmarks.billion.scale` and the tables of `benchmarks.billion.report`: arithmetic on made-up results."""

import copy
import json
import re
from pathlib import Path

import pytest

from benchmarks.billion import report, scale
from benchmarks.billion.scale import Cluster, Constants

DOCUMENT = Path(__file__).parents[2] / "docs/scale.md"
ROWS, CATEGORIES = 1_000_000, 1_000
# A run of a million rows: constants are these over a million.
RESULTS = {
    "parameters": {"rows": ROWS, "seed": 0, "threads": 2, "memory_limit": "1GiB", "dtype": "float64"},
    "cpu": "a processor",
    "memory": "8 GiB",
    "commit": "abc",
    "versions": {"python": "3.11"},
    "steps": {
        "generate": {"bytes": 10 * ROWS, "files": 2, "row groups": 4, "compression": "snappy"},
        "encode": {
            "seconds": 10.0,
            "processor seconds": 12.0,
            "summary": {
                "seconds": {
                    "opening": 0.5,
                    "surveying": 1.0,
                    "measuring": 3.3,
                    "encoding": 2.0,
                    "waiting": 1.2,
                    "reading": 4.0,
                    "writing": 1.5,
                },
                "chunks": 4,
                "bytes_read": 21 * ROWS,
                "bytes_written": 5 * ROWS,
            },
            "categories": {"customer": 900, "product": 100},
            "peak": 1_000_000,
            "memory": {"later growth": None},
            "wrong": [],
        },
        "bare": {
            "read the target": {"seconds": 0.1, "rows": ROWS // 2},
            "read all columns": {"seconds": 0.5, "rows": ROWS // 2, "bytes in memory": 13 * ROWS},
            "read and write as it is": {"seconds": 1.5, "rows": ROWS // 2},
            "read and write the codes": {"seconds": 1.0, "writing": 0.75, "rows": ROWS // 2},
        },
        "states": {
            "rows": 500,
            "categories": 500,
            "categories of parts": [300, 200],
            "seconds": {"pickle sums": 0.05, "unpickle sums": 0.025, "add": 0.05, "fit": 1.0},
            "bytes": {"sums": 50_000, "tables": 25_000, "survey": 10, "blueprint": 20},
        },
    },
}


def test_constants_are_read_off_the_results():
    one = Constants.of(RESULTS)
    micro = 1 / ROWS
    assert one.survey == 1.0 * micro
    # Three times the sums of a chunk were added to those of all.
    assert one.measure == pytest.approx((3.3 - 3 * CATEGORIES * 0.05 / 500) * micro)
    assert (one.read_target, one.read_all) == pytest.approx((0.2 * micro, 1.0 * micro))
    assert (one.add, one.fit, one.sums, one.tables) == (0.0001, 0.002, 100, 50)
    assert (one.packing, one.unpacking) == (1e-6, 5e-7)
    assert (one.stored, one.held, one.codes, one.categories) == (10, 26, 5, CATEGORIES)


def test_one_worker_is_the_run_itself():
    one = Constants.of(RESULTS)
    alone = Cluster(ROWS, 1, CATEGORIES, 1e9).seconds(one)
    assert alone["survey"] == pytest.approx(1.0)
    assert alone["measure"] == pytest.approx(3.0)
    assert alone["encode and write"] == pytest.approx(2.0)
    assert alone["add the sums in a tree"] == alone["send the tables"] == 0
    assert scale.overhead_of(RESULTS, one) == pytest.approx(7.5 / 6.0)


def test_passes_are_shared_and_states_are_not():
    one = Constants.of(RESULTS)
    few, many = (Cluster(ROWS << 6, workers, CATEGORIES, 1e6) for workers in (4, 64))
    for name in ("survey", "encode and write"):
        assert few.seconds(one)[name] == pytest.approx(16 * many.seconds(one)[name])
    # Two levels against six: 0.1 MB packed, sent and unpacked, and two states added.
    level = 100_000 * (1e-6 + 1e-6 + 5e-7) + 2 * CATEGORIES * 0.0001
    assert few.seconds(one)["add the sums in a tree"] == pytest.approx(2 * level)
    assert many.seconds(one)["add the sums in a tree"] == pytest.approx(6 * level)
    assert few.seconds(one)["fit"] == many.seconds(one)["fit"] == pytest.approx(2.0)
    assert few.sizes(one)["sums through the network"] == 3 * 100_000
    assert many.sizes(one)["tables through the network"] == 64 * 50_000


def test_every_chunk_adds_its_sums():
    one = Constants.of(RESULTS)
    single, double = (Cluster(count * scale.CHUNK_ROWS, 1, CATEGORIES, 1e9).seconds(one)["measure"] for count in (1, 2))
    assert double == pytest.approx(2 * single + CATEGORIES * one.add)


def test_memory_grows_with_categories_alone():
    one = Constants.of(RESULTS)
    sizes = [
        Cluster(rows, 8, count, 1e9).sizes(one) for rows, count in ((10**6, 10**3), (10**9, 10**3), (10**6, 10**6))
    ]
    small, long, wide = (each["memory of a worker while measuring"] for each in sizes)
    assert small == long
    assert wide - small == 3 * 100 * (10**6 - 10**3)


def test_tables_go_between_the_marks(tmp_path, capsys):
    results, target = tmp_path / "billion.json", tmp_path / "scale.md"
    results.write_text(json.dumps(RESULTS))
    target.write_text(f"before\n\n{scale.BEGIN}\nold\n{scale.END}\n\nafter\n")
    assert scale.main([str(results), "--write", str(target)]) == 0
    assert scale.main([str(results)]) == 0
    printed = capsys.readouterr().out
    assert target.read_text() == f"before\n\n{scale.BEGIN}\n\n{printed}\n{scale.END}\n\nafter\n"
    assert "100,000,000,000 rows, 64 workers, 1.25 GB/s each" in printed
    scale.main([str(results), "--write", str(target)])
    assert target.read_text().count("100,000,000,000 rows") == 1


def test_the_document_has_every_constant_and_step():
    text = DOCUMENT.read_text()
    formulas = text.split(scale.END)[1]
    for name in Cluster(1, 2, 1, 1.0).seconds(Constants.of(RESULTS)):
        assert f"| {name} |" in formulas
    before, filled = text.split(scale.END)[0].split(scale.BEGIN)
    assert before
    assert "| together |" in filled or "No results have been filled in yet" in filled


def test_shares_of_bare_reading_and_writing():
    # The target once, all columns twice; the codes written at half a million rows in 0.75 s.
    assert report.bare_seconds(RESULTS) == pytest.approx((0.2 + 2 * 1.0, 2.2 + 1.5))
    text = report.markdown(RESULTS)
    assert "| share of bare reading | 22 % (2.2 s) |" in text
    assert "| share of bare reading and writing | 37 % (3.7 s) |" in text
    assert "| rows a second | 100,000 |" in text


def test_stages_add_up_to_the_whole():
    found = report.stages(RESULTS)
    whole = [row["seconds"] for row in found if "beside" not in row["stage"]]
    assert sum(whole) == pytest.approx(10.0)
    assert [row["stage"] for row in found if "beside" in row["stage"]] == ["reading (beside)", "writing (beside)"]


def test_what_is_wrong_is_told_first():
    broken = copy.deepcopy(RESULTS)
    broken["steps"]["verify"] = {"seconds": 1.0, "wrong": ["row 3: the code of channel"], "codes compared": 9}
    text = report.markdown(broken)
    assert text.index("**verify: row 3: the code of channel**") < text.index("## Time by stage")
    assert "have the bits" not in text


def test_a_report_of_a_run_that_broke():
    broken = {**RESULTS, "steps": {"encode": {"wrong": ["benchmarks.billion.encoding ended with status 1"]}}}
    assert re.search(r"\*\*encode: .* ended with status 1\*\*", report.markdown(broken))
    assert report.summary(broken) == []
