"""Rows that come and go: `partial_fit`, `merge` and `forget` give what one fit gives, or refuse."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_encode as ge
from tests.bits import assert_same_encoder
from tests.cases import STRATIFIED, schemes
from tests.family.members import same
from tests.strategies import examples

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore::UserWarning")]
N = 40
MASK, NEW_SEE_ALL = ge.Holdout(mask="held"), ge.Holdout(mask="held", new_rows="all", calibration_rows="nan")
HALVING, WINDOW = ge.TimeFolds(3, time="day", half_life=3), ge.Ordered(time="day", window=4)
SCHEMES: dict[str, Any] = {
    **schemes(),
    **STRATIFIED,
    "mask": MASK,
    "mask, new rows see all": NEW_SEE_ALL,
    "random, new rows see all": ge.Holdout(0.4, new_rows="all"),
    "a mask for all rows": ge.Holdout(mask=np.arange(N) % 3 == 0),
    "halving": HALVING,
    "window": WINDOW,
    "mask by column": {"key": MASK, "size": 3},
    "random by column": {"key": 3, "size": ge.Holdout(0.3)},
}
# New rows see folds that follow from a row's own values, or from all rows of the call.
BY_VALUE = ("mask", "mask by column")
BY_CALL = ("holdout", "blow-up", "a mask for all rows", "halving", "window", "random by column")
COLUMNS: dict[str, Any] = {"columns": ["key", "size"]}
ENCODERS: dict[str, Callable[[Any], Any]] = {
    "target": lambda cv: ge.TargetEncoder(cv=cv, **COLUMNS),
    "target, indicators": lambda cv: ge.TargetEncoder(
        cv=cv, smooth=None, indicators=True, handle_unknown="nan", **COLUMNS
    ),
    "impact": lambda cv: ge.ImpactEncoder(cv=cv, **COLUMNS),
    "evidence": lambda cv: ge.WeightOfEvidenceEncoder(cv, **COLUMNS),
    "catboost": lambda cv: ge.CatBoostEncoder(cv=cv, **COLUMNS),
    "buckets": lambda cv: ge.CatBoostEncoder("buckets", cv=cv, **COLUMNS),
    "borders": lambda cv: ge.CatBoostEncoder("borders", borders=[0.5, 1.5], cv=cv, **COLUMNS),
    "ordinal": lambda cv: ge.OrdinalEncoder(order="target", cv=cv, handle_unknown=-1, **COLUMNS),
    "statistics": lambda cv: ge.StatisticEncoder(["mean", "count", "std"], cv=cv, **COLUMNS),
    "columns": lambda cv: ge.StatisticEncoder(["median", "mode"], values=["pieces"], cv=cv, **COLUMNS),
    "clusters": lambda cv: ge.ClusterEncoder(2, cv=cv, **COLUMNS),
    "one-hot": lambda _: ge.OneHotEncoder(sparse_output=False, min_frequency=3, handle_unknown="ignore", **COLUMNS),
    "count": lambda _: ge.CountEncoder(**COLUMNS),
    "hashing": lambda _: ge.HashingEncoder(4, **COLUMNS),
    "neighbours": lambda _: ge.CooccurrenceEncoder(2, **COLUMNS),
}
WITHOUT_TARGET = ("columns", "one-hot", "count", "hashing", "neighbours")
# Targets whose kind follows from all rows: the rows of some calls may look like another kind.
CHANGING = ("counts", "labels", "fractions at the end")
OF_SCHEMES = "cannot tell which rows|has no folds|rows of all ages"
OTHER_KIND = (
    "forget would leave rows|different kinds|Earlier calls had|now has 3 labels|needs at most 2 distinct labels"
)


def make_target(kind, rng, first):
    if kind == "fractions at the end":
        return np.where(np.arange(N) < first, rng.integers(0, 2, N), rng.normal(size=N))
    if kind == "labels":
        return rng.choice([*"xyz"], N, p=[0.47, 0.47, 0.06])
    return {"flags": rng.integers(0, 2, N), "reals": rng.normal(size=N), "counts": rng.integers(0, 4, N)}[kind]


class Calls:
    """Rows in two calls, and an encoder of each."""

    def __init__(self, data):
        draw = data.draw
        self.scheme, self.name = draw(st.sampled_from([*SCHEMES])), draw(st.sampled_from([*ENCODERS]))
        self.kind = draw(st.sampled_from(["flags", "reals", *CHANGING]))
        first, rng = draw(st.integers(6, N - 6)), np.random.default_rng(draw(st.integers(0, 99)))
        self.X = pd.DataFrame(
            {
                "key": rng.choice([*"abcdefg"], N),
                "size": rng.integers(0, 4, N),
                "pieces": rng.integers(0, 5, N),
                "held": rng.random(N) < 0.5,
                "shop": rng.choice([*"pqrs"], N),
                "day": rng.integers(0, 12, N),
                "fold": rng.integers(0, 3, N),
            }
        )
        self.y = make_target(self.kind, rng, first)
        self.weight = draw(st.sampled_from([None, rng.integers(1, 4, N)]))
        self.a, self.b, self.all = slice(0, first), slice(first, N), slice(0, N)

    def given(self, rows):
        y = None if self.name in WITHOUT_TARGET else self.y[rows]
        return {"X": self.X[rows], "y": y, "sample_weight": None if self.weight is None else self.weight[rows]}

    def fit(self, rows):
        return ENCODERS[self.name](SCHEMES[self.scheme]).fit(**self.given(rows))

    @property
    def apart(self):
        """The calls that cannot know what new rows see."""
        if self.name in ("one-hot", "count", "hashing", "neighbours"):
            return ()
        every = ("partial_fit", "merge", "forget")
        return every if self.scheme in BY_CALL else every[::2] if self.scheme in BY_VALUE else ()

    def check(self, call, change, rows):
        """Compare an encoder after a call with one that was fitted to the same rows, or see why it was refused."""
        try:
            expected = self.fit(rows)
            encoder, other = self.fit(self.all if call == "forget" else self.a), self.fit(self.b)
        except ValueError:
            # Fits of few rows may be refused for reasons of their own.
            return
        before = encoder.transform(self.X)
        said = refusal_of(lambda: change(encoder, other))
        if said:
            same(encoder.transform(self.X), before)
            assert call in self.apart or self.kind in CHANGING
            assert re.search(OF_SCHEMES if call in self.apart else OTHER_KIND, said)
        else:
            assert call not in self.apart
            same(encoder.transform(self.X), expected.transform(self.X))
            assert_same_encoder(encoder, expected)


def refusal_of(change):
    """Give the message with which a call was refused; "" if it was not."""
    try:
        change()
    except ValueError as error:
        return str(error)
    return ""


@examples(150)
@given(data=st.data())
def test_calls_add_up_to_one_fit_or_are_refused(data):
    calls = Calls(data)
    calls.check("partial_fit", lambda encoder, _: encoder.partial_fit(**calls.given(calls.b)), calls.all)
    calls.check("merge", lambda encoder, other: encoder.merge(other), calls.all)
    if hasattr(ENCODERS[calls.name](None), "forget"):
        calls.check("forget", lambda encoder, _: encoder.forget(**calls.given(calls.b)), calls.a)


@pytest.mark.parametrize("scheme", [*BY_CALL, *BY_VALUE])
def test_sums_of_some_rows_are_never_mixed_with_those_of_all(scheme, tmp_path):
    rng, make = np.random.default_rng(0), ENCODERS["target"]
    X = pd.DataFrame({name: rng.integers(0, 4, N) for name in ("key", "size", "day")}).assign(held=np.arange(N) % 2)
    y, every, path = rng.integers(0, 2, N), make(3), tmp_path / "model"
    # The sums were made under another cv than the encoder has now.
    some = make(SCHEMES[scheme]).fit(X, y).set_params(cv=3)
    some.save(path)
    every.fit(X, y)
    for encoder in (some, ge.load(path)):
        before = encoder.transform(X)
        changes = [
            lambda encoder=encoder: encoder.forget(X[:1], y[:1]),
            lambda encoder=encoder: encoder.partial_fit(X, y),
            lambda encoder=encoder: encoder.merge(every),
            lambda encoder=encoder: every.merge(encoder),
        ]
        for change in changes:
            with pytest.raises(
                ValueError, match="needs the cv under which an encoder was fitted: new rows saw rows as"
            ):
                change()
        same(encoder.transform(X), before)
    with pytest.raises(ValueError, match="new rows saw all rows then"):
        every.set_params(cv=MASK).merge(make(MASK).fit(X, y))
