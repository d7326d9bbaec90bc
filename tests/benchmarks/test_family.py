"""`python -m benchmarks.family` on a few rows, and its definitions beside rows taken one by one."""

import json
import math
import statistics
from collections import Counter
from importlib import import_module

import numpy as np
import pytest

from benchmarks.cpu.contenders import contender, contenders_for
from benchmarks.cpu.judge import verdict
from benchmarks.cpu.rows import Rows, draw
from benchmarks.family import grid, judge, mixed, report, words
from benchmarks.family.contenders.base import MOST_DENSE, expected_of
from benchmarks.family.judge import Indicators
from benchmarks.family.registry import CONTENDERS, HOME
from gpu_encode import devices

pytestmark = pytest.mark.skipif(devices.simulated(), reason="the benchmarks of the CPU do not ask a simulator")
program = import_module("benchmarks.family.__main__")
N_ROWS, N_CATEGORIES = 400, 60


@pytest.fixture
def rows(tmp_path):
    def given(work="count", keys="int"):
        folder = draw(tmp_path, N_ROWS, N_CATEGORIES, keys == "text")
        return Rows(folder, keys, work, "binary", N_CATEGORIES)

    return given


def run(folder, *arguments):
    status = program.main([*arguments, "--quick", "--out", str(folder)])
    return status, json.loads((folder / "family.json").read_text())


@pytest.mark.slow
def test_every_contender_is_right(tmp_path, capsys):
    status, found = run(tmp_path)
    assert status == 0, capsys.readouterr().out
    assert found["status"] == "done"
    statuses = {(name, record["status"]) for cell in found["cells"] for name, record in cell["contenders"].items()}
    installed = {name for name, each in CONTENDERS.items() if not each.missing}
    assert statuses == {(name, "timed") for name in installed}
    assert set(found["left out"]) == set(CONTENDERS) - installed
    text = (tmp_path / "family.md").read_text()
    assert "nothing here is a measurement" in text
    assert all(f"### {work}, {keys} keys" in text for work in grid.WORKS for keys in grid.KEYS)


@pytest.mark.parametrize("work", list(grid.WORKS))
@pytest.mark.parametrize("keys", list(grid.KEYS))
def test_every_work_has_ours_and_another(work, keys):
    [cell] = grid.cells([1_000_000], [100], [work], [keys])
    names = [name for name, each in CONTENDERS.items() if each.does(cell)]
    assert "ours" in names
    assert {CONTENDERS[name].family for name in names} - {"ours"}
    assert contenders_for(cell, [HOME + name for name in CONTENDERS]) == [
        HOME + name for name in names if not CONTENDERS[name].missing
    ]


@pytest.mark.parametrize("work", list(grid.WORKS))
def test_ours_is_right_in_this_process(work, rows):
    # A process of its own is not seen by coverage, and leaves but the end of a trace.
    for keys in grid.KEYS:
        given = rows(work, keys)
        prepared = contender(f"{HOME}ours").prepare(given)
        assert verdict(given, prepared.expected, prepared.call())[0] == ""


def test_dense_columns_of_many_categories_are_not_asked_for():
    few, many = grid.cells([10_000], [MOST_DENSE, MOST_DENSE + 1], ["one-hot"], ["int"])
    dense = {"ce-one-hot", "polars-dummies", "pandas-dummies"}
    assert {name for name, each in CONTENDERS.items() if each.does(few) and not each.does(many)} == dense


def test_cells_that_are_cut_down_to_one_are_asked_once():
    found = list(grid.cells([20_000, 10_000], [100, 1_000], ["glmm", "count"], ["int"]))
    assert [(cell.work, cell.rows, cell.categories) for cell in found] == [
        ("glmm", 10_000, 100),
        ("count", 10_000, 100),
        ("count", 10_000, 1_000),
        ("count", 20_000, 100),
        ("count", 20_000, 1_000),
    ]


@pytest.mark.parametrize("work", list(grid.WORKS))
def test_one_code_that_is_off_is_wrong(work, rows):
    given = rows(work)
    expected = expected_of(given)
    codes = np.column_stack(list(expected.columns(given))).astype(np.float64)
    assert verdict(given, expected, codes)[0] == ""
    codes[17, -1] += 1e-4
    assert verdict(given, expected, codes)[0].startswith("row 17 ")
    assert "shape" in verdict(given, expected, codes[:-1])[0]


def test_a_contender_that_lies_gets_no_time(tmp_path, capsys):
    liar = "tests.benchmarks.liar:LIAR_OF_COUNTS"
    status, found = run(tmp_path, "--works", "count", "--keys", "int", "--contenders", "ours", "--also", liar)
    records = found["cells"][0]["contenders"]
    assert status == 1
    assert records["ours"]["status"] == "timed"
    assert records[liar]["status"] == "wrong"
    assert "seconds" not in records[liar]
    assert f"{liar} (count, int, 40 categories): wrong" in capsys.readouterr().out


def test_resume_keeps_finished_cells(tmp_path):
    asked = ["--keys", "int", "--contenders", "pandas-map", "--works"]
    first = run(tmp_path, *asked, "count")[1]["cells"]
    status, found = run(tmp_path, *asked, "count,ordinal", "--resume")
    assert status == 0
    assert found["cells"][:1] == first
    assert [cell["work"] for cell in found["cells"]] == ["count", "ordinal"]


def test_places_are_those_of_sorted_lists(rows):
    given = rows()
    values = given.codes.tolist()
    counts = Counter(values)
    frequent = sorted(counts, key=lambda value: (-counts[value], value))
    assert judge.by_value(given)[0].tolist() == [sorted(counts).index(value) for value in values]
    assert judge.by_appearance(given, 1)[0].tolist() == [1 + list(counts).index(value) for value in values]
    assert judge.by_frequency(given)[0].tolist() == [frequent.index(value) for value in values]


def seen_by(given, row, by_fold):
    """Labels of the rows that a row sees: those of its category, and all."""
    visible = [other for other in range(N_ROWS) if not by_fold or given.folds[other] != given.folds[row]]
    own = [given.target[other] for other in visible if given.codes[other] == given.codes[row]]
    return own, [given.target[other] for other in visible]


@pytest.mark.parametrize("by_fold", [False, True])
def test_evidence_is_that_of_rows_counted_one_by_one(by_fold, rows):
    given = rows()
    [found] = judge.evidence(given, given.folds if by_fold else None)
    [without_singles] = judge.evidence(given, given.folds if by_fold else None, least=2)
    for row in range(0, N_ROWS, 7):
        own, every = seen_by(given, row, by_fold)
        shares = (sum(own) + 1) / (sum(every) + 2), (len(own) - sum(own) + 1) / (len(every) - sum(every) + 2)
        assert found[row] == pytest.approx(math.log(shares[0] / shares[1]) if own else 0.0)
        assert without_singles[row] == (0.0 if len(own) < 2 else found[row])


def test_impact_is_that_of_rows_counted_one_by_one(rows):
    given = rows()
    found = judge.impact(given, given.folds)
    for row in range(0, N_ROWS, 7):
        own, every = (np.array(labels) for labels in seen_by(given, row, True))
        prior = every.mean()
        expected = (own.sum() + 10 * prior) / (len(own) + 10) - prior
        deviation = (own if len(own) > 1 else every).std(ddof=1)
        assert [column[row] for column in found] == pytest.approx([expected, deviation, len(own) / len(every)])


def test_statistics_are_those_of_lists(rows):
    given = rows()
    values, columns, [middle] = given.mapped("real"), judge.statistics(given), judge.median(given)
    for row in range(0, N_ROWS, 7):
        own = values[given.codes == given.codes[row]].tolist()
        deviation = statistics.stdev(own) if len(own) > 1 else math.nan
        expected = [statistics.fmean(own), deviation, len(own)]
        assert [column[row] for column in columns] == pytest.approx(expected, nan_ok=True)
        assert middle[row] == statistics.median(own)


def test_the_mixed_model_has_the_greatest_restricted_likelihood(rows):
    """Of the whole covariance matrix, which the judge never writes down."""
    given = rows()
    found, common = mixed.effects(given)
    y, Z = given.mapped("real"), np.eye(N_CATEGORIES)[given.codes]

    def fitted(ratio):
        inverse = np.linalg.inv(np.eye(N_ROWS) + ratio * Z @ Z.T)
        weight = inverse.sum()
        rest = y - inverse.sum(axis=0) @ y / weight
        determinant = -np.linalg.slogdet(inverse)[1]
        return (N_ROWS - 1) * np.log(rest @ inverse @ rest) + determinant + np.log(weight), ratio * Z.T @ inverse @ rest

    # n r / (1 + n r) tells the ratio of the most frequent category.
    n = np.bincount(given.codes, minlength=N_CATEGORIES)
    most = int(n.argmax())
    share = found[most] / (y[given.codes == most].mean() - common)
    ratio = share / (1 - share) / n[most]
    least, effects = fitted(ratio)
    assert all(least < fitted(ratio * other)[0] for other in (0.9, 1.1))
    assert effects == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize(
    ("word", "found"), [(b"", 0), (b"a", 0x3C2569B2), (b"abc", 0xB3DD93FA - 2**32), (b"aaaa", 0x2330A4BD)]
)
def test_hashes_are_those_of_scikit_learn(word, found):
    from sklearn.utils import murmurhash3_32

    assert words.murmur(word) == murmurhash3_32(word, 0)
    assert word not in (b"", b"a", b"abc") or words.murmur(word) == found


def test_matrices_are_judged_by_the_one_of_each_row():
    scipy = pytest.importorskip("scipy.sparse")
    dense = np.eye(4)[[2, 0, 3]]
    for matrix in (dense, scipy.csr_matrix(dense)):
        assert np.asarray(Indicators(matrix)).tolist() == [2, 0, 3]
        assert Indicators(matrix).nbytes > 0
    for wrong in ([[1, 1]], [[0, 0]], [[0, 2]], [[1, 0.5]]):
        assert np.asarray(Indicators(np.array(wrong))).tolist() == [-1]
        assert np.asarray(Indicators(scipy.csr_matrix(np.array(wrong)))).tolist() == [-1]


def test_the_report_has_the_best_other():
    records = {
        "ours": {"family": "ours", "seconds": 0.02, "rows a second": 5e7, "peak bytes": 24_000_000},
        "ce-count": {"family": "library", "seconds": 0.5, "peak bytes": None},
        "polars-join": {"family": "engine", "seconds": 0.04, "peak bytes": 9_000_000},
        "pandas-map": {"family": "hand-written", "status": "not run", "said": "about 99 s"},
    }
    records = {name: {"status": "timed", "bytes out": 8_000_000} | record for name, record in records.items()}
    cell = {"work": "count", "keys": "int", "categories": 100, "rows": 1_000_000, "contenders": records}
    line = report.line(cell)
    assert (line["best other"], line["ours / other"], line["B/row"], line["B/row of the other"]) == (
        "polars-join",
        0.5,
        16.0,
        1.0,
    )
    assert (line["x best library"], line["x best engine"]) == ("25 ce-count", "2 polars-join")
    assert line["x best hand-written"] == "not run, about 99 s"
