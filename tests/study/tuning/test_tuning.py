"""`tune`, compared with its definition: fit for every value, encode the held-out rows, score them one by one."""

import math
from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import KFold as TheirKFold
from sklearn.preprocessing import TargetEncoder as Theirs

import gpu_encode as ge
from gpu_encode.fitting import columns, key_sums
from gpu_encode.fitting.tasks import EncodingTask
from gpu_encode.seam import ops as seam
from gpu_encode.seam.ops import use_backend
from gpu_encode.study.tuning import choice
from gpu_encode.study.tuning.candidates import default_smoothings
from gpu_encode.study.tuning.distinct_counts import DistinctCounts
from gpu_encode.study.tuning.sums import sums_by_fold
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
SOLD = (RNG.random(N) < np.array([RATE[city] for city in CITY])).astype(np.int64)
AMOUNT = np.array([RATE[city] for city in CITY]) * 3 + RNG.normal(size=N).round(3)
KIND = np.array(["x", "y", "z"])[np.minimum(SOLD + RNG.integers(0, 2, N), 2)]
TARGETS = {"binary": SOLD, "continuous": AMOUNT, "multiclass": KIND}
WHOLE = RNG.integers(1, 4, N)
REAL = RNG.random(N) + 0.25
OF_CATEGORIES = [ge.EmpiricalBayes("between"), ge.JamesStein(), ge.PartialPooling(), ge.GLMM()]
SMOOTHINGS = [None, 0.5, ge.MEstimate(10.0), ge.Sigmoid(5.0, 2.0), "auto", *OF_CATEGORIES]


CITY = {"columns": ["city"]}


def encoder(**parameters):
    return ge.TargetEncoder(**({"columns": ["city", ("zip", "city")], "cv": "fold"} | parameters))


def score_one_by_one(kind, y, table, weights):
    """Return the log-likelihood per unit of weight, in plain Python, without rows whose encoding is NaN."""
    labels = sorted(set(y))
    rows = [entry for entry in zip(y, table, weights, strict=True) if not np.isnan(entry[1][0])]
    total = sum(weight for *_, weight in rows)
    if kind == "continuous":
        error = math.fsum(weight * (target - encodings[0]) ** 2 for target, encodings, weight in rows) / total
        return -0.5 * (math.log(2 * math.pi * error) + 1)
    scores = []
    for label, encodings, weight in rows:
        chances = [min(max(encoding, 1e-15), 1 - 1e-15) for encoding in encodings]
        chances = [1 - chances[0], *chances] if kind == "binary" else [chance / sum(chances) for chance in chances]
        scores.append(weight * math.log(chances[labels.index(label)]))
    return math.fsum(scores) / total


def score_training(made, X, kind, weights=None, **given):
    """Score training encodings, which come from fits on the other folds, and average the columns."""
    y, scores = TARGETS[kind], []
    table = clone(made).set_params(target_type=kind).fit_transform(X, y, sample_weight=weights, **given)
    for column in made.columns:
        name = column if isinstance(column, str) else "_x_".join(column)
        names = [f"{name}_{label}" for label in "xyz"] if kind == "multiclass" else [name]
        weight = [1] * N if weights is None else weights.tolist()
        scores.append(score_one_by_one(kind, y.tolist(), table[names].to_numpy().tolist(), weight))
    return sum(scores) / len(scores)


def check_ranking(tuned, expected):
    """Demand scores equal up to their last digits, in the same order unless they differ only there."""
    scores = [score.log_likelihood for score in tuned.scores]
    np.testing.assert_allclose(scores, expected, rtol=1e-11)
    for i, j in combinations(range(len(scores)), 2):
        if abs(expected[i] - expected[j]) > 1e-10:
            assert (scores[i] > scores[j]) == (expected[i] > expected[j])


@pytest.mark.parametrize("weights", [None, WHOLE, REAL], ids=["unweighted", "whole", "real"])
@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.long
def test_scores_are_those_of_encoding_with_every_value(kind, weights):
    smoothings = SMOOTHINGS if weights is None and kind != "multiclass" else SMOOTHINGS[:-1]
    tuned = ge.tune(encoder(), ROWS, TARGETS[kind], smoothings=smoothings, sample_weight=weights)
    expected = [score_training(encoder(smooth=smooth), ROWS, kind, weights) for smooth in smoothings]
    check_ranking(tuned, expected)
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


FOUR = [None, 2.0, "auto", ge.PartialPooling()]


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.long
def test_policies_and_levels(policy, kind):
    made, X = encoder(**POLICIES[policy]), ROWS.astype({"zip": str})
    tuned = ge.tune(made, X, TARGETS[kind], smoothings=FOUR)
    plain = clone(made).set_params(drop=None, dtype="float64", indicators=False, scale="identity")
    check_ranking(tuned, [score_training(plain.set_params(smooth=smooth), X, kind) for smooth in FOUR])


def purge(X, y=None, groups=None):
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
    "splits": (list(purge(ROWS)), {}),
}


# A quantity has no classes to stratify by.
SCORED = [case for case in product(["binary", "continuous"], SCHEMES) if case != ("continuous", "stratified")]


@pytest.mark.parametrize(("kind", "scheme"), SCORED)
@pytest.mark.filterwarnings("ignore:.*rows see no rows at all")
@pytest.mark.long
def test_schemes_are_scored_by_their_training_encodings(scheme, kind):
    cv, given_beside = SCHEMES[scheme]
    tuned = ge.tune(encoder(**CITY, cv=cv), ROWS, TARGETS[kind], smoothings=FOUR, **given_beside)
    plain = encoder(**CITY, cv=ge.KFold(3) if scheme == "blow-up" else cv)
    check_ranking(
        tuned, [score_training(plain.set_params(smooth=smooth), ROWS, kind, **given_beside) for smooth in FOUR]
    )
    assert tuned.encoder.cv is cv or type(tuned.encoder.cv) is type(cv)


@pytest.mark.parametrize("kind", ["binary", "continuous"])
def test_folds_and_their_standard_error(kind):
    y = TARGETS[kind]
    (score,) = ge.tune(encoder(**CITY), ROWS, y, smoothings=[3.0]).scores
    encodings = encoder(**CITY, smooth=3.0).fit_transform(ROWS, y)["city"].to_numpy()
    error = np.mean((y - encodings) ** 2)
    if kind == "binary":
        by_row = np.where(y == 1, np.log(encodings), np.log(1 - encodings))
    else:
        by_row = -0.5 * (math.log(2 * math.pi * error) + (y - encodings) ** 2 / error)
        assert score.squared_error == pytest.approx(error, rel=1e-12)
    by_fold = pd.Series(by_row).groupby(ROWS["fold"]).mean()
    np.testing.assert_allclose(score.by_fold, by_fold, rtol=1e-11)
    assert score.log_likelihood == pytest.approx(by_row.mean(), rel=1e-12)
    assert score.standard_error == pytest.approx(by_fold.std() / 2, rel=1e-9)


@pytest.mark.filterwarnings("ignore:.*rows see no rows at all")
def test_a_fold_that_sees_nothing_is_left_out():
    (score,) = ge.tune(encoder(**CITY, cv=ge.TimeFolds(4, time="day")), ROWS, SOLD, smoothings=[1.0]).scores
    assert np.isnan(score.by_fold).tolist() == [True, False, False, False]
    assert score.standard_error > 0


def bits(tuned):
    return [
        (repr(score.smoothing), score.log_likelihood.hex(), score.standard_error.hex(), *map(float.hex, score.by_fold))
        for score in tuned.scores
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
    tuned, expected = (
        ge.tune(encoder(), ROWS, TARGETS[kind], smoothings=[None], sample_weight=REAL * factor)
        for factor in (2.0**power, 1.0)
    )
    assert bits(tuned) == bits(expected)


@pytest.mark.host
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
@pytest.mark.parametrize("weights", [None, 1 + np.arange(N) % 2], ids=["unweighted", "whole"])
def test_categories_that_are_alike_are_scored_as_one(kind, weights, monkeypatch):
    X = np.random.default_rng(3).integers(0, 400, (N, 1))
    scores, grouped = [], []
    of = DistinctCounts.of

    def group(views):
        grouped.append(of(views))
        return grouped[-1]

    for rule in (group, lambda views: None):
        monkeypatch.setattr(DistinctCounts, "of", staticmethod(rule))
        tuned = ge.tune(ge.TargetEncoder(), X, TARGETS[kind], smoothings=FEW, sample_weight=weights)
        scores.append([score.by_fold for score in tuned.scores])
    assert len(grouped[0].first) < len(np.unique(X)) / 2 + 2
    np.testing.assert_allclose(*scores, rtol=1e-12)


@pytest.mark.host
@pytest.mark.parametrize("weights", [None, WHOLE, REAL], ids=["unweighted", "whole", "real"])
@pytest.mark.parametrize("kind", TARGETS)
def test_many_keys_are_summed_together_and_scored_as_each_alone(kind, weights, monkeypatch):
    names = [*ROWS, "half"]
    X = ROWS.assign(half=ROWS["zip"] // 14)
    keys = [*names, *combinations(names, 2), *combinations(names, 3)]
    together, sum_together = [], key_sums.sum_together
    monkeypatch.setattr(key_sums, "sum_together", lambda *given: together.append(sum_together(*given)) or together[-1])

    def answer(at_a_time, fewest):
        monkeypatch.setattr(choice, "KEYS_AT_A_TIME", at_a_time)
        monkeypatch.setitem(columns.FEWEST_ON, "cpu", fewest)
        made = ge.TargetEncoder(columns=keys, cv=ge.KFold(3))
        with use_backend("compiled"):
            tuned = ge.tune(made, X, TARGETS[kind], smoothings=FEW, sample_weight=weights, per_column=True)
        return repr((tuned.scores, tuned.by_column, tuned.encoder))

    expected = answer(64, 10**9)
    assert sum(map(len, together)) == 0
    assert answer(64, 3) == expected
    # Keys with too many cells are left out.
    assert len(together[-1]) >= len(keys) - 2
    assert answer(4, 3) == expected
    assert max(map(len, together[2:])) == 4


@pytest.mark.parametrize("weights", [None, WHOLE], ids=["unweighted", "whole"])
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_areas_are_those_of_encoded_rows(kind, weights):
    """Each pair of rows of a fold is compared, in plain Python."""
    y, made = TARGETS[kind], encoder(target_type=kind)
    each = np.ones(N, int) if weights is None else weights
    tuned = ge.tune(made, ROWS, y, smoothings=FEW, sample_weight=weights, per_column=True, scoring="roc_auc")
    for position, key in enumerate(made.columns):
        alone = [*tuned.by_column.values()][position]
        for score in alone:
            one = clone(made).set_params(columns=[key], smooth=score.smoothing)
            table = one.fit_transform(ROWS, y, sample_weight=weights)
            name, labels = key if isinstance(key, str) else "_x_".join(key), [1] if kind == "binary" else [*"xyz"]
            encoded = table[[name] if kind == "binary" else [f"{name}_{label}" for label in labels]].to_numpy()
            by_fold = []
            for fold in range(4):
                own = np.flatnonzero(ROWS["fold"] == fold)
                areas = [area_of(encoded[own, i], y[own] == label, each[own]) for i, label in enumerate(labels)]
                by_fold.append(sum(areas) / len(areas))
            assert score.roc_auc == sum(by_fold) / 4


def area_of(scores, positive, weight):
    """Return the share of pairs, by weight, whose positive row has the higher score; equal scores count half."""
    above, below = np.flatnonzero(positive), np.flatnonzero(~positive)
    won = [
        weight[i] * weight[j] * (2 * (scores[i] > scores[j]) + (scores[i] == scores[j])) for i in above for j in below
    ]
    return int(sum(won)) / int(2 * weight[above].sum() * weight[below].sum())


@pytest.mark.host
def test_the_best_area_is_chosen():
    tuned = ge.tune(encoder(), ROWS, SOLD, smoothings=FEW, scoring="roc_auc")
    areas = [score.roc_auc for score in tuned.scores]
    assert tuned.best.roc_auc == max(areas)
    assert len(set(areas)) > 1
    assert "roc_auc" in repr(tuned)
    assert [row["roc_auc"] for row in tuned.as_dicts()] == areas
    by_likelihood = ge.tune(encoder(), ROWS, SOLD, smoothings=FEW)
    assert bits(by_likelihood) == bits(tuned)
    assert "roc_auc" not in repr(by_likelihood)


@pytest.mark.host
def test_areas_need_classes():
    (score,) = ge.tune(encoder(), ROWS, np.ones(N, int), smoothings=[1.0], scoring="roc_auc").scores
    assert math.isnan(score.roc_auc)
    with pytest.raises(ValueError, match="of tune needs classes"):
        ge.tune(encoder(), ROWS, AMOUNT, scoring="roc_auc")
    with pytest.raises(ValueError, match="scoring"):
        ge.tune(encoder(), ROWS, SOLD, scoring="accuracy")


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
    schemes, given = [2, ge.KFold(12), ge.GroupKFold(3)], {"smoothings": [1.0, 30.0], "groups": ROWS["day"]}
    tuned = ge.tune(encoder(**CITY), ROWS, SOLD, schemes=schemes, **given)
    assert [(score.scheme, score.smoothing) for score in tuned.scores] == list(product(schemes, (1.0, 30.0)))
    for cv in schemes:
        alone = ge.tune(encoder(**CITY, cv=cv), ROWS, SOLD, **given)
        scores = [score.by_fold for score in tuned.scores if score.scheme is cv]
        assert scores == [score.by_fold for score in alone.scores]
    assert repr(tuned.encoder.cv) == repr(tuned.best.scheme)


@pytest.mark.parametrize("cv", [ge.Ordered(), ge.LeaveOneOut(), ge.Greedy()])
def test_schemes_without_folds_are_kept_and_measured_by_folds(cv):
    tuned = ge.tune(encoder(**CITY, cv=cv), ROWS, SOLD, smoothings=FEW, folds=3)
    assert bits(tuned) == bits(ge.tune(encoder(**CITY, cv=ge.KFold(3)), ROWS, SOLD, smoothings=FEW))
    assert type(tuned.encoder.cv) is type(cv)


def test_columns_alone():
    tuned = ge.tune(encoder(), ROWS, SOLD, smoothings=FEW, per_column=True)
    assert list(tuned.by_column) == ["city", "zip_x_city"]
    for column, scores in zip(["city", ("zip", "city")], tuned.by_column.values(), strict=True):
        alone = ge.tune(encoder(columns=[column]), ROWS, SOLD, smoothings=FEW)
        assert scores == alone.scores
        assert tuned.best_by_column[list(tuned.by_column)[column != "city"]] == alone.best
        assert tuned.encoder.smooth[column] is alone.encoder.smooth
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
    def tune(y):
        tuned = ge.tune(encoder(), ROWS, y, smoothings=FEW)
        return tuned.encoder.smooth, np.array([score.log_likelihood for score in tuned.scores])

    smooth, scores = tune(AMOUNT)
    for power in (-800, 600):
        other, scaled = tune(AMOUNT * 2.0**power)
        assert other is smooth
        np.testing.assert_allclose(scaled, scores - power * math.log(2), rtol=1e-13)
    np.testing.assert_allclose(tune(AMOUNT + 2.0**30)[1], scores, rtol=1e-6)


def test_a_constant_target():
    tuned = ge.tune(encoder(), ROWS, np.full(N, 2.5), smoothings=FEW)
    assert [score.log_likelihood for score in tuned.scores] == [math.inf] * len(FEW)
    assert {(score.standard_error, score.squared_error) for score in tuned.scores} == {(0.0, 0.0)}
    assert tuned.encoder.smooth is None
    tuned = ge.tune(encoder(), ROWS, np.full(N, 1), smoothings=FEW)
    assert all(-1e-14 < score.log_likelihood <= 0 for score in tuned.scores)


class Broken(ge.MEstimate):
    """A smoothing without an encoding for some categories."""

    def weights(self, seen, context):
        own, other = super().weights(seen, context)
        return np.where(seen.n > 20, own, np.nan), other


@pytest.mark.parametrize("y", [SOLD, AMOUNT])
def test_a_smoothing_that_lacks_encodings_comes_last(y):
    tuned = ge.tune(encoder(), ROWS, y, smoothings=[100.0, Broken()])
    assert tuned.scores[1].log_likelihood == -math.inf
    assert tuned.encoder.smooth == 100.0
    if y is SOLD:
        by_area = ge.tune(encoder(), ROWS, y, smoothings=[100.0, Broken()], scoring="roc_auc")
        assert by_area.scores[1].roc_auc == -math.inf
        assert by_area.encoder.smooth == 100.0


@given(st.lists(st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3), min_size=1, max_size=40), st.randoms())
def test_sums_know_no_order(rows, random):
    numpy, values = seam.host(0), np.array(rows)
    scored = values < 500
    sums = sums_by_fold(numpy, lambda start, stop: values[start:stop], scored)
    exact = [sum(map(Fraction, column[kept].tolist())) for column, kept in zip(values.T, scored.T, strict=True)]
    largest = Fraction(float(np.abs(np.where(scored, values, 0)).max()))
    bound = len(rows) ** 3 * largest / 2**122 + Fraction(len(rows), 2**1000)
    assert all(abs(one - other) <= bound for one, other in zip(sums, exact, strict=True))
    order = list(range(len(rows)))
    random.shuffle(order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numpy, "TILE", 7)
        other, kept = values[order], scored[order]
        assert sums_by_fold(numpy, lambda start, stop: other[start:stop], kept) == sums


HALF = np.arange(N // 2)
GENERATOR = r"only once \(generator\).*Pass list\(cv\)"
LEAVE_ONE_OUT = encoder(cv=ge.LeaveOneOut())
LEVELS = encoder(**CITY, hierarchy={"city": ["zip"]})
VOID = {"encoder": ge.TargetEncoder(handle_unknown="nan"), "X": np.arange(20)[:, None], "y": SOLD[:20]}
WRONG = {
    "'per_column' parameter of tune must be one of True, False": [{"per_column": value} for value in ("yes", 1, None)],
    "'smoothings' parameter of tune must be a list": [{"smoothings": value} for value in ([], 5.0, "auto", {1.0})],
    r"parameter of (TargetEncoder|MEstimate) must be": [
        {"smoothings": [1.0, value]} for value in ("yes", -1.0, ge.MEstimate(-2.0), [1.0])
    ],
    "takes no hierarchy": [{"encoder": LEVELS, "smoothings": [ge.GLMM()]}],
    "with LeaveOneOut, it would": [{"encoder": LEAVE_ONE_OUT, "smoothings": [ge.GLMM()]}],
    **{
        f"but {type(cv).__name__}, .*, has none.*KFold": [{"schemes": [ge.KFold(3), cv]}]
        for cv in (ge.LeaveOneOut(), ge.Ordered(), ge.Greedy())
    },
    "in which rows see themselves": [
        {"encoder": encoder(cv=[(np.arange(size), HALF), (HALF, np.arange(N // 2, N))])} for size in (N, N // 2 + 1)
    ],
    "'schemes' parameter of tune must be a list": [{"schemes": value} for value in ([], 5, ge.KFold(3))],
    "read different columns": [{"schemes": ["fold", ge.KFold(3)]}],
    "'n_splits' parameter of KFold": [{"encoder": LEAVE_ONE_OUT, "folds": 1}],
    "nothing to compare": [VOID],
    "requires y": [{"y": None}],
}
WRONG_TYPES = {
    **{
        f"takes one of TargetEncoder.*Got {type(value).__name__} instead": [{"encoder": value}]
        for value in (ge.CountEncoder(), Theirs(), "encoder")
    },
    GENERATOR: [{"encoder": encoder(cv=purge(ROWS))}, {"schemes": [purge(ROWS)]}],
}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (changes, error, message)
        for error, wrong in ((ValueError, WRONG), (TypeError, WRONG_TYPES))
        for message, cases in wrong.items()
        for changes in cases
    ],
)
def test_what_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        ge.tune(**{"encoder": encoder(), "X": ROWS, "y": SOLD} | changes)


@pytest.mark.skipif(bool(ON_CUDA), reason="Dask knows nothing of the backend")
def test_partitions_of_dask():
    dd = pytest.importorskip("dask.dataframe")
    with pytest.raises(TypeError, match="not partitions of Dask"):
        ge.tune(encoder(), dd.from_pandas(ROWS, npartitions=2), SOLD)


def test_progress_counts_rows_once_for_each_column_output_and_scheme():
    told = []
    columns, schemes = ["city", "zip"], [ge.KFold(3), ge.KFold(4)]
    given = {"smoothings": [1.0], "schemes": schemes}
    alone = ge.tune(encoder(columns=columns), ROWS, KIND, **given)
    shown = ge.tune(encoder(columns=columns), ROWS, KIND, **given, progress=lambda *told_now: told.append(told_now))
    assert [score.log_likelihood for score in shown.scores] == [score.log_likelihood for score in alone.scores]
    reading, scoring = told[:2], told[2:]
    assert reading == [("reading", 0, 0), ("reading", N, 0)]
    assert scoring == [("scoring", done * N, 4 * N) for done in range(5)]
