"""`python -m studies.methods` on made rows, and on small files."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import OneHotEncoder

from studies.comparison.scores import compare
from studies.methods import __main__ as comparison
from studies.methods import classifiers, tables
from studies.methods.blends import blend_folds, blend_pairs
from studies.methods.classifiers import EqualRanks, scores_of
from studies.methods.methods import METHODS, Task
from studies.methods.perceptron import DecayingPerceptron


def run(folder, *arguments):
    status = comparison.main(["--folds", "2", "--jobs", "1", "--out", str(folder), *arguments])
    return status, json.loads((folder / "methods.json").read_text()) if status == 0 else None


@pytest.mark.skipif("EVERY_BENCHMARK" not in os.environ, reason="a minute: EVERY_BENCHMARK=1 runs it")
def test_every_method_on_made_rows(tmp_path, monkeypatch):
    # Of each line the two ends of its grid, in small forests: a choice is made, and all code is run.
    for name, method in METHODS.items():
        grid = method.grid[:: max(len(method.grid) - 1, 1)]
        monkeypatch.setitem(METHODS, name, replace(method, grid=grid))
    monkeypatch.setitem(classifiers.TREES, "n_estimators", 10)
    status, found = run(tmp_path, "--quick", "--rows", "120")
    assert status == 0
    assert [cell["method"] for cell in found["cells"]] == list(METHODS)
    for cell in found["cells"]:
        assert len(cell["auc"]) == 2
        assert all(0 <= auc <= best for auc, best in zip(cell["auc"], cell["best on test"], strict=True))
    text = (tmp_path / "methods.md").read_text()
    assert all(f"| {name} |" in text for name in METHODS)


def test_a_blend_is_chosen_without_the_rows_that_score_it():
    random = np.random.default_rng(0)
    targets = [random.integers(0, 2, 40) for _ in range(3)]
    scores = {
        name: [y + random.normal(scale=scale, size=40) for y in targets] for name, scale in (("a", 1.0), ("b", 1.5))
    }
    (blend,) = blend_pairs(scores, targets)
    assert (blend["one"], blend["other"]) == ("a", "b")
    assert -1 <= blend["Spearman"] <= 1
    # A fold's own labels say nothing of its share.
    folds = [np.column_stack([scores["a"][i], scores["b"][i]]) for i in range(3)]
    _, shares = blend_folds(folds, targets)
    _, others = blend_folds(folds, [1 - targets[0], *targets[1:]])
    assert shares[0] == others[0]
    assert shares[1:] != others[1:]


def test_a_table_by_argument(tmp_path):
    made = tables.generate(200)
    file = tmp_path / "shops.csv"
    made.X.assign(sold=np.where(made.y, "yes", "no"), price=np.arange(200)).to_csv(file, index=False)
    with pytest.raises(SystemExit):
        comparison.main([str(file), "--target", "sold", "--methods", "no such method"])
    read = tables.read(file, "sold", ["a", "price"], "yes", 150, ["price"])
    assert read.X.shape == (150, 2)
    # Numbers that are named are cut at deciles; others are categories.
    assert read.X["price"].nunique() == 10
    assert tables.read(file, "sold", ["price"], "yes", None).X["price"].nunique() == 200
    assert read.said == "sold is yes"
    assert comparison.main([str(file), "--out", str(tmp_path / "none")]) == 2
    with pytest.raises(ValueError, match=r"there is no file .*absent\.csv"):
        tables.read(tmp_path / "absent.csv", "sold", None, None, 10)


def test_whole_numbers_are_categories_and_fractions_are_not():
    whole = pd.Series([7.0, np.nan, 1234.0] * 20 + list(range(40)), name="id")
    assert tables.as_text(tables.as_categories(whole)).tolist()[:3] == ["7", None, "1234"]
    assert tables.as_categories(pd.Series([0.5, 1.5])).tolist() == [0.5, 1.5]
    with pytest.raises(ValueError, match="column price holds 40 numbers with fractions: cut it by --numbers price"):
        tables.as_categories(pd.Series(np.arange(40) / 8, name="price"))
    with pytest.raises(ValueError, match="--numbers: column shop holds no numbers"):
        tables.cut(pd.Series(["a", "b"], name="shop"))


def test_one_split_scores_the_rows_after_the_first(tmp_path):
    table = tables.generate(200)
    file = tmp_path / "rows.csv"
    table.X.assign(y=table.y).to_csv(file, index=False)
    methods = ["--methods", "m-estimates: logistic,votes: linear"]
    arguments = [str(file), "--target", "y", "--split", "150", "--jobs", "1", "--out", str(tmp_path), *methods]
    assert comparison.main(arguments) == 0
    found = json.loads((tmp_path / "methods.json").read_text())
    assert (found["split"], found["folds"], found["blends"]) == (150, 1, {})
    assert found["datasets"][0]["rows"] == 200
    train, test = np.arange(150), np.arange(150, 200)
    cell = next(cell for cell in found["cells"] if cell["method"] == "votes: linear")
    choice = cell["choice"][0]
    read = tables.read(file, "y", None, None, None)
    assert cell["auc"] == [comparison.auc_of(METHODS["votes: linear"], choice, read, (train, test), 2)]
    text = (tmp_path / "methods.md").read_text()
    assert "Trained once on the first rows" in text
    assert "standard error |" not in text
    assert comparison.main([*arguments[:4], "200", *arguments[5:]]) == 2


def test_lines_that_are_compared_choose_among_the_same_values():
    logistic = [method.grid for name, method in METHODS.items() if "logistic" in name]
    assert {tuple(sorted({choice["C"] for choice in grid})) for grid in logistic} == {(0.01, 0.1, 1.0)}
    assert METHODS["m-estimates: logistic"].grid == METHODS["logits of m-estimates: logistic"].grid


def test_intervals_of_many_comparisons_hold_together():
    random = np.random.default_rng(0)
    n_compared, missed = 20, 0
    for _ in range(400):
        # Outer folds are independent here, so intervals with the correction for shared rows are a little too wide.
        lines = random.normal(size=(n_compared, 5))
        missed += any(not compare(list(line), [0.0] * 5, n_compared).is_noise for line in lines)
    assert missed <= 20
    wide, narrow = (compare([0.1, 0.2, 0.4], [0.0, 0.0, 0.0], n) for n in (10, 1))
    assert wide.mean == narrow.mean
    assert wide.half > narrow.half


@pytest.mark.parametrize(
    ("values", "positive", "expected"),
    [
        (["no", "yes", "no"], None, [0, 1, 0]),
        ([1.0, 5.0, 3.0, 9.0], None, [0, 1, 0, 1]),
        (["a", "b", "c"], "c", [0, 0, 1]),
    ],
)
def test_a_target_of_two_classes(values, positive, expected):
    assert tables.read_target(pd.Series(values, name="y"), positive)[0].tolist() == expected


def test_the_perceptron_steps_as_it_should():
    X = OneHotEncoder().fit_transform(np.array([["a"], ["b"], ["a"], ["c"]]))
    y = np.array([1, 0, 1, 0])
    weights, bias, random = np.zeros(3), 0.0, np.random.default_rng(3)
    dense = X.toarray()
    for number in (1, 2, 3):
        for row in random.permutation(4):
            sign = 2 * y[row] - 1
            if sign * (dense[row] @ weights + bias) <= 0:
                weights = weights + dense[row] * sign / np.log(number + 1)
                bias += sign / np.log(number + 1)
    fitted = DecayingPerceptron(3, random_state=3).fit(X, y)
    assert fitted.decision_function(X) == pytest.approx(dense @ weights + bias, abs=1e-12)


class Column:
    """Scores that a column already holds."""

    def __init__(self, name):
        self.name = name

    def fit(self, _X, _y):
        return self

    def decision_function(self, X):
        return X[self.name].to_numpy()


def test_equal_ranks_are_those_among_unlabelled_rows():
    X = pd.DataFrame({"small": [1.0, 2.0, 3.0, 4.0], "large": [900.0, 5.0, 7.0, 8.0]})
    blend = EqualRanks([Column("small"), Column("large")], X).fit(X, [0, 1, 0, 1])
    assert scores_of(blend, X).tolist() == [0.5, 0.25, 0.5, 0.75]


def test_conjunctions_are_of_at_most_the_order_asked_for():
    task = Task(["a", "b", "c"], 2, pd.DataFrame())
    assert task.keys() == task.keys(9) == ["a", "b", "c", ("a", "b"), ("a", "c"), ("b", "c")]
    assert task.keys(1) == ["a", "b", "c"]


def made_run(folder, name, seed, **settings):
    """Write the results of a finished run of three methods on one table."""
    random = np.random.default_rng(seed)
    methods = ("m-estimates: boosted trees", "proximity", "votes: linear")
    cells = [
        {"dataset": name, "family": "f", "method": method, "auc": random.random(3).tolist(), "choice": [{"k": 1}] * 3}
        for method in methods
    ]
    cells = [cell | {"best on test": cell["auc"], "seconds": [1.0, 2.0, 3.0]} for cell in cells]
    machine = {"device": "a machine", "cores": 2, "memory": "1 GiB", "commit": f"commit of {name}", "versions": {}}
    told = {"dataset": name, "rows": 9, "target": "sold", "share": 0.5, "distinct values": {"shop": 1200}}
    document = machine | {"quick": False, "folds": 3, "split": None, "most rows": 9, "order": 2, "numbers": []}
    document |= settings | {"datasets": [told], "blends": {}, "cells": cells}
    (folder / name).mkdir()
    (folder / name / "methods.json").write_text(json.dumps(document))
    return str(folder / name)


def test_finished_runs_are_merged_into_one_report(tmp_path):
    folders = [made_run(tmp_path, name, seed) for seed, name in enumerate(("one", "two", "three"))]
    assert comparison.main(["--merge", *folders, "--out", str(tmp_path)]) == 0
    merged = json.loads((tmp_path / "methods.json").read_text())
    assert [described["dataset"] for described in merged["datasets"]] == ["one", "two", "three"]
    assert merged["commit"] == "commit of one, commit of two, commit of three"
    assert merged["device"] == "a machine"
    # The line of a method over the tables, from its definition.
    means = {}
    for cell in merged["cells"]:
        means.setdefault(cell["method"], []).append(sum(cell["auc"]) / 3)
    text = (tmp_path / "methods.md").read_text()
    usual = means["m-estimates: boosted trees"]
    for method, of_tables in means.items():
        line = next(line for line in text.splitlines() if line.startswith(f"| {method} | 0."))
        cells = line.strip("| ").split(" | ")
        assert cells[-3:] == [f"{area:.4f}" for area in of_tables]
        assert cells[1] == f"{sum(of_tables) / 3:.4f}"
        assert cells[2] == f"{sum(1 + sum(o[i] > of_tables[i] for o in means.values()) for i in range(3)) / 3:.1f}"
        if method != "m-estimates: boosted trees":
            differences = [a - b for a, b in zip(of_tables, usual, strict=True)]
            middle = sum(differences) / 3
            error = (sum((d - middle) ** 2 for d in differences) / 2 / 3) ** 0.5
            # The quantile of Student's t with two degrees of freedom, at 1 - 0.025 / 2.
            assert f"{middle:+.4f} ± {6.2053 * error:.4f}"[:-1] in cells[3]
    # Of one table there is nothing to compare over tables.
    assert comparison.main(["--merge", folders[0], "--out", str(tmp_path)]) == 0
    assert "All tables" not in (tmp_path / "methods.md").read_text()


def test_runs_that_cannot_be_compared_are_not_merged(tmp_path, capsys):
    one = made_run(tmp_path, "one", 0)
    assert comparison.main(["--merge", one, one, "--out", str(tmp_path)]) == 2
    assert "more than one run has one" in capsys.readouterr().err
    assert comparison.main(["--merge", one, made_run(tmp_path, "two", 1, order=3), "--out", str(tmp_path)]) == 2
    assert "order differs between the runs: 2, 3" in capsys.readouterr().err
    document = json.loads((tmp_path / "one" / "methods.json").read_text())
    document["datasets"][0] |= {"dataset": "half"}
    document["cells"] = [document["cells"][0] | {"dataset": "half"}]
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "methods.json").write_text(json.dumps(document))
    assert comparison.main(["--merge", one, str(tmp_path / "half"), "--out", str(tmp_path)]) == 2
    assert "half: proximity, half: votes: linear" in capsys.readouterr().err
    assert comparison.main(["--merge", str(tmp_path / "none"), "--out", str(tmp_path)]) == 2


def test_the_page_has_the_lines_of_the_latest_results():
    root = Path(comparison.__file__).parents[2]
    latest = max(root.glob("benchmarks/results/methods-*/methods.json"))
    results = comparison.markdown(json.loads(latest.read_text()))
    page = (root / "docs" / "methods.md").read_text()
    assert latest.with_suffix(".md").read_text() == results
    assert f"../benchmarks/results/{latest.parent.name}/methods.md" in page
    lines = [line for line in page.splitlines() if any(line.startswith(f"| {name} | 0.") for name in METHODS)]
    assert len(lines) == len(METHODS)
    assert set(lines) <= set(results.splitlines())
