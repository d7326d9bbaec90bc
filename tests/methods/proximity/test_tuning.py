"""Every step of the tuning, compared with plain loops."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from gpu_encode import ProximityClassifier, ProximityEncoder, ProximityRegressor
from gpu_encode.methods.proximity import encoder as encoders
from gpu_encode.methods.proximity import folding, histogram, tuning
from gpu_encode.seam import ops
from tests.backends import ON_CUDA
from tests.methods.proximity import definition

N = 9 if ON_CUDA else 12
SEEDS = range(1 if ON_CUDA else 3)


def draw(seed, n_classes=2):
    random = np.random.default_rng(seed)
    table = random.integers(0, 3, (N, 3))
    return table, (table[:, 0] + table[:, 1] + random.integers(0, 2, N)) % n_classes


def as_rows(table):
    return [tuple(row) for row in table.tolist()]


def check(encoder, table, y, judge, degree, least=0.0):
    numbers, path = definition.tune(as_rows(table), y, encoder.order, judge, encoder.tol, degree, least)
    n_subsets = len(encoder.weights_)
    assert encoder.path_ == path
    assert encoder.weights_.tolist() == numbers[:n_subsets]
    assert encoder.degree_ == (numbers[-1] if degree is None else degree)
    assert path, "nothing was gained"


# Steps of the degree stay whole, so that strengths are exact.
@pytest.mark.parametrize(("degree", "tol"), [(1.0, 0.25), (2.0, 0.5), (None, 1.0)])
@pytest.mark.parametrize("seed", SEEDS)
def test_shares_of_two_classes(backend, way, seed, degree, tol):
    table, y = draw(seed)
    encoder = ProximityEncoder(degree=degree or "tune", tol=tol).fit(table, y)

    def judge(weights, power):
        def score(query, X, y):
            return definition.ratio(query, X, y, weights, power, 1)

        return definition.area(definition.leave_one_out(as_rows(table), y.tolist(), score), y.tolist(), 1)

    check(encoder, table, y, judge, degree)


def test_means_of_a_quantity(backend, way):
    table, _ = draw(4)
    y = np.random.default_rng(4).integers(-9, 9, N) / 4 + table[:, 2]
    encoder = ProximityEncoder(degree=1.0, tol=0.5, target_type="continuous").fit(table, y)

    def judge(weights, power):
        def score(query, X, y):
            return definition.ratio(query, X, y, weights, power)

        return -definition.squared_error(definition.leave_one_out(as_rows(table), y.tolist(), score), y.tolist())

    check(encoder, table, y, judge, 1.0, 1e-6)


@pytest.mark.parametrize("unit", [2.0**-700, 2.0**700])
def test_the_unit_of_a_quantity_plays_no_part(backend, unit):
    table, _ = draw(4)
    y = np.random.default_rng(4).integers(-9, 9, N) / 4 + table[:, 2]
    plain, scaled = (ProximityEncoder(degree=1.0, target_type="continuous").fit(table, each) for each in (y, y * unit))
    assert plain.path_
    assert scaled.weights_.tolist() == plain.weights_.tolist()


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("degree", [0.75, 2.5, None])
def test_a_raised_number_gives_the_scores_of_all_patterns(backend, way, blocks, degree, monkeypatch):
    """Raised weights are added to sums that are folded by subset; the same scores follow from all patterns."""
    if blocks:
        monkeypatch.setattr(folding, "MOST_ENTRIES", 1)
        monkeypatch.setattr(histogram, "MOST_CELLS", 40)
    compared, raise_each = set(), tuning.RaisedVotes.scores

    def compare(votes, weights, power, step):
        to_host = votes._cases.electorate.rows.ops.to_host
        for number, scores in enumerate(raise_each(votes, weights, power, step)):
            expected = votes.score(weights + step * np.eye(len(weights))[number], power)
            np.testing.assert_allclose(to_host(scores), to_host(expected), rtol=1e-13)
            compared.add((number, power != 1))
            yield scores

    monkeypatch.setattr(tuning.RaisedVotes, "scores", compare)
    table, y = draw(9, 3)
    y[:3] = [0, 1, 2]
    ProximityEncoder(order=2, degree=degree or "tune", tol=0.5).fit(table, y)
    assert {number for number, _ in compared} == set(range(7))
    assert degree is None or all(fractional for _, fractional in compared)


@pytest.mark.parametrize("degree", [1.5, "tune"])
def test_blocks_of_queries_change_no_bit(backend, way, degree, monkeypatch):
    table, y = draw(10)
    whole = ProximityEncoder(degree=degree).fit(table, y)
    monkeypatch.setattr(folding, "MOST_ENTRIES", 1)
    monkeypatch.setattr(histogram, "MOST_CELLS", 40)
    in_blocks = ProximityEncoder(degree=degree).fit(table, y)
    assert whole.path_
    assert (in_blocks.path_, in_blocks.degree_) == (whole.path_, whole.degree_)
    assert in_blocks.weights_.tolist() == whole.weights_.tolist()


def test_several_classes_by_the_mean_of_their_areas(backend):
    table, y = draw(5, 3)
    encoder = ProximityEncoder(degree=1.0, tol=0.5).fit(table, y)

    def judge(weights, power):
        areas = []
        for label in range(3):

            def score(query, X, y, label=label):
                return definition.ratio(query, X, y, weights, power, label)

            areas.append(
                definition.area(definition.leave_one_out(as_rows(table), y.tolist(), score), y.tolist(), label)
            )
        return sum(areas) / 3

    check(encoder, table, y, judge, 1.0)


def test_differences_find_what_two_features_tell_together(backend):
    random = np.random.default_rng(6)
    table = random.integers(0, 3, (N * 4, 2))
    y = (table[:, 0] == table[:, 1]).astype(int)
    encoder = ProximityEncoder(form="difference").fit(table, y)
    assert encoder.degree_ == 1
    assert dict(zip(encoder.subsets_, encoder.weights_, strict=True))["x0", "x1"] > 0
    assert ((encoder.transform(table)[:, 0] > 0) == y).all()


def test_rows_that_are_scored_are_a_sample(backend):
    table, y = draw(7)
    whole = ProximityEncoder().fit(table, y)
    assert ProximityEncoder(tuning_rows=N).fit(table, y).path_ == whole.path_
    some = ProximityEncoder(tuning_rows=N // 2, random_state=1)
    assert some.fit(table, y).path_ == some.fit(table, y).path_
    assert some.path_ != whole.path_


@pytest.mark.parametrize("make", [ProximityEncoder, ProximityClassifier])
def test_many_rows_are_tuned_on_a_sample_unless_all_are_asked_for(backend, make, monkeypatch):
    table, y = draw(7)
    monkeypatch.setattr(encoders, "TUNING_ROWS", N // 2)

    def path(**parameters):
        fitted = make(random_state=1, **parameters).fit(table, y)
        return getattr(fitted, "encoder_", fitted).path_

    assert path() == path(tuning_rows=N // 2) != path(tuning_rows=None)
    with pytest.raises(ValueError, match=r"'tuning_rows' parameter .* must be .auto. or a whole number above 0"):
        path(tuning_rows="all")


@pytest.mark.parametrize("target_type", ["binary", "continuous"])
def test_rows_that_weigh_nothing_tune_nothing(backend, target_type):
    table, y = draw(7)
    weight = np.where(np.arange(N) < 1, 1.0, 0.0)
    for seed in range(4):
        encoder = ProximityEncoder(tuning_rows=1, random_state=seed, target_type=target_type)
        assert encoder.fit(table, y, sample_weight=weight).path_ == []


def test_one_class_tunes_nothing(backend):
    encoder = ProximityEncoder(target_type="binary").fit([["a"], ["b"]], [1, 1])
    assert encoder.path_ == []


def test_weights_count_pairs_exactly(backend):
    """A power of two rounds nothing; all other fractions are counted in one unit, too."""
    table, y = draw(8)
    weight = np.random.default_rng(8).integers(1, 9, N)
    tuned = {
        name: ProximityEncoder(degree=1.0).fit(table, y, sample_weight=given)
        for name, given in {"whole": weight, "eighths": weight / 8, "thirds": weight / 3}.items()
    }
    assert tuned["whole"].path_
    assert tuned["eighths"].path_ == tuned["whole"].path_
    assert tuned["thirds"].weights_.tolist() == tuned["whole"].weights_.tolist()

    def judge(weights, power):
        scores = []
        for row in range(N):
            others = [other for other in range(N) if other != row]
            rows, targets, each = (
                [of[other] for other in others] for of in (as_rows(table), y.tolist(), weight.tolist())
            )
            scores.append(definition.ratio(as_rows(table)[row], rows, targets, weights, power, 1, each))
        return definition.area(scores, y.tolist(), 1, weight.tolist())

    check(tuned["whole"], table, y, judge, 1.0)


@pytest.mark.host
@pytest.mark.parametrize("n_measures", [1, 2, 3])
@pytest.mark.parametrize("order", [1, 3, 5])
def test_the_kernel_folds_as_array_expressions_do(n_measures, order):
    rng = np.random.default_rng([n_measures, order])
    # Sorted by query, then pattern; each query has each pattern at most once.
    found = np.flatnonzero(rng.random(20 * 31) < 0.4)
    query, pattern = found // 31, found % 31
    masks = np.array(sorted(mask for mask in range(32) if mask.bit_count() <= order))
    lies = np.append(rng.permutation(len(found)), len(found))
    block = folding.fold(ops.load("cpu_fallback"), pattern, query, lies, masks)
    values = np.vstack([rng.normal(size=(len(found), n_measures)), np.zeros(n_measures)])
    expected = folding.fold_sums(values, block.steps, block.ends)
    np.testing.assert_array_equal(
        ops.load("cpu_fallback.compiled").fused.fold_sums(values, block.steps, block.ends), expected
    )
    # Each sum is that of the entries of its query that have the subset.
    assert len(block.queries) == len(expected)
    for subset, begin, end in zip(masks, block.bounds, block.bounds[1:], strict=False):
        for query_of_sum, total in zip(block.queries[begin:end], expected[begin:end], strict=True):
            own = lies[:-1][(query == query_of_sum) & (pattern & subset == subset)]
            np.testing.assert_allclose(total, values[own].sum(axis=0), rtol=1e-12, atol=1e-12)


@pytest.mark.host
def test_a_tuning_has_an_end():
    """The degree of these rows may rise for ever, by less and less."""
    random = np.random.RandomState(0)
    table = random.uniform(size=(56, 10)).round()[:, :9]
    y = random.permutation(np.repeat(np.arange(4), 14))
    with pytest.warns(ConvergenceWarning, match="Weights still rise after max_rounds=200 rounds"):
        ends = ProximityRegressor().fit(table, y)
    assert 150 < len(ends.encoder_.path_) <= 200
    with pytest.warns(ConvergenceWarning, match="max_rounds=20 rounds"):
        few = ProximityRegressor(max_rounds=20).fit(table, y)
    assert ends.encoder_.path_[: len(few.encoder_.path_)] == few.encoder_.path_


@pytest.mark.host
@pytest.mark.parametrize("make", [ProximityEncoder, ProximityClassifier, ProximityRegressor])
def test_a_tuning_takes_few_rounds_where_a_round_takes_long(make, monkeypatch):
    table, y = draw(5)
    additions = property(lambda _: 1000)
    monkeypatch.setattr(tuning.RaisedVotes, "additions", additions)
    monkeypatch.setattr(tuning, "MOST_ADDITIONS", 3999)
    with pytest.warns(ConvergenceWarning, match="max_rounds=3 rounds"):
        make().fit(table, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A user's own limit counts alone.
        make(max_rounds=1000).fit(table, y)


@pytest.mark.host
@pytest.mark.parametrize("make", [ProximityEncoder, ProximityClassifier, ProximityRegressor])
@pytest.mark.parametrize(("n_features", "order"), [(62, 62), (40, 5), (17, 17)])
def test_more_subsets_than_can_be_weighed_are_refused(make, n_features, order):
    with pytest.raises(ValueError, match=f"weighs up to 65,536 subsets.*up to order={order}. Lower order"):
        make(order=order).fit(np.zeros((4, n_features), int), [0, 1, 0, 1])
