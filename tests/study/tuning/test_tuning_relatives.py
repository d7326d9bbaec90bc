"""`tune` of priors, of single columns, and of encoders related to `TargetEncoder`, compared with scores by row."""

import math
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone

import gpu_encode as ge
from gpu_encode.seam.ops import use_backend
from tests.study.tuning.test_tuning import AMOUNT, KIND, REAL, ROWS, SOLD, TARGETS, N, bits, encoder, score_one_by_one

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
FOLD = ROWS["fold"].to_numpy()
KEYS = ["city", ("zip", "city")]
GIVEN = {"columns": KEYS, "cv": "fold"}
FEW = [None, 2.0, 30.0, ge.PartialPooling()]
NUMBERS = [0.25, 1.0, 8.0, 200.0]


def columns_of(table, width):
    """Give the encodings of each key, `width` columns each, as rows of lists."""
    encodings = table.iloc[:, : 2 * width].to_numpy()
    return [encodings[:, :width].tolist(), encodings[:, width:].tolist()]


def check_scores(tuned, expected):
    np.testing.assert_allclose([score.log_likelihood for score in tuned.scores], expected, rtol=1e-10)
    assert tuned.best is tuned.scores[int(np.argmax(expected))]


def odds_of(label, weights):
    """Return the odds of a label among the other folds' rows, for each row."""
    mine = np.array([weights[(fold != FOLD) & label].sum() for fold in range(4)])
    all_others = np.array([weights[(fold != FOLD) & ~label].sum() for fold in range(4)])
    return (mine / all_others)[FOLD]


@pytest.mark.parametrize("weights", [None, REAL], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_evidence_is_scored_by_the_odds_that_it_gives(kind, weights):
    y, made = TARGETS[kind], ge.WeightOfEvidenceEncoder(**GIVEN)
    tuned = ge.tune(made, ROWS, y, smoothings=NUMBERS, sample_weight=weights)
    of_rows = np.ones(N) if weights is None else weights
    labels = [1] if kind == "binary" else list("xyz")
    expected = []
    for number in NUMBERS:
        table = clone(made).set_params(regularization=number).fit_transform(ROWS, y, sample_weight=weights)
        scores = []
        for evidence in columns_of(table, len(labels)):
            odds = [odds_of(y == label, of_rows) for label in labels]
            chances = [
                [o * math.exp(e) / (1 + o * math.exp(e)) for o, e in zip(per_label, row, strict=True)]
                for *per_label, row in zip(*odds, evidence, strict=True)
            ]
            scores.append(score_one_by_one(kind, y.tolist(), chances, of_rows.tolist()))
        expected.append(sum(scores) / 2)
    check_scores(tuned, expected)
    assert tuned.encoder.regularization == NUMBERS[int(np.argmax(expected))]


def shares_to_chances(above):
    """Return the probabilities of x, y and z from the shares of the rows above x, and above y."""
    return [[1 - first, first - second, second] for first, second in above]


@pytest.mark.parametrize(
    ("statistic", "kind"),
    [("mean", "binary"), ("mean", "continuous"), ("buckets", "multiclass"), ("borders", "multiclass")],
)
@pytest.mark.host
def test_ratios_are_scored_prior_by_prior(statistic, kind):
    y, priors = TARGETS[kind], [[0.25], (0.0, 0.5)]
    made = ge.CatBoostEncoder(statistic, **GIVEN, target_type=kind)
    tuned = ge.tune(made, ROWS, y, smoothings=NUMBERS, priors=priors)
    expected = []
    for of_priors, weight in product(priors, NUMBERS):
        scores = []
        for prior in of_priors:
            table = clone(made).set_params(priors=[prior], weight=weight).fit_transform(ROWS, y)
            width = {"borders": 2, "buckets": 3}.get(statistic, 1)
            for encodings in columns_of(table, width):
                chances = shares_to_chances(encodings) if statistic == "borders" else encodings
                scores.append(score_one_by_one(kind, y.tolist(), chances, [1] * N))
        expected.append(sum(scores) / len(scores))
    check_scores(tuned, expected)
    assert tuned.encoder.priors in priors
    assert tuned.encoder.cv == "fold"


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.host
def test_an_impact_is_scored_as_the_mean_that_it_is_made_of(kind):
    y = TARGETS[kind]
    tuned = ge.tune(ge.ImpactEncoder(**GIVEN), ROWS, y, smoothings=[0.0, None, *FEW[1:]])
    means = ge.tune(encoder(), ROWS, y, smoothings=[None, ge.PartialPooling(), *FEW[1:]])
    assert [score.by_fold for score in tuned.scores] == [score.by_fold for score in means.scores]
    assert ge.tune(ge.ImpactEncoder(**GIVEN), ROWS, y).scores[0].by_fold == tuned.scores[0].by_fold


@pytest.mark.parametrize("kind", ["binary", "continuous"])
@pytest.mark.host
def test_priors_are_those_of_encoders_that_have_them(kind):
    priors = [0.5, "mean", "category_mean"]
    tuned = ge.tune(encoder(), ROWS, TARGETS[kind], smoothings=FEW, priors=priors)
    alone = [ge.tune(encoder(prior=prior), ROWS, TARGETS[kind], smoothings=FEW) for prior in priors]
    assert [score.by_fold for score in tuned.scores] == [score.by_fold for one in alone for score in one.scores]
    assert (tuned.encoder.prior, tuned.encoder.smooth) == (tuned.best.prior, tuned.best.smoothing)
    assert tuned.as_dicts()[0]["prior"] == "0.5"
    assert repr(tuned).splitlines()[1].split()[:2] == ["smoothing", "prior"]


def test_a_prior_that_needs_no_rows_is_scored_on_the_rows_of_one_that_does():
    made = encoder(columns=["city"], cv=ge.TimeFolds(4, time="day"))
    scores = [
        ge.tune(made, ROWS, SOLD, smoothings=[2.0], priors=priors).scores for priors in (["mean", 0.5], [0.5, "mean"])
    ]
    assert [repr(score.by_fold) for score in scores[0]] == [repr(score.by_fold) for score in scores[1][::-1]]
    assert np.isnan(scores[0][1].by_fold[0])


COLUMNS = {
    "smoothings": (encoder(), SOLD, {"smoothings": FEW}, ("smooth",)),
    "smoothings and priors": (encoder(), AMOUNT, {"smoothings": FEW, "priors": ["mean", 0.5]}, ("smooth", "prior")),
    "impact": (ge.ImpactEncoder(**GIVEN), AMOUNT, {"smoothings": FEW[1:]}, ("smooth",)),
    "evidence": (ge.WeightOfEvidenceEncoder(**GIVEN), SOLD, {"smoothings": NUMBERS}, ("regularization",)),
    "catboost": (ge.CatBoostEncoder(**GIVEN), KIND, {"smoothings": NUMBERS}, ("weight",)),
}


@pytest.mark.parametrize(("made", "y", "given", "names"), COLUMNS.values(), ids=COLUMNS)
@pytest.mark.host
def test_each_column_by_itself_is_encoded_as_tuned_alone(made, y, given, names):
    tuned = ge.tune(made, ROWS, y, **given, per_column=True)
    table, first = tuned.encoder.fit_transform(ROWS, y), 0
    for key in KEYS:
        alone = ge.tune(clone(made).set_params(columns=[key]), ROWS, y, **given)
        for name in names:
            assert repr(getattr(tuned.encoder, name)[key]) == repr(getattr(alone.encoder, name))
        expected = alone.encoder.fit_transform(ROWS, y)
        width = len(expected.columns) - len(alone.encoder.fit(ROWS, y)._model.selection.passed)
        assert table.iloc[:, first : first + width].equals(expected.iloc[:, :width])
        first += width
    assert repr(ge.tune(made, ROWS, y, **given).encoder) != repr(tuned.encoder)


@pytest.mark.host
def test_columns_share_the_scheme_by_which_their_own_best_are_likeliest():
    schemes = [2, ge.KFold(9)]
    tuned = ge.tune(encoder(), ROWS, SOLD, smoothings=FEW, schemes=schemes, per_column=True)
    alone = [ge.tune(encoder(cv=cv), ROWS, SOLD, smoothings=FEW, per_column=True) for cv in schemes]
    means = [np.mean([score.log_likelihood for score in one.best_by_column.values()]) for one in alone]
    best = int(np.argmax(means))
    assert repr(tuned.encoder) == repr(alone[best].encoder.set_params(cv=schemes[best]))


def test_columns_without_names_are_named_by_position():
    tuned = ge.tune(
        ge.TargetEncoder(columns=[-1, (0, 1)]), ROWS[["city", "zip"]].to_numpy(object), SOLD, per_column=True
    )
    assert list(tuned.encoder.smooth) == [1, (0, 1)]


@pytest.mark.parametrize(("made", "y", "given"), [case[:3] for case in COLUMNS.values()], ids=COLUMNS)
def test_one_answer(made, y, given):
    expected = bits(ge.tune(made, ROWS, y, **given))
    pieces = [(0, 50), (50, 51), (51, N)]
    cut = [[rows[start:stop] for start, stop in pieces] for rows in (ROWS, y)]
    assert bits(ge.tune(made, *cut, **given)) == expected
    for name in ("numpy", "compiled"):
        with use_backend(name):
            assert bits(ge.tune(made, ROWS, y, **given)) == expected


@pytest.mark.parametrize(
    ("made", "given", "message"),
    [
        (ge.CatBoostEncoder("counter"), {}, "statistic='counter' of CatBoostEncoder reads no target"),
        (ge.ImpactEncoder(), {"priors": [0.5]}, "ImpactEncoder has no prior to choose"),
        (ge.TargetEncoder(), {"priors": []}, "'priors' parameter of tune must be a list"),
        (ge.TargetEncoder(), {"priors": ["median"]}, "'prior' parameter of TargetEncoder must be one of 'mean'"),
        (ge.WeightOfEvidenceEncoder(), {"smoothings": [-1.0]}, "'regularization' parameter of WeightOf"),
        (ge.ImpactEncoder(), {"smoothings": [ge.GLMM()]}, "'smooth' parameter of ImpactEncoder must be one of"),
    ],
)
def test_refusals(made, given, message):
    with pytest.raises(ValueError, match=message):
        ge.tune(made, ROWS[["city"]], SOLD, **given)


def test_evidence_takes_no_quantity():
    with pytest.raises(ValueError, match="WeightOfEvidenceEncoder"):
        ge.tune(ge.WeightOfEvidenceEncoder(), ROWS[["city"]], AMOUNT)


def test_priors_of_catboost_by_column():
    given = {"smoothings": [0.5, 8.0], "priors": [[0.25], [0.0, 1.0]]}
    together = ge.tune(ge.CatBoostEncoder(columns=["city", "zip"], cv=3), ROWS, SOLD, **given, per_column=True)
    for column in ("city", "zip"):
        alone = ge.tune(ge.CatBoostEncoder(columns=[column], cv=3), ROWS, SOLD, **given)
        assert together.encoder.priors[column] == alone.encoder.priors
        assert together.encoder.weight[column] == alone.encoder.weight
