"""The leaks leak, the cures cure, and the pages show what the scripts print."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "leaks"
# Tolerance for the page's scores, since another scikit-learn version grows other trees.
NEAR = 0.02


@pytest.fixture
def script(monkeypatch):
    """Import a script as Python does when it runs one."""
    monkeypatch.syspath_prepend(FOLDER)
    yield importlib.import_module
    for name in ("pages", "show_leaks", "regularisation"):
        sys.modules.pop(name, None)


def rows_of(text):
    """Return the cells of a Markdown table by the names of its columns."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]


def scores(row):
    return {name: float(value) for name, value in row.items() if name.endswith(("training", "new rows"))}


def assert_laws(table):
    alone, *others = table
    for row in others:
        by_name = scores(row)
        for learner in ("tree", "boosting"):
            train, test = by_name[f"{learner}, training"], by_name[f"{learner}, new rows"]
            without = float(alone[f"{learner}, new rows"])
            if row["effect"] == "cures":
                # No wider than without the column: a model fits its training rows a little in any case.
                assert train - test < max(scores(alone)[f"{learner}, training"] - without, 0) + 0.03
                assert abs(test - without) < 0.02
            else:
                assert train > 0.97
                assert test < without - 0.01
                if "contiguous" not in row["scheme"]:
                    assert train > 0.995
                    assert 0.45 < test < 0.55


def test_leaks_and_cures_are_those_of_the_page(script, tmp_path):
    command = [sys.executable, str(FOLDER / "show_leaks.py"), "--rows", "4000"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, env=os.environ)
    table, page = rows_of(done.stdout), rows_of(script("pages").kept(ROOT / "docs/leaks.md", "scores"))
    assert_laws(table)
    for row, written in zip(table, page, strict=True):
        assert {name: row[name] for name in row if name not in scores(row)} == {
            name: written[name] for name in written if name not in scores(written)
        }
        np.testing.assert_allclose([*scores(row).values()], [*scores(written).values()], rtol=0, atol=NEAR)


def test_an_encoding_under_leave_one_out_is_one_of_two_numbers(script):
    leaks = script("show_leaks")
    X, y = leaks.rows(1000)
    encodings = leaks.TargetEncoder(columns=["country"], cv=leaks.LeaveOneOut()).fit_transform(X[["country"]], y)
    ones = int(y.sum())
    assert encodings["country"].tolist() == [(ones - one) / 999 for one in y.tolist()]


def test_a_page_keeps_everything_around_its_table(script, tmp_path):
    pages, page = script("pages"), tmp_path / "page.md"
    page.write_text("before\n<!-- a: begin -->\nold\n<!-- a: end -->\nbetween\n<!-- b: begin -->\n\n<!-- b: end -->\n")
    pages.shown(pages.table([{"one": "1", "two": "2"}]), "a", page)
    assert pages.kept(page, "a") == "| one | two |\n| --- | --- |\n| 1 | 2 |"
    pages.shown("new", "b", page)
    assert page.read_text().startswith("before\n<!-- a: begin -->\n| one | two |")
    assert page.read_text().endswith("<!-- a: end -->\nbetween\n<!-- b: begin -->\nnew\n<!-- b: end -->\n")


@pytest.mark.parametrize("learner", ["linear", "boosting"])
def test_cells_of_the_page_on_regularisation(script, learner):
    regularisation = script("regularisation")
    (X, y), keys = regularisation.generated(8000)
    page = rows_of(script("pages").kept(ROOT / "docs/regularisation.md", f"made, {learner}"))
    assert [row["K"] for row in page] == [str(k) for k in regularisation.FOLDS]
    draws = [regularisation.split((X, y), 4000, seed) for seed in range(regularisation.REPEATS)]
    for row, m in ((page[0], 0), (page[-1], 10)):
        table = [regularisation.score(draw, keys, int(row["K"]), m, learner) for draw in draws]
        written = [float(score) for score in row[f"m = {m}"].split(" / ")]
        np.testing.assert_allclose(np.mean(table, axis=0), written, rtol=0, atol=NEAR)


def test_many_folds_come_close_to_leave_one_out_on_training_rows_alone(script):
    regularisation = script("regularisation")
    data, keys = regularisation.generated(3000)
    draw = regularisation.split(data, 1500, 0)
    few, many = (regularisation.score(draw, keys, k, 1, "boosting") for k in (2, 64))
    assert many[0] > few[0] + 0.02
    assert many[1] < few[1] + 0.05


def test_the_grid_is_printed_and_drawn_in_seconds(script, monkeypatch, capsys, tmp_path):
    regularisation = script("regularisation")
    monkeypatch.setattr(regularisation, "FOLDS", (2, 5))
    monkeypatch.setattr(regularisation, "WEIGHTS", (0, 10))
    picture = tmp_path / "grid.svg"
    monkeypatch.setattr(sys, "argv", ["regularisation", "--rows=300", "--repeats=2", f"--plot={picture}"])
    regularisation.main()
    tables = capsys.readouterr().out
    assert [row["K"] for row in rows_of(tables)[:2]] == ["2", "5"]
    assert tables.count("standard error of a score on new rows") == 2
    first = picture.read_bytes()
    regularisation.main()
    assert picture.read_bytes() == first


def test_census_rows_are_read_from_the_file_that_is_given(script, tmp_path):
    pandas = pytest.importorskip("pandas")
    columns = {"native_country": ["Peru", "?"], "occupation": ["Sales", "Sales"], "education": ["HS-grad", "Masters"]}
    pandas.DataFrame({**columns, "age": [30, 40], "income": [">50K", "<=50K"]}).to_parquet(tmp_path / "adult.parquet")
    (X, y), keys = script("regularisation").adult(tmp_path / "adult.parquet")
    assert y.tolist() == [1, 0]
    assert X["native_country"].isna().tolist() == [False, True]
    assert sum(isinstance(key, tuple) for key in keys) == 2
