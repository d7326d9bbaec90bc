"""All calls of the benchmarks stay in their fused passes; array expressions would take many times as long."""

from importlib import import_module
from itertools import product

import numpy as np
import pytest

from benchmarks.gpu.encoders import CASES, KINDS
from benchmarks.rapids.job import N_CLASSES, SMOOTH, WORKS
from gpu_encode import TargetEncoder, interactions
from gpu_encode.seam.ops import use_backend
from tests.backends import ON_CUDA

ROWS, CATEGORIES = 400, 7
# Like a mean of many rows, it has 53 bits; with it n + m makes ties where it is even.
PRIORS = (0.3 + 2.0**-30 / 3, 0.1)


@pytest.fixture(scope="module", params=ON_CUDA)
def backend_name(request):
    return request.param


@pytest.fixture
def memory(backend_name):
    with use_backend(backend_name):
        yield import_module("gpu_encode.cuda.memory")


@pytest.fixture
def fallbacks(memory, monkeypatch):
    """Return the estimates that were left to array expressions when there is hardly any memory for doubtful ones."""
    found = import_module("gpu_encode.cuda.fallbacks").FALLBACKS
    monkeypatch.setattr(import_module("gpu_encode.cuda.encodings"), "ROOM_FOR_DOUBTS", 0)
    found.clear()
    yield found
    found.clear()


def rows_of(memory, target, keys, n_columns=1):
    random = np.random.default_rng(len(target))
    X = random.integers(0, CATEGORIES, (ROWS, n_columns)).astype(keys)
    real, label = random.standard_normal(ROWS), (random.random(ROWS) < 0.3).astype(np.int32)
    targets = {"real": real, "float32": real.astype(np.float32), "binary": label, "binary64": label.astype(np.int64)}
    targets["ten"] = random.integers(0, N_CLASSES, ROWS).astype(np.int32)
    return memory.to_device(X), memory.to_device(targets[target])


@pytest.mark.filterwarnings("ignore:.* rows see no rows at all")
@pytest.mark.parametrize("name", CASES)
def test_the_benchmark_of_encoders(memory, fallbacks, name):
    case = CASES[name]
    X, y = rows_of(memory, case.target, case.keys)
    kind = KINDS.get(case.target, "binary")
    encoder = TargetEncoder(target_type=kind, dtype="float32", device="cuda", **case.options)
    if case.work == "fit_transform":
        encoder.fit_transform(X, y)
    else:
        encoder.fit(X, y).transform(X)
    assert not fallbacks


@pytest.mark.filterwarnings("ignore:.* rows see no rows at all")
@pytest.mark.parametrize(("name", "prior"), [*product(WORKS, [*PRIORS, "mean"])])
def test_the_benchmark_of_frames(memory, fallbacks, name, prior):
    work = WORKS[name]
    X, y = rows_of(memory, "ten" if work.n_classes == N_CLASSES else "binary", "int32", work.n_keys)
    columns = interactions(list(range(work.n_keys)), order=2) if work.n_keys > 1 else None
    kind = "multiclass" if work.n_classes == N_CLASSES else "binary"
    options = {**work.options, "columns": columns, "smooth": SMOOTH, "prior": prior, "target_type": kind}
    encoder = TargetEncoder(dtype="float64", device="cuda", **options)
    found = encoder.fit_transform(X, y) if name != "mean" else encoder.fit(X, y).transform(X)
    assert not fallbacks
    on_host = TargetEncoder(dtype="float64", device="cpu", **options)
    X, y = memory.to_host(X), memory.to_host(y)
    with use_backend("numpy"):
        expected = on_host.fit_transform(X, y) if name != "mean" else on_host.fit(X, y).transform(X)
    assert memory.to_host(found).tobytes() == np.asarray(expected).tobytes()
