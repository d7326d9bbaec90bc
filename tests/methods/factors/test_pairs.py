"""Sums of pairs of categories equal those of plain loops, and parts add up to the same bits."""

from fractions import Fraction

import numpy as np
import pytest

from gpu_encode import CooccurrenceEncoder, SpectralEncoder
from gpu_encode.sums import pairs
from tests.bits import assert_same_bits
from tests.methods.factors.drawn import FRESH, WEIGHTS, N, X

CUTS = [(0, 7), (7, 60), (60, N)]


def count_by_loops(first, second, weights):
    """Weigh every pair of values, exactly and then rounded once."""
    counts = {}
    for one, other, weight in zip(first, second, weights, strict=True):
        counts[one, other] = counts.get((one, other), 0) + Fraction(float(weight))
    return {pair: float(weight) for pair, weight in counts.items() if weight}


def in_parts(encoder, weights, order=(0, 1, 2)):
    """Fit one encoder for each part, and merge them."""
    fitted = []
    for start, stop in (CUTS[number] for number in order):
        part = type(encoder)(**encoder.get_params())
        fitted.append(part.partial_fit(X[start:stop], sample_weight=None if weights is None else weights[start:stop]))
    return fitted[0].merge(*fitted[1:])


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("few", [0, 1 << 16])
def test_counts_are_those_of_loops(few, weight, monkeypatch):
    monkeypatch.setattr(pairs, "FEW_CELLS", few)
    weights = WEIGHTS[weight]
    for columns in ((0, 2), (1, 2)):
        model = CooccurrenceEncoder(1, pairs=[columns]).fit(X, sample_weight=weights)._model.sums
        [found] = model.pairs
        values = [[*key.vocabularies[0].to_numpy().tolist(), None] for key in model.keys]
        named = [
            [names[code] for code in codes] for names, codes in zip(values, (found.first, found.second), strict=True)
        ]
        counts = dict(zip(zip(*named, strict=True), pairs.weights_of(found.sums).tolist(), strict=False))
        missing = [X[:, column].tolist() for column in columns]
        assert counts == count_by_loops(*missing, np.ones(N) if weights is None else weights)


@pytest.mark.host
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
@pytest.mark.parametrize(
    "encoder",
    [
        SpectralEncoder(3, weighting="eta", columns=[0, (1, 2), 1]),
        CooccurrenceEncoder(2, weighting="ppmi"),
        CooccurrenceEncoder(2, pairs=[(0, (1, 2)), ((1, 2), 0)], scale="root"),
    ],
    ids=["spectral", "all", "both ways"],
)
def test_parts_in_any_order_are_one_fit(encoder, order, weight, tmp_path):
    weights = WEIGHTS[weight]
    whole = type(encoder)(**encoder.get_params()).fit(X, sample_weight=weights)
    parts = in_parts(encoder, weights, order)
    assert_same_bits(parts.transform(FRESH), whole.transform(FRESH))
    whole.save(tmp_path / "whole")
    parts.save(tmp_path / "parts")
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "parts").read_bytes()


@pytest.mark.host
def test_rows_without_a_target_are_one_more_part():
    whole = CooccurrenceEncoder(2).fit(X[:50], unlabelled=X[50:])
    assert_same_bits(CooccurrenceEncoder(2).fit(X[:50]).partial_fit(X[50:]).transform(X), whole.transform(X))


@pytest.mark.host
def test_too_small_a_rank_is_said_when_vectors_are_asked_for():
    encoder = CooccurrenceEncoder(3, strict=True).partial_fit(X[:2])
    with pytest.raises(ValueError, match="more than the rank of the counts of"):
        encoder.transform(X)
    assert_same_bits(encoder.partial_fit(X[2:]).transform(X), CooccurrenceEncoder(3).fit(X).transform(X))


@pytest.mark.host
def test_the_number_of_columns_grows_with_the_rank():
    encoder = CooccurrenceEncoder(3).partial_fit(X[:2])
    assert max(encoder.n_components_) < 3
    assert encoder.transform(X).shape[1] == sum(encoder.n_components_) == len(encoder.get_feature_names_out())
    assert_same_bits(encoder.partial_fit(X[2:]).transform(X), CooccurrenceEncoder(3).fit(X).transform(X))
    assert encoder.n_components_ == [3] * 6


@pytest.mark.host
def test_other_columns_and_parameters_are_refused():
    with pytest.raises(ValueError, match="expecting 3 features"):
        SpectralEncoder().fit(X).partial_fit(X[:, :2])
    with pytest.raises(ValueError, match="weighting is None and 'eta'"):
        SpectralEncoder().fit(X).merge(SpectralEncoder(weighting="eta").fit(X))
    with pytest.raises(ValueError, match="no_such"):
        CooccurrenceEncoder(pairs=[("no_such", 1)]).partial_fit(X)
