"""The harness from end to end on a few rows, with contenders that lie, die, sleep, and run out of memory."""

import json

import numpy as np
import pytest

from benchmarks.harness import machine, memory, program, turns
from benchmarks.harness.judge import Answer, Numbering
from tests.benchmarks.topic import SCRATCH, TOPIC


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(turns, "PATIENCE", 10.0)
    monkeypatch.setattr(program.machine, "copy_rate", lambda _: 1.0)

    def call(*arguments, only="cells"):
        words = ["--only", only, "--repeats", "2", "--out", str(tmp_path), *arguments]
        status = program.main(TOPIC, arguments=words)
        return status, json.loads((tmp_path / "topic.json").read_text())

    return call


def records_of(found, number=0):
    return found["cells"][number]["contenders"]


def test_what_misbehaves_loses_its_own_time_and_nothing_else(run, tmp_path, capsys):
    status, found = run("--contender-limit", "0.001")
    assert status == 1
    said = [{name: record["status"] for name, record in records_of(found, number).items()} for number in (0, 1)]
    expected = {"honest": "timed", "liar": "wrong", "killed": "failed", "starved": "out of memory"}
    for number in (0, 1):
        assert expected.items() <= said[number].items()
        assert said[number]["slow"] == "not run"
        assert "absent" not in said[number]
    assert "row" in records_of(found)["liar"]["said"]
    assert "seconds" not in records_of(found)["liar"]
    assert (records_of(found)["honest"]["turns"], found["status"]) == (2, "done")
    assert found["left out"] == {"absent": ["no_such_module"]}
    text = (tmp_path / "topic.md").read_text()
    assert "**liar: wrong** (500 rows, 20 categories, int)" in text
    assert "absent is left out" in capsys.readouterr().out


@pytest.mark.skipif(memory.forget_peak() is None, reason="only Linux counts the peak anew")
def test_memory_is_counted_that_an_earlier_call_had_taken(run):
    found = run("--contenders", "hungry", "--rows", "5000")[1]
    assert 0.95 * SCRATCH < records_of(found)["hungry"]["peak bytes"] < 1.2 * SCRATCH


def test_first_calls_are_made_by_new_processes(run):
    cell = records_of(run("--rows", "500", only="first")[1])["process"]
    # Each process gives its number for its time.
    assert cell["spread"] > 0


def test_results_are_gone_on_with_and_never_lost(run, tmp_path, capsys):
    few = ("--contenders", "honest", "--rows")
    first = run(*few, "500")[1]["cells"]
    assert program.main(TOPIC, arguments=[*few, "500", "--out", str(tmp_path)]) == 2
    assert "--resume goes on with them" in capsys.readouterr().err
    status, found = run(*few, "500,700", "--resume")
    assert (status, found["cells"][:1], len(found["cells"])) == (0, first, 2)


def test_no_cell_is_begun_when_time_is_up(run):
    assert run("--contenders", "honest", "--time-limit", "0")[1]["status"] == "cut short: time was up"


def test_a_trial_says_what_it_is(run, tmp_path):
    status, found = run("--contenders", "honest", "--quick")
    assert (status, len(found["cells"])) == (0, 2)
    assert "nothing here is a measurement" in (tmp_path / "topic.md").read_text()


def test_an_answer_is_judged_in_every_row():
    given = np.array([1.0, 5.0, np.nan, 0.25])
    expected = Answer.of(given, tolerance=1e-7)
    assert expected.verdict(given) == ("", 0.0)
    for change in (1e-6, np.nan):
        off = given.copy()
        off[1] += change
        assert expected.verdict(off)[0].startswith("row 1 ")
    assert "shape" in expected.verdict(given[:-1])[0]
    assert "2 columns" in expected.verdict(np.stack([given, given], axis=1))[0]


def test_codes_are_judged_up_to_their_numbers():
    codes = np.arange(500) % 20
    expected, renumbered = Numbering(codes), (codes * 7 + 3) % 20
    assert expected.verdict(renumbered)[0] == ""
    assert expected.verdict(renumbered // 2)[0] == "two values have one code"
    assert expected.verdict(np.where(np.arange(500) == 480, 25, renumbered))[0] == "one value has two codes"
    assert "type float64" in expected.verdict(renumbered + 0.5)[0]


def test_the_commit_is_that_of_the_checkout_or_what_the_caller_says(monkeypatch):
    asked = []

    def git(*command):
        asked.append(command[-1])
        return {"HEAD": "0123456789ab"}.get(command[-1], " M file")

    monkeypatch.setattr(machine, "output_of", git)
    assert machine.commit() == "0123456789ab and changes"
    assert len(asked) == 2
    monkeypatch.setattr(machine, "output_of", lambda *_: None)
    monkeypatch.delenv("SOURCE_COMMIT", raising=False)
    assert machine.commit() == "unknown"
    monkeypatch.setenv("SOURCE_COMMIT", "580644e")
    assert machine.commit() == "580644e"
