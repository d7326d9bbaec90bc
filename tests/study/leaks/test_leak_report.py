"""Leaks are found in encoders of every library, and encoders without leaks give none."""

import json
import os
import re
from html.parser import HTMLParser
from math import comb

import category_encoders
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.preprocessing import TargetEncoder as Theirs

from gpu_encode import (
    CatBoostEncoder,
    CountEncoder,
    FactorizationEncoder,
    Greedy,
    GroupKFold,
    KFold,
    LeaveOneOut,
    Ordered,
    OrdinalEncoder,
    ProximityEncoder,
    SpectralEncoder,
    TargetEncoder,
    leak_report,
)
from gpu_encode.study.leaks.flips import choose_rows
from gpu_encode.study.leaks.trials import RowTargets
from tests.study.leaks.encoders import MapOfMeans, NamesOfTarget, PriorOfAllRows, RowsDropped

pytestmark = pytest.mark.host
QUICK = {"n_shuffles": 5, "n_flips": 6}


def rows(n=240, seed=0, kind="binary"):
    """Rows whose shops are independent of the target, and whose cities carry a little information."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame({"shop": random.integers(n // 4, size=n).astype(str), "city": random.choice(list("abcd"), n)})
    score = random.normal(size=n) + (X["city"] == "a")
    if kind == "continuous":
        return X, score.to_numpy()
    labels = (score > 0.3).to_numpy().astype(int)
    return X, labels if kind == "binary" else np.array(["low", "high", "top"])[labels + (score > 1)]


def verdicts(encoder, X, y, **given):
    return {column.name: column.verdict for column in leak_report(encoder, X, y, **QUICK | given).columns}


@pytest.mark.parametrize(
    ("cv", "kind"),
    [
        (KFold(5), "binary"),
        (KFold(5), "multiclass"),
        (Ordered(), "continuous"),
        (GroupKFold(3, groups="city"), "binary"),
    ],
    ids=str,
)
def test_no_leak_where_a_row_does_not_see_itself(cv, kind):
    X, y = rows(kind=kind)
    found = verdicts(TargetEncoder(columns=["shop"], cv=cv, target_type=kind), X, y)
    assert {*found.values()} <= {"no leak", "no target"}


@pytest.mark.parametrize(
    "encoder",
    [
        TargetEncoder(cv=Greedy()),
        category_encoders.TargetEncoder(),
        category_encoders.WOEEncoder(),
        MapOfMeans(),
    ],
    ids=lambda encoder: type(encoder).__module__.split(".")[0] + type(encoder).__name__,
)
def test_greedy_encodings_of_any_library_hold_their_own_target(encoder):
    X, y = rows()
    report = leak_report(encoder, X, y, **QUICK)
    assert report.leaks == ["shop", "city"]
    assert [column.verdict for column in report.columns] == ["own target"] * 2
    shop = report.columns[0]
    assert shop.own_moved == shop.flips == 6
    assert shop.training.low > shop.new.high
    assert "shop" in report.advice


@pytest.mark.parametrize("kind", ["binary", "continuous"])
def test_a_prior_of_all_rows_is_told_from_the_own_target_in_a_sum(kind):
    X, y = rows(kind=kind)
    report = leak_report(PriorOfAllRows(), X, y, **QUICK)
    assert [column.verdict for column in report.columns] == ["prior"] * 2
    assert "small leak" in report.columns[0].words


@pytest.mark.parametrize("encoder", [TargetEncoder(cv=LeaveOneOut()), category_encoders.LeaveOneOutEncoder()], ids=repr)
def test_leave_one_out_is_no_leak_by_the_letter_and_dangerous(encoder):
    _, y = rows()
    X = pd.DataFrame({"country": ["x"] * len(y), "city": np.arange(len(y)) % 3}).astype(str)
    report = leak_report(encoder, X, y, **QUICK)
    assert report.leaks == []
    assert [column.verdict for column in report.columns] == ["left out"] * 2
    country = report.columns[0]
    assert country.training.mean == 1.0
    assert "falls where that target rises" in country.words
    assert country.words.endswith("A tree of 16 leaves found it here.")
    assert "leave-one-out" in report.advice


def test_stratified_folds_follow_from_labels():
    X, y = rows()
    assert {*verdicts(TargetEncoder(cv=KFold(5, stratify=True)), X, y).values()} == {"shared"}
    assert {*verdicts(Theirs(random_state=0), X, y).values()} <= {"shared", "no leak", "prior"}


def test_fits_that_differ_are_not_compared():
    X, y = rows()
    report = leak_report(Theirs(), X, y, **QUICK)
    assert [column.verdict for column in report.columns] == ["not compared"] * 2
    assert "random_state" in report.columns[0].words


def test_what_reads_no_target():
    X, y = rows()
    for encoder in (CountEncoder(), OneHotEncoder(), SpectralEncoder(n_components=2)):
        report = leak_report(encoder, X, y, **QUICK)
        assert {column.verdict for column in report.columns} == {"no target"}
        assert report.advice == "No column follows from the target."
    numbers = leak_report(StandardScaler(), np.random.default_rng(0).normal(size=(60, 2)), y[:60], **QUICK)
    assert [column.verdict for column in numbers.columns] == ["no target"] * 2


def test_other_encoders_of_the_family():
    X, y = rows(kind="continuous")
    ordinal = OrdinalEncoder(order="target", handle_unknown="use_encoded_value", unknown_value=-1, columns=["city"])
    assert verdicts(ordinal, X, y) == {"city": "no leak", "shop": "no target"}
    borders = CatBoostEncoder(statistic="borders", borders=3, columns=["city"], priors=[0.5])
    found = leak_report(borders, X, y, **QUICK)
    assert found.columns[0].verdict == "shared"
    assert "borders are quantiles of all targets" in found.columns[0].sees


def test_one_report_whatever_library_holds_the_rows():
    X, y = rows()
    encoder = TargetEncoder(columns=["shop"], cv=Greedy())
    expected = leak_report(encoder, X, y, **QUICK)
    for table in (pl.from_pandas(X), pa.Table.from_pandas(X)):
        assert leak_report(encoder, table, pl.Series(y), **QUICK) == expected
    assert not hasattr(encoder, "encodings_")


def test_rows_without_a_target():
    X, y = rows(kind="continuous")
    lacking = y.copy()
    lacking[::7] = np.nan
    assert verdicts(TargetEncoder(columns=["shop"], missing_target="keep"), X, lacking)["shop"] == "no leak"
    greedy = TargetEncoder(columns=["shop"], missing_target="keep", cv=Greedy())
    assert verdicts(greedy, X, lacking)["shop"] == "own target"


def test_risks_of_columns():
    n = 240
    _, y = rows(n)
    X = pd.DataFrame(
        {
            "ticket": [f"ticket {number}" for number in range(n)],
            "country": "x",
            "day": pd.date_range("2024-01-01", periods=n),
            "patient": [f"{one}-{number % 30}" for number, one in enumerate(y)],
        }
    )
    risks = {column.name: " ".join(column.risks) for column in leak_report(TargetEncoder(), X, y, **QUICK).columns}
    assert "values are distinct" in risks["ticket"]
    assert "one value" in risks["country"]
    assert "a time" in risks["day"]
    assert "Rows of one value share their target" in risks["patient"]
    assert leak_report(TargetEncoder(columns=["city"]), rows()[0], y, **QUICK).columns[0].risks == ()


@pytest.mark.filterwarnings("ignore:.*rows see no rows at all")
def test_rows_sorted_by_the_target_are_told_where_their_order_matters():
    X, y = rows()
    y = np.sort(y)
    for encoder, told in (
        (TargetEncoder(cv=KFold(order="contiguous")), True),
        (TargetEncoder(cv=Ordered(shuffle=False)), True),
        (MapOfMeans(), True),
        (TargetEncoder(), False),
    ):
        assert any("sorted by the target" in risk for risk in leak_report(encoder, X, y, **QUICK).risks) is told


def test_groups_that_straddle_folds_are_told():
    X, y = rows()
    groups = np.arange(len(y)) // 8
    alike = pd.DataFrame({"patient": groups.astype(str), "city": X["city"]})
    assert "Groups straddle folds" in leak_report(TargetEncoder(), alike, y, groups=groups, **QUICK).risks[0]
    assert leak_report(TargetEncoder(cv=GroupKFold(4)), alike, y, groups=groups, **QUICK).risks == ()


@pytest.mark.parametrize(
    ("encoder", "X", "y", "given", "message"),
    [
        (object(), [["a"]], [0], {}, "takes a transformer. Got object instead, which has no fit_transform"),
        (TargetEncoder(), [["a"]] * 60, [1] * 60, {}, "y has one value"),
        (TargetEncoder(), [["a"]] * 9, np.eye(9), {}, "one target, and y has 9"),
        (TargetEncoder(), [np.array([["a"]])] * 2, [0, 1], {}, "Concatenate the tables"),
        (TargetEncoder(), [["a"]] * 9, [0, 1] * 4, {}, "inconsistent numbers"),
        (TargetEncoder(), [["a"]] * 9, list(range(9)), {"n_shuffles": 2}, "n_shuffles"),
        (TargetEncoder(), [["a"]] * 9, list(range(9)), {"level": 1}, "level"),
    ],
)
def test_refusals(encoder, X, y, given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        leak_report(encoder, X, y, **given)


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (NamesOfTarget(), r"'k\d+' does not exist under shuffled ones: there are k\d+.* do not depend on y"),
        (RowsDropped(), "RowsDropped gave 237 rows for 240"),
    ],
)
def test_outputs_that_cannot_be_compared(encoder, message):
    with pytest.raises(ValueError, match=message):
        leak_report(encoder, *rows(), **QUICK)


@pytest.mark.parametrize("encoder", [FactorizationEncoder(n_components=1), ProximityEncoder()])
def test_encoders_that_learn_from_all_keys_together(encoder):
    report = leak_report(encoder, *rows(80), n_shuffles=3, n_flips=1)
    assert {column.sees for column in report.columns} <= {"unknown", "no target"}


def test_many_classes_are_told_apart_at_the_median_of_their_order():
    y = [f"part {number % 40:02}" for number in range(130)]
    targets = RowTargets.read(y, len(y))
    middle = sorted(y)[len(y) // 2]
    assert targets.labels.tolist() == [int(one > middle) for one in y]
    assert targets.values.tolist() == y
    # A class of few rows could be lost: ten classes have four rows, the others three.
    rare = [f"{one} of 2" if number < 2 else one for number, one in enumerate(y)]
    chosen = choose_rows(RowTargets.read(rare, len(y)), len(y), [], np.random.default_rng(0))
    assert chosen.tolist() == [row for row, one in enumerate(rare) if rare.count(one) > 2]


class Marks(HTMLParser):
    """Return the names of tags in order, for a check of the page, and all resources that it would load."""

    def __init__(self, text):
        super().__init__()
        self.marks, self.loaded = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.marks.append(tag)
        self.loaded += [value for name, value in attrs if name in ("src", "href")]


def test_a_page_has_numbers_on_axes_and_colours_beside_words():
    X, y = pd.DataFrame({"shop": np.arange(200) % 40, "city": np.arange(200) % 3}), np.arange(200) % 2
    report = leak_report(TargetEncoder(cv=Greedy(), smooth=1.0), X, y, n_shuffles=3, n_flips=0)
    page = report.to_html()
    assert re.findall(r'<text x="([\d.]+)"[^>]*>([\d.]+)</text>', page)[:3] == [
        ("0", "0"),
        ("110", "0.5"),
        ("220", "1"),
    ]
    for column in report.columns:
        kind = "leak" if column.name in report.leaks else "sound" if column.verdict == "no leak" else "doubtful"
        assert (
            f'>{column.name}</td><td data-head="verdict"><span class="verdict {kind}">{column.verdict}</span>' in page
        )
        # A mark lies as far along the axis as its number says.
        assert f'<circle cx="{220 * column.training.mean:.1f}" cy="8"' in page
    # Nothing was flipped; risks stand there if a column has some.
    heads = ["column", "verdict", "ROC AUC under shuffled targets", "a row sees"]
    heads += ["risks"] if any(column.risks for column in report.columns) else []
    assert re.findall("<th>(.*?)</th>", page) == heads
    # On a phone the heads are hidden, and each cell tells its own.
    assert re.findall('<td data-head="(.*?)"', page) == heads * len(report.columns)
    assert '<meta name="color-scheme" content="light dark">' in page
    assert "docs/leaks.md" in page


def test_a_page_stands_alone_and_shows_values_as_text():
    X, y = rows()
    evil = X.rename(columns={"city": "<script>alert(1)</script>"})
    report = leak_report(TargetEncoder(cv=Greedy()), evil, y, **QUICK)
    page = report.to_html()
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert Marks(page).loaded == []
    assert Marks(page).marks[:2] == ["html", "head"]
    # Readers of screens look for one main part and its heading; in a notebook the heading stands below the notebook's.
    assert [mark for mark in Marks(page).marks if mark in ("main", "h1", "h2")] == ["main", "h1"]
    assert [mark for mark in Marks(report._repr_html_()).marks if mark in ("main", "h1", "h2")] == ["h2"]
    assert "html" not in Marks(report._repr_html_()).marks
    assert report._repr_html_().replace("h2>", "h1>") in page


def test_words_and_plain_values():
    X, y = rows()
    report = leak_report(TargetEncoder(cv=Greedy()), X, y, **QUICK)
    plain = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert plain["leaks"] == ["shop", "city"]
    assert plain["columns"] == report.as_dicts()
    lines = repr(report).splitlines()
    assert lines[0].startswith("TargetEncoder: Leaks in 2 of 2 columns")
    assert lines[2].startswith("shop    own target")


def test_columns_that_follow_from_no_target_are_named_in_one_line():
    X, y = rows()
    report = leak_report(TargetEncoder(columns=["shop"], cv=Greedy()), X, y, **QUICK)
    assert [column.name for column in report.columns] == ["shop", "city"]
    lines = repr(report).splitlines()
    assert lines[0] == "TargetEncoder: Leaks in 1 of 1 columns: shop."
    assert [line for line in lines if "city" in line] == ["Not learned from the target: city."]
    assert "<p>Not learned from the target: city.</p>" in report.to_html()


def at_most(number, level):
    """Return the count that is exceeded with a chance below one in a million, if each run has the chance `level`."""
    chance, count = 0.0, -1
    while chance < 1 - 1e-6:
        count += 1
        chance += comb(number, count) * level**count * (1 - level) ** (number - count)
    return count


@pytest.mark.long
def test_false_alarms_are_as_rare_as_they_are_said_to_be():
    number, level = (200, 0.05) if os.environ.get("EVERY_SHUFFLE") else (6, 0.05)
    alarms = 0
    for seed in range(number):
        X, _ = rows(seed=seed)
        y = np.random.default_rng(seed).permutation(np.arange(len(X)) % 2)
        encoder = TargetEncoder(cv=[KFold(5), Ordered(), KFold(3)][seed % 3])
        alarms += bool(leak_report(encoder, X, y, n_shuffles=5, n_flips=0, level=level, random_state=seed).leaks)
    assert alarms <= at_most(number, level)


def test_few_rows_are_refused():
    for number in (0, 3, 49):
        with pytest.raises(ValueError, match=f"leak_report needs 50 rows or more that have a target.* Got {number}"):
            leak_report(TargetEncoder(columns=[0]), np.arange(number).reshape(-1, 1), np.arange(number) % 2)
    # No row may change its class: the class would be lost, or keep a single row.
    numbers = np.arange(50)
    with pytest.warns(UserWarning, match="least populated class in y has only 1 members") as warned:
        report = leak_report(
            TargetEncoder(columns=[0]), numbers.reshape(-1, 1), [*map("class {}".format, numbers)], n_shuffles=3
        )
    assert len(warned) == 1
    assert report.n_flips == 0
