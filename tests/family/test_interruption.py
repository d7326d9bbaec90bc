"""Searches end soon after Ctrl-C, however long they would go on."""

import _thread
import threading
import time
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

import gpu_encode as ge
from gpu_encode.seam.ops import use_backend

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("heeded")]

RANDOM = np.random.default_rng(0)
FEW, MANY = RANDOM.integers(0, 2, (300, 10)), RANDOM.integers(0, 5000, (40_000, 40))
LABELS, Y = RANDOM.integers(0, 2, len(MANY)), RANDOM.normal(size=len(MANY))
ENDLESS = {"max_rounds": 10**9, "tol": 1e-300}
SEARCHES = {
    "proximity": partial(ge.ProximityRegressor(**ENDLESS).fit, FEW, Y[:300]),
    "votes": partial(ge.VoteRegressor(rule="weighted_mean", **ENDLESS).fit, MANY[:3000] % 2, Y[:3000]),
    "blend": partial(ge.ConvexBlend(**ENDLESS).fit, RANDOM.normal(size=(len(MANY), 3)), LABELS),
    "factors": partial(ge.FactorizationEncoder(2, max_iter=10**9, tol=0.0).fit, MANY[:, :3], Y),
    "clusters": partial(ge.ClusterEncoder(2, by="statistics", columns=[0]).fit, np.arange(len(MANY))[:, None] // 2, Y),
    "conjunctions": partial(ge.choose_interactions, ge.TargetEncoder(), MANY, LABELS, order=3),
    "smoothings": partial(ge.tune, ge.TargetEncoder(), MANY, Y, smoothings=[*map(float, range(1, 5000))]),
    "leaks": partial(ge.leak_report, ge.TargetEncoder(), MANY, LABELS, n_shuffles=10**6),
}


@pytest.mark.parametrize("search", SEARCHES)
def test_searches_can_be_interrupted(search):
    # NumPy's operations, since an interrupt while numba is loaded would spoil the tests that follow.
    call = SEARCHES[search]
    asked = []

    def interrupt():
        asked.append(time.perf_counter())
        _thread.interrupt_main()

    timer = threading.Timer(1.0, interrupt)
    timer.start()
    try:
        with use_backend("numpy"), pytest.raises(KeyboardInterrupt):
            call()
    finally:
        timer.cancel()
    assert time.perf_counter() - asked[0] < 20
    estimator = getattr(call.func, "__self__", None)
    if estimator is not None:
        # Nothing is left of the fit that did not end.
        assert vars(estimator).keys() == vars(clone(estimator)).keys()
