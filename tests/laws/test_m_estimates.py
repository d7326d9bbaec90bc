"""m-estimates with extreme priors, weights and m have the same bits on every backend."""

import numpy as np
import pytest

from gpu_encode import KFold, MEstimate, Ordered, TargetEncoder, tune
from gpu_encode.seam.ops import use_backend
from tests.bits import assert_same_bits
from tests.laws import encoding

pytestmark = pytest.mark.host


def encodings(X, y, **choices):
    weight, found = choices.pop("sample_weight", None), []
    for backend in encoding.BACKENDS:
        with use_backend(backend):
            encoder = TargetEncoder(target_type="continuous", **choices)
            found.append(np.asarray(encoder.fit_transform(X, y, sample_weight=weight)))
        assert_same_bits(found[-1], found[0])
    return found[0][:, 0]


@pytest.mark.filterwarnings("ignore:.* rows see no rows at all")
def test_without_a_weight_of_the_prior_none_has_to_be_visible():
    n, weight = 1100, np.ones(1100)
    # Up to its checkpoint, place 512, an order has seen no row that weighs something.
    weight[:512] = 0
    found = encodings([["a"]] * n, np.arange(n), smooth=0.0, cv=Ordered(shuffle=False), sample_weight=weight)
    assert found[513] == 512.0


@pytest.mark.parametrize("m", [1e-300, 0.1, 3.0, 1e300])
@pytest.mark.parametrize("prior", [0.5, "category_mean", "mean"])
def test_many_categories_are_taken_a_tile_at_a_time(m, prior, monkeypatch):
    random = np.random.default_rng(0)
    X, y = random.integers(0, 60, (300, 1)), random.standard_normal(300)
    expected = encodings(X, y, smooth=MEstimate(m), prior=prior, cv=KFold(3))
    for backend in ("cpu_fallback", "cpu_fallback.compiled"):
        monkeypatch.setattr(f"{backend}.TILE", 64)
    assert_same_bits(encodings(X, y, smooth=MEstimate(m), prior=prior, cv=KFold(3)), expected)


@pytest.mark.parametrize("smoothings", [[None, "auto"], [1.0, "auto"]])
def test_tune_asks_for_digits_where_an_m_needs_them(smoothings):
    X, y = np.arange(60)[:, None] % 7, np.arange(60.0)
    assert len(tune(TargetEncoder(target_type="continuous"), X, y, smoothings=smoothings).scores) == 2
