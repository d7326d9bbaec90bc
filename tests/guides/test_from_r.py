"""The statements of `docs/from-r.md` about numbers, compared with the formulas of R's packages in plain loops."""

from math import exp, log

import numpy as np
import pytest

import gpu_encode as ge

pytestmark = pytest.mark.host
RANDOM = np.random.default_rng(11)
CITIES = RANDOM.choice([*"abcdefg"], 300, p=[0.3, 0.25, 0.2, 0.1, 0.07, 0.05, 0.03])
LEVELS = sorted(set(CITIES))
AMOUNT = RANDOM.normal(size=300) + np.char.equal(CITIES, "b") * 3
SOLD = np.where(RANDOM.random(300) < 0.2 + 0.1 * (np.unique(CITIES, return_inverse=True)[1] % 5), "yes", "no")
KIND = RANDOM.choice(["new", "old", "used"], 300)
X = CITIES[:, None].astype(object)
NEW = np.array([[level] for level in [*LEVELS, "unseen"]], object)


def of_level(level, y):
    return [value for city, value in zip(CITIES, y, strict=True) if city == level]


def mean(values):
    return sum(values) / len(values)


def variance(values):
    middle = mean(values)
    return sum((value - middle) ** 2 for value in values) / (len(values) - 1)


def logit(share):
    return log(share / (1 - share))


def new_rows(encoder, y):
    return encoder.fit(X, y).transform(NEW)


def assert_close(ours, theirs):
    np.testing.assert_allclose(np.ravel(ours), theirs, rtol=1e-12, atol=1e-12)


def test_lencode_without_smoothing():
    """No pooling: a level's mean, or the log-odds of the outcome's first level; a new level has those of all rows."""
    ours = new_rows(ge.TargetEncoder(smooth=None), AMOUNT)
    assert_close(ours, [*(mean(of_level(level, AMOUNT)) for level in LEVELS), mean(AMOUNT)])
    ours = new_rows(ge.TargetEncoder(smooth=None, scale="logit"), SOLD)
    shares = [*(mean([value == "no" for value in of_level(level, SOLD)]) for level in LEVELS), mean(SOLD == "no")]
    assert_close(-ours, list(map(logit, shares)))


def test_lencode_with_smoothing():
    """Partial pooling with the reciprocal of the ratio of variances: a statistic of the user's own."""
    of_all, variance_of_all = mean(AMOUNT), variance(AMOUNT)

    def lencode(count, mean, variance):
        own, others = count / variance_of_all, 1 / variance
        return (own * mean + others * of_all) / (own + others)

    theirs = [
        lencode(len(values), mean(values), variance(values)) for values in (of_level(level, AMOUNT) for level in LEVELS)
    ]
    ours = new_rows(ge.StatisticEncoder([lencode], handle_unknown=of_all), AMOUNT)
    assert_close(ours, [*theirs, of_all])


def test_lencode_glm():
    """No pooling by a linear model; of fewer than ten levels, a new one has the mean of the coefficients."""
    coefficients = [mean(of_level(level, AMOUNT)) for level in LEVELS]
    ours = new_rows(ge.TargetEncoder(smooth=None, prior="category_mean"), AMOUNT)
    assert_close(ours, [*coefficients, mean(coefficients)])


def test_lencode_mixed():
    """Partial pooling by a random intercept, which has a closed form where all levels have as many rows."""
    n_levels, n_rows = 6, 20
    shops = np.repeat(np.arange(n_levels), n_rows)
    y = RANDOM.normal(size=len(shops)) + shops % 3
    means = [mean(y[shops == shop]) for shop in range(n_levels)]
    within = mean([variance(y[shops == shop]) for shop in range(n_levels)])
    between = max(0.0, variance(means) - within / n_rows)
    share = n_rows * between / (n_rows * between + within)
    theirs = [share * own + (1 - share) * mean(y) for own in means]
    rows = np.arange(n_levels)[:, None]
    for smooth in (ge.GLMM(), ge.EmpiricalBayes("anova", pooled=True)):
        ours = ge.TargetEncoder(smooth=smooth, target_type="continuous").fit(shops[:, None], y).transform(rows)
        np.testing.assert_allclose(ours.ravel(), theirs, rtol=1e-12 if isinstance(smooth, ge.EmpiricalBayes) else 1e-9)


def test_woe():
    """Weight of evidence of the outcome's first level against the second."""
    pseudo, n_no, n_yes = 1e-6, int((SOLD == "no").sum()), int((SOLD == "yes").sum())
    theirs = []
    for level in LEVELS:
        no, yes = (of_level(level, SOLD).count(label) for label in ("no", "yes"))
        theirs.append(log(((no + pseudo) / (n_no + 2 * pseudo)) / ((yes + pseudo) / (n_yes + 2 * pseudo))))
    ours = new_rows(ge.WeightOfEvidenceEncoder(regularization=pseudo), SOLD)
    assert_close(-ours, [*theirs, 0.0])


@pytest.mark.parametrize("smoothing", [1e-4, 5.0])
def test_impact_of_a_quantity(smoothing):
    """mlr3pipelines' and mlrCPO's impact: the m-estimate less the mean; a new level has none (impute_zero)."""
    of_all = mean(AMOUNT)
    theirs = []
    for level in LEVELS:
        values = of_level(level, AMOUNT)
        theirs.append((sum(values) + smoothing * of_all) / (len(values) + smoothing) - of_all)
    assert_close(new_rows(ge.ImpactEncoder(["impact"], smooth=smoothing), AMOUNT), [*theirs, 0.0])
    assert_close(new_rows(ge.TargetEncoder(smooth=smoothing), AMOUNT) - of_all, [*theirs, 0.0])


@pytest.mark.parametrize(("y", "smoothing"), [(KIND, 1e-4), (KIND, 2.0), (SOLD, 0.5)])
def test_impact_of_classes(y, smoothing):
    """Log-odds of a class in a level less those of all rows; the latter have one pseudo-row less than evidence has."""
    labels = sorted(set(y))
    theirs = np.empty((len(LEVELS), len(labels)))
    evidence = np.empty_like(theirs)
    for column, label in enumerate(labels):
        rows = int((y == label).sum())
        of_all = log((rows + smoothing) / (len(y) - rows + smoothing))
        shares_of_all = log((rows + 2 * smoothing) / (len(y) - rows + 2 * smoothing))
        for row, level in enumerate(LEVELS):
            values = of_level(level, y)
            odds = log((values.count(label) + smoothing) / (len(values) - values.count(label) + smoothing))
            theirs[row, column], evidence[row, column] = odds - of_all, odds - shares_of_all
    ours = new_rows(ge.WeightOfEvidenceEncoder(regularization=smoothing), y)[:-1]
    wanted = evidence if len(labels) > 2 else evidence[:, 1:]
    assert_close(ours, wanted.ravel())
    # What differs is the same for all levels, and next to nothing for little smoothing.
    differences = (theirs if len(labels) > 2 else theirs[:, 1:]) - ours
    np.testing.assert_allclose(differences, np.broadcast_to(differences[0], differences.shape), atol=1e-12)
    assert np.abs(differences).max() < smoothing / min(int((y == label).sum()) for label in labels)


def test_impact_with_slope_and_trust():
    """autoxgboost's: Micci-Barreca's sigmoid of the number of rows."""
    slope, trust = 7.0, 30.0
    theirs = []
    for level in LEVELS:
        values = of_level(level, AMOUNT)
        share = 1 / (1 + exp(-(len(values) - trust) / slope))
        theirs.append(share * mean(values) + (1 - share) * mean(AMOUNT))
    assert_close(new_rows(ge.TargetEncoder(smooth=ge.Sigmoid(trust, slope)), AMOUNT), [*theirs, mean(AMOUNT)])
