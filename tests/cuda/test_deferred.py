"""Sums that a model leaves on the GPU: results do not change, only the number of copies."""

import copy
import os
import pickle
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from gpu_encode import KFold, LeaveOneOut, TargetEncoder, load
from tests.backends import memory
from tests.bits import assert_same_bits

pytestmark = pytest.mark.cuda

N = 60
X = (np.arange(N) * 7 % 50).astype(np.int32)[:, None]
TARGETS = {"classes": (np.arange(N) // 3 % 2).astype(np.int32), "reals": np.arange(N) % 11 + 0.25}
SCHEMES = {"folds": KFold(3), "leave-one-out": LeaveOneOut()}


@pytest.fixture
def deferred(monkeypatch):
    """Leave sums on the device, however few they are."""
    module = import_module("gpu_encode.sums.category_sums")
    monkeypatch.setattr(module, "FEWEST_DEFERRED", 0)
    monkeypatch.setattr(module, "FEW_BYTES", 0)
    return module


def fitted(y, **options):
    return TargetEncoder(device="cuda", dtype="float32", **options).fit(memory.to_device(X), memory.to_device(y))


def sums_of(encoder):
    return encoder._model.statistics[0][0]


def is_copied(sums):
    return "accumulators" in vars(sums)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_rows_of_the_device_ask_for_no_copy(deferred, target, scheme):
    y, parameters = TARGETS[target], {"cv": SCHEMES[scheme], "smooth": 3.0, "dtype": "float32"}
    encoder = TargetEncoder(device="cuda", **parameters)
    trained = encoder.fit_transform(memory.to_device(X), memory.to_device(y))
    found = encoder.transform(memory.to_device(X))
    sums = sums_of(encoder)
    assert isinstance(sums, deferred.DeferredSums)
    assert not is_copied(sums)
    assert (sums.n_categories, sums.n_views) == (50, 1)
    other = TargetEncoder(device="cpu", **parameters)
    assert_same_bits(memory.to_host(trained), other.fit_transform(X, y))
    assert_same_bits(memory.to_host(found), other.transform(X))
    assert_same_bits(sums.accumulators, sums_of(other).accumulators)
    # The device frees the sums that the host has.
    assert sums._copy.on_device() is None
    assert_same_bits(memory.to_host(encoder.transform(memory.to_device(X))), other.transform(X))


def merged(encoder, folder):
    encoder.partial_fit(memory.to_device(X[:9]), memory.to_device(TARGETS["classes"][:9]))
    return encoder


def saved(encoder, folder):
    encoder.save(folder / "encoder.npz")
    return load(folder / "encoder.npz")


ASKING = {
    "transform on the host": lambda encoder, _: encoder,
    "pickle": lambda encoder, _: pickle.loads(pickle.dumps(encoder)),
    "deepcopy": lambda encoder, _: copy.deepcopy(encoder),
    "save": saved,
    "partial_fit": merged,
}


@pytest.mark.parametrize("way", ASKING)
def test_whoever_asks_gets_the_sums(deferred, tmp_path, way):
    y, parameters = TARGETS["classes"], {"smooth": 3.0, "dtype": "float32"}
    theirs = ASKING[way](
        TargetEncoder(device="cuda", **parameters).fit(memory.to_device(X), memory.to_device(y)), tmp_path
    )
    mine = TargetEncoder(device="cpu", **parameters).fit(X, y)
    if way == "partial_fit":
        mine.partial_fit(X[:9], y[:9])
    theirs.device = "cpu"
    assert_same_bits(theirs.transform(X), mine.transform(X))
    assert_same_bits(sums_of(theirs).accumulators, sums_of(mine).accumulators)


def test_what_is_made_of_them_is_not_deferred(deferred):
    sums = sums_of(fitted(TARGETS["classes"]))
    for made in (replace(sums, added=3), pickle.loads(pickle.dumps(sums)), copy.copy(sums), sums.part(2, 7)):
        assert type(made).__name__ == "CategorySums"
        assert made.shape == made.accumulators.shape
    assert sums.part(2, 7).shape == (5, 1, 2, 1)


def test_few_sums_and_those_of_the_host_are_kept_there():
    assert is_copied(sums_of(fitted(TARGETS["classes"])))
    assert is_copied(sums_of(TargetEncoder(device="cpu").fit(X, TARGETS["classes"])))


def test_another_device_gets_a_copy(deferred, monkeypatch):
    encoder = fitted(TARGETS["classes"])
    expected = memory.to_host(encoder.transform(memory.to_device(X)))
    del encoder._model.__dict__["_lookups"]
    monkeypatch.setattr(import_module("gpu_encode.cuda.deferred"), "current_device", lambda: 1)
    assert_same_bits(memory.to_host(encoder.transform(memory.to_device(X))), expected)
    assert is_copied(sums_of(encoder))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no system that forks")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_fork_finds_the_copies_made(deferred):
    module = import_module("gpu_encode.cuda.deferred")
    first, second = fitted(TARGETS["classes"]), fitted(TARGETS["reals"])
    assert len(module.PENDING) == 2
    child = os.fork()
    if not child:
        os._exit(len(module.PENDING))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not module.PENDING
    assert sums_of(first)._copy.on_device() is sums_of(second)._copy.on_device() is None


def test_nobody_waits_for_those_that_are_gone(deferred):
    module = import_module("gpu_encode.cuda.deferred")
    encoder = fitted(TARGETS["classes"])
    assert len(module.PENDING) == 1
    del encoder
    assert not module.PENDING


def test_two_threads_may_ask_at_once(deferred, monkeypatch):
    module, sums = import_module("gpu_encode.cuda.deferred"), sums_of(fitted(TARGETS["classes"]))
    found, real = [], module.to_host

    def interrupted(array):
        if not found:
            found.append(None)
            found.append(sums._copy.on_host)
        return real(array)

    monkeypatch.setattr(module, "to_host", interrupted)
    found.append(sums._copy.on_host)
    assert_same_bits(found[1], found[2])
    assert not module.PENDING
