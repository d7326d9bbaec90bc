"""The GPU's iterative solver gives leading eigenvectors, or reports that it fails; then the host's solver runs."""

import numpy as np
import pytest
from scipy import sparse

from gpu_encode import CooccurrenceEncoder, SpectralEncoder, cuda
from gpu_encode.cuda import eigenvectors
from gpu_encode.methods.factors import spectra
from tests.methods.factors.drawn import X

RNG = np.random.default_rng(5)
MATRIX = sparse.csr_array(np.where(RNG.random((40, 25)) < 0.3, RNG.integers(1, 9, (40, 25)), 0).astype(float))
START = RNG.uniform(-1.0, 1.0, 25)

pytestmark = pytest.mark.cuda


@pytest.mark.parametrize("squared", [False, True])
def test_they_are_those_of_the_whole_matrix(squared):
    products = (MATRIX.T @ MATRIX).toarray()
    found = cuda.leading_eigenvectors(MATRIX if squared else sparse.csr_array(products), squared, 3, START, 1e-10)
    assert found is not None
    values, vectors = found
    expected = np.linalg.eigvalsh(products)[-3:]
    np.testing.assert_allclose(np.sort(values), expected, rtol=1e-9)
    np.testing.assert_allclose(products @ vectors, vectors * values, atol=1e-6 * expected[-1])


def test_what_does_not_hold_is_none(monkeypatch):
    products = sparse.csr_array(MATRIX.T @ MATRIX)
    assert cuda.leading_eigenvectors(products, False, 23, START, 1e-10) is None
    assert cuda.leading_eigenvectors(sparse.csr_array((25, 25)), False, 2, START, 1e-10) is None
    wrong = np.ones(2), np.eye(25)[:, :2]
    monkeypatch.setattr(eigenvectors, "iterate_eigenvectors", lambda *_: wrong)
    assert cuda.leading_eigenvectors(products, False, 2, START, 1e-10) is None


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize(
    "encoder", [SpectralEncoder(2), CooccurrenceEncoder(2, pairs=[((0, 1), (2,))], weighting="eta")]
)
def test_encoders_ask_it_where_the_device_is_asked_for(encoder, fails, monkeypatch):
    monkeypatch.setattr(spectra, "WHOLE_SIDE", 0)
    monkeypatch.setattr(spectra, "WHOLE_SHARE", 2)
    asked = []

    def solve(*given):
        asked.append(given)
        return None if fails else eigenvectors.leading_eigenvectors(*given)

    monkeypatch.setattr(cuda, "leading_eigenvectors", solve)
    host = encoder.set_params(device="cpu").fit_transform(X)
    assert not asked
    there = encoder.set_params(device="cuda").fit_transform(X)
    assert len(asked) == 1
    np.testing.assert_allclose(there, host, rtol=1e-6, atol=1e-9)
