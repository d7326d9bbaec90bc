"""Keys whose rows are summed together, by `fit` and in parts: sums and encodings equal those of each key alone."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_fallback.compiled import key_sums as kernels
from cpu_fallback.types import KeyCounts
from gpu_encode import EmpiricalBayes, Holdout, KFold, LeaveOneOut, StatisticEncoder, TargetEncoder
from gpu_encode.fitting import columns, key_lookups, key_sums
from gpu_encode.scale.parts import Part, encode
from gpu_encode.seam.ops import use_backend
from gpu_encode.sums.category_sums import NarrowCounts
from tests.bits import assert_same_bits, assert_same_encoder
from tests.laws.test_key_lookups import KEYS, TARGETS, make_rows
from tests.scale.parts.in_parts import encoded_in_parts, fitted_in_parts, parts_of
from tests.strategies import examples

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore::UserWarning")]
# Some categories have no row of any weight.
WEIGHTS = {"alike": None, "whole": np.arange(200) // 2 % 3, "reals": np.arange(200) % 7 / 3}
SCHEMES = [3, KFold(3, blow_up=True), Holdout(0.4), LeaveOneOut()]


@pytest.fixture
def sizes(monkeypatch):
    """Return a list that collects how many keys each call counted together, and then looked up."""
    noted = []

    def note(module, name):
        original = getattr(module, name)

        def noting(*given):
            found = original(*given)
            noted.append(len(found))
            return found

        monkeypatch.setattr(module, name, noting)

    note(key_sums, "sum_together")
    note(key_lookups.JointTables, "look_up")
    return noted


def fitted(X, y, weight=None, fewest=8, **choices):
    with use_backend("compiled"), pytest.MonkeyPatch.context() as patch:
        patch.setitem(columns.FEWEST_ON, "cpu", fewest)
        return TargetEncoder(columns=KEYS, **choices).fit(X, y, sample_weight=weight)


@examples(40)
@given(data=st.data())
def test_keys_together_equal_keys_alone(data):
    draw = data.draw
    X, y = (
        make_rows(draw(st.integers(0, 99)), 200, draw(st.sampled_from([0, 0.3]))),
        TARGETS[draw(st.sampled_from([*TARGETS]))],
    )
    choices = {
        "handle_missing": draw(st.sampled_from(["category", "prior", "nan"])),
        "smooth": draw(st.sampled_from([None, 2.5, EmpiricalBayes(), {"text": 3.0}])),
        "cv": draw(st.sampled_from([3, Holdout(0.4)])),
    }
    weight = WEIGHTS[draw(st.sampled_from([*WEIGHTS]))]
    together, alone = fitted(X, y, weight, **choices), fitted(X, y, weight, 10**9, **choices)
    assert_same_encoder(together, alone)
    others = make_rows(1, 300, spread=2)
    assert_same_bits(together.transform(others), alone.transform(others))


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("target", TARGETS)
def test_fit_sums_all_keys_together(sizes, target, weight):
    fitted(make_rows(0, 200), TARGETS[target], weight, smooth={"text": 3.0})
    assert sizes == [len(KEYS)]


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("sizes_of_blocks", [(1, 1), (300, 50)])
def test_blocks_of_keys_meet(monkeypatch, sizes_of_blocks, weight):
    expected = fitted(make_rows(0, 200), TARGETS["classes"], weight)
    for name, size in zip(("GROUP", "PIECE"), sizes_of_blocks, strict=True):
        monkeypatch.setattr(kernels, name, size)
    assert_same_encoder(fitted(make_rows(0, 200), TARGETS["classes"], weight), expected)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("cv", SCHEMES, ids=str)
def test_rows_in_parts(cv, target):
    X, y = make_rows(3, 200), TARGETS[target]
    with use_backend("compiled"):
        one = TargetEncoder(columns=KEYS, cv=cv, dtype="float32")
        expected = one.fit_transform(X, y)
        other = TargetEncoder(columns=KEYS, cv=cv, dtype="float32")
        encodings = encoded_in_parts(other, parts_of(X, y, cuts=[1, 90]))
    pd.testing.assert_frame_equal(pd.concat(encodings), expected, check_exact=True)
    assert_same_encoder(other, one)


def test_folds_within_classes_in_parts():
    test_rows_in_parts(KFold(4, stratify=True), "classes")


def test_parts_are_counted_and_looked_up_together(sizes):
    X, y = make_rows(3, 200), TARGETS["classes"]
    with use_backend("compiled"):
        encoded_in_parts(TargetEncoder(columns=KEYS), parts_of(X, y, cuts=[150]))
    assert sizes == [len(KEYS)] * 4


def test_statistics_in_parts():
    X, y = make_rows(3, 200), TARGETS["reals"]
    with use_backend("compiled"):
        expected = StatisticEncoder(["mean", "std", "max"], columns=KEYS, cv=3).fit_transform(X, y)
        encodings = encoded_in_parts(
            StatisticEncoder(["mean", "std", "max"], columns=KEYS, cv=3), parts_of(X, y, cuts=[150])
        )
    pd.testing.assert_frame_equal(pd.concat(encodings), expected, check_exact=True)


def test_rows_that_were_not_measured_are_refused():
    X, y = make_rows(3, 200), TARGETS["binary"]
    with use_backend("compiled"):
        tables = fitted_in_parts(TargetEncoder(columns=KEYS), parts_of(X, y))
        with pytest.raises(ValueError, match="has values that were not"):
            encode(tables, Part(make_rows(4, 200, spread=3), np.zeros(200)))


def test_threads_that_need_the_sums_at_once_all_get_them():
    found = KeyCounts(np.arange(3, dtype=np.uint32), np.arange(20, dtype=np.int32).reshape(5, 4, 1))
    counts = NarrowCounts(found, 2)
    sums = counts.on_host
    assert sums.shape == (5, 2, 2, 1)
    # One thread may have found no sums yet while another thread made them and dropped the counts.
    assert NarrowCounts.on_host.func(counts) is sums
    assert NarrowCounts.shape.func(counts) == sums.shape
