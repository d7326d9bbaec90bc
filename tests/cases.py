"""Schemes and smoothings that the suites share, each under one name.

Encoders do not change these objects, so all tests can share them.
"""

import os
from itertools import combinations, product
from typing import Any

import pytest

import gpu_encode as ge

# .ci/long runs every combination.
EVERY_COMBINATION = bool(os.environ.get("EVERY_COMBINATION"))

SMOOTHINGS: dict[str, Any] = {
    "none": None,
    "auto": "auto",
    "number": 2.5,
    "m-estimate": ge.MEstimate(0.3),
    "sigmoid": ge.Sigmoid(k=3.0, f=1.5),
    "between": ge.EmpiricalBayes(tau="between"),
    "anova": ge.EmpiricalBayes(tau="anova"),
    "anova-pooled": ge.EmpiricalBayes(tau="anova", pooled=True),
    "total-pooled": ge.EmpiricalBayes(pooled=True),
    "james-stein": ge.JamesStein(),
    "james-stein-independent": ge.JamesStein(model="independent"),
    "partial-pooling": ge.PartialPooling(),
}

# Folds with about equal shares of each class, for class targets.
STRATIFIED: dict[str, Any] = {
    "stratified": ge.KFold(3, stratify=True),
    "stratified-contiguous": ge.KFold(3, stratify=True, order="contiguous"),
    "stratified-interleaved": ge.KFold(3, stratify=True, order="interleaved"),
}


def fold_schemes(groups: Any = "shop", time: Any = "day", folds: Any = "fold") -> dict[str, Any]:
    """Schemes of folds and leave-one-out; `groups`, `time` and `folds` name columns of the frame."""
    return {
        "greedy": ge.Greedy(),
        "number": 3,
        "k-fold": ge.KFold(3, random_state=4),
        "contiguous": ge.KFold(4, order="contiguous"),
        "interleaved": ge.KFold(3, order="interleaved"),
        "blow-up": ge.KFold(2, blow_up=True),
        "groups": ge.GroupKFold(3, groups=groups),
        "by-value": ge.KFold(2, by=groups, random_state=3),
        "time-folds": ge.TimeFolds(4, time=time, gap=1),
        "holdout": ge.Holdout(0.4, random_state=2),
        "leave-one-out": ge.LeaveOneOut(),
        "fold-column": folds,
    }


def ordered_schemes(time: Any = "day") -> dict[str, Any]:
    """Schemes in which a row uses only the rows before it; `time` names a column of the frame."""
    return {
        "ordered-rows": ge.Ordered(shuffle=False),
        "ordered-rows-burn-in": ge.Ordered(shuffle=False, burn_in=30),
        "ordered": ge.Ordered(random_state=6),
        "ordered-burn-in": ge.Ordered(burn_in=0.2, block=3),
        "averaged": ge.Ordered(3, block=8),
        "apart": ge.Ordered(2, average=False),
        "ordered-time": ge.Ordered(time=time),
        "ordered-time-burn-in": ge.Ordered(time=time, burn_in=9),
    }


def schemes(groups: Any = "shop", time: Any = "day", folds: Any = "fold") -> dict[str, Any]:
    """Return all schemes that need only named columns."""
    return fold_schemes(groups, time, folds) | ordered_schemes(time)


def some(cases: dict[str, Any], *names: str) -> dict[str, Any]:
    """Choose cases by name."""
    return {name: cases[name] for name in names}


def named(cases: dict[str, Any], simulated: tuple[str, ...] | None = None) -> list[Any]:
    """Parameters for ``pytest.mark.parametrize`` with the names as ids; the GPU simulator runs the `simulated` ones."""
    return [
        pytest.param(case, id=name, marks=() if simulated is None or name in simulated else pytest.mark.host)
        for name, case in cases.items()
    ]


def pairs(*parameters: Any) -> list[tuple[Any, ...]]:
    """Return some combinations of parameters, in which each value meets each value of every other parameter.

    They show a fault of one value or of a pair of values; EVERY_COMBINATION=1 gives all combinations.
    """
    everything = list(product(*(range(len(values)) for values in map(list, parameters))))
    values = [list(each) for each in parameters]
    met: set[Any] = set()
    chosen = everything if EVERY_COMBINATION else []
    # The combinations with the most new pairs come first.
    for least in range(0 if EVERY_COMBINATION else len(values) * (len(values) - 1) // 2, 0, -1):
        for numbers in everything:
            new = set(combinations(enumerate(numbers), 2)) - met
            if len(new) >= least:
                chosen.append(numbers)
                met |= new
    return [tuple(each[number] for each, number in zip(values, numbers, strict=True)) for numbers in sorted(chosen)]


def some_of(names: Any, others: Any, every: int = 2) -> list[tuple[Any, Any]]:
    """Return every second pair of names, so that each name meets about half of the others; EVERY_COMBINATION=1: all."""
    return [
        (name, other)
        for i, name in enumerate(names)
        for j, other in enumerate(others)
        if EVERY_COMBINATION or (i + j) % every == 0
    ]
