"""`python -m studies.recipes` on made rows, and on a small file."""

import json

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from studies import recipes

pytestmark = pytest.mark.host


def test_draws_are_made_of_other_rows_each_time():
    one, again, other = recipes.generate(300, 0), recipes.generate(300, 0), recipes.generate(300, 1)
    assert one.X.equals(again.X)
    assert one.y.tolist() == again.y.tolist()
    assert not one.X.equals(other.X)
    assert (len(one.X), len(one.X_new), len(one.unlabelled)) == (300, 300, 900)
    # New rows are the first of those without a target; those to train on are none of them.
    assert one.unlabelled[:300].equals(one.X_new)
    assert [*one.X] == one.resource + one.user


def test_shares_of_blends_are_chosen_on_training_rows_alone():
    draw = recipes.generate(200, 0)
    held = draw.apart()
    assert len(held.y) + len(held.y_new) == 200
    both = [*map(tuple, held.X.to_numpy()), *map(tuple, held.X_new.to_numpy())]
    assert sorted(both) == sorted(map(tuple, draw.X.to_numpy()))


def test_equal_ranks_are_means_of_ranks(monkeypatch):
    draw = recipes.generate(60, 0)
    random = np.random.default_rng(0)
    scores = {name: random.random(60) for name in recipes.MODELS}
    monkeypatch.setattr(
        recipes, "MODELS", {name: lambda given, name=name: scores[name][: len(given.X_new)] for name in scores}
    )
    lines = recipes.blends(draw)
    first = [rankdata(scores[name]) for name in list(scores)[:2]]
    assert lines["equal ranks of the first 2"].tolist() == ((first[0] + first[1]) / 2).tolist()
    assert all(len(line) == 60 for line in lines.values())


def test_a_table_is_split_once(tmp_path):
    made = recipes.generate(120, 0)
    file = tmp_path / "requests.csv"
    made.X.assign(granted=made.y).to_csv(file, index=False)
    arguments = [str(file), "--target", "granted", "--positive", "1", "--resource", "resource,system", "--split", "80"]
    assert recipes.main([*arguments, "--only", "proximity", "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "recipes.json").read_text())
    cell = next(cell for cell in found["cells"] if cell["line"] == "pairs, tuned on all rows")
    draw = recipes.split(recipes.read(file, "granted", None, "1", None), 80, ["resource", "system"])
    assert draw.user == recipes.USER
    expected = roc_auc_score(made.y[80:], recipes.proximity(draw, tuning_rows=None))
    assert cell["auc"] == [expected]
    assert "standard error |" not in (tmp_path / "recipes.md").read_text()
    assert recipes.main([str(file), "--target", "none", "--resource", "a", "--split", "80"]) == 2
    with pytest.raises(SystemExit):
        recipes.main([str(file), "--target", "granted"])
