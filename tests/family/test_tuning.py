"""`tune` against its definition: refit for every value, encode the rows held out, score them one by one."""

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import KFold as TheirKFold
from sklearn.preprocessing import TargetEncoder as Theirs

import gpu_encode as ge
from gpu_encode import ops as seam
from gpu_encode.ops import use_backend
from gpu_encode.training.tasks import EncodingTask
from gpu_encode.tuning.candidates import default_smoothings
from gpu_encode.tuning.distinct_counts import DistinctCounts
from gpu_encode.tuning.sums import sums_by_fold
from tests.backends import ON_CUDA

N = 240
RNG = np.random.default_rng(11)
CITY = RNG.choice([*"abcdefgh", None], N, p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.04, 0.03, 0.03])
ROWS = pd.DataFrame(
    {
        "city": pd.array(CITY, dtype=object),
        "zip": RNG.integers(0, 30, N) * 7,
        "fold": RNG.integers(0, 4, N),
        "day": np.sort(RNG.integers(0, 50, N)),
    }
)
RATE = dict(zip([*"abcdefgh", None], RNG.random(9), strict=True))
SOLD = (RNG.random(N) < np.array([RATE[each] for each in CITY])).astype(np.int64)
AMOUNT = np.array([RATE[each] for each in CITY]) * 3 + RNG.normal(size=N).round(3)
KIND = np.array(["x", "y", "z"])[np.minimum(SOLD + RNG.integers(0, 2, N), 2)]
TARGETS = {"binary": SOLD, "continuous": AMOUNT, "multiclass": KIND}
WHOLE = RNG.integers(1, 4, N)
REAL = RNG.random(N) + 0.25
OF_CATEGORIES = [ge.EmpiricalBayes("between"), ge.JamesStein(), ge.PartialPooling(), ge.GLMM()]
SMOOTHINGS = [None, 0.5, ge.MEstimate(10.0), ge.Sigmoid(5.0, 2.0), "auto", *OF_CATEGORIES]


def encoder(**parameters):
    return ge.TargetEncoder(**({"columns": ["city", ("zip", "city")], "cv": "fold"} | parameters))


def scored_one_by_one(kind, y, codes, weights):
    """Log-likelihood per unit of weight, in plain Python; rows whose code is NaN are left out."""
    labels = sorted(set(y))
    rows = [(own, code, weight) for own, code, weight in zip(y, codes, weights, strict=True) if not np.isnan(code[0])]
    total = sum(weight for *_, weight in rows)
    if kind == "continuous":
        error = math.fsum(weight * (own - code[0]) ** 2 for own, code, weight in rows) / total
        return -0.5 * (math.log(2 * math.pi * error) + 1)
    found = []
    for own, code, weight in rows:
        chances = [min(max(each, 1e-15), 1 - 1e-15) for each in code]
        chances = [1 - chances[0], *chances] if kind == "binary" else [each / sum(chances) for each in chances]
        found.append(weight * math.log(chances[labels.index(own)]))
    return math.fsum(found) / total


def codes_of(table, column, kind):
    """Columns of codes of one encoded column: one, or one a class."""
    names = [f"{column}_{label}" for label in "xyz"] if kind == "multiclass" else [column]
    return table[names].to_numpy()


def by_refitting(made, column, kind, y, weights):
    """Fit on the other folds, and transform the rows of the fold: the definition."""
    X, codes = ROWS.drop(columns="fold"), None
    for fold in range(4):
        held = (ROWS["fold"] == fold).to_numpy()
        others = clone(made).set_params(cv=2, columns=[column] if isinstance(column, str) else made.columns)
        others.fit(X[~held], y[~held], sample_weight=None if weights is None else weights[~held])
        name = column if isinstance(column, str) else "_x_".join(column)
        found = codes_of(others.transform(X[held]), name, kind)
        codes = np.full((N, found.shape[1]), np.nan) if codes is None else codes
        codes[held] = found
    return codes


def same_ranking(found, expected):
    """Scores agree, and stand in the same order wherever they are not equal but for their last digits."""
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    for i in range(len(found)):
        for j in range(i):
            if abs(expected[i] - expected[j]) > 1e-10:
                assert (found[i] > found[j]) == (expected[i] > expected[j])


def refitted(made, smoothing, kind, y, weights):
    made = clone(made).set_params(smooth=smoothing, target_type=kind)
    own = np.ones(N) if weights is None else weights
    found = [
        scored_one_by_one(kind, y.tolist(), by_refitting(made, column, kind, y, weights).tolist(), own.tolist())
        for column in made.columns
    ]
    return sum(found) / len(found)


@pytest.mark.parametrize("weights", [None, WHOLE, REAL], ids=["unweighted", "whole", "real"])
@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.long
def test_scores_are_those_of_refitting_for_every_value(kind, weights):
    y = TARGETS[kind]
    smoothings = SMOOTHINGS if weights is None and kind != "multiclass" else SMOOTHINGS[:-1]
    tuned = ge.tune(encoder(), ROWS, y, smoothings=smoothings, sample_weight=weights)
    expected = [refitted(encoder(), each, kind, y, weights) for each in smoothings]
    same_ranking([score.log_likelihood for score in tuned.scores], expected)
    assert tuned.encoder.smooth is smoothings[int(np.argmax(expected))]
    assert tuned.encoder.cv == "fold"


POLICIES = {
    "prior": {"prior": 0.3},
    "category mean": {"prior": "category_mean"},
    "unseen": {"handle_unknown": 0.25, "min_count": 12},
    "no code": {"handle_unknown": "nan", "handle_missing": "nan", "min_count": 6},
    "missing": {"handle_missing": "prior"},
    "levels": {"columns": ["city"], "hierarchy": {"city": ["zip"]}},
    "rule": {"columns": ["zip"], "hierarchy": {"zip": ge.Prefixes(1)}},
    "given": {"columns": ["city"], "categories": [["a", "b", "c"]], "handle_missing": "prior"},
    "infrequent": {"min_frequency": 12},
    "infrequent, pooled": {"columns": ["zip"], "max_categories": 6, "handle_infrequent": "category"},
    "outputs": {"dtype": "float32", "indicators": True, "drop": "first"},
    "scale": {"scale": "sqrt"},
}


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.long
def test_policies_and_levels(policy, kind):
    made, y, smoothings = (
        encoder(**POLICIES[policy]),
        TARGETS[kind],
        [None, 2.0, ge.Sigmoid(5.0, 2.0), ge.PartialPooling()],
    )
    y = y + 10.0 if kind == "continuous" else y
    tuned = ge.tune(made, ROWS.astype({"zip": str}), y, smoothings=smoothings)
    plain = clone(made).set_params(drop=None, dtype="float64", indicators=False, scale="identity")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "ROWS", ROWS.astype({"zip": str}))
        expected = [refitted(plain, each, kind, y, None) for each in smoothings]
    same_ranking([score.log_likelihood for score in tuned.scores], expected)


def purged(X, y=None, groups=None):
    for _, test in TheirKFold(4).split(X):
        yield np.setdiff1d(np.arange(N), np.arange(test[0] - 5, test[-1] + 6)), test


SCHEMES = {
    "random folds": (ge.KFold(3), {}),
    "number": (6, {}),
    "stratified": (ge.KFold(3, stratify=True), {}),
    "blow-up": (ge.KFold(3, blow_up=True), {}),
    "groups": (ge.GroupKFold(3), {"groups": ROWS["day"]}),
    "group column": (ge.GroupKFold(3, groups="day"), {}),
    "time": (ge.TimeFolds(4, time="day"), {}),
    "holdout": (ge.Holdout(0.4), {}),
    "array": (ROWS["fold"].to_numpy(), {}),
    "splitter": (TheirKFold(4), {}),
    "splits": (list(purged(ROWS)), {}),
}


# There are no classes of a quantity to stratify by.
SCORED = [each for each in product(["binary", "continuous"], SCHEMES) if each != ("continuous", "stratified")]


@pytest.mark.parametrize(("kind", "scheme"), SCORED)
@pytest.mark.filterwarnings("ignore:.*rows see no rows at all")
@pytest.mark.long
def test_schemes_are_scored_by_their_training_codes(scheme, kind):
    cv, given_beside = SCHEMES[scheme]
    made, y, smoothings = ge.TargetEncoder(columns=["city"], cv=cv), TARGETS[kind], [None, 1.0, "auto", ge.JamesStein()]
    tuned = ge.tune(made, ROWS, y, smoothings=smoothings, **given_beside)
    plain = ge.KFold(3) if scheme == "blow-up" else cv
    expected = []
    for each in smoothings:
        codes = clone(made).set_params(smooth=each, cv=plain).fit_transform(ROWS, y, **given_beside)[["city"]]
        expected.append(scored_one_by_one(kind, y.tolist(), codes.to_numpy().tolist(), [1] * N))
    same_ranking([score.log_likelihood for score in tuned.scores], expected)
    assert tuned.encoder.cv is cv or type(tuned.encoder.cv) is type(cv)


@pytest.mark.parametrize("kind", ["binary", "continuous"])
def test_folds_and_their_standard_error(kind):
    y = TARGETS[kind]
    (score,) = ge.tune(encoder(columns=["city"]), ROWS, y, smoothings=[3.0]).scores
    codes = encoder(columns=["city"], smooth=3.0).fit_transform(ROWS, y)["city"].to_numpy()
    sizes, expected = [], []
    for fold in range(4):
        held = (ROWS["fold"] == fold).to_numpy()
        sizes.append(int(held.sum()))
        if kind == "binary":
            expected.append(float(np.mean(np.where(y[held] == 1, np.log(codes[held]), np.log(1 - codes[held])))))
        else:
            error = float(np.mean((y - codes) ** 2))
            expected.append(
                -0.5 * (math.log(2 * math.pi * error) + float(np.mean((y[held] - codes[held]) ** 2)) / error)
            )
            assert score.squared_error == pytest.approx(error, rel=1e-12)
    np.testing.assert_allclose(score.by_fold, expected, rtol=1e-11)
    assert score.log_likelihood == pytest.approx(np.average(expected, weights=sizes), rel=1e-12)
    assert score.standard_error == pytest.approx(np.std(expected, ddof=1) / 2, rel=1e-9)


@pytest.mark.filterwarnings("ignore:.*rows see no rows at all")
def test_a_fold_that_sees_nothing_is_left_out():
    (score,) = ge.tune(
        ge.TargetEncoder(columns=["city"], cv=ge.TimeFolds(4, time="day")), ROWS, SOLD, smoothings=[1.0]
    ).scores
    assert [math.isnan(each) for each in score.by_fold] == [True, False, False, False]
    assert score.standard_error > 0


def bits(tuned):
    return [
        (
            repr(each.smoothing),
            each.log_likelihood.hex(),
            each.standard_error.hex(),
            [one.hex() for one in each.by_fold],
        )
        for each in tuned.scores
    ]


FEW = [None, 0.5, 10.0, ge.Sigmoid(5.0, 2.0), "auto", ge.PartialPooling()]


@pytest.mark.parametrize("weights", [None, REAL], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("kind", TARGETS)
def test_one_answer(kind, weights, monkeypatch):
    made, y = ge.TargetEncoder(columns=["city", "zip"], cv=ge.KFold(3)), TARGETS[kind]

    def answer(X, y, weights):
        return bits(ge.tune(made, X, y, smoothings=FEW, sample_weight=weights))

    expected = answer(ROWS, y, weights)
    cuts = [(0, 50), (50, 51), (51, N)]
    pieces = [ROWS[start:stop] for start, stop in cuts]
    assert answer(pieces, [y[start:stop] for start, stop in cuts], weights) == expected
    for name in ("numpy", "compiled"):
        with use_backend(name):
            assert answer(ROWS, y, weights) == expected
            monkeypatch.setattr(seam.resolve(N), "TILE", 16)
            assert answer(ROWS, y, weights) == expected
            monkeypatch.undo()


@pytest.mark.host
@pytest.mark.parametrize("kind", TARGETS)
def test_whole_weights_repeat_rows(kind):
    times = np.repeat(np.arange(N), WHOLE)
    y = TARGETS[kind]
    weighted = ge.tune(encoder(), ROWS, y, smoothings=FEW, sample_weight=WHOLE)
    assert bits(weighted) == bits(ge.tune(encoder(), ROWS.iloc[times], y[times], smoothings=FEW))


@pytest.mark.host
@pytest.mark.parametrize(
    ("kind", "power"), [("binary", 900), ("multiclass", -250), ("continuous", -100), ("continuous", 100)]
)
def test_weights_of_any_size(kind, power):
    found, expected = (
        ge.tune(encoder(), ROWS, TARGETS[kind], smoothings=[None], sample_weight=REAL * factor)
        for factor in (2.0**power, 1.0)
    )
    assert bits(found) == bits(expected)


@pytest.mark.host
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
@pytest.mark.parametrize("weights", [None, 1 + np.arange(N) % 2], ids=["unweighted", "whole"])
def test_categories_that_are_alike_are_scored_as_one(kind, weights, monkeypatch):
    X = np.random.default_rng(3).integers(0, 400, (N, 1))
    found, grouped = [], []
    of = DistinctCounts.of

    def told(views):
        grouped.append(of(views))
        return grouped[-1]

    for rule in (told, lambda views: None):
        monkeypatch.setattr(DistinctCounts, "of", staticmethod(rule))
        found.append(ge.tune(ge.TargetEncoder(), X, TARGETS[kind], smoothings=FEW, sample_weight=weights))
    assert len(grouped[0].first) < len(np.unique(X)) / 2 + 2
    np.testing.assert_allclose(
        [score.by_fold for score in found[0].scores], [score.by_fold for score in found[1].scores], rtol=1e-12
    )


@pytest.mark.host
def test_rows_are_summed_once(monkeypatch):
    calls, measure = [], EncodingTask.measure
    monkeypatch.setattr(EncodingTask, "measure", lambda *given: calls.append(1) or measure(*given))
    ge.tune(
        encoder(target_type=["binary", "continuous"]),
        ROWS,
        np.column_stack([SOLD, AMOUNT]),
        schemes=[ge.KFold(2), ge.KFold(3)],
    )
    assert len(calls) == 2 * 2 * 2


@pytest.mark.long
def test_much_shrinkage_without_signal_and_little_with_it():
    rng = np.random.default_rng(5)
    few, many = rng.integers(0, 100, 4000), rng.integers(0, 10, 4000)
    noise = rng.normal(size=4000)
    made = ge.TargetEncoder(target_type="continuous")
    grid = [score for score in default_smoothings() if isinstance(score, ge.MEstimate)]
    without = ge.tune(made, few[:, None], noise, smoothings=grid)
    strong = ge.tune(made, many[:, None], many + 0.1 * noise, smoothings=grid)
    assert without.encoder.smooth.m >= 1000
    assert strong.encoder.smooth.m == 0.1
    # Effects of variance 1/4 beside noise of variance 1: the best weight of the prior is 4 rows.
    between = ge.tune(made, few[:, None], 0.5 * rng.normal(size=100)[few] + noise, smoothings=grid)
    assert 2 <= between.encoder.smooth.m <= 8


def test_the_usual_grid():
    grid = default_smoothings()
    weights = [each.m for each in grid if isinstance(each, ge.MEstimate)]
    assert len(weights) == 51
    assert (weights[0], weights[-1]) == (0.1, 10_000.0)
    assert all(1.2 < other / one < 1.3 for one, other in pairwise(weights))
    tuned = ge.tune(encoder(), ROWS, SOLD)
    assert [repr(score.smoothing) for score in tuned.scores] == [repr(each) for each in grid]
    assert tuned.best.log_likelihood == max(score.log_likelihood for score in tuned.scores)
    tuned.encoder.fit(ROWS, SOLD)


def test_schemes_to_choose_among():
    schemes = [2, ge.KFold(12), ge.GroupKFold(3)]
    tuned = ge.tune(
        ge.TargetEncoder(columns=["city"]), ROWS, SOLD, smoothings=[1.0, 30.0], schemes=schemes, groups=ROWS["day"]
    )
    assert [(score.scheme, score.smoothing) for score in tuned.scores] == [
        (cv, m) for cv in schemes for m in (1.0, 30.0)
    ]
    for cv in schemes:
        alone = ge.tune(
            ge.TargetEncoder(columns=["city"], cv=cv), ROWS, SOLD, smoothings=[1.0, 30.0], groups=ROWS["day"]
        )
        own = [score for score in tuned.scores if score.scheme is cv]
        assert [score.by_fold for score in own] == [score.by_fold for score in alone.scores]
    assert repr(tuned.encoder.cv) == repr(tuned.best.scheme)


@pytest.mark.parametrize("cv", [ge.Ordered(), ge.LeaveOneOut(), ge.Greedy()])
def test_schemes_without_folds_are_kept_and_measured_by_folds(cv):
    found = ge.tune(ge.TargetEncoder(columns=["city"], cv=cv), ROWS, SOLD, smoothings=FEW, folds=3)
    by_folds = ge.tune(ge.TargetEncoder(columns=["city"], cv=ge.KFold(3)), ROWS, SOLD, smoothings=FEW)
    assert bits(found) == bits(by_folds)
    assert type(found.encoder.cv) is type(cv)


def test_columns_alone():
    tuned = ge.tune(encoder(), ROWS, SOLD, smoothings=FEW, per_column=True)
    assert list(tuned.by_column) == ["city", "zip_x_city"]
    for column, scores in zip(["city", ("zip", "city")], tuned.by_column.values(), strict=True):
        alone = ge.tune(encoder(columns=[column]), ROWS, SOLD, smoothings=FEW)
        assert scores == alone.scores
        assert tuned.best_by_column[list(tuned.by_column)[column != "city"]] == alone.best
    assert ge.tune(encoder(), ROWS, SOLD, smoothings=FEW).by_column == {}
    table = pd.DataFrame(tuned.as_dicts())
    assert list(table.columns) == ["column", "smoothing", "scheme", "log_likelihood", "standard_error", "squared_error"]
    assert len(table) == 3 * len(FEW)


def test_what_is_shown():
    tuned = ge.tune(ge.TargetEncoder(columns=["city"]), ROWS, AMOUNT)
    lines = repr(tuned).splitlines()
    assert lines[1].split("  ")[0] == "smoothing"
    assert lines[2].endswith("<- chosen")
    assert lines[-1] == "... and 50 less likely"
    assert len(lines) == 13
    row = tuned.as_dicts()[3]
    assert (row["smoothing"], row["scheme"]) == ("MEstimate(m=0.16)", "5")
    assert row["squared_error"] > 0
    assert ge.tune(encoder(), ROWS, SOLD, smoothings=[1.0]).as_dicts()[0]["squared_error"] is None
    assert ge.tune(encoder(cv=ge.KFold(4)), ROWS, SOLD, smoothings=[1.0]).as_dicts()[0]["scheme"] == "KFold(4)"


@pytest.mark.host
def test_targets_of_any_size():
    expected = ge.tune(encoder(), ROWS, AMOUNT, smoothings=FEW)
    for power in (-800, 600):
        scaled = ge.tune(encoder(), ROWS, AMOUNT * 2.0**power, smoothings=FEW)
        assert scaled.encoder.smooth is expected.encoder.smooth
        np.testing.assert_allclose(
            [score.log_likelihood for score in scaled.scores],
            [score.log_likelihood - power * math.log(2) for score in expected.scores],
            rtol=1e-13,
        )
    far = ge.tune(encoder(), ROWS, AMOUNT + 2.0**30, smoothings=FEW)
    np.testing.assert_allclose(
        [score.log_likelihood for score in far.scores], [score.log_likelihood for score in expected.scores], rtol=1e-6
    )


def test_a_constant_target():
    tuned = ge.tune(encoder(), ROWS, np.full(N, 2.5), smoothings=FEW)
    assert [score.log_likelihood for score in tuned.scores] == [math.inf] * len(FEW)
    assert {(score.standard_error, score.squared_error) for score in tuned.scores} == {(0.0, 0.0)}
    assert tuned.encoder.smooth is None
    tuned = ge.tune(encoder(), ROWS, np.full(N, 1), smoothings=FEW)
    assert all(-1e-14 < score.log_likelihood <= 0 for score in tuned.scores)


class Broken(ge.MEstimate):
    """A smoothing without a code for some categories."""

    def shrinkage(self, seen, context):
        return np.where(seen.n > 20, super().shrinkage(seen, context), np.nan)


@pytest.mark.parametrize("y", [SOLD, AMOUNT])
def test_a_smoothing_that_lacks_codes_comes_last(y):
    tuned = ge.tune(encoder(), ROWS, y, smoothings=[100.0, Broken()])
    assert tuned.scores[1].log_likelihood == -math.inf
    assert tuned.encoder.smooth == 100.0


@given(st.lists(st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3), min_size=1, max_size=40), st.randoms())
def test_sums_know_no_order(rows, random):
    numpy, values = seam.host(0), np.array(rows)
    scored = values < 500
    found = sums_by_fold(numpy, lambda start, stop: values[start:stop], scored)
    exact = [sum(Fraction(each) for each in column[kept]) for column, kept in zip(values.T, scored.T, strict=True)]
    largest = Fraction(float(np.abs(np.where(scored, values, 0)).max()))
    bound = len(rows) ** 3 * largest / 2**122 + Fraction(len(rows), 2**1000)
    assert all(abs(one - other) <= bound for one, other in zip(found, exact, strict=True))
    order = list(range(len(rows)))
    random.shuffle(order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numpy, "TILE", 7)
        other, kept = values[order], scored[order]
        assert sums_by_fold(numpy, lambda start, stop: other[start:stop], kept) == found


HALF = np.arange(N // 2)
LISTED = "'smoothings' parameter of tune must be a list"
REFUSED = [
    *(
        ({"encoder": each}, TypeError, f"takes a TargetEncoder.*Got {type(each).__name__} instead")
        for each in (ge.CountEncoder(), Theirs(), "encoder")
    ),
    *(
        ({"per_column": each}, ValueError, "'per_column' parameter of tune must be one of True, False")
        for each in ("yes", 1, None)
    ),
    *(({"smoothings": each}, ValueError, LISTED) for each in ([], 5.0, "auto", {1.0})),
    *(
        ({"smoothings": [1.0, each]}, ValueError, r"parameter of (TargetEncoder|MEstimate) must be")
        for each in ("yes", -1.0, ge.MEstimate(-2.0), [1.0])
    ),
    (
        {"encoder": encoder(columns=["city"], hierarchy={"city": ["zip"]}), "smoothings": [ge.GLMM()]},
        ValueError,
        "takes no hierarchy",
    ),
    ({"encoder": encoder(cv=ge.LeaveOneOut()), "smoothings": [ge.GLMM()]}, ValueError, "which LeaveOneOut would ask"),
    *(
        ({"schemes": [ge.KFold(3), each]}, ValueError, f"which {type(each).__name__}, .*, has not.*KFold")
        for each in (ge.LeaveOneOut(), ge.Ordered(), ge.Greedy())
    ),
    *(
        (
            {"encoder": encoder(cv=[(seen, HALF), (HALF, np.arange(N // 2, N))])},
            ValueError,
            "in which rows see themselves",
        )
        for seen in (np.arange(N), np.arange(N // 2 + 1))
    ),
    *(({"schemes": each}, ValueError, "'schemes' parameter of tune must be a list") for each in ([], 5, ge.KFold(3))),
    ({"schemes": ["fold", ge.KFold(3)]}, ValueError, "read different columns"),
    ({"encoder": encoder(cv=ge.LeaveOneOut()), "folds": 1}, ValueError, "'n_splits' parameter of KFold"),
    ({"encoder": encoder(cv=purged(ROWS))}, TypeError, r"only once \(generator\).*Pass list\(cv\)"),
    ({"schemes": [purged(ROWS)]}, TypeError, r"only once \(generator\).*Pass list\(cv\)"),
    (
        {"encoder": ge.TargetEncoder(handle_unknown="nan"), "X": np.arange(20)[:, None], "y": SOLD[:20]},
        ValueError,
        "nothing to compare",
    ),
    ({"y": None}, ValueError, "requires y"),
]


@pytest.mark.parametrize(("changes", "error", "message"), REFUSED)
def test_what_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        ge.tune(**{"encoder": encoder(), "X": ROWS, "y": SOLD} | changes)


@pytest.mark.skipif(bool(ON_CUDA), reason="Dask knows nothing of the backend")
def test_partitions_of_dask():
    dd = pytest.importorskip("dask.dataframe")
    with pytest.raises(TypeError, match="not partitions of Dask"):
        ge.tune(encoder(), dd.from_pandas(ROWS, npartitions=2), SOLD)
